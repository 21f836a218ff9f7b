//! WASI: the module is a program that reads a request from its standard input, and writes the answer
//! to its standard output. Of the system only what such a program needs is there (`snapshot_preview1`):
//! arguments, the three streams, clocks, randomness and an end. It has no files and no network; whatever
//! else it asks for is answered with an error that programs know, so that they can be started at all.

mod poll;
mod random;
mod streams;

use crate::error::{Error, Stop};
use crate::guest::{self, Caller};
use crate::host;
use crate::state::State;
use std::time::{SystemTime, UNIX_EPOCH};
use wasmtime::{ExternType, InstancePre, Linker, Module, Result, Store, Val, ValType};

/// The module of the imports.
pub(crate) const IMPORTS: &str = "wasi_snapshot_preview1";
/// Where host calls are imported from: by hand-written programs, and by those of Javy.
pub(crate) const HOSTS: [&str; 2] = ["host", "kubewarden:javy/host"];
/// The function that is called.
pub(crate) const CALL: &str = "_start";
/// The name of the program, its first argument.
const PROGRAM: &str = "policy.wasm";

/// What is there of the system.
const KNOWN: [&str; 17] = [
    "args_get",
    "args_sizes_get",
    "clock_res_get",
    "clock_time_get",
    "environ_get",
    "environ_sizes_get",
    "fd_close",
    "fd_fdstat_get",
    "fd_prestat_dir_name",
    "fd_prestat_get",
    "fd_read",
    "fd_seek",
    "fd_write",
    "poll_oneoff",
    "proc_exit",
    "random_get",
    "sched_yield",
];

/// The error numbers of WASI that are used.
mod errno {
    pub(super) const SUCCESS: u32 = 0;
    pub(super) const BADF: u32 = 8;
    pub(super) const INVAL: u32 = 28;
    pub(super) const NOSYS: u32 = 52;
    pub(super) const SPIPE: u32 = 70;
}

/// Defines what modules import.
pub(crate) fn link(linker: &mut Linker<State>) -> Result<()> {
    linker.func_wrap(IMPORTS, "args_sizes_get", args_sizes_get)?;
    linker.func_wrap(IMPORTS, "args_get", args_get)?;
    linker.func_wrap(IMPORTS, "environ_sizes_get", environ_sizes_get)?;
    linker.func_wrap(IMPORTS, "environ_get", |_: u32, _: u32| errno::SUCCESS)?;
    linker.func_wrap(IMPORTS, "clock_time_get", clock_time_get)?;
    linker.func_wrap(IMPORTS, "clock_res_get", clock_res_get)?;
    linker.func_wrap(IMPORTS, "random_get", random::get)?;
    linker.func_wrap(IMPORTS, "sched_yield", || errno::SUCCESS)?;
    linker.func_wrap(IMPORTS, "poll_oneoff", poll::oneoff)?;
    linker.func_wrap(IMPORTS, "proc_exit", |code: i32| -> Result<()> {
        Err(Stop::Exit(code).into())
    })?;
    streams::link(linker)?;
    for module in HOSTS {
        linker.func_wrap(module, "call", host_call)?;
    }
    Ok(())
}

/// Defines the rest of the system as far as a module imports it: all of it answers with an error.
pub(crate) fn link_rest(linker: &mut Linker<State>, module: &Module) -> Result<(), Error> {
    for import in module.imports() {
        let named = || format!("{}.{}", import.module(), import.name());
        if import.module() != IMPORTS || KNOWN.contains(&import.name()) {
            continue;
        }
        let ExternType::Func(kind) = import.ty() else {
            return Err(Error::Import(named()));
        };
        let results: Vec<ValType> = kind.results().collect();
        if !matches!(results.as_slice(), [ValType::I32]) {
            return Err(Error::Import(named()));
        }
        // No directory is open, so whatever number stands for one is not an open one.
        let number = match import.name().starts_with("path_") {
            true => errno::BADF,
            false => errno::NOSYS,
        };
        linker
            .func_new(
                import.module(),
                import.name(),
                kind,
                move |_, _, results| {
                    results.fill(Val::I32(number.cast_signed()));
                    Ok(())
                },
            )
            .map_err(|_| Error::Import(named()))?;
    }
    Ok(())
}

