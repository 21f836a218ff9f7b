//! The audit of what is there, as flags, for the roles that do it: `muster up` and `muster operator`.

mod size;

use crate::role::Switch;
use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use kube::Client;
use muster_audit::lookup::{self, ClusterLookup};
use muster_audit::modules::{self, Modules};
use muster_audit::prepare::Preparer;
use muster_audit::servers::{Objects, Servers};
use muster_audit::{Auditor, ConfigAuditor, ConfigSettings, Metrics, Scope, Settings, Shard};
use muster_checks::force::Choice;
use muster_policy::report::Format;
use muster_wasm::{Options, Sandbox};
use size::Size;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

/// The namespace of Trivy operator, whose ConfigMaps with policies are read where they are.
pub(crate) const TRIVY_OPERATOR: &str = "trivy-operator";

/// In which family reports are written.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// PolicyReport and ClusterPolicyReport.
    #[value(name = "policyreport")]
    PolicyReport,
    /// Report and ClusterReport of OpenReports.
    #[value(name = "openreports")]
    OpenReports,
}

impl From<ReportFormat> for Format {
    fn from(format: ReportFormat) -> Format {
        match format {
            ReportFormat::PolicyReport => Format::PolicyReport,
            ReportFormat::OpenReports => Format::OpenReports,
        }
    }
}

#[derive(Args)]
#[command(next_help_heading = "Audit")]
pub(crate) struct Auditing {
    /// Whether resources that are there are judged by the policies. See docs/audit.md.
    #[arg(long, env = "MUSTER_AUDIT", value_enum, default_value = "on")]
    audit: Switch,
    /// The kinds in which results are kept.
    #[arg(
        long,
        env = "MUSTER_REPORT_FORMAT",
        value_enum,
        default_value = "policyreport"
    )]
    report_format: ReportFormat,
    /// Audit only these namespaces, and nothing outside of namespaces.
    #[arg(
        long,
        env = "MUSTER_AUDIT_NAMESPACES",
        value_name = "NAMESPACE",
        value_delimiter = ','
    )]
    audit_namespaces: Vec<String>,
    /// Never audit these namespaces.
    #[arg(
        long,
        env = "MUSTER_AUDIT_IGNORE_NAMESPACES",
        value_name = "NAMESPACE",
        value_delimiter = ','
    )]
    audit_ignore_namespaces: Vec<String>,
    /// Audit only these resources, such as `pods` or `deployments.apps`.
    #[arg(
        long,
        env = "MUSTER_AUDIT_KINDS",
        value_name = "RESOURCE",
        value_delimiter = ','
    )]
    audit_kinds: Vec<String>,
    /// Audit only this share of all objects: `2/3` is the second of three.
    #[arg(long, env = "MUSTER_AUDIT_SHARD", value_name = "N/OF", default_value_t)]
    audit_shard: Shard,
    /// How many objects are judged at once; 0 is one for each processor.
    #[arg(
        long,
        env = "MUSTER_AUDIT_PARALLEL",
        value_name = "NUMBER",
        default_value_t = 0
    )]
    audit_parallel: usize,
    /// How many requests a second the audit makes at most; 0 is as many as it can.
    #[arg(
        long,
        env = "MUSTER_AUDIT_REQUESTS_PER_SECOND",
        value_name = "NUMBER",
        default_value_t = 0
    )]
    audit_requests_per_second: u32,
    /// How often everything is looked at, even if nothing was said to have changed.
    #[arg(long, env = "MUSTER_AUDIT_VERIFY_SECONDS", value_name = "SECONDS", default_value_t = 3600, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    audit_verify_seconds: u64,
    /// The namespace of the admission controller, which policies for the whole cluster leave alone.
    #[arg(
        long,
        env = "MUSTER_ADMISSION_NAMESPACE",
        value_name = "NAMESPACE",
        default_value = "kubewarden"
    )]
    admission_namespace: String,
    /// A directory whose files policies may name as `file://`. May be repeated; none if not given.
    #[arg(
        long,
        env = "MUSTER_POLICY_FILES",
        value_name = "DIR",
        value_delimiter = ','
    )]
    policy_files: Vec<PathBuf>,
    /// How much of the code of policies is kept on disk, such as `512Mi`; what was longest unused goes
    /// first. Compiled code comes on top of it.
    #[arg(
        long,
        env = "MUSTER_POLICY_CACHE_SIZE",
        value_name = "SIZE",
        default_value = "1Gi"
    )]
    policy_cache_size: Size,
    /// Whether the configuration of resources is checked by policies in Rego. See docs/config-audit.md.
    #[arg(long, env = "MUSTER_CONFIG_AUDIT", value_enum, default_value = "on")]
    config_audit: Switch,
    #[command(flatten)]
    checks: Checks,
    /// Whether reports tell of the checks that a resource passes, too.
    #[arg(long, env = "MUSTER_PASSED_CHECKS", value_enum, default_value = "off")]
    passed_checks: Switch,
}

