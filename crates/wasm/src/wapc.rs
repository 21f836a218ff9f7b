//! waPC: the module exports one function that is told how long a request is, fetches it, and hands
//! over a response or an error, all through functions that are imported from `wapc`.

use crate::error::Stop;
use crate::guest::{self, Caller};
use crate::host;
use crate::state::State;
use wasmtime::{InstancePre, Linker, Result, Store};

/// The module of the imports.
pub(crate) const IMPORTS: &str = "wapc";
/// The function that is called.
pub(crate) const CALL: &str = "__guest_call";
/// What prepares an instance, in this order, as far as it is there: the language's runtime first, since
/// what comes after uses it.
const STARTS: [&str; 3] = ["_initialize", "_start", "wapc_init"];
/// The longest complaint that is kept, in bytes.
const LONGEST_COMPLAINT: u32 = 4096;

/// Defines what modules import.
pub(crate) fn link(linker: &mut Linker<State>) -> Result<()> {
    linker.func_wrap(IMPORTS, "__guest_request", guest_request)?;
    linker.func_wrap(IMPORTS, "__guest_response", guest_response)?;
    linker.func_wrap(IMPORTS, "__guest_error", guest_error)?;
    linker.func_wrap(IMPORTS, "__host_call", host_call)?;
    linker.func_wrap(IMPORTS, "__host_response_len", |caller: Caller<'_>| {
        length_of(answered(&caller))
    })?;
    linker.func_wrap(
        IMPORTS,
        "__host_response",
        |mut caller: Caller<'_>, pointer: u32| -> Result<()> {
            let (memory, state) = guest::split(&mut caller)?;
            if let Some(Ok(answer)) = &state.answer {
                guest::write(memory, pointer, answer)?;
            }
            Ok(())
        },
    )?;
    linker.func_wrap(IMPORTS, "__host_error_len", |caller: Caller<'_>| {
        length_of(refused(&caller))
    })?;
    linker.func_wrap(
        IMPORTS,
        "__host_error",
        |mut caller: Caller<'_>, pointer: u32| -> Result<()> {
            let (memory, state) = guest::split(&mut caller)?;
            if let Some(Err(refusal)) = &state.answer {
                guest::write(memory, pointer, refusal.as_bytes())?;
            }
            Ok(())
        },
    )?;
    linker.func_wrap(
        IMPORTS,
        "__console_log",
        |mut caller: Caller<'_>, pointer: u32, length: u32| -> Result<()> {
            let (memory, state) = guest::split(&mut caller)?;
            state
                .journal
                .write_line(guest::read(memory, pointer, length)?);
            Ok(())
        },
    )?;
    Ok(())
}

/// Asks a new instance.
pub(crate) fn run(module: &InstancePre<State>, store: &mut Store<State>) -> Result<Vec<u8>> {
    let instance = module.instantiate(&mut *store)?;
    for start in STARTS {
        if instance.get_func(&mut *store, start).is_none() {
            continue;
        }
        let start = instance.get_typed_func::<(), ()>(&mut *store, start)?;
        match start.call(&mut *store, ()) {
            // A program whose main function has nothing to do says that it succeeded.
            Err(error) if matches!(error.downcast_ref(), Some(Stop::Exit(0))) => {}
            ended => ended?,
        }
    }
    let call = instance.get_typed_func::<(u32, u32), u32>(&mut *store, CALL)?;
    let operation = guest::length(store.data().operation.len())?;
    let request = guest::length(store.data().request.len())?;
    let succeeded = call.call(&mut *store, (operation, request))?;
    let state = store.data_mut();
    match (succeeded, state.response.take(), state.complaint.take()) {
        (1.., Some(response), _) => Ok(response),
        (_, _, Some(complaint)) => Err(Stop::Guest(complaint).into()),
        (1.., None, None) => Err(Stop::protocol("it gave no response").into()),
        (0, _, None) => Err(Stop::protocol("it failed without saying why").into()),
    }
}

fn guest_request(mut caller: Caller<'_>, operation: u32, payload: u32) -> Result<()> {
    let (memory, state) = guest::split(&mut caller)?;
    guest::write(memory, operation, state.operation.as_bytes())?;
    guest::write(memory, payload, &state.request)?;
    Ok(())
}

fn guest_response(mut caller: Caller<'_>, pointer: u32, length: u32) -> Result<()> {
    let (memory, state) = guest::split(&mut caller)?;
    let response = guest::read(memory, pointer, length)?;
    if response.len() > state.limits.output {
        return Err(Stop::Output.into());
    }
    state.response = Some(response.to_vec());
    Ok(())
}

fn guest_error(mut caller: Caller<'_>, pointer: u32, length: u32) -> Result<()> {
    let (memory, state) = guest::split(&mut caller)?;
    guest::read(memory, pointer, length)?;
    let complaint = guest::read(memory, pointer, length.min(LONGEST_COMPLAINT))?;
    state.complaint = Some(String::from_utf8_lossy(complaint).trim().to_owned());
    Ok(())
}

#[expect(clippy::too_many_arguments, reason = "the protocol has them")]
fn host_call(
    mut caller: Caller<'_>,
    binding: u32,
    binding_length: u32,
    namespace: u32,
    namespace_length: u32,
    operation: u32,
    operation_length: u32,
    payload: u32,
    payload_length: u32,
) -> Result<u32> {
    let names = [
        (binding, binding_length),
        (namespace, namespace_length),
        (operation, operation_length),
    ];
    let answer = host::ask(&mut caller, names, (payload, payload_length))?;
    let succeeded = u32::from(answer.is_ok());
    caller.data_mut().answer = Some(answer);
    Ok(succeeded)
}

fn answered<'a>(caller: &'a Caller<'_>) -> &'a [u8] {
    match &caller.data().answer {
        Some(Ok(answer)) => answer,
        _ => &[],
    }
}

fn refused<'a>(caller: &'a Caller<'_>) -> &'a [u8] {
    match &caller.data().answer {
        Some(Err(refusal)) => refusal.as_bytes(),
        _ => &[],
    }
}

fn length_of(bytes: &[u8]) -> Result<u32> {
    Ok(guest::length(bytes.len())?)
}