/// Runs a new instance.
pub(crate) fn run(module: &InstancePre<State>, store: &mut Store<State>) -> Result<Vec<u8>> {
    let instance = module.instantiate(&mut *store)?;
    let start = instance.get_typed_func::<(), ()>(&mut *store, CALL)?;
    match start.call(&mut *store, ()) {
        Err(error) if matches!(error.downcast_ref(), Some(Stop::Exit(0))) => {}
        ended => ended?,
    }
    let output = std::mem::take(&mut store.data_mut().output);
    match output.is_empty() {
        true => Err(Stop::protocol("it wrote nothing to its standard output").into()),
        false => Ok(output),
    }
}

fn args_sizes_get(mut caller: Caller<'_>, count: u32, bytes: u32) -> Result<u32> {
    let (memory, state) = guest::split(&mut caller)?;
    let arguments = arguments(state);
    let length = arguments.iter().map(|argument| argument.len() + 1).sum();
    guest::write(
        memory,
        count,
        &guest::length(arguments.len())?.to_le_bytes(),
    )?;
    guest::write(memory, bytes, &guest::length(length)?.to_le_bytes())?;
    Ok(errno::SUCCESS)
}

fn args_get(mut caller: Caller<'_>, mut pointers: u32, mut texts: u32) -> Result<u32> {
    let (memory, state) = guest::split(&mut caller)?;
    for argument in arguments(state) {
        guest::write(memory, pointers, &texts.to_le_bytes())?;
        guest::write(memory, texts, argument.as_bytes())?;
        texts = guest::further(texts, guest::length(argument.len())?)?;
        guest::write(memory, texts, &[0])?;
        texts = guest::further(texts, 1)?;
        pointers = guest::further(pointers, 4)?;
    }
    Ok(errno::SUCCESS)
}

fn arguments(state: &State) -> [&'static str; 2] {
    [PROGRAM, state.operation]
}

fn environ_sizes_get(mut caller: Caller<'_>, count: u32, bytes: u32) -> Result<u32> {
    let (memory, _) = guest::split(&mut caller)?;
    guest::write(memory, count, &[0; 4])?;
    guest::write(memory, bytes, &[0; 4])?;
    Ok(errno::SUCCESS)
}

fn clock_time_get(mut caller: Caller<'_>, clock: u32, _precision: u64, time: u32) -> Result<u32> {
    let (memory, state) = guest::split(&mut caller)?;
    let Some(now) = now(state, clock) else {
        return Ok(errno::INVAL);
    };
    guest::write(memory, time, &now.to_le_bytes())?;
    Ok(errno::SUCCESS)
}

fn clock_res_get(mut caller: Caller<'_>, clock: u32, resolution: u32) -> Result<u32> {
    let (memory, state) = guest::split(&mut caller)?;
    if now(state, clock).is_none() {
        return Ok(errno::INVAL);
    }
    guest::write(memory, resolution, &1000u64.to_le_bytes())?;
    Ok(errno::SUCCESS)
}

/// What a clock shows, in nanoseconds: the time of day, or the time since the call began.
fn now(state: &State, clock: u32) -> Option<u64> {
    let time = match clock {
        0 => SystemTime::now().duration_since(UNIX_EPOCH).ok()?,
        1..=3 => state.started.elapsed(),
        _ => return None,
    };
    u64::try_from(time.as_nanos()).ok()
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
    let failed = u32::from(answer.is_err());
    let answer = answer.unwrap_or_else(String::into_bytes);
    let input = &mut caller.data_mut().input;
    if input.left() > host::LARGEST_ANSWER {
        return Err(Stop::protocol("it does not read the answers of its host calls").into());
    }
    input.append(&answer);
    Ok(failed)
}
