//! Modules that misbehave. Whatever they do, the call ends with a failure that names it, and nobody
//! else notices.

use crate::support::{Nobody, load, patient, sandbox, short, validate, validate_with};
use muster_testkit::policies::{self, Abi, assemble};
use muster_wasm::{Failure, Limits};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

#[test]
fn each_harm_is_a_failure_that_names_it() {
    for abi in Abi::ALL {
        let crashed = |what: &str| Failure::Trap(what.into());
        for (module, expected) in [
            (
                policies::panicking(abi),
                crashed("it gave up (an unreachable instruction was executed)"),
            ),
            (
                policies::recursing(abi),
                crashed("its call stack is exhausted"),
            ),
            (
                policies::spinning(abi),
                Failure::Time(Duration::from_millis(200)),
            ),
            (policies::hungry(abi), Failure::Memory(256 << 20)),
            (policies::verbose(abi), Failure::Output(4 << 20)),
            (
                policies::astray(abi),
                Failure::Protocol("it passed a pointer that leads out of its memory".into()),
            ),
        ] {
            let module = load(&module);
            let limits = match expected {
                Failure::Time(_) => short(),
                _ => patient(),
            };
            for _ in 0..2 {
                let failure = validate_with(&module, "{}", &limits, Arc::new(Nobody));
                assert_eq!(failure, Err(expected.clone()), "{abi:?}");
            }
        }
    }
}

#[test]
fn one_that_sleeps_is_woken_by_the_end_of_its_time() {
    let module = load(&policies::sleeping());
    let begun = Instant::now();
    let failure = validate_with(&module, "{}", &short(), Arc::new(Nobody));
    assert_eq!(failure, Err(Failure::Time(Duration::from_millis(200))));
    assert!(begun.elapsed() < Duration::from_secs(60));
}

#[test]
fn harm_while_starting_is_a_failure_like_any_other() {
    let guest = |fields: &str| {
        assemble(&format!(
            r#"(module {fields}
                 (func (export "__guest_call") (param i32 i32) (result i32) (i32.const 1)))"#
        ))
    };
    for (fields, expected) in [
        (
            r#"(memory (export "memory") 8192)"#,
            Failure::Memory(256 << 20),
        ),
        (
            r#"(memory (export "memory") 1) (table 100000000 funcref)"#,
            Failure::Memory(256 << 20),
        ),
        (
            r#"(memory (export "memory") 1) (func (export "wapc_init") (loop $on (br $on)))"#,
            Failure::Time(Duration::from_millis(200)),
        ),
        (
            r#"(memory (export "memory") 1) (func $start (loop $on (br $on))) (start $start)"#,
            Failure::Time(Duration::from_millis(200)),
        ),
        (
            r#"(memory (export "memory") 1) (func (export "_start") unreachable)"#,
            Failure::Trap("it gave up (an unreachable instruction was executed)".into()),
        ),
        (
            r#"(memory (export "memory") 1) (data (i32.const 65535) "ab")"#,
            Failure::Trap("out of bounds memory access".into()),
        ),
    ] {
        let module = load(&guest(fields));
        let limits = match expected {
            Failure::Time(_) => short(),
            _ => patient(),
        };
        let failure = validate_with(&module, "", &limits, Arc::new(Nobody));
        assert_eq!(failure, Err(expected), "{fields}");
    }
}

#[test]
fn a_table_grows_no_further_than_memory_may() {
    let module = load(&assemble(
        r#"(module
             (memory (export "memory") 1)
             (table $table 1 funcref)
             (func (export "__guest_call") (param i32 i32) (result i32)
               (loop $on
                 (drop (table.grow $table (ref.null func) (i32.const 1000000)))
                 (br $on))
               (i32.const 1)))"#,
    ));
    assert_eq!(validate(&module, ""), Err(Failure::Memory(256 << 20)));
}

#[test]
fn a_module_may_ask_for_less_than_it_would_get() {
    // It is told that there is no more, as it said itself.
    let module = load(&assemble(
        r#"(module
             (import "wapc" "__guest_response" (func $respond (param i32 i32)))
             (memory (export "memory") 1 2)
             (data (i32.const 0) "yes")
             (func (export "__guest_call") (param i32 i32) (result i32)
               (if (i32.eq (memory.grow (i32.const 5)) (i32.const -1))
                 (then (call $respond (i32.const 0) (i32.const 3))))
               (i32.const 1)))"#,
    ));
    assert_eq!(validate(&module, "").unwrap(), "yes");
}

