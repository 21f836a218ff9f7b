//! From a policy as it is written to one that can be asked: its code is fetched and compiled, its
//! settings are put before it, and its server is found. What stands in the way is told by who can
//! remove it: whoever wrote the policy, or time.

use crate::logins::Sources;
use crate::modules::{Loaded, Modules, blocking};
use crate::servers::{Server, Servers};
use muster_control::{Panicked, Panics};
use muster_policy::assess::Judge;
use muster_policy::cel::{CelPolicy, Conditions};
use muster_policy::evaluate::{Evaluator, Lookup};
use muster_policy::group::GroupPolicy;
use muster_policy::load::LoadError;
use muster_policy::module::ModulePolicy;
use muster_policy::policy::{Body, Member, Policy};
use muster_policy::rego::{Owner, RegoPolicy};
use muster_policy::remote::RemotePolicy;
use muster_policy::request;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

/// What runs Wasm, Rego and CEL, and asks servers. The number goes up when the same code might judge
/// otherwise than before, so that everything is judged again.
const RUNNERS: [&str; 4] = ["wasm-2", "rego-1", "cel-1", "remote-2"];
/// What asking a server may take longer than the evaluation there.
const WAY: Duration = Duration::from_secs(8);

/// Why a policy cannot be asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrepareError {
    /// The policy, or what it names, is wrong: it stays so until somebody changes it.
    #[error(transparent)]
    Load(LoadError),
    /// Something else stands in the way (a registry that is down, a module or a Secret that is not
    /// there yet, a login that is refused): it may be gone when it is tried again.
    #[error("{0}")]
    Later(String),
    /// The preparation panicked.
    #[error(transparent)]
    Panicked(#[from] Panicked),
}

impl PrepareError {
    /// Whether it may help to try again with the policy as it is.
    pub fn is_worth_a_retry(&self) -> bool {
        matches!(self, PrepareError::Later(_) | PrepareError::Panicked(_))
    }

    fn of_member(self, name: &str) -> PrepareError {
        let told = format!("the policy {name:?}: {self}");
        match self {
            PrepareError::Load(LoadError::HostCall(_)) => {
                PrepareError::Load(LoadError::HostCall(told))
            }
            PrepareError::Load(_) => PrepareError::Load(LoadError::Source(told)),
            PrepareError::Later(_) => PrepareError::Later(told),
            PrepareError::Panicked(_) => self,
        }
    }
}

impl From<LoadError> for PrepareError {
    fn from(error: LoadError) -> PrepareError {
        match error {
            LoadError::Unreachable(why) => PrepareError::Later(why),
            error => PrepareError::Load(error),
        }
    }
}

impl From<PrepareError> for LoadError {
    /// For whoever only tells it.
    fn from(error: PrepareError) -> LoadError {
        match error {
            PrepareError::Load(error) => error,
            PrepareError::Later(why) => LoadError::Unreachable(why),
            PrepareError::Panicked(panicked) => LoadError::Unreachable(panicked.to_string()),
        }
    }
}

/// Makes policies ready.
#[derive(Debug)]
pub struct Preparer {
    modules: Arc<Modules>,
    servers: Servers,
    lookup: Arc<dyn Lookup>,
    runtime: Handle,
    panics: Panics,
}

/// One evaluator, and what runs in it.
struct Ready {
    evaluator: Arc<dyn Evaluator>,
    runs: String,
}

impl Preparer {
    /// With these modules and servers. Policies for the whole cluster may look at it through `lookup`;
    /// servers are asked on `runtime`.
    pub fn new(
        modules: Arc<Modules>,
        servers: Servers,
        lookup: Arc<dyn Lookup>,
        runtime: Handle,
    ) -> Preparer {
        Preparer {
            modules,
            servers,
            lookup,
            runtime,
            panics: Panics::default(),
        }
    }

    /// Counts panics with those of the process.
    pub fn counting(self, panics: Panics) -> Preparer {
        Preparer { panics, ..self }
    }

    /// The modules, to have their names looked up again.
    pub fn modules(&self) -> &Modules {
        &self.modules
    }

    /// Makes a policy ready. A panic is an error of that policy.
    pub async fn prepare(&self, policy: &Policy) -> Result<Judge, PrepareError> {
        let work = self.prepare_policy(policy);
        let done = self.panics.catch("audit", "prepare", work).await;
        done.unwrap_or_else(|panicked| Err(panicked.into()))
    }