/// Which checks of configuration there are, beside those that people write, and what is left out.
#[derive(Args)]
pub(crate) struct Checks {
    /// Whether the checks that come with Muster are made.
    #[arg(
        long,
        env = "MUSTER_BUILTIN_POLICIES",
        value_enum,
        default_value = "on"
    )]
    builtin_policies: Switch,
    /// Checks to leave out, by identifier or name, such as `MST-W001`. A name that only a mistyped
    /// built-in check can have is refused.
    #[arg(
        long,
        env = "MUSTER_DISABLE_CHECKS",
        value_name = "CHECK",
        value_delimiter = ',',
        value_parser = check_name
    )]
    disable_checks: Vec<String>,
    /// Leave resources alone that have one of these labels, whatever its value, when configuration is
    /// checked.
    #[arg(
        long,
        env = "MUSTER_SKIP_LABELS",
        value_name = "LABEL",
        value_delimiter = ','
    )]
    skip_labels: Vec<String>,
    /// Whether an annotation of a resource exempts it from a check. See docs/config-audit.md.
    #[arg(long, env = "MUSTER_EXCEPTIONS", value_enum, default_value = "on")]
    exceptions: Switch,
}

/// Reads the name of a check; a mistyped one would leave the check on, or off, unnoticed.
fn check_name(text: &str) -> Result<String, String> {
    muster_checks::builtin::check_name(text).map(|()| text.to_owned())
}

impl Checks {
    /// Resources with one of these labels are left alone.
    pub(crate) fn skip_labels(&self) -> BTreeSet<String> {
        self.skip_labels.iter().cloned().collect()
    }

    /// Whether exceptions count that are annotations of resources.
    pub(crate) fn exceptions(&self) -> bool {
        self.exceptions == Switch::On
    }

    /// Which of them are wanted.
    pub(crate) fn choice(&self) -> Choice {
        Choice {
            builtin: self.builtin_policies == Switch::On,
            disabled: self.disable_checks.iter().cloned().collect(),
        }
    }
}

/// Where an audit is made.
pub(crate) struct Surroundings<'a> {
    /// Where policies are, and reports are kept.
    pub(crate) home: Client,
    /// Where the objects are.
    pub(crate) cluster: Client,
    /// The namespace of Muster's own credentials.
    pub(crate) installation: &'a str,
    /// Where the code of policies is kept.
    pub(crate) cache: Option<PathBuf>,
    /// Authorities to trust beside the system's, in PEM.
    pub(crate) authorities: Option<Vec<u8>>,
    /// Whether nobody else writes the status of policies.
    pub(crate) is_alone: bool,
    /// What is counted.
    pub(crate) metrics: Metrics,
}

/// Both audits, as far as there are to be any.
#[derive(Clone)]
pub(crate) struct Audits {
    policies: Option<Settings>,
    configuration: Option<ConfigSettings>,
}

