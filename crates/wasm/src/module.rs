//! A module, compiled and linked. What can be known to be wrong with it is found out when it is loaded;
//! what is only seen when it runs is the failure of that call.

use crate::error::{Error, Failure, causes};
use crate::host::Host;
use crate::limits::Limits;
use crate::metadata::Metadata;
use crate::state::State;
use crate::ticker::{Ticker, ticks};
use crate::{wapc, wasi};
use std::fmt;
use std::sync::Arc;
use wasmtime::{Engine, ExternType, InstancePre, Linker, Store};

/// How a module is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// By the protocol of waPC.
    Wapc,
    /// As a WASI command.
    Wasi,
}

/// What a module can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// To judge.
    Validate,
    /// Whether its settings make sense.
    ValidateSettings,
    /// Which version of the protocol it speaks; WASI commands do not know.
    ProtocolVersion,
}

impl Operation {
    fn name(self, mode: Mode) -> Option<&'static str> {
        match (self, mode) {
            (Operation::Validate, _) => Some("validate"),
            (Operation::ValidateSettings, Mode::Wapc) => Some("validate_settings"),
            (Operation::ValidateSettings, Mode::Wasi) => Some("validate-settings"),
            (Operation::ProtocolVersion, Mode::Wapc) => Some("protocol_version"),
            (Operation::ProtocolVersion, Mode::Wasi) => None,
        }
    }
}

/// A module that can be called.
pub struct Module {
    mode: Mode,
    metadata: Option<Metadata>,
    linked: InstancePre<State>,
    engine: Engine,
    // Calls are only interrupted as long as it runs.
    _ticker: Arc<Ticker>,
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Module").field("mode", &self.mode).finish()
    }
}

impl Module {
    /// Links a module that was compiled.
    pub(crate) fn link(
        compiled: &wasmtime::Module,
        metadata: Option<Metadata>,
        mut linker: Linker<State>,
        ticker: Arc<Ticker>,
    ) -> Result<Module, Error> {
        let mode = mode(compiled, metadata.as_ref())?;
        check_exports(compiled, mode)?;
        for import in compiled.imports() {
            let known = match import.module() {
                wapc::IMPORTS | wasi::IMPORTS => true,
                other => wasi::HOSTS.contains(&other),
            };
            if !known {
                let named = format!("{}.{}", import.module(), import.name());
                return Err(Error::Import(named));
            }
        }
        wasi::link_rest(&mut linker, compiled)?;
        let linked = linker
            .instantiate_pre(compiled)
            .map_err(|error| Error::Invalid(causes(&error)))?;
        Ok(Module {
            mode,
            metadata,
            linked,
            engine: linker.engine().clone(),
            _ticker: ticker,
        })
    }

    /// How the module is spoken to.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// What the module says of itself, if it says anything.
    pub fn metadata(&self) -> Option<&Metadata> {
        self.metadata.as_ref()
    }

    /// Asks a new instance of the module, and throws it away. It takes at most as long as the limits
    /// say and as the host takes to answer. A call in which the host could not answer has no result.
    pub fn call(
        &self,
        operation: Operation,
        payload: &[u8],
        limits: &Limits,
        host: Arc<dyn Host>,
    ) -> Result<Vec<u8>, Failure> {
        let Some(operation) = operation.name(self.mode) else {
            let what = "a WASI command has no version of a protocol";
            return Err(Failure::Protocol(what.into()));
        };
        let state = State::new(self.mode, operation, payload, limits, host);
        let mut store = Store::new(&self.engine, state);
        store.limiter(|state| &mut state.allowance);
        store.set_epoch_deadline(ticks(limits.time));
        let answer = match self.mode {
            Mode::Wapc => wapc::run(&self.linked, &mut store),
            Mode::Wasi => wasi::run(&self.linked, &mut store),
        };
        store.data().journal.tell(operation);
        // What a module makes of a call without an answer is a guess, even if it crashes.
        if let Some(call) = store.data_mut().unavailable.take() {
            return Err(Failure::HostCall(call));
        }
        answer.map_err(|error| Failure::of(&error, limits, &store.data().journal))
    }
}

/// How a module is spoken to: as it says itself, else as it looks.
fn mode(compiled: &wasmtime::Module, metadata: Option<&Metadata>) -> Result<Mode, Error> {
    let said = metadata.and_then(|metadata| metadata.execution_mode.as_deref());
    if let Some(said) = said {
        return match said {
            "kubewarden-wapc" => Ok(Mode::Wapc),
            "wasi" => Ok(Mode::Wasi),
            "opa" => Err(unsupported("OPA")),
            "gatekeeper" => Err(unsupported("Gatekeeper")),
            other => Err(Error::Unsupported(format!(
                "its execution mode {other:?} is not known"
            ))),
        };
    }
    let exports = |name: &str| compiled.get_export(name).is_some();
    let opa = exports("opa_eval")
        || compiled
            .imports()
            .any(|import| import.module() == "env" && import.name() == "opa_abort");
    if exports(wapc::CALL) {
        Ok(Mode::Wapc)
    } else if opa {
        Err(unsupported("OPA or Gatekeeper"))
    } else if exports(wasi::CALL) {
        Ok(Mode::Wasi)
    } else {
        Err(Error::Unsupported(
            "it is no policy: it exports neither __guest_call nor _start".into(),
        ))
    }
}

fn unsupported(sort: &str) -> Error {
    Error::Unsupported(format!(
        "it is a policy for {sort} (Rego compiled to WebAssembly), which are not supported yet; \
         only those for waPC and WASI are, and Rego as source"
    ))
}

fn check_exports(compiled: &wasmtime::Module, mode: Mode) -> Result<(), Error> {
    if !matches!(compiled.get_export("memory"), Some(ExternType::Memory(_))) {
        return Err(Error::Export("memory"));
    }
    let (call, parameters, results, described) = match mode {
        Mode::Wapc => (wapc::CALL, 2, 1, "function __guest_call(i32, i32) -> i32"),
        Mode::Wasi => (wasi::CALL, 0, 0, "function _start()"),
    };
    let fits = compiled.get_export(call).is_some_and(|export| {
        let ExternType::Func(kind) = export else {
            return false;
        };
        kind.params().len() == parameters
            && kind.results().len() == results
            && kind.params().chain(kind.results()).all(|one| one.is_i32())
    });
    match fits {
        true => Ok(()),
        false => Err(Error::Export(described)),
    }
}
