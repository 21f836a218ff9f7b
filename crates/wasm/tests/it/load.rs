//! What is a policy and what is not, and where compiled ones are kept.

use crate::support::{load, sandbox, validate};
use muster_testkit::policies::{self, Abi, assemble, with_metadata, with_section};
use muster_wasm::{LARGEST_MODULE, Mode, Options, Sandbox};
use serde_json::json;

#[test]
fn what_is_no_policy_is_refused_and_told_why() {
    let unsupported = "(Rego compiled to WebAssembly), which are not supported yet; \
                       only those for waPC and WASI are, and Rego as source";
    let guest = r#"(func (export "__guest_call") (param i32 i32) (result i32) (i32.const 1))"#;
    let memory = r#"(memory (export "memory") 1)"#;
    let accepting = || policies::accepting(Abi::Wapc);
    for (module, expected) in [
        (
            b"package kubernetes".to_vec(),
            "it is not a WebAssembly module".to_owned(),
        ),
        (Vec::new(), "it is not a WebAssembly module".into()),
        (
            b"\0asm\x0d\0\x01\0".to_vec(),
            "it is WebAssembly, but no module (components are not supported)".into(),
        ),
        (
            vec![0; LARGEST_MODULE + 1],
            "it has 67108865 bytes, and a module may have 64 MiB".into(),
        ),
        (
            policies::opa(),
            format!("it is a policy for OPA or Gatekeeper {unsupported}"),
        ),
        (
            with_metadata(accepting(), &json!({"executionMode": "opa"})),
            format!("it is a policy for OPA {unsupported}"),
        ),
        (
            with_metadata(policies::opa(), &json!({"executionMode": "gatekeeper"})),
            format!("it is a policy for Gatekeeper {unsupported}"),
        ),
        (
            with_metadata(accepting(), &json!({"executionMode": "magic"})),
            "its execution mode \"magic\" is not known".into(),
        ),
        (
            with_metadata(accepting(), &json!({"executionMode": "wasi"})),
            "it exports no function _start()".into(),
        ),
        (
            with_section(accepting(), "io.kubewarden.metadata", b"{"),
            "its metadata cannot be read: they are not as expected: \
             EOF while parsing an object at line 1 column 1"
                .into(),
        ),
        (
            assemble(&format!("(module {memory})")),
            "it is no policy: it exports neither __guest_call nor _start".into(),
        ),
        (
            assemble(&format!("(module {guest})")),
            "it exports no memory".into(),
        ),
        (
            assemble(&format!(
                r#"(module {memory} (func (export "__guest_call") (param i32)))"#
            )),
            "it exports no function __guest_call(i32, i32) -> i32".into(),
        ),
        (
            assemble(&format!(
                r#"(module {memory} (global (export "_start") i32 (i32.const 0)))"#
            )),
            "it exports no function _start()".into(),
        ),
        (
            assemble(&format!(
                r#"(module (import "env" "magic" (func)) {memory} {guest})"#
            )),
            "it imports env.magic, which is not there".into(),
        ),
        (
            assemble(&format!(
                r#"(module (import "wasi_snapshot_preview1" "magic" (func)) {memory} {guest})"#
            )),
            "it imports wasi_snapshot_preview1.magic, which is not there".into(),
        ),
    ] {
        let error = sandbox().load(&module).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn what_does_not_compile_is_refused() {
    let guest = r#"(func (export "__guest_call") (param i32 i32) (result i32) (i32.const 1))"#;
    let memory = r#"(memory (export "memory") 1)"#;
    let mut cut = policies::accepting(Abi::Wapc);
    cut.truncate(cut.len() / 2);
    for module in [
        cut,
        b"\0asm\x01\0\0\0\xff\xff\xff".to_vec(),
        assemble(&format!(r#"(module {memory} (memory 1) {guest})"#)),
        assemble(&format!(
            r#"(module (memory (export "memory") i64 1) {guest})"#
        )),
        assemble(&format!(r#"(module (type (struct)) {memory} {guest})"#)),
        assemble(&format!(
            r#"(module (import "wapc" "__host_error" (func)) {memory} {guest})"#
        )),
        assemble(&format!(
            r#"(module (import "wapc" "__magic" (func)) {memory} {guest})"#
        )),
        assemble(&format!(
            r#"(module (import "host" "call" (memory 1)) {guest})"#
        )),
    ] {
        let error = sandbox().load(&module).unwrap_err().to_string();
        assert!(!error.contains('\n') && !error.contains("0x7f"), "{error}");
        assert_eq!(error, sandbox().load(&module).unwrap_err().to_string());
    }
}

#[test]
fn the_mode_is_as_the_module_says_and_else_as_it_looks() {
    for (abi, mode, said) in [
        (Abi::Wapc, Mode::Wapc, "kubewarden-wapc"),
        (Abi::Wasi, Mode::Wasi, "wasi"),
    ] {
        let module = policies::accepting(abi);
        assert_eq!(load(&module).mode(), mode);
        assert_eq!(load(&module).metadata(), None);
        let module = load(&with_metadata(
            module,
            &json!({"executionMode": said, "mutating": true}),
        ));
        assert_eq!(module.mode(), mode);
        assert!(module.metadata().unwrap().mutating);
        assert_eq!(validate(&module, "{}").unwrap(), r#"{"accepted":true}"#);
    }
}

#[test]
fn what_compilers_emit_today_compiles() {
    // References to functions, calls at the end, vectors, and copying of memory.
    let module = assemble(
        r#"(module
             (import "wapc" "__guest_response" (func $respond (param i32 i32)))
             (memory (export "memory") 1)
             (type $f (func (result i32)))
             (elem declare func $one)
             (func $one (type $f) (i32.const 1))
             (func (export "__guest_call") (param i32 i32) (result i32)
               (memory.fill (i32.const 0) (i32.const 97) (i32.const 4))
               (drop (i8x16.splat (i32.const 1)))
               (call $respond (i32.const 0) (i32.const 4))
               (return_call_ref $f (ref.func $one))))"#,
    );
    assert_eq!(validate(&load(&module), "").unwrap(), "aaaa");
}

#[test]
fn a_module_that_was_compiled_once_comes_from_the_cache() {
    let directory = tempfile::tempdir().unwrap();
    let module = policies::accepting(Abi::Wapc);
    let cached = |directory: &std::path::Path| Options {
        cache: Some(directory.join("compiled")),
    };
    for expected in [(0, 1), (1, 0)] {
        let sandbox = Sandbox::new(cached(directory.path())).unwrap();
        let module = sandbox.load(&module).unwrap();
        assert_eq!(sandbox.cached(), expected);
        assert_eq!(validate(&module, "{}").unwrap(), r#"{"accepted":true}"#);
        // A module runs on when nobody has the sandbox any more.
        drop(sandbox);
        let spun = module.call(
            muster_wasm::Operation::Validate,
            b"{}",
            &crate::support::patient(),
            std::sync::Arc::new(crate::support::Nobody),
        );
        assert!(spun.is_ok());
    }
    let file = directory.path().join("file");
    std::fs::write(&file, "").unwrap();
    let error = Sandbox::new(cached(&file)).unwrap_err().to_string();
    assert!(error.starts_with("the cache of compiled modules cannot be used"));
}
