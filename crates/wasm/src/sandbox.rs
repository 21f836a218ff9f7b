//! The engine that all modules share. It compiles, and it is told here what modules may be made of:
//! what today's compilers emit, and nothing that needs a garbage collector, threads or more than one
//! memory of 32 bits.

use crate::error::{Error, causes};
use crate::limits::size;
use crate::metadata::Metadata;
use crate::module::Module;
use crate::state::State;
use crate::ticker::Ticker;
use crate::{wapc, wasi};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wasmtime::{Cache, CacheConfig, Config, Engine, Linker};

/// The largest module that is compiled.
pub const LARGEST_MODULE: usize = 64 << 20;
/// How a module begins, with its version.
const MODULE: &[u8] = b"\0asm\x01\0\0\0";

/// How a sandbox is made.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Where compiled modules are kept. What lies there is run as it is, so nobody else may write to
    /// it. It is made if it is not there.
    pub cache: Option<PathBuf>,
}

/// Where modules are compiled and run; cheap to clone.
#[derive(Clone)]
pub struct Sandbox {
    linker: Linker<State>,
    cache: Option<Cache>,
    ticker: Arc<Ticker>,
}

impl fmt::Debug for Sandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sandbox").finish_non_exhaustive()
    }
}

impl Sandbox {
    /// Makes a sandbox.
    pub fn new(options: Options) -> Result<Sandbox, Error> {
        let made = |error: wasmtime::Error| Error::Sandbox(causes(&error));
        let cache = options.cache.as_deref().map(cache).transpose()?;
        let engine = Engine::new(&configuration(cache.clone())).map_err(made)?;
        let mut linker = Linker::new(&engine);
        wapc::link(&mut linker).map_err(made)?;
        wasi::link(&mut linker).map_err(made)?;
        let ticker = Ticker::start(engine).map_err(|error| Error::Sandbox(error.to_string()))?;
        Ok(Sandbox {
            linker,
            cache,
            ticker: Arc::new(ticker),
        })
    }

    /// Compiles a module, unless it is in the cache, and links it. It takes seconds for large ones.
    pub fn load(&self, bytes: &[u8]) -> Result<Module, Error> {
        if bytes.len() > LARGEST_MODULE {
            return Err(Error::Large(size(bytes.len())));
        }
        if !bytes.starts_with(&MODULE[..4]) {
            return Err(Error::NotWasm);
        }
        if !bytes.starts_with(MODULE) {
            let what = "it is WebAssembly, but no module (components are not supported)";
            return Err(Error::Unsupported(what.into()));
        }
        let metadata = Metadata::of(bytes)?;
        let compiled = wasmtime::Module::from_binary(self.linker.engine(), bytes)
            .map_err(|error| Error::Invalid(causes(&error)))?;
        Module::link(
            &compiled,
            metadata,
            self.linker.clone(),
            self.ticker.clone(),
        )
    }

    /// How many modules came from the cache, and how many had to be compiled for it.
    pub fn cached(&self) -> (usize, usize) {
        self.cache
            .as_ref()
            .map_or((0, 0), |cache| (cache.cache_hits(), cache.cache_misses()))
    }
}

fn cache(directory: &Path) -> Result<Cache, Error> {
    let absolute =
        std::path::absolute(directory).map_err(|error| Error::Cache(error.to_string()))?;
    let mut config = CacheConfig::new();
    config.with_directory(absolute);
    Cache::new(config).map_err(|error| Error::Cache(causes(&error)))
}

fn configuration(cache: Option<Cache>) -> Config {
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        .cache(cache)
        // Backtraces hold what changes from one run to the next, and nobody is shown them.
        .wasm_backtrace_max_frames(None)
        .generate_address_map(false)
        // Programs of Go use references to functions; those are there without being asked for.
        .wasm_gc(false)
        .wasm_multi_memory(false)
        .wasm_memory64(false)
        .wasm_relaxed_simd(false)
        .wasm_simd(true)
        .wasm_bulk_memory(true);
    config
}