#[test]
fn no_pointer_leads_out_of_the_memory() {
    let wapc = |call: &str| {
        assemble(&format!(
            r#"(module
                 (import "wapc" "__guest_request" (func $request (param i32 i32)))
                 (import "wapc" "__guest_response" (func $respond (param i32 i32)))
                 (import "wapc" "__guest_error" (func $complain (param i32 i32)))
                 (import "wapc" "__console_log" (func $log (param i32 i32)))
                 (import "wapc" "__host_error" (func $host_error (param i32)))
                 (import "wapc" "__host_call" (func $call (param i32 i32 i32 i32 i32 i32 i32 i32) (result i32)))
                 (func $ask (param i32 i32 i32) (result i32)
                   (call $call (local.get 0) (i32.const 1) (i32.const 0) (i32.const 1)
                     (i32.const 0) (i32.const 1) (local.get 1) (local.get 2)))
                 (memory (export "memory") 1)
                 (func (export "__guest_call") (param i32 i32) (result i32) {call} (i32.const 1)))"#
        ))
    };
    let wasi = |call: &str| {
        assemble(&format!(
            r#"(module
                 (import "wasi_snapshot_preview1" "args_get" (func $arguments (param i32 i32) (result i32)))
                 (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
                 (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
                 (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
                 (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
                 (import "wasi_snapshot_preview1" "clock_time_get" (func $clock (param i32 i64 i32) (result i32)))
                 (memory (export "memory") 1)
                 (data (i32.const 0) "\f0\ff\ff\ff\f0\ff\ff\ff")
                 (func (export "_start") (drop {call})))"#
        ))
    };
    for module in [
        wapc("(call $request (i32.const 65530) (i32.const 0))"),
        wapc("(call $request (i32.const 0) (i32.const -1))"),
        wapc("(call $respond (i32.const 65530) (i32.const 7))"),
        wapc("(call $respond (i32.const 0) (i32.const -1))"),
        wapc("(call $complain (i32.const 0) (i32.const -1))"),
        wapc("(call $log (i32.const -1) (i32.const 1))"),
        wapc("(drop (call $ask (i32.const 65536) (i32.const 0) (i32.const 0)))"),
        wapc("(drop (call $ask (i32.const 0) (i32.const 0) (i32.const -1)))"),
        wapc(
            "(drop (call $ask (i32.const 0) (i32.const 0) (i32.const 0)))
              (call $host_error (i32.const 65535))",
        ),
        wasi("(call $arguments (i32.const 0) (i32.const -1))"),
        wasi("(call $arguments (i32.const 65534) (i32.const 0))"),
        wasi("(call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 16))"),
        wasi("(call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 16))"),
        wasi("(call $write (i32.const 1) (i32.const -8) (i32.const 1) (i32.const 16))"),
        wasi("(call $write (i32.const 1) (i32.const 0) (i32.const 0) (i32.const -1))"),
        wasi("(call $random (i32.const 0) (i32.const -1))"),
        wasi("(call $poll (i32.const -1) (i32.const 0) (i32.const 1) (i32.const 0))"),
        wasi("(call $clock (i32.const 0) (i64.const 0) (i32.const 65532))"),
    ] {
        let what = "it passed a pointer that leads out of its memory";
        let failure = validate(&load(&module), "request");
        assert_eq!(failure, Err(Failure::Protocol(what.into())));
    }
}

#[test]
fn one_that_harms_does_not_harm_another_beside_it() {
    let good = load(&policies::forbidding(Abi::Wapc, "bad", "it is bad"));
    let small = Limits {
        memory: 16 << 20,
        ..short()
    };
    let done = AtomicBool::new(false);
    std::thread::scope(|threads| {
        for module in [
            policies::spinning(Abi::Wapc),
            policies::hungry(Abi::Wasi),
            policies::recursing(Abi::Wapc),
            policies::verbose(Abi::Wapc),
        ] {
            let (done, small) = (&done, &small);
            threads.spawn(move || {
                let module = sandbox().clone().load(&module).unwrap();
                while !done.load(Ordering::Relaxed) {
                    validate_with(&module, "{}", small, Arc::new(Nobody)).unwrap_err();
                }
            });
        }
        for at in 0..500 {
            let (payload, expected) = match at % 2 {
                0 => ("good", r#"{"accepted":true}"#),
                _ => ("bad", r#"{"accepted":false,"message":"it is bad"}"#),
            };
            assert_eq!(validate(&good, payload).unwrap(), expected);
        }
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn nothing_is_left_of_a_call_for_the_next() {
    let counting = load(&assemble(
        r#"(module
             (import "wapc" "__guest_response" (func $respond (param i32 i32)))
             (memory (export "memory") 1)
             (func (export "__guest_call") (param i32 i32) (result i32)
               (i32.store8 (i32.const 0) (i32.add (i32.const 48) (i32.load8_u (i32.const 1))))
               (i32.store8 (i32.const 1) (i32.const 1))
               (call $respond (i32.const 0) (i32.const 1))
               (i32.const 1)))"#,
    ));
    for _ in 0..3 {
        assert_eq!(validate(&counting, "").unwrap(), "0");
    }
}
