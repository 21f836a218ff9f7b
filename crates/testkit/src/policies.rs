//! Policies as WebAssembly modules, made from text. Each is asked in one of the two ways that policies
//! are spoken to, and otherwise does the same in both: it judges by looking for words in what it is
//! asked, or it misbehaves in one particular way.

use serde_json::{Value, json};
use std::fmt::Write;

/// How a policy is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abi {
    /// By the protocol of waPC.
    Wapc,
    /// As a WASI command.
    Wasi,
}

impl Abi {
    /// Both.
    pub const ALL: [Abi; 2] = [Abi::Wapc, Abi::Wasi];
}

/// Accepts everything.
pub fn accepting(abi: Abi) -> Vec<u8> {
    answering(abi, &json!({"accepted": true}).to_string())
}

/// Rejects everything.
pub fn rejecting(abi: Abi, message: &str) -> Vec<u8> {
    answering(abi, &rejection(message))
}

/// Accepts everything, changed into one and the same object.
pub fn mutating(abi: Abi, object: &Value) -> Vec<u8> {
    let answer = json!({"accepted": true, "mutated_object": object});
    answering(abi, &answer.to_string())
}

/// Gives the same answer to everything.
pub fn answering(abi: Abi, answer: &str) -> Vec<u8> {
    let mut policy = Policy::new(abi);
    let answer = policy.text(answer);
    policy.judging(&format!("(call $answer {answer})")).build()
}

/// Rejects what contains `text` anywhere in its compact JSON, and accepts the rest.
pub fn forbidding(abi: Abi, text: &str, message: &str) -> Vec<u8> {
    let mut policy = Policy::new(abi);
    let judgement = policy.forbids(text, message);
    policy.judging(&judgement).build()
}

/// Accepts everything, but not settings that contain `text`.
pub fn particular(abi: Abi, text: &str, message: &str) -> Vec<u8> {
    let mut policy = Policy::new(abi);
    let text = policy.text(text);
    let invalid = policy.text(&json!({"valid": false, "message": message}).to_string());
    let valid = policy.text(&json!({"valid": true}).to_string());
    let check = format!(
        "(if (call $contains {text}) (then (call $answer {invalid})) (else (call $answer {valid})))"
    );
    policy.checking(&check).accepting().build()
}

/// Accepts all settings, and panics when it shall judge.
pub fn panicking(abi: Abi) -> Vec<u8> {
    Policy::new(abi).judging("unreachable").build()
}

/// Says that it failed, and why.
pub fn failing(abi: Abi, message: &str) -> Vec<u8> {
    let mut policy = Policy::new(abi);
    let message = policy.text(message);
    policy.judging(&format!("(call $fail {message})")).build()
}

/// Never comes to an end.
pub fn spinning(abi: Abi) -> Vec<u8> {
    Policy::new(abi).judging("(loop $on (br $on))").build()
}

/// Never comes to an end, but sleeps; only in WASI.
pub fn sleeping() -> Vec<u8> {
    let mut policy = Policy::new(Abi::Wasi);
    // A clock, an hour from now: see `poll_oneoff`.
    let mut subscription = [0; 48];
    subscription[16] = 1;
    subscription[24..32].copy_from_slice(&3_600_000_000_000u64.to_le_bytes());
    let (subscription, _) = policy.place(&subscription);
    let sleep = format!(
        "(drop (call $poll (i32.const {subscription}) (i32.const 64) (i32.const 1) (i32.const 0)))"
    );
    policy.judging(&sleep).build()
}

/// Calls itself without an end.
pub fn recursing(abi: Abi) -> Vec<u8> {
    Policy::new(abi).judging("(call $validate)").build()
}

/// Takes all the memory that it gets, and writes to it.
pub fn hungry(abi: Abi) -> Vec<u8> {
    Policy::new(abi)
        .judging(
            "(local $pages i32)
             (loop $on
               (local.set $pages (memory.grow (i32.const 16)))
               (i32.store (i32.mul (local.get $pages) (i32.const 65536)) (i32.const 1))
               (br $on))",
        )
        .build()
}

