//! Makes policies ready to judge: their code is fetched and compiled, a few at once. One that does not
//! load is told here once, and says so of every object that it should have judged.

use super::cluster::Cluster;
use super::judge::{Job, Known};
use super::lookup::Manifests;
use super::policies::{Policies, Said, wrapped};
use super::talk::Talk;
use anyhow::{Context, Result};
use futures::{StreamExt, stream};
use muster_audit::logins::Sources;
use muster_audit::lookup::ClusterLookup;
use muster_audit::modules::{Loaded, Modules};
use muster_audit::prepare::Preparer;
use muster_audit::servers::{Objects, Servers};
use muster_policy::{Lookup, Prepared};
use muster_registry::Credentials;
use muster_wasm::Sandbox;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::runtime::Handle;

/// Where Muster is installed unless somebody says otherwise: Secrets may be there too.
const INSTALLATION: &str = "muster";

/// What policies are made ready with.
pub(super) struct Means<'a> {
    pub(super) cluster: Option<&'a Cluster>,
    /// All manifests.
    pub(super) manifests: &'a [Job],
    /// Where code is kept; nowhere if none is named.
    pub(super) cache: Option<&'a Path>,
    /// Authorities to trust, in PEM.
    pub(super) authorities: Option<Vec<u8>>,
    /// The namespace of the admission controller, where the Secrets of PolicyServers are.
    pub(super) controller: &'a str,
    /// What modules without a policy are told.
    pub(super) settings: Value,
    pub(super) parallel: usize,
}

/// Makes all policies ready.
pub(super) async fn prepare(
    mut policies: Policies,
    means: Means<'_>,
    talk: &Talk,
) -> Result<Vec<Known>> {
    let preparer = preparer(&policies, &means)?;
    for bare in std::mem::take(&mut policies.bare) {
        let loaded = preparer
            .modules()
            .load(&bare.module, &Sources::default())
            .await;
        let said = match loaded {
            Ok((_, Loaded::Wasm(module))) => said(&module),
            Ok(_) => Said::default(),
            Err(error) => {
                talk.trouble(&format!("{}: {error}", bare.module));
                continue;
            }
        };
        let policy = wrapped(&bare.name, &bare.module, means.settings.clone(), &said);
        policies.add(policy, None, "", talk);
    }
    talk.begin("loading policies", Some(policies.drafts.len()));
    let preparing = stream::iter(policies.drafts).map(async |draft| {
        let judge = preparer.prepare(&draft.policy).await;
        talk.step();
        if let Err(error) = &judge {
            talk.trouble(&format!("{} does not load: {error}", draft.policy.place()));
        }
        Known {
            prepared: Prepared {
                policy: draft.policy,
                judge: judge.map(Arc::new).map_err(Into::into),
            },
            description: draft.description,
        }
    });
    let known = preparing.buffered(means.parallel).collect().await;
    talk.end();
    Ok(known)
}

fn preparer(policies: &Policies, means: &Means<'_>) -> Result<Preparer> {
    let below = |name: &str| means.cache.map(|cache| cache.join(name));
    let sandbox = Sandbox::new(muster_wasm::Options {
        cache: below("compiled"),
    });
    let sandbox = sandbox.context("preparing to run policies")?;
    // What is named on the command line, and what lies beside the policies or below here.
    let mut files: Vec<PathBuf> = policies.directories.iter().cloned().collect();
    files.extend(std::env::current_dir());
    let options = muster_audit::modules::Options {
        files,
        cache: below("modules"),
        credentials: Credentials::of_user()?,
        authorities: means.authorities.clone(),
        ..muster_audit::modules::Options::default()
    };
    let (objects, lookup): (_, Arc<dyn Lookup>) = match means.cluster {
        Some(cluster) => {
            let (client, options) = (cluster.client.clone(), Default::default());
            let lookup = ClusterLookup::new(client.clone(), options, Handle::current());
            (Objects::Cluster(client), Arc::new(lookup))
        }
        None => {
            let objects = means.manifests.iter().map(|job| &job.object);
            let servers = policies.others.iter().chain(objects.clone());
            let servers =
                servers.filter(|one| one["kind"] == "PolicyServer" || one["kind"] == "Secret");
            let servers = Objects::Written(Arc::new(servers.cloned().collect()));
            // What a bare module wants to see is not known yet.
            let mut drafts = policies.drafts.iter();
            let looks = !policies.bare.is_empty()
                || drafts.any(|draft| !draft.policy.context_aware().is_empty());
            (servers, Arc::new(Manifests::new(objects.filter(|_| looks))))
        }
    };
    let secrets = [means.controller, INSTALLATION];
    let servers = Servers::new(objects, &secrets, means.authorities.clone());
    let modules = Arc::new(Modules::new(options, sandbox));
    Ok(Preparer::new(modules, servers, lookup, Handle::current()))
}

fn said(module: &muster_wasm::Module) -> Said {
    let Some(metadata) = module.metadata() else {
        // Whether it changes anything is seen when it is asked.
        return Said {
            mutating: true,
            ..Said::default()
        };
    };
    let annotations = metadata.annotations.iter();
    Said {
        mutating: metadata.mutating,
        reads: metadata.context_aware_resources.clone(),
        annotations: annotations
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
    }
}