impl Audits {
    /// Audits until `stop`.
    pub(crate) async fn run(self, stop: CancellationToken) {
        let policies = async {
            if let Some(settings) = self.policies {
                Auditor::new(settings).run(stop.clone()).await;
            }
        };
        let configuration = async {
            if let Some(settings) = self.configuration {
                ConfigAuditor::new(settings).run(stop.clone()).await;
            }
        };
        tokio::join!(policies, configuration);
    }

    /// Whether there is nothing to do.
    pub(crate) fn is_empty(&self) -> bool {
        self.policies.is_none() && self.configuration.is_none()
    }
}

impl Auditing {
    /// What the audits are told. It is called where there is a runtime.
    pub(crate) fn prepare(&self, around: Surroundings) -> Result<Audits> {
        Ok(Audits {
            configuration: self.configuration(&around),
            policies: self.policies(around)?,
        })
    }

    fn configuration(&self, around: &Surroundings) -> Option<ConfigSettings> {
        (self.config_audit == Switch::On).then(|| ConfigSettings {
            home: around.home.clone(),
            cluster: around.cluster.clone(),
            installation: around.installation.into(),
            namespaces: vec![TRIVY_OPERATOR.into()],
            scope: self.scope(),
            choice: self.checks.choice(),
            skip_labels: self.checks.skip_labels(),
            exceptions: self.checks.exceptions(),
            all: self.passed_checks == Switch::On,
            parallel: self.parallel(),
            requests_per_second: self.audit_requests_per_second,
            verify: Duration::from_secs(self.audit_verify_seconds),
            metrics: around.metrics.config.clone(),
        })
    }

    fn policies(&self, around: Surroundings) -> Result<Option<Settings>> {
        if self.audit == Switch::Off {
            return Ok(None);
        }
        let runtime = Handle::current();
        let compiled = around.cache.as_ref().map(|cache| cache.join("compiled"));
        let sandbox = Sandbox::new(Options { cache: compiled });
        let sandbox = sandbox.context("preparing to run policies")?;
        let options = modules::Options {
            files: self.policy_files.clone(),
            cache: around.cache.map(|cache| cache.join("modules")),
            cache_size: self.policy_cache_size.0,
            authorities: around.authorities.clone(),
            ..modules::Options::default()
        };
        let modules = Arc::new(Modules::new(options, sandbox));
        let objects = Objects::Cluster(around.home.clone());
        let secrets = [self.admission_namespace.as_str(), around.installation];
        let servers = Servers::new(objects, &secrets, around.authorities);
        let options = lookup::Options::default();
        let lookup = ClusterLookup::new(around.cluster.clone(), options, runtime.clone());
        let preparer = Preparer::new(modules, servers, Arc::new(lookup), runtime);
        let preparer = preparer.counting(around.metrics.panics.clone());
        Ok(Some(Settings {
            home: around.home,
            cluster: around.cluster,
            preparer: Arc::new(preparer),
            scope: self.scope(),
            format: self.report_format.into(),
            controller: Some(self.admission_namespace.clone()).filter(|name| !name.is_empty()),
            is_alone: around.is_alone,
            parallel: self.parallel(),
            requests_per_second: self.audit_requests_per_second,
            verify: Duration::from_secs(self.audit_verify_seconds),
            metrics: around.metrics,
        }))
    }

    fn scope(&self) -> Scope {
        let names = |names: &[String]| names.iter().cloned().collect();
        Scope {
            namespaces: names(&self.audit_namespaces),
            ignored: names(&self.audit_ignore_namespaces),
            kinds: names(&self.audit_kinds),
            shard: self.audit_shard,
        }
    }

    fn parallel(&self) -> usize {
        match self.audit_parallel {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            number => number,
        }
    }

    /// The name of what one of several processes does at a time: to audit this share.
    pub(crate) fn duty(&self) -> String {
        match self.audit_shard.is_whole() {
            true => "muster-audit".into(),
            false => format!("muster-audit-{}", self.audit_shard).replace('/', "-of-"),
        }
    }
}