/// Answers with more than anybody wants to read: 32 MiB.
pub fn verbose(abi: Abi) -> Vec<u8> {
    Policy::new(abi)
        .judging(
            "(drop (memory.grow (i32.const 512)))
             (call $answer (i32.const 65536) (i32.const 33554432))",
        )
        .build()
}

/// Hands over an answer that lies outside of its memory.
pub fn astray(abi: Abi) -> Vec<u8> {
    Policy::new(abi)
        .judging("(call $answer (i32.const -16) (i32.const 64))")
        .build()
}

/// Makes a host call and fails with what the host says if that is refused; otherwise it rejects if the
/// answer contains `text`, and accepts if not.
pub fn calling(abi: Abi, call: [&str; 3], payload: &Value, text: &str, message: &str) -> Vec<u8> {
    let mut policy = Policy::new(abi);
    let call = policy.call(call, payload);
    let judgement = policy.forbids(text, message);
    let whole = format!(
        "(if {call}
           (then {judgement})
           (else (call $fail (global.get $at) (global.get $length))))"
    );
    policy.judging(&whole).build()
}

/// Makes a host call, does not care for the answer, and accepts.
pub fn careless(abi: Abi, call: [&str; 3], payload: &Value) -> Vec<u8> {
    asking(abi, &[(call, payload)], r#"{"accepted":true}"#)
}

/// Makes host calls one after the other, and gives the same answer whatever it gets.
pub fn asking(abi: Abi, calls: &[([&str; 3], &Value)], answer: &str) -> Vec<u8> {
    let mut policy = Policy::new(abi);
    let calls = policy.calls(calls);
    let answer = policy.text(answer);
    policy
        .judging(&format!("{calls} (call $answer {answer})"))
        .build()
}

/// Makes a host call while it validates its settings, and gives the same answer whatever it gets. It
/// accepts every object.
pub fn asking_for_settings(abi: Abi, call: [&str; 3], payload: &Value, answer: &Value) -> Vec<u8> {
    let mut policy = Policy::new(abi);
    let calls = policy.calls(&[(call, payload)]);
    let answer = policy.text(&answer.to_string());
    policy
        .checking(&format!("{calls} (call $answer {answer})"))
        .accepting()
        .build()
}

/// Makes a host call and reads its error: it rejects if there is one that contains `text`, and accepts
/// otherwise.
pub fn reading_errors(
    abi: Abi,
    call: [&str; 3],
    payload: &Value,
    text: &str,
    message: &str,
) -> Vec<u8> {
    let mut policy = Policy::new(abi);
    let call = policy.call(call, payload);
    let judgement = policy.forbids(text, message);
    let accepted = policy.text(r#"{"accepted":true}"#);
    let whole = format!("(if {call} (then (call $answer {accepted})) (else {judgement}))");
    policy.judging(&whole).build()
}

/// Rejects privileged containers, at about the cost of a policy that was written in a language with a
/// runtime: it fills a heap of 1 MiB when it starts and goes over the request a hundred times, as
/// parsing and copying does.
pub fn realistic(abi: Abi) -> Vec<u8> {
    let mut policy = Policy::new(abi);
    let judgement = policy.forbids(
        "\"privileged\":true",
        "privileged containers are not allowed",
    );
    let whole = format!(
        "(local $round i32) (local $place i32) (local $hash i32)
         (local.set $place (i32.mul (memory.grow (i32.const 16)) (i32.const 65536)))
         (memory.fill (local.get $place) (i32.const 1) (i32.const 1048576))
         (loop $rounds
           (local.set $place (i32.const 0))
           (loop $bytes
             (local.set $hash (i32.mul (i32.const 16777619) (i32.xor (local.get $hash)
               (i32.load8_u (i32.add (global.get $at) (local.get $place))))))
             (local.set $place (i32.add (local.get $place) (i32.const 1)))
             (br_if $bytes (i32.lt_u (local.get $place) (global.get $length))))
           (local.set $round (i32.add (local.get $round) (i32.const 1)))
           (br_if $rounds (i32.lt_u (local.get $round) (i32.const 100))))
         (i32.store (i32.const 32) (local.get $hash))
         {judgement}"
    );
    policy.judging(&whole).build()
}

/// A module with something said about itself, as Kubewarden's tools add it.
pub fn with_metadata(module: Vec<u8>, metadata: &Value) -> Vec<u8> {
    with_section(
        module,
        "io.kubewarden.metadata",
        metadata.to_string().as_bytes(),
    )
}

/// A module with another custom section at its end.
pub fn with_section(mut module: Vec<u8>, name: &str, content: &[u8]) -> Vec<u8> {
    let mut section = number(name.len());
    section.extend_from_slice(name.as_bytes());
    section.extend_from_slice(content);
    module.push(0);
    module.extend(number(section.len()));
    module.extend(section);
    module
}

/// What OPA and Gatekeeper modules look like from outside.
pub fn opa() -> Vec<u8> {
    assemble(
        r#"(module
             (import "env" "memory" (memory 1))
             (import "env" "opa_abort" (func (param i32)))
             (func (export "opa_eval") (param i32) (result i32) (i32.const 0)))"#,
    )
}

/// A module from its text. The text is the test's own, so a mistake in it ends the test.
pub fn assemble(text: &str) -> Vec<u8> {
    match wat::parse_str(text) {
        Ok(module) => module,
        Err(error) => panic!("{error}"),
    }
}

fn rejection(message: &str) -> String {
    json!({"accepted": false, "message": message}).to_string()
}

fn number(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let seven = (number & 0x7f) as u8;
        number >>= 7;
        if number == 0 {
            bytes.push(seven);
            return bytes;
        }
        bytes.push(seven | 0x80);
    }
}

