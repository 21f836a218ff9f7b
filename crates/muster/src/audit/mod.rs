//! `muster audit`: which objects break which policies and configuration checks, once. Objects are manifests or those of a
//! cluster, which is only read; nothing is stored. What cannot be read is told and keeps nothing else
//! from being judged. Results go to standard output, talk to standard error.

mod cluster;
mod configuration;
mod files;
mod judge;
mod lookup;
mod manifest;
mod policies;
mod prepare;
mod print;
mod served;
mod sources;
mod survey;
mod talk;
mod threshold;

use crate::auditing::{Checks, ReportFormat, TRIVY_OPERATOR};
use crate::inspect::places;
use crate::role;
use anyhow::{Context, Result, bail};
use clap::Args;
use cluster::Cluster;
use configuration::Configuration;
use futures::stream;
use jiff::Timestamp;
use judge::{Audited, Bench, Job, Known};
use muster_checks::{Kind, force};
use muster_policy::{Policy, Served};
use policies::Policies;
use print::{Form, Found};
use serde_json::{Value, json};
use served::Catalog;
use sources::Sources;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use talk::Talk;
use threshold::Threshold;

/// Something at or above `--fail-on` was found.
const FOUND: u8 = 3;

#[derive(Args)]
pub(crate) struct Audit {
    /// Manifests to judge: files, directories (all .yaml, .yml and .json below), or `-` for standard
    /// input. May be repeated. If not given, the objects of a cluster are judged.
    #[arg(short, long = "filename", value_name = "FILE|DIR|-")]
    files: Vec<String>,
    /// Policies that judge: files or directories with policies and ConfigMaps of configuration checks, or
    /// a module (a .wasm or .rego file, registry://…, https://…), which then judges everything unless it
    /// says which kinds it is about. May be repeated. If not given, those among the manifests and those
    /// of the cluster judge.
    #[arg(short, long = "policy", value_name = "FILE|DIR|MODULE")]
    policies: Vec<String>,
    /// What modules that are named by --policy are told, as YAML or JSON.
    #[arg(long, value_name = "FILE")]
    settings: Option<PathBuf>,
    /// With a cluster: judge only what is in this namespace. With manifests: where those are that name
    /// no namespace, if not in `default`.
    #[arg(
        short,
        long,
        value_name = "NAMESPACE",
        conflicts_with = "all_namespaces"
    )]
    namespace: Option<String>,
    /// Judge all namespaces, and what is in none; that is what is done anyway.
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    /// The form of the result.
    #[arg(short, long, value_enum, default_value = "table")]
    output: Form,
    /// Which reports are written by -o json and -o yaml.
    #[arg(long, value_enum, default_value = "policyreport")]
    report_format: ReportFormat,
    /// End with exit code 3 if an object is refused by a policy, or fails a check, of this severity or a
    /// worse one, or it could not be said; `fail` means any, `error` only those that could not say.
    #[arg(long, value_enum, value_name = "WHAT")]
    fail_on: Option<Threshold>,
    /// How to reach the cluster. If not given, KUBECONFIG is used, then what kubectl uses. Together
    /// with -f the manifests are judged as that cluster would judge them.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig, if not its current one.
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// The namespace of the admission controller, which policies for the whole cluster leave alone.
    #[arg(
        long,
        env = "MUSTER_ADMISSION_NAMESPACE",
        value_name = "NAMESPACE",
        default_value = "kubewarden"
    )]
    admission_namespace: String,
    #[command(flatten)]
    checks: Checks,
    /// The namespace of Muster in the cluster, where ConfigMaps with configuration checks are read.
    #[arg(
        long,
        env = "MUSTER_NAMESPACE",
        value_name = "NAMESPACE",
        default_value = "muster"
    )]
    muster_namespace: String,
    /// How many objects are judged at once; if not given, as many as there are processors.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=256))]
    parallel: Option<u16>,
    /// Certificate authorities to trust beside the system's where modules are fetched, as a PEM file.
    #[arg(long, env = "MUSTER_CA", value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Where modules are kept for the next audit; `none` keeps nothing.
    #[arg(long, env = "MUSTER_POLICY_CACHE", value_name = "DIR", default_value_os_t = places::layers().with_file_name("policies"))]
    cache: PathBuf,
    /// Show no progress and no notes.
    #[arg(short, long)]
    quiet: bool,
}

pub(crate) fn run(command: Audit) -> Result<ExitCode> {
    role::run(audit(command))
}

