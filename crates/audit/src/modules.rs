//! The code of policies: fetched, checked, and compiled once. A name that says what the code must be
//! (`@sha256:…`) is never looked up twice; any other keeps its meaning until [`Modules::refresh`], so that
//! policies that are read one after the other run the same code. What was fetched is found by its digest
//! alone: who knows the digest of a module that another may fetch can run it too, which tells nothing
//! that the digest does not.

mod artifact;
mod cache;
mod file;
mod place;
mod web;

use crate::logins::Sources;
use crate::prepare::PrepareError;
use cache::Cache;
use muster_policy::code::Code;
use muster_policy::load::LoadError;
use muster_registry::{
    Client, Credentials, Digest, Host, Limits, Retry, Timeouts, Traffic, Transport,
};
use muster_wasm::{Module, Sandbox};
pub use place::Place;
use serde_json::Value;
use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// How many compiled modules are kept though no policy uses them: somebody who tries settings one
/// after the other should not wait for the compiler each time.
const UNUSED: usize = 8;
/// How many names, clients and locks are kept before those that nobody needs are forgotten.
const MOST: usize = 1024;

/// How code is fetched.
#[derive(Clone, Debug)]
pub struct Options {
    /// Below which directories `file://` may read; nowhere if there are none.
    pub files: Vec<PathBuf>,
    /// Where fetched code is kept; nowhere if none is named.
    pub cache: Option<PathBuf>,
    /// How much is kept there, in bytes.
    pub cache_size: u64,
    /// The largest module, in bytes.
    pub largest: usize,
    /// How long fetching and compiling one may take.
    pub time: Duration,
    /// Logins beside those of the PolicyServer.
    pub credentials: Credentials,
    /// Authorities to trust beside the system's, in PEM.
    pub authorities: Option<Vec<u8>>,
    /// How patient to be with registries.
    pub retry: Retry,
    /// How much is asked of a registry at once, shared with whoever else asks it.
    pub traffic: Traffic,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            files: Vec::new(),
            cache: None,
            cache_size: 1 << 30,
            largest: 64 << 20,
            time: Duration::from_secs(120),
            credentials: Credentials::none(),
            authorities: None,
            retry: Retry {
                attempts: 3,
                ..Retry::default()
            },
            traffic: Traffic::default(),
        }
    }
}

/// Code that can be run.
#[derive(Clone)]
pub enum Loaded {
    /// A Wasm module, compiled.
    Wasm(Arc<Module>),
    /// A Rego module.
    Rego(String),
    /// CEL, with its variables and messages.
    Cel(Value),
}

/// What a name means, once it has been looked up.
type Meaning = Arc<tokio::sync::Mutex<Option<Digest>>>;

/// The code of policies.
pub struct Modules {
    options: Options,
    sandbox: Sandbox,
    cache: Option<Cache>,
    clients: Mutex<HashMap<(u64, Host), Client>>,
    /// What names mean. Whoever looks one up holds its lock, and others wait for what he finds.
    names: Mutex<HashMap<(u64, String), Meaning>>,
    /// What is compiled; whoever compiles holds the lock.
    compiled: Mutex<HashMap<Digest, Arc<tokio::sync::Mutex<Weak<Module>>>>>,
    unused: Arc<Mutex<VecDeque<Arc<Module>>>>,
}

impl std::fmt::Debug for Modules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Modules").finish_non_exhaustive()
    }
}

impl Modules {
    /// Fetches with these options, and compiles for this sandbox.
    pub fn new(options: Options, sandbox: Sandbox) -> Modules {
        let cache = options.cache.as_deref();
        Modules {
            cache: cache.map(|directory| Cache::new(directory, options.cache_size)),
            options,
            sandbox,
            clients: Mutex::default(),
            names: Mutex::default(),
            compiled: Mutex::default(),
            unused: Arc::default(),
        }
    }

    /// Forgets what names mean that may have another meaning by now, so that each is looked up when it
    /// is asked for again.
    pub fn refresh(&self) {
        let fixed = |module: &str| Place::parse(module).is_ok_and(|place| place.is_fixed());
        lock(&self.names).retain(|(_, module), _| fixed(module));
    }

