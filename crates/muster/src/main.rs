//! Muster: a Kubernetes security inspector. One binary; every role is a command.

mod admission;
mod backup;
mod certificates;
mod crds;
mod inside;
mod kubeconfig;
mod up;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Inspects what a Kubernetes cluster runs and keeps the findings beside it.
#[derive(Parser)]
#[command(name = "muster", version, about, long_about = None, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// What to log: error, warn, info, debug, or a filter such as `muster_apiserver=debug`.
    #[arg(long, global = true, env = "MUSTER_LOG", default_value = "warn")]
    log: String,
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
    #[command(verbatim_doc_comment)]
    Up(up::Up),
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
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let filter = tracing_subscriber::EnvFilter::try_new(&arguments.log);
    let Ok(filter) = filter else {
        eprintln!(
            "error: --log {:?} is not a filter; try `--log info`",
            arguments.log
        );
        return ExitCode::from(2);
    };
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
    let result = match arguments.command {
        Command::Up(command) => up::run(command),
        Command::Crds(command) => crds::run(command),
        Command::Backup(command) => backup::backup(command),
        Command::Restore(command) => backup::restore(command),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