async fn audit(command: Audit) -> Result<ExitCode> {
    command.check()?;
    let talk = Talk::new(command.quiet);
    let cluster = command.cluster().await?;
    if let (Some(cluster), Some(name), true) =
        (&cluster, &command.namespace, command.files.is_empty())
    {
        crate::namespace::exists(&cluster.client, name).await?;
    }
    let served = match &cluster {
        Some(cluster) => cluster.served(&talk).await?,
        None => Vec::new(),
    };
    let mut catalog = match &cluster {
        Some(_) => Catalog::discovered(&served),
        None => Catalog::offline(),
    };
    let jobs = command.manifests(&mut catalog, &talk)?;
    let known = catalog.all();
    let mut policies = command
        .policies(&jobs, cluster.as_ref(), &served, &known, &talk)
        .await?;
    let checks = std::mem::take(&mut policies.checks).into_written();
    let configuration = command.configuration(checks, known, &talk).await?;
    let policies = command
        .prepare(policies, &jobs, cluster.as_ref(), &talk)
        .await?;
    if policies.is_empty() && configuration.count() == 0 {
        bail!("no policy can be used");
    }
    let mut namespaces = match &cluster {
        Some(cluster) => survey::namespaces(cluster, &policies, &talk).await,
        None => Default::default(),
    };
    namespaces.extend(lookup::namespaces(jobs.iter().map(|job| &job.object)));
    let bench = Arc::new(Bench {
        policies,
        configuration,
        namespaces,
        controller: Some(command.admission_namespace.clone()).filter(|name| !name.is_empty()),
        rests: Default::default(),
    });
    let audited = match (&cluster, command.files.is_empty()) {
        (Some(cluster), true) => {
            let namespace = command.namespace.as_deref();
            talk.begin("judging", None);
            survey::survey(
                cluster,
                &served,
                &bench,
                namespace,
                command.parallel(),
                &talk,
            )
            .await
        }
        _ => {
            talk.begin("judging", Some(jobs.len()));
            judge::all(&bench, stream::iter(jobs), command.parallel(), &talk).await
        }
    };
    talk.end();
    let found = Found {
        bench: &bench,
        audited: &audited,
        now: Timestamp::now(),
    };
    print::print(found, command.output, command.report_format.into())?;
    Ok(command.exit(&audited, &bench, &talk))
}

impl Audit {
    fn check(&self) -> Result<()> {
        let named = self.files.iter().chain(&self.policies);
        if named.filter(|name| *name == "-").count() > 1 {
            bail!("standard input can be read once only");
        }
        let is_label = |name: &&String| muster_kind::name::label(name).is_empty();
        if let Some(wrong) = self.namespace.iter().find(|name| !is_label(name)) {
            bail!("{wrong:?} is no namespace");
        }
        Ok(())
    }

    /// The cluster, if there is anything to ask it.
    async fn cluster(&self) -> Result<Option<Cluster>> {
        let is_named = self.kubeconfig.is_some() || self.context.is_some();
        if !self.files.is_empty() && !is_named {
            return Ok(None);
        }
        let cluster = Cluster::open(self.kubeconfig.as_deref(), self.context.as_deref());
        Ok(Some(cluster.await?))
    }

