//! What modules are asked, what they answer, and what they ask themselves.

use crate::support::{
    Failing, Nobody, Somebody, complaint, load, patient, validate, validate_with,
};
use muster_testkit::policies::{self, Abi, assemble};
use muster_wasm::{Failure, HostError, Operation, Unavailable};
use serde_json::json;
use std::sync::Arc;

#[test]
fn a_module_answers_what_it_is_asked() {
    for abi in Abi::ALL {
        let module = load(&policies::forbidding(abi, "bad", "it is bad"));
        for (payload, expected) in [
            (r#"{"a": "good"}"#, r#"{"accepted":true}"#),
            (
                r#"{"a": "bad"}"#,
                r#"{"accepted":false,"message":"it is bad"}"#,
            ),
            ("ba", r#"{"accepted":true}"#),
            ("", r#"{"accepted":true}"#),
        ] {
            let answer = validate(&module, payload).unwrap();
            assert_eq!(answer, expected, "{abi:?} {payload}");
        }
        let large = format!("{}bad", "x".repeat(3 << 20));
        assert!(validate(&module, &large).unwrap().contains("it is bad"));
    }
}

#[test]
fn each_operation_has_its_name_in_each_protocol() {
    for abi in Abi::ALL {
        let module = load(&policies::particular(abi, "bad", "no"));
        let ask = |operation, payload: &str| {
            module.call(operation, payload.as_bytes(), &patient(), Arc::new(Nobody))
        };
        let valid = ask(Operation::ValidateSettings, "{}").unwrap();
        assert_eq!(valid, br#"{"valid":true}"#);
        let invalid = ask(Operation::ValidateSettings, "bad").unwrap();
        assert_eq!(invalid, br#"{"message":"no","valid":false}"#);
        assert_eq!(
            ask(Operation::Validate, "bad").unwrap(),
            br#"{"accepted":true}"#
        );
        let version = ask(Operation::ProtocolVersion, "");
        match abi {
            Abi::Wapc => assert_eq!(version.unwrap(), b"\"v1\""),
            Abi::Wasi => assert!(matches!(version, Err(Failure::Protocol(_)))),
        }
    }
}

#[test]
fn a_module_decides_after_an_answer_and_after_a_negative_one() {
    let call = ["kubewarden", "kubernetes", "get_resource"];
    for abi in Abi::ALL {
        let module = policies::calling(abi, call, &json!({"kind": "Pod"}), "secret", "found");
        let module = load(&module);
        for (answer, expected) in [
            ("nothing".to_owned(), r#"{"accepted":true}"#),
            (
                "a secret".to_owned(),
                r#"{"accepted":false,"message":"found"}"#,
            ),
            (String::new(), r#"{"accepted":true}"#),
            (
                format!("{}secret", " ".repeat(1 << 20)),
                r#"{"accepted":false,"message":"found"}"#,
            ),
        ] {
            let host = Somebody::answering(answer);
            let answer = validate_with(&module, "{}", &patient(), host.clone()).unwrap();
            assert_eq!(answer, expected);
            let asked = host.asked.lock().unwrap().clone();
            assert_eq!(
                asked,
                [r#"kubewarden kubernetes get_resource {"kind":"Pod"}"#]
            );
        }
        let refused = validate(&module, "{}").unwrap_err();
        assert_eq!(refused, complaint(abi, "get_resource finds nothing"));
        let careless = load(&policies::careless(abi, call, &json!({})));
        assert_eq!(validate(&careless, "{}").unwrap(), r#"{"accepted":true}"#);
    }
}

#[test]
fn a_call_without_an_answer_leaves_no_result_whatever_the_module_does() {
    let call = ["kubewarden", "kubernetes", "get_resource"];
    let unavailable = Unavailable {
        text: "not granted".into(),
        reason: "get_resource is not permitted".into(),
        is_transient: true,
    };
    let host = || Arc::new(Failing(HostError::Unavailable(unavailable.clone())));
    for abi in Abi::ALL {
        for module in [
            policies::careless(abi, call, &json!({})),
            policies::calling(abi, call, &json!({}), "a", "b"),
            policies::reading_errors(abi, call, &json!({}), "granted", "no"),
        ] {
            let answer = validate_with(&load(&module), "", &patient(), host());
            assert_eq!(answer, Err(Failure::HostCall(unavailable.clone())));
        }
        let settings =
            policies::asking_for_settings(abi, call, &json!({}), &json!({"valid": true}));
        let answer = load(&settings).call(Operation::ValidateSettings, b"", &patient(), host());
        let failure = answer.unwrap_err();
        assert!(failure.is_transient(), "{failure:?}");
        assert_eq!(failure.to_string(), "get_resource is not permitted");
    }
}

#[test]
fn a_module_reads_the_text_of_a_negative_answer() {
    let call = ["kubewarden", "kubernetes", "get_resource"];
    for abi in Abi::ALL {
        for (text, expected) in [
            (
                "named 'a' inside",
                r#"{"accepted":false,"message":"absent"}"#,
            ),
            ("something else", r#"{"accepted":true}"#),
        ] {
            let module = policies::reading_errors(abi, call, &json!({}), text, "absent");
            let error = HostError::Negative("named 'a' inside of 'None'".into());
            let host = Arc::new(Failing(error));
            let answer = validate_with(&load(&module), "", &patient(), host);
            assert_eq!(answer.unwrap(), expected, "{abi:?} {text}");
        }
    }
}

#[test]
fn a_host_call_that_is_too_large_has_no_answer() {
    let call = ["kubewarden", "kubernetes", "get_resource"];
    let named = "the host call kubewarden/kubernetes/get_resource";
    let failed = |reason: String| {
        let text = reason.clone();
        Err(Failure::HostCall(Unavailable {
            text,
            reason,
            is_transient: false,
        }))
    };
    for abi in Abi::ALL {
        let module = policies::careless(abi, call, &json!("x".repeat(2 << 20)));
        let answer = validate(&load(&module), "");
        assert_eq!(answer, failed(format!("{named} is too large")));
        let module = load(&policies::careless(abi, call, &json!({})));
        let host = Somebody::answering(vec![0; (32 << 20) + 1]);
        let answer = validate_with(&module, "", &patient(), host);
        let expected = format!("{named} is answered with more than 32 MiB");
        assert_eq!(answer, failed(expected));
    }
}

#[test]
fn asking_the_host_has_an_end() {
    let endless = assemble(
        r#"(module
             (import "wapc" "__host_call" (func $call (param i32 i32 i32 i32 i32 i32 i32 i32) (result i32)))
             (memory (export "memory") 1)
             (func (export "__guest_call") (param i32 i32) (result i32)
               (loop $on
                 (drop (call $call (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)
                   (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)))
                 (br $on))
               (i32.const 1)))"#,
    );
    let failure = validate(&load(&endless), "").unwrap_err();
    let what = "it made more than 4096 host calls";
    assert_eq!(failure, Failure::Protocol(what.into()));

    // The answers would wait in the memory of the host.
    let unread = assemble(
        r#"(module
             (import "kubewarden:javy/host" "call" (func $call (param i32 i32 i32 i32 i32 i32 i32 i32) (result i32)))
             (memory (export "memory") 1)
             (func (export "_start")
               (loop $on
                 (drop (call $call (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)
                   (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)))
                 (br $on))))"#,
    );
    let host = Somebody::answering(vec![0; 16 << 20]);
    let failure = validate_with(&load(&unread), "", &patient(), host.clone()).unwrap_err();
    let what = "it does not read the answers of its host calls";
    assert_eq!(failure, Failure::Protocol(what.into()));
    assert_eq!(host.asked.lock().unwrap().len(), 4);
}

#[test]
fn what_a_module_does_not_say_is_a_failure_too() {
    let guest = |body: &str| {
        assemble(&format!(
            r#"(module
                 (import "wapc" "__guest_response" (func $respond (param i32 i32)))
                 (import "wapc" "__guest_error" (func $complain (param i32 i32)))
                 (import "wapc" "__console_log" (func $log (param i32 i32)))
                 (memory (export "memory") 1)
                 (data (i32.const 0) " no\n")
                 (func (export "__guest_call") (param i32 i32) (result i32) {body}))"#
        ))
    };
    for (body, expected) in [
        (
            "(i32.const 1)",
            Err(Failure::Protocol("it gave no response".into())),
        ),
        (
            "(i32.const 0)",
            Err(Failure::Protocol("it failed without saying why".into())),
        ),
        (
            "(call $complain (i32.const 0) (i32.const 4)) (i32.const 1)",
            Err(Failure::Guest("no".into())),
        ),
        (
            "(call $respond (i32.const 0) (i32.const 4)) (i32.const 0)",
            Err(Failure::Protocol("it failed without saying why".into())),
        ),
        (
            "(call $respond (i32.const 1) (i32.const 2)) (i32.const 7)",
            Ok("no".to_owned()),
        ),
        (
            "(call $log (i32.const 0) (i32.const 4)) unreachable",
            Err(Failure::Trap(
                "it gave up (an unreachable instruction was executed); it wrote: no".into(),
            )),
        ),
    ] {
        assert_eq!(validate(&load(&guest(body)), ""), expected, "{body}");
    }
    let silent = r#"(module (memory (export "memory") 1) (func (export "_start")))"#;
    assert_eq!(
        validate(&load(&assemble(silent)), ""),
        Err(Failure::Protocol(
            "it wrote nothing to its standard output".into()
        ))
    );
}