    /// The code that a policy names in `module`, with its digest.
    pub async fn load(
        &self,
        module: &str,
        sources: &Sources,
    ) -> Result<(Digest, Loaded), PrepareError> {
        let place = Place::parse(module)?;
        // Also whoever waits for another's fetching waits no longer than that.
        let loading = self.load_from(&place, module, sources);
        match tokio::time::timeout(self.options.time, loading).await {
            Ok(loaded) => loaded,
            Err(_) => {
                let time = self.options.time;
                Err(PrepareError::Later(format!(
                    "the module {module} cannot be loaded within {time:?}"
                )))
            }
        }
    }

    async fn load_from(
        &self,
        place: &Place,
        module: &str,
        sources: &Sources,
    ) -> Result<(Digest, Loaded), PrepareError> {
        let name = self.name(sources.key(), module);
        let mut meaning = name.lock().await;
        if let Some(digest) = meaning.as_ref() {
            if let Some(module) = self.ready(digest).await {
                return Ok((digest.clone(), Loaded::Wasm(module)));
            }
            let digest = digest.clone();
            if let Some(cache) = &self.cache
                && let Some(bytes) = cache.get(&digest, self.options.largest).await
            {
                let loaded = self.compile(&digest, bytes).await?;
                return Ok((digest, loaded));
            }
        }
        let (digest, loaded) = self.look_up(place, sources).await?;
        *meaning = Some(digest.clone());
        Ok((digest, loaded))
    }

    async fn look_up(
        &self,
        place: &Place,
        sources: &Sources,
    ) -> Result<(Digest, Loaded), PrepareError> {
        let unknown = |digest: &Digest| self.is_unknown(digest);
        let (digest, bytes) = self.fetch(place, sources, unknown).await?;
        if let Some(bytes) = bytes {
            let loaded = self.compile(&digest, bytes).await?;
            return Ok((digest, loaded));
        }
        if let Some(module) = self.ready(&digest).await {
            return Ok((digest, Loaded::Wasm(module)));
        }
        // It was there a moment ago; or whoever was compiling it could not.
        let (digest, bytes) = self.fetch(place, sources, |_| true).await?;
        let loaded = self.compile(&digest, bytes.unwrap_or_default()).await?;
        Ok((digest, loaded))
    }

    /// The digest of the code, and its bytes; of a registry only if they are wanted.
    async fn fetch(
        &self,
        place: &Place,
        sources: &Sources,
        wanted: impl Fn(&Digest) -> bool,
    ) -> Result<(Digest, Option<Vec<u8>>), PrepareError> {
        let Options {
            largest,
            authorities,
            ..
        } = &self.options;
        let cache = self.cache.as_ref();
        let bytes = match place {
            Place::Registry(reference) => {
                let client = self.client(reference.host(), sources)?;
                return artifact::fetch(&client, cache, reference, *largest, wanted).await;
            }
            Place::Web(url, digest) => {
                if let (Some(digest), Some(cache)) = (digest, cache)
                    && let Some(bytes) = cache.get(digest, *largest).await
                {
                    return Ok((digest.clone(), Some(bytes)));
                }
                let own = authorities.as_deref().unwrap_or_default();
                web::fetch(url, digest.as_ref(), sources, own, *largest).await?
            }
            Place::File(path) => {
                let (path, below, largest) = (path.clone(), self.options.files.clone(), *largest);
                let reading = move || file::read(&path, &below, largest);
                let bytes = blocking(reading).await??;
                // It is on this machine already.
                return Ok((Digest::of(&bytes), Some(bytes)));
            }
        };
        let digest = Digest::of(&bytes);
        if let Some(cache) = cache {
            cache.put(&digest, &bytes).await;
        }
        Ok((digest, Some(bytes)))
    }