    async fn prepare_policy(&self, policy: &Policy) -> Result<Judge, PrepareError> {
        let written = policy.match_conditions.clone();
        let conditions = blocking(move || Conditions::compile(&written)).await??;
        let server = self.servers.find(&policy.server).await?;
        let ready = match server {
            Server::Here(sources) => self.here(policy, &sources).await?,
            Server::Remote { address, client } => self.remote(policy, &address, client),
        };
        Ok(Judge {
            evaluator: ready.evaluator,
            conditions,
            code: request::hash(ready.runs.as_bytes()),
        })
    }

    /// A server judges whole policies, groups too.
    fn remote(&self, policy: &Policy, address: &str, client: reqwest::Client) -> Ready {
        let members = policy.members().into_iter();
        let evaluation: Duration = members.map(|(_, member)| member.time).sum();
        let (name, runtime) = (policy.unique_name(), self.runtime.clone());
        let remote = RemotePolicy::new(client, address, &name, evaluation + WAY, runtime);
        Ready {
            evaluator: Arc::new(remote),
            runs: format!("{}:{address}", RUNNERS[3]),
        }
    }

    async fn here(&self, policy: &Policy, sources: &Sources) -> Result<Ready, PrepareError> {
        let (members, expression, message) = match &policy.body {
            Body::Single { member, .. } => return self.member(policy, sources, member).await,
            Body::Group {
                members,
                expression,
                message,
            } => (members, expression, message),
        };
        let mut all: BTreeMap<String, Arc<dyn Evaluator>> = BTreeMap::new();
        let mut runs = String::new();
        for (name, member) in members {
            let ready = self.member(policy, sources, member).await;
            let ready = ready.map_err(|error| error.of_member(name))?;
            runs += &format!("{name}={};", ready.runs);
            all.insert(name.clone(), ready.evaluator);
        }
        let group = GroupPolicy::new(all, expression.clone(), message.clone());
        let evaluator = Arc::new(group);
        Ok(Ready { evaluator, runs })
    }

    async fn member(
        &self,
        policy: &Policy,
        sources: &Sources,
        member: &Member,
    ) -> Result<Ready, PrepareError> {
        let mut member = member.clone();
        // Whoever may only write in a namespace may not see the cluster through a policy.
        if policy.sort.is_namespaced() {
            member.context_aware.clear();
        }
        match member.module.as_str() {
            "builtin:cel" => return cel(member.settings, member.time).await,
            "builtin:rego" => return rego_of_settings(member, owner(policy)).await,
            _ => {}
        }
        let (digest, loaded) = self.modules.load(&member.module, sources).await?;
        match loaded {
            Loaded::Wasm(module) => {
                let lookup = self.lookup.clone();
                // It asks the module whether it takes the settings.
                let loading = move || ModulePolicy::load(module, &member, lookup);
                let evaluator = Arc::new(blocking(loading).await??);
                let runs = format!("{}:{digest}", RUNNERS[0]);
                Ok(Ready { evaluator, runs })
            }
            Loaded::Rego(source) => rego(source, member.settings, member.time, owner(policy)).await,
            // What was fetched is the policy; there is nothing left to set.
            Loaded::Cel(settings) => {
                let ready = cel(settings, member.time).await?;
                let runs = format!("{}:{digest}", ready.runs);
                Ok(Ready { runs, ..ready })
            }
        }
    }
}

async fn cel(settings: Value, time: Duration) -> Result<Ready, PrepareError> {
    let evaluator = Arc::new(blocking(move || CelPolicy::load(&settings, time)).await??);
    let runs = RUNNERS[2].to_owned();
    Ok(Ready { evaluator, runs })
}

/// For whom evaluations of a policy count that are left running.
fn owner(policy: &Policy) -> Owner {
    match &policy.namespace {
        Some(namespace) => Owner::Tenant(namespace.as_str().into()),
        None => Owner::Installation("cluster policies"),
    }
}

async fn rego(
    source: String,
    settings: Value,
    time: Duration,
    owner: Owner,
) -> Result<Ready, PrepareError> {
    let digest = request::hash(source.as_bytes());
    let loading = move || RegoPolicy::load(&source, &settings, time, owner);
    let evaluator = Arc::new(blocking(loading).await??);
    let runs = format!("{}:{digest:016x}", RUNNERS[1]);
    Ok(Ready { evaluator, runs })
}

async fn rego_of_settings(member: Member, owner: Owner) -> Result<Ready, PrepareError> {
    let Some(source) = member.settings["rego"].as_str() else {
        let why = "rego is missing; it has the text of the policy".into();
        return Err(LoadError::Settings(why).into());
    };
    let parameters = member.settings.get("parameters").cloned();
    let parameters = parameters.unwrap_or_else(|| serde_json::json!({}));
    rego(source.to_owned(), parameters, member.time, owner).await
}
