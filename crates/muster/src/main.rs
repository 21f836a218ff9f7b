//! Muster: a Kubernetes security inspector. One binary; every role is a command.

mod accounts;
mod admission;
mod audit;
mod auditing;
mod backup;
mod certificates;
mod cluster;
mod completions;
mod crds;
mod database;
mod demo;
mod health;
mod inside;
mod inspect;
mod kubeconfig;
mod layers;
mod namespace;
mod nats;
mod outside;
mod pages;
mod plugin;
mod role;
mod scanning;
mod storage;
mod telemetry;
mod tls;
mod up;
mod webhook;
mod why;

use anyhow::Result;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use plugin::Called;
use std::process::ExitCode;

/// For whoever asks for help without knowing for what.
const BEGINNING: &str = "\
Where to begin:
  muster demo                             everything there is to see, offline
  muster scan debian:12                   what is wrong with an image
  muster audit -f deploy/                 which manifests break which checks
  muster up --data ./muster               a control plane on this machine, for plain kubectl
  muster up --kubeconfig ~/.kube/config   the same, looking at a cluster; nothing is written there
  muster why CVE-2024-1234                which workloads have it, of what is known

`muster help COMMAND` has examples of each; docs/README.md leads from a question to a page.";

/// Inspects what a Kubernetes cluster runs and keeps the findings beside it.
#[derive(Parser)]
#[command(name = "muster", version, arg_required_else_help = true, after_help = BEGINNING)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// What to log: error, warn, info, debug, or a filter such as `muster_apiserver=debug`. If not
    /// given, roles in a cluster log at info and commands for people at warn.
    #[arg(long, global = true, env = "MUSTER_LOG")]
    log: Option<String>,
}

#[derive(Subcommand)]
enum Command {
    /// Run a complete control plane in this process.
    ///
    /// Serves a Kubernetes-style API from a data directory and writes DIR/kubeconfig, with which
    /// plain kubectl talks to it:
    ///
    ///   muster up --data ./muster
    ///   kubectl --kubeconfig ./muster/kubeconfig get namespaces
    ///
    /// With --kubeconfig FILE the workloads of a real cluster are looked at; nothing is written there,
    /// and what is found stays here:
    ///
    ///   muster up --kubeconfig ~/.kube/config
    ///   muster why CVE-2024-1234 -A
    #[command(verbatim_doc_comment)]
    Up(Box<up::Up>),
    /// Show everything that there is to see, with nothing but this machine.
    ///
    /// As `muster up`, in a directory of its own that is removed at the end, with a registry, vulnerability
    /// data and the workloads of a small company. In a few seconds all of it is scanned and audited;
    /// then it says where to look. docs/demo.md tells more.
    ///
    ///   muster demo
    #[command(verbatim_doc_comment)]
    Demo(demo::Demo),
    /// Serve what was found, as an aggregated API behind a cluster's kube-apiserver.
    ///
    /// Any number of replicas share one PostgreSQL database. Who asks is told by kube-apiserver, and
    /// whether they may is asked of it. docs/storage.md says how it is registered.
    ///
    ///   muster storage --postgres postgres://muster@db/muster --postgres-password-file FILE \
    ///     --tls-cert tls.crt --tls-key tls.key
    #[command(verbatim_doc_comment)]
    Storage(Box<storage::Storage>),
    /// Decide what is to be scanned in a cluster, and say how far it has come.
    ///
    /// Works on Registries and ScanJobs through kube-apiserver, and hands out the work over NATS.
    ///
    ///   muster operator --nats nats://nats.muster.svc:4222
    #[command(verbatim_doc_comment)]
    Operator(Box<scanning::Operator>),
    /// Scan what the operator hands out: any number may run.
    ///
    ///   muster worker --nats nats://nats.muster.svc:4222 \
    ///     --layers https://muster-storage.muster.svc --layers-ca ca.crt
    #[command(verbatim_doc_comment)]
    Worker(Box<scanning::Worker>),
    /// Say what is wrong with images, or with anything else that holds packages.
    ///
    ///   muster scan debian:12
    ///   muster scan --fail-on high --ignore-unfixed ./image.tar
    ///   muster scan -o sarif . > findings.sarif
    ///
    /// Exits with code 0 when done, 1 if some target could not be scanned, 3 if a finding is at or above
    /// --fail-on, and 4 if --fail-on is given and packages that could have been matched with
    /// vulnerability data were not. See docs/scanning.md.
    #[command(verbatim_doc_comment)]
    Scan(Box<inspect::Scan>),
    /// Write the bill of materials of an image, or of anything else that holds packages.
    ///
    ///   muster sbom -o cyclonedx debian:12 > debian.cdx.json
    #[command(verbatim_doc_comment)]
    Sbom(Box<inspect::Sbom>),
    /// Say who has a vulnerability, or what a workload has to upgrade.
    ///
    ///   muster why CVE-2024-1234 -A
    ///   muster why deployment/app -n shop
    ///
    /// Asks `muster up` on this machine, or the cluster of a kubeconfig, for what is known; nothing
    /// is scanned. docs/why.md tells more.
    #[command(verbatim_doc_comment)]
    Why(Box<why::Why>),
    /// Say which objects break which policies and checks, in manifests or in a cluster.
    ///
    ///   muster audit -f deploy/
    ///   muster audit -f deploy/ --policy policies/
    ///   muster audit --fail-on high -o sarif -f . --policy policies/ > findings.sarif
    ///   helm template shop | muster audit -f - --policy registry://ghcr.io/me/policy:v1
    ///   muster audit --kubeconfig ~/.kube/config
    ///
    /// Nothing is stored, and a cluster is only read. Ends with 0 when done, 1 when something could
    /// not be read or judged with, and 3 when something at or above --fail-on was found.
    /// docs/audit-command.md tells more.
    #[command(verbatim_doc_comment)]
    Audit(Box<audit::Audit>),
    /// Fetch, import or describe vulnerability data.
    ///
    ///   muster db update
    ///   muster db info
    ///   muster db import trivy-db.tar.gz
    ///
    /// A scan fetches it when it is needed; this is for machines without a network, and for those who want
    /// to know. docs/air-gap.md tells more.
    #[command(verbatim_doc_comment)]
    Db(inspect::Db),
    /// Print the CustomResourceDefinitions of Muster's kinds.
    ///
    ///   muster crds | kubectl apply --server-side -f -
    #[command(verbatim_doc_comment)]
    Crds(crds::Crds),
    /// Copy a running store into a file.
    ///
    ///   muster backup --data ./muster --to muster.backup
    #[command(verbatim_doc_comment)]
    Backup(backup::Backup),
    /// Make the store of a backup in an empty place.
    ///
    ///   muster restore --from muster.backup --data ./muster
    #[command(verbatim_doc_comment)]
    Restore(backup::Restore),
    /// Print the script with which a shell completes what is typed.
    ///
    ///   source <(muster completions bash)
    #[command(verbatim_doc_comment)]
    Completions(completions::Completions),
}

