//! What a WASI command finds of a system.

use crate::support::{load, validate};
use muster_testkit::policies::assemble;
use muster_wasm::Failure;

/// A program that writes `size` bytes from 1024 on after it did something.
fn program(size: u32, body: &str) -> Vec<u8> {
    assemble(&format!(
        r#"(module
             (import "wasi_snapshot_preview1" "args_sizes_get" (func $args_sizes (param i32 i32) (result i32)))
             (import "wasi_snapshot_preview1" "args_get" (func $args (param i32 i32) (result i32)))
             (import "wasi_snapshot_preview1" "environ_sizes_get" (func $environ (param i32 i32) (result i32)))
             (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
             (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
             (import "wasi_snapshot_preview1" "fd_close" (func $close (param i32) (result i32)))
             (import "wasi_snapshot_preview1" "fd_seek" (func $seek (param i32 i64 i32 i32) (result i32)))
             (import "wasi_snapshot_preview1" "fd_prestat_get" (func $prestat (param i32 i32) (result i32)))
             (import "wasi_snapshot_preview1" "fd_fdstat_get" (func $stat (param i32 i32) (result i32)))
             (import "wasi_snapshot_preview1" "fd_sync" (func $sync (param i32) (result i32)))
             (import "wasi_snapshot_preview1" "path_open"
               (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
             (import "wasi_snapshot_preview1" "sock_shutdown" (func $shutdown (param i32 i32) (result i32)))
             (import "wasi_snapshot_preview1" "clock_time_get" (func $clock (param i32 i64 i32) (result i32)))
             (import "wasi_snapshot_preview1" "clock_res_get" (func $resolution (param i32 i32) (result i32)))
             (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
             (import "wasi_snapshot_preview1" "sched_yield" (func $yield (result i32)))
             (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
             (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
             (memory (export "memory") 2)
             (data (i32.const 0) "\00\04\00\00")
             (data (i32.const 32) "panic: no\0a\0agoroutine 1\0a")
             (func (export "_start")
               (i32.store (i32.const 4) (i32.const {size}))
               {body}
               (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 16)))))"#
    ))
}

fn number(expression: &str) -> u8 {
    let body = format!("(i32.store8 (i32.const 1024) (i32.add (i32.const 32) {expression}))");
    validate(&load(&program(1, &body)), "request")
        .expect("the program answers")
        .as_bytes()[0]
        - 32
}

#[test]
fn a_program_is_told_what_to_do_by_its_arguments() {
    let body = "(drop (call $args (i32.const 900) (i32.const 1024)))";
    let written = validate(&load(&program(21, body)), "").unwrap();
    assert_eq!(written, "policy.wasm\0validate\0");
    let sizes = "(drop (call $args_sizes (i32.const 900) (i32.const 904)))
                 (i32.store8 (i32.const 1024) (i32.load (i32.const 900)))
                 (i32.store8 (i32.const 1025) (i32.load (i32.const 904)))";
    let written = validate(&load(&program(2, sizes)), "").unwrap();
    assert_eq!(written.as_bytes(), [2, 21]);
}

#[test]
fn what_is_not_there_is_answered_with_an_error_that_programs_know() {
    for (expression, expected) in [
        ("(call $environ (i32.const 900) (i32.const 904))", 0),
        ("(call $close (i32.const 1))", 0),
        ("(call $close (i32.const 3))", 8),
        (
            "(call $seek (i32.const 0) (i64.const 0) (i32.const 0) (i32.const 900))",
            70,
        ),
        (
            "(call $seek (i32.const 9) (i64.const 0) (i32.const 0) (i32.const 900))",
            8,
        ),
        ("(call $prestat (i32.const 3) (i32.const 900))", 8),
        ("(call $stat (i32.const 0) (i32.const 900))", 0),
        ("(call $stat (i32.const 3) (i32.const 900))", 8),
        ("(call $sync (i32.const 1))", 52),
        ("(call $shutdown (i32.const 3) (i32.const 0))", 52),
        (
            "(call $open (i32.const 3) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)
               (i64.const 0) (i64.const 0) (i32.const 0) (i32.const 900))",
            8,
        ),
        (
            "(call $read (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 900))",
            8,
        ),
        (
            "(call $read (i32.const 0) (i32.const 0) (i32.const 5000) (i32.const 900))",
            28,
        ),
        (
            "(call $write (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 900))",
            8,
        ),
        (
            "(call $write (i32.const 1) (i32.const 0) (i32.const 5000) (i32.const 900))",
            28,
        ),
        (
            "(call $clock (i32.const 0) (i64.const 1) (i32.const 900))",
            0,
        ),
        (
            "(call $clock (i32.const 1) (i64.const 1) (i32.const 900))",
            0,
        ),
        (
            "(call $clock (i32.const 9) (i64.const 1) (i32.const 900))",
            28,
        ),
        ("(call $resolution (i32.const 0) (i32.const 900))", 0),
        ("(call $random (i32.const 900) (i32.const 64))", 0),
        ("(call $random (i32.const 900) (i32.const 65537))", 28),
        ("(call $yield)", 0),
        (
            "(call $poll (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0))",
            28,
        ),
        (
            "(call $poll (i32.const 0) (i32.const 0) (i32.const 10000) (i32.const 0))",
            28,
        ),
    ] {
        assert_eq!(number(expression), expected, "{expression}");
    }
}

#[test]
fn waiting_for_a_stream_ends_at_once_and_for_a_time_when_it_has_come() {
    // At 2048 a clock an hour from now, after it a stream to read from, and then a short clock.
    let prepared = "(i64.store (i32.const 2048) (i64.const 7))
         (i32.store (i32.const 2064) (i32.const 1))
         (i64.store (i32.const 2072) (i64.const 3600000000000))
         (i64.store (i32.const 2096) (i64.const 8))
         (i32.store8 (i32.const 2104) (i32.const 1))
         (i64.store (i32.const 2144) (i64.const 9))
         (i64.store (i32.const 2168) (i64.const 1000))";
    for (from, count, tag) in [(2048, 2, 8), (2144, 1, 9), (2096, 2, 8)] {
        let body = format!(
            "{prepared}
             (drop (call $poll (i32.const {from}) (i32.const 3000) (i32.const {count}) (i32.const 900)))
             (i32.store8 (i32.const 1024) (i32.load (i32.const 900)))
             (i32.store8 (i32.const 1025) (i32.load (i32.const 3000)))"
        );
        let written = validate(&load(&program(2, &body)), "").unwrap();
        assert_eq!(written.as_bytes(), [1, tag], "{from}");
    }
}

#[test]
fn a_program_ends_as_it_says() {
    let write = "(drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 16)))";
    let answered = program(
        0,
        &format!(
            "(i32.store (i32.const 4) (i32.const 1)) (i32.store8 (i32.const 1024) (i32.const 65)) {write} (call $exit (i32.const 0))"
        ),
    );
    assert_eq!(validate(&load(&answered), "").unwrap(), "A");
    let complain =
        "(i32.store (i32.const 8) (i32.const 32)) (i32.store (i32.const 12) (i32.const 23))
        (drop (call $write (i32.const 2) (i32.const 8) (i32.const 1) (i32.const 16)))";
    for (body, expected) in [
        (
            "(call $exit (i32.const 3))".to_owned(),
            "it exited with code 3",
        ),
        (
            format!("{complain} (call $exit (i32.const 2))"),
            "it exited with code 2; it wrote: panic: no",
        ),
    ] {
        let failure = validate(&load(&program(1, &body)), "");
        assert_eq!(failure, Err(Failure::Guest(expected.into())));
    }
}

#[test]
fn a_wapc_module_may_use_the_system_too() {
    // Its main function says that it succeeded, and what it prints is no answer.
    let module = assemble(
        r#"(module
             (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
             (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
             (import "wapc" "__guest_response" (func $respond (param i32 i32)))
             (memory (export "memory") 1)
             (data (i32.const 64) "0123456789")
             (global $at (mut i32) (i32.const 64))
             (func $step (global.set $at (i32.add (global.get $at) (i32.const 1))))
             (func (export "wapc_init") (i32.store8 (global.get $at) (i32.const 99)) (call $step))
             (func (export "_initialize") (i32.store8 (global.get $at) (i32.const 97)) (call $step))
             (func (export "_start")
               (i32.store8 (global.get $at) (i32.const 98)) (call $step)
               (i32.store (i32.const 0) (i32.const 64))
               (i32.store (i32.const 4) (i32.const 4))
               (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))
               (call $exit (i32.const 0)))
             (func (export "__guest_call") (param i32 i32) (result i32)
               (call $respond (i32.const 64) (i32.const 4))
               (i32.const 1)))"#,
    );
    assert_eq!(validate(&load(&module), "").unwrap(), "abc3");
}