    /// Where manifests are that name no namespace.
    fn default_namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or("default")
    }

    fn parallel(&self) -> usize {
        match self.parallel {
            Some(parallel) => parallel.into(),
            None => std::thread::available_parallelism().map_or(2, usize::from),
        }
    }

    /// The manifests, each where it would be created.
    fn manifests(&self, catalog: &mut Catalog, talk: &Talk) -> Result<Vec<Job>> {
        let written = files::objects(&self.files, talk)?;
        written.iter().for_each(|one| catalog.define(&one.object));
        let jobs = written.into_iter().map(|mut one| {
            let found = catalog.of(&one.object);
            if found.is_guess {
                talk.note(&lookup::guessed(&one.object, &found.served));
            }
            lookup::place(
                &mut one.object,
                found.served.namespaced,
                self.default_namespace(),
            );
            Job {
                served: found.served,
                object: one.object,
                origin: Some(one.origin),
                version: None,
            }
        });
        Ok(jobs.collect())
    }

    /// The policies that judge.
    async fn policies(
        &self,
        jobs: &[Job],
        cluster: Option<&Cluster>,
        served: &[Served],
        known: &[Served],
        talk: &Talk,
    ) -> Result<Policies> {
        let mut policies = Policies::default();
        let kinds: Vec<Kind> = known.iter().map(configuration::kind).collect();
        for name in &self.policies {
            policies.read(name, self.default_namespace(), &kinds, talk)?;
        }
        if self.settings.is_some() && policies.bare.is_empty() {
            bail!(
                "--settings are for a module, and --policy names none; policies have their own settings"
            );
        }
        for job in jobs.iter().filter(|job| Policy::is_one(&job.object)) {
            policies.add(
                job.object.clone(),
                job.origin.as_ref(),
                self.default_namespace(),
                talk,
            );
        }
        for job in jobs.iter().filter(|job| Sources::is_one(&job.object)) {
            let (object, namespace) = (job.object.clone(), self.default_namespace());
            policies.checks.add(object, namespace, talk);
        }
        match cluster {
            Some(cluster) if self.policies.is_empty() => {
                let homes = [TRIVY_OPERATOR, &self.muster_namespace];
                policies.checks.of_cluster(cluster, &homes, talk).await;
                // Those of another namespace have nothing to say, if only one is judged.
                let namespace = self.namespace.as_deref().filter(|_| self.files.is_empty());
                policies.of_cluster(cluster, served, namespace, talk).await;
            }
            Some(_) => {}
            None => {
                let manifests = jobs.iter().map(|job| &job.object);
                policies.judge_here(manifests, talk);
            }
        }
        let has_checks = self.checks.choice().builtin || !policies.checks.is_empty();
        if policies.is_empty() && !has_checks {
            let there = match cluster {
                Some(_) if self.policies.is_empty() => "the cluster has no policy",
                _ if self.policies.is_empty() => "there is no policy among the manifests",
                _ => "there is no policy in what --policy names",
            };
            bail!("{there}; name some with `--policy FILE|DIR|MODULE`");
        }
        Ok(policies)
    }

    /// The checks of configuration; `known` is everything that is served.
    async fn configuration(
        &self,
        sources: force::Sources,
        known: Vec<Served>,
        talk: &Talk,
    ) -> Result<Configuration> {
        let settings = configuration::Settings {
            choice: self.checks.choice(),
            skip_labels: self.checks.skip_labels(),
            exceptions: self.checks.exceptions(),
            now: Timestamp::now(),
        };
        // Loading policies takes a while.
        let loading = move || Configuration::new(&sources, &known, settings);
        let loaded = tokio::task::spawn_blocking(loading).await;
        let configuration = loaded.context("loading configuration checks")?;
        configuration.troubles().for_each(|why| talk.trouble(&why));
        match configuration.unknown().as_slice() {
            [] => Ok(configuration),
            // A policy that could not be read may be the one that is named.
            _ if talk.is_incomplete() => Ok(configuration),
            unknown => bail!(
                "--disable-checks: no check is called {}; checks have identifiers such as MST-W001",
                unknown.join(", ")
            ),
        }
    }

    async fn prepare(
        &self,
        policies: Policies,
        manifests: &[Job],
        cluster: Option<&Cluster>,
        talk: &Talk,
    ) -> Result<Vec<Known>> {
        if policies.is_empty() {
            return Ok(Vec::new());
        }
        let read = |file: &PathBuf| {
            std::fs::read(file).with_context(|| format!("reading --ca {}", file.display()))
        };
        let means = prepare::Means {
            cluster,
            manifests,
            cache: Some(&*self.cache).filter(|cache| *cache != Path::new("none")),
            authorities: self.ca.as_ref().map(read).transpose()?,
            controller: &self.admission_namespace,
            settings: self.settings()?,
            parallel: self.parallel(),
        };
        prepare::prepare(policies, means, talk).await
    }

    fn settings(&self) -> Result<Value> {
        let Some(file) = &self.settings else {
            return Ok(json!({}));
        };
        let text = files::text(file, &mut 0)?;
        manifest::value(&text)
            .map_err(anyhow::Error::msg)
            .with_context(|| format!("reading --settings {}", file.display()))
    }

    fn exit(&self, audited: &[Audited], bench: &Bench, talk: &Talk) -> ExitCode {
        let is_reached = |least: Threshold| least.is_reached(audited, bench);
        match (talk.is_incomplete(), self.fail_on.is_some_and(is_reached)) {
            (true, _) => ExitCode::FAILURE,
            (false, true) => ExitCode::from(FOUND),
            (false, false) => ExitCode::SUCCESS,
        }
    }
}