fn main() -> ExitCode {
    let called = Called::now();
    let line = called.name(Arguments::command());
    if called == Called::Completion {
        let words: Vec<String> = std::env::args().skip(1).collect();
        // Nobody is there to be told, but kubectl, which then completes nothing.
        return match plugin::complete(line, &words, &mut std::io::stdout()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        };
    }
    let arguments = match Arguments::from_arg_matches(&line.clone().get_matches()) {
        Ok(arguments) => arguments,
        Err(error) => error.exit(),
    };
    let log = arguments.log.unwrap_or_else(|| {
        let role = matches!(
            arguments.command,
            Command::Storage(_) | Command::Operator(_) | Command::Worker(_)
        );
        if role { "info" } else { "warn" }.into()
    });
    let Ok(filter) = tracing_subscriber::EnvFilter::try_new(&log) else {
        eprintln!("error: --log {log:?} is not a filter; try `--log info`");
        return ExitCode::from(2);
    };
    let scans = matches!(
        arguments.command,
        Command::Up(_) | Command::Operator(_) | Command::Worker(_)
    );
    let telemetry = telemetry::start(filter, scans);
    let result = match arguments.command {
        Command::Up(command) => done(up::run(*command)),
        Command::Demo(command) => done(demo::run(command)),
        Command::Storage(command) => done(storage::run(*command)),
        Command::Operator(command) => done(scanning::operator(*command)),
        Command::Worker(command) => done(scanning::worker(*command)),
        Command::Scan(command) => inspect::scan(*command),
        Command::Sbom(command) => inspect::sbom(*command),
        Command::Why(command) => why::run(*command),
        Command::Audit(command) => audit::run(*command),
        Command::Db(command) => inspect::db(command),
        Command::Crds(command) => done(crds::run(command)),
        Command::Backup(command) => done(backup::backup(command)),
        Command::Restore(command) => done(backup::restore(command)),
        Command::Completions(command) => done(completions::run(&command, line)),
    };
    telemetry.end();
    match result {
        Ok(code) => code,
        // Whoever read the output has seen enough.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", told(&error));
            ExitCode::FAILURE
        }
    }
}

/// Commands that either are done or fail.
fn done(result: Result<()>) -> Result<ExitCode> {
    result.map(|()| ExitCode::SUCCESS)
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let broken = |cause: &std::io::Error| cause.kind() == std::io::ErrorKind::BrokenPipe;
    error.root_cause().downcast_ref().is_some_and(broken)
}

/// What went wrong, from the attempt to the cause, each of it said once.
fn told(error: &anyhow::Error) -> String {
    let mut told = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if told.is_empty() {
            told = cause;
        } else if !told.contains(&cause) {
            told = format!("{told}: {cause}");
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn no_two_flags_of_a_command_are_called_the_same() {
        super::Arguments::command().debug_assert();
    }
}
