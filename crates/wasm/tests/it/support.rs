//! One sandbox for all tests, as one process has one for all policies.

use muster_testkit::policies::Abi;
use muster_wasm::{Failure, Host, HostError, Limits, Module, Operation, Options, Sandbox};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

static SANDBOX: LazyLock<Sandbox> =
    LazyLock::new(|| Sandbox::new(Options::default()).expect("a sandbox can be made"));

pub fn sandbox() -> &'static Sandbox {
    &SANDBOX
}

pub fn load(bytes: &[u8]) -> Module {
    sandbox().load(bytes).expect("the module loads")
}

/// Short, for what never ends by itself.
pub fn short() -> Limits {
    Limits {
        time: Duration::from_millis(200),
        ..Limits::default()
    }
}

/// Long, so that a busy machine does not matter.
pub fn patient() -> Limits {
    Limits {
        time: Duration::from_secs(60),
        ..Limits::default()
    }
}

pub fn validate(module: &Module, payload: &str) -> Result<String, Failure> {
    validate_with(module, payload, &patient(), Arc::new(Nobody))
}

pub fn validate_with(
    module: &Module,
    payload: &str,
    limits: &Limits,
    host: Arc<dyn Host>,
) -> Result<String, Failure> {
    let answer = module.call(Operation::Validate, payload.as_bytes(), limits, host)?;
    Ok(String::from_utf8(answer).expect("the answer is text"))
}

/// A host that finds nothing, which is a negative answer.
pub struct Nobody;

impl Host for Nobody {
    fn call(&self, _: &str, _: &str, operation: &str, _: &[u8]) -> Result<Vec<u8>, HostError> {
        Err(HostError::Negative(format!("{operation} finds nothing")))
    }
}

/// A host that gives the same error to everything.
pub struct Failing(pub HostError);

impl Host for Failing {
    fn call(&self, _: &str, _: &str, _: &str, _: &[u8]) -> Result<Vec<u8>, HostError> {
        Err(self.0.clone())
    }
}

/// A host that answers everything with the same, and remembers what it was asked.
pub struct Somebody {
    pub answer: Vec<u8>,
    pub asked: Mutex<Vec<String>>,
}

impl Somebody {
    pub fn answering(answer: impl Into<Vec<u8>>) -> Arc<Self> {
        Arc::new(Somebody {
            answer: answer.into(),
            asked: Mutex::default(),
        })
    }
}

impl Host for Somebody {
    fn call(
        &self,
        binding: &str,
        namespace: &str,
        operation: &str,
        payload: &[u8],
    ) -> Result<Vec<u8>, HostError> {
        let payload = String::from_utf8_lossy(payload);
        let asked = format!("{binding} {namespace} {operation} {payload}");
        self.asked.lock().expect("no panic").push(asked);
        Ok(self.answer.clone())
    }
}

/// How a policy that exits with a complaint is told, which differs.
pub fn complaint(abi: Abi, text: &str) -> Failure {
    Failure::Guest(match abi {
        Abi::Wapc => text.to_owned(),
        Abi::Wasi => format!("it exited with code 1; it wrote: {text}"),
    })
}