    fn client(&self, host: &Host, sources: &Sources) -> Result<Client, PrepareError> {
        let options = &self.options;
        let mut clients = lock(&self.clients);
        let key = (sources.key(), host.clone());
        if let Some(client) = clients.get(&key) {
            return Ok(client.clone());
        }
        let own = sources.authorities(host.as_str()).map(str::as_bytes);
        let both = [options.authorities.as_deref(), own];
        let both: Vec<&[u8]> = both.into_iter().flatten().collect();
        let client = Client::new(
            muster_registry::Options {
                credentials: sources.credentials.clone().and(options.credentials.clone()),
                authorities: (!both.is_empty()).then(|| both.join(&b'\n')),
                transport: match sources.is_insecure(host.as_str()) {
                    true => Transport::Insecure,
                    false => Transport::Verified,
                },
                limits: Limits {
                    layer: options.largest as u64,
                    ..Limits::default()
                },
                timeouts: Timeouts {
                    answer: options.time,
                    ..Timeouts::default()
                },
                retry: options.retry.clone(),
                ..muster_registry::Options::default()
            },
            options.traffic.clone(),
        )
        .map_err(|error| PrepareError::Later(error.to_string()))?;
        if clients.len() >= MOST {
            clients.clear();
        }
        clients.insert(key, client.clone());
        Ok(client)
    }

    fn name(&self, sources: u64, module: &str) -> Meaning {
        let mut names = lock(&self.names);
        if names.len() >= MOST {
            names.retain(|_, meaning| Arc::strong_count(meaning) > 1);
        }
        names.entry((sources, module.into())).or_default().clone()
    }

    fn is_unknown(&self, digest: &Digest) -> bool {
        match lock(&self.compiled).get(digest) {
            // One that is locked is just being compiled.
            Some(slot) => slot
                .try_lock()
                .is_ok_and(|module| module.strong_count() == 0),
            None => true,
        }
    }

    /// A compiled module, if there is one; if it is just being compiled, when it is.
    async fn ready(&self, digest: &Digest) -> Option<Arc<Module>> {
        let slot = lock(&self.compiled).get(digest).cloned()?;
        let module = slot.lock().await;
        module.upgrade()
    }

    async fn compile(&self, digest: &Digest, bytes: Vec<u8>) -> Result<Loaded, PrepareError> {
        let bytes = match blocking(move || Code::of(bytes)).await?? {
            Code::Wasm(bytes) => bytes,
            Code::Rego(source) => return Ok(Loaded::Rego(source)),
            Code::Cel(settings) => return Ok(Loaded::Cel(settings)),
        };
        let mut compiled = self.slot(digest).lock_owned().await;
        if let Some(module) = compiled.upgrade() {
            return Ok(Loaded::Wasm(module));
        }
        let (sandbox, unused) = (self.sandbox.clone(), self.unused.clone());
        // The compiler does not stop when nobody waits any longer. It takes the lock along, so that
        // whoever comes meanwhile waits for it instead of compiling the same beside it.
        let loading = move || {
            let loaded = sandbox.load(&bytes);
            let module = Arc::new(loaded.map_err(|error| LoadError::Module(error.to_string()))?);
            *compiled = Arc::downgrade(&module);
            let mut unused = lock(&unused);
            unused.push_back(module.clone());
            if unused.len() > UNUSED {
                unused.pop_front();
            }
            Ok::<_, LoadError>(module)
        };
        Ok(Loaded::Wasm(blocking(loading).await??))
    }

    fn slot(&self, digest: &Digest) -> Arc<tokio::sync::Mutex<Weak<Module>>> {
        let mut compiled = lock(&self.compiled);
        compiled.retain(|_, slot| {
            // Only one that nobody holds can be looked into.
            let gone = slot.try_lock().map(|module| module.strong_count() == 0);
            Arc::strong_count(slot) > 1 || !gone.unwrap_or(false)
        });
        compiled.entry(digest.clone()).or_default().clone()
    }
}

/// Runs work that takes long on a thread of its own. A panic there goes on here; [`Preparer::prepare`] catches
/// it.
///
/// [`Preparer::prepare`]: crate::prepare::Preparer::prepare
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, PrepareError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => Ok(done),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(PrepareError::Later("Muster is stopping".into())),
        },
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