/// A policy in the making. Its texts lie in memory from 1024 on, and what it is asked after them; where
/// that is and how long, `$at` and `$length` say. There is `$answer` and `$fail` (of a text), `$host` (of
/// three names and a payload, whether it was answered; the answer takes the place of what was asked) and
/// `$contains` (a text, in what was asked).
struct Policy {
    abi: Abi,
    data: String,
    next: usize,
    judge: String,
    check: String,
}

impl Policy {
    fn new(abi: Abi) -> Self {
        let mut policy = Policy {
            abi,
            data: String::new(),
            next: 1024,
            judge: String::new(),
            check: String::new(),
        };
        let valid = policy.text(r#"{"valid":true}"#);
        policy.check = format!("(call $answer {valid})");
        policy
    }

    /// Lays a text into memory; what comes back are the two arguments that name it.
    fn text(&mut self, text: &str) -> String {
        let (at, length) = self.place(text.as_bytes());
        format!("(i32.const {at}) (i32.const {length})")
    }

    fn place(&mut self, bytes: &[u8]) -> (usize, usize) {
        let at = self.next;
        let mut escaped = String::new();
        for byte in bytes {
            let _ = write!(escaped, "\\{byte:02x}");
        }
        let _ = writeln!(self.data, "(data (i32.const {at}) \"{escaped}\")");
        self.next = (at + bytes.len()).next_multiple_of(16);
        (at, bytes.len())
    }

    fn forbids(&mut self, text: &str, message: &str) -> String {
        let text = self.text(text);
        let rejected = self.text(&rejection(message));
        let accepted = self.text(r#"{"accepted":true}"#);
        format!(
            "(if (call $contains {text})
               (then (call $answer {rejected}))
               (else (call $answer {accepted})))"
        )
    }

    /// A host call, as an expression that says whether it was answered.
    fn call(&mut self, call: [&str; 3], payload: &Value) -> String {
        let [binding, namespace, operation] = call.map(|name| self.text(name));
        let payload = self.text(&payload.to_string());
        format!("(call $host {binding} {namespace} {operation} {payload})")
    }

    /// Host calls whose answers do not matter.
    fn calls(&mut self, calls: &[([&str; 3], &Value)]) -> String {
        let calls = calls.iter();
        let calls = calls.map(|(call, payload)| format!("(drop {})", self.call(*call, payload)));
        calls.collect()
    }

    fn judging(mut self, body: &str) -> Self {
        self.judge = body.into();
        self
    }

    fn checking(mut self, body: &str) -> Self {
        self.check = body.into();
        self
    }

    fn accepting(mut self) -> Self {
        let accepted = self.text(r#"{"accepted":true}"#);
        self.judging(&format!("(call $answer {accepted})"))
    }

    fn build(mut self) -> Vec<u8> {
        let own = match self.abi {
            Abi::Wapc => self.wapc(),
            Abi::Wasi => WASI.to_owned(),
        };
        let imports = match self.abi {
            Abi::Wapc => WAPC_IMPORTS,
            Abi::Wasi => WASI_IMPORTS,
        };
        let start = self.next.next_multiple_of(65536);
        let pages = start / 65536 + 1;
        let Policy {
            data, judge, check, ..
        } = self;
        assemble(&format!(
            "(module
               {imports}
               (memory (export \"memory\") {pages})
               (global $at (mut i32) (i32.const {start}))
               (global $length (mut i32) (i32.const 0))
               (global $ok (mut i32) (i32.const 1))
               {data}
               {SHARED}
               {own}
               (func $validate {judge})
               (func $settings {check}))"
        ))
    }

    fn wapc(&mut self) -> String {
        let version = self.text("\"v1\"");
        format!(
            "{WAPC}
             (func (export \"__guest_call\") (param $operation i32) (param $request i32) (result i32)
               (global.set $length (local.get $request))
               (call $room)
               (call $guest_request (i32.const 64) (global.get $at))
               (if (i32.eq (local.get $operation) (i32.const 16)) (then (call $answer {version})))
               (if (i32.eq (local.get $operation) (i32.const 17)) (then (call $settings)))
               (if (i32.eq (local.get $operation) (i32.const 8)) (then (call $validate)))
               (global.get $ok))"
        )
    }
}

const SHARED: &str = "
  ;; Makes room for $length bytes at $at, and some more.
  (func $room (local $missing i32)
    (local.set $missing (i32.sub
      (i32.add (global.get $at) (i32.add (global.get $length) (i32.const 65536)))
      (i32.mul (memory.size) (i32.const 65536))))
    (if (i32.gt_s (local.get $missing) (i32.const 0)) (then
      (drop (memory.grow (i32.shr_u (i32.add (local.get $missing) (i32.const 65535)) (i32.const 16)))))))
  (func $contains (param $text i32) (param $size i32) (result i32)
    (local $start i32) (local $matched i32)
    (loop $starts
      (if (i32.gt_u (i32.add (local.get $start) (local.get $size)) (global.get $length))
        (then (return (i32.const 0))))
      (local.set $matched (i32.const 0))
      (block $differs
        (loop $bytes
          (if (i32.eq (local.get $matched) (local.get $size)) (then (return (i32.const 1))))
          (br_if $differs (i32.ne
            (i32.load8_u (i32.add (local.get $text) (local.get $matched)))
            (i32.load8_u (i32.add (i32.add (global.get $at) (local.get $start)) (local.get $matched)))))
          (local.set $matched (i32.add (local.get $matched) (i32.const 1)))
          (br $bytes)))
      (local.set $start (i32.add (local.get $start) (i32.const 1)))
      (br $starts))
    (i32.const 0))";

const WAPC_IMPORTS: &str = r#"
  (import "wapc" "__guest_request" (func $guest_request (param i32 i32)))
  (import "wapc" "__guest_response" (func $guest_response (param i32 i32)))
  (import "wapc" "__guest_error" (func $guest_error (param i32 i32)))
  (import "wapc" "__host_call"
    (func $host_call (param i32 i32 i32 i32 i32 i32 i32 i32) (result i32)))
  (import "wapc" "__host_response_len" (func $host_response_len (result i32)))
  (import "wapc" "__host_response" (func $host_response (param i32)))
  (import "wapc" "__host_error_len" (func $host_error_len (result i32)))
  (import "wapc" "__host_error" (func $host_error (param i32)))
  (import "wapc" "__console_log" (func $console_log (param i32 i32)))"#;

const WAPC: &str = "
  (func $answer (param i32 i32) (call $guest_response (local.get 0) (local.get 1)))
  (func $fail (param i32 i32)
    (global.set $ok (i32.const 0))
    (call $guest_error (local.get 0) (local.get 1)))
  (func $host (param i32 i32 i32 i32 i32 i32 i32 i32) (result i32)
    (if (call $host_call (local.get 0) (local.get 1) (local.get 2) (local.get 3)
          (local.get 4) (local.get 5) (local.get 6) (local.get 7))
      (then
        (global.set $length (call $host_response_len))
        (call $room)
        (call $host_response (global.get $at))
        (return (i32.const 1))))
    (global.set $length (call $host_error_len))
    (call $room)
    (call $host_error (global.get $at))
    (i32.const 0))";

const WASI_IMPORTS: &str = r#"
  (import "wasi_snapshot_preview1" "args_sizes_get"
    (func $args_sizes_get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))
  (import "host" "call"
    (func $host_call (param i32 i32 i32 i32 i32 i32 i32 i32) (result i32)))"#;

const WASI: &str = r#"
  ;; A piece is described at 0 (where) and 4 (how long); how much was done is told at 8.
  (func $write (param $stream i32) (param $text i32) (param $size i32)
    (i32.store (i32.const 0) (local.get $text))
    (i32.store (i32.const 4) (local.get $size))
    (drop (call $fd_write (local.get $stream) (i32.const 0) (i32.const 1) (i32.const 8))))
  (func $read
    (global.set $length (i32.const 0))
    (loop $more
      (call $room)
      (i32.store (i32.const 0) (i32.add (global.get $at) (global.get $length)))
      (i32.store (i32.const 4) (i32.const 65536))
      (drop (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
      (global.set $length (i32.add (global.get $length) (i32.load (i32.const 8))))
      (br_if $more (i32.load (i32.const 8)))))
  (func $answer (param i32 i32) (call $write (i32.const 1) (local.get 0) (local.get 1)))
  (func $fail (param i32 i32)
    (call $write (i32.const 2) (local.get 0) (local.get 1))
    (call $proc_exit (i32.const 1)))
  (func $host (param i32 i32 i32 i32 i32 i32 i32 i32) (result i32)
    (i32.eqz (call $host_call (local.get 0) (local.get 1) (local.get 2) (local.get 3)
      (local.get 4) (local.get 5) (local.get 6) (local.get 7)))
    (call $read))
  (func (export "_start")
    (call $read)
    ;; The arguments differ in their length.
    (drop (call $args_sizes_get (i32.const 16) (i32.const 20)))
    (if (i32.eq (i32.load (i32.const 20)) (i32.const 30))
      (then (call $settings))
      (else (call $validate))))"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_is_a_module() {
        let call = ["kubewarden", "kubernetes", "get_resource"];
        for abi in Abi::ALL {
            for module in [
                accepting(abi),
                rejecting(abi, "\"no\"\n"),
                mutating(abi, &json!({"a": "x".repeat(100_000)})),
                forbidding(abi, "a", "b"),
                particular(abi, "a", "b"),
                panicking(abi),
                failing(abi, "a"),
                spinning(abi),
                sleeping(),
                recursing(abi),
                hungry(abi),
                verbose(abi),
                astray(abi),
                calling(abi, call, &json!({}), "a", "b"),
                careless(abi, call, &json!({})),
                asking(abi, &[(call, &json!({})), (call, &json!(1))], "a"),
                asking_for_settings(abi, call, &json!({}), &json!({})),
                reading_errors(abi, call, &json!({}), "a", "b"),
                realistic(abi),
                with_metadata(accepting(abi), &json!({"a": "x".repeat(300)})),
                opa(),
            ] {
                assert_eq!(&module[..4], b"\0asm");
            }
        }
    }
}
