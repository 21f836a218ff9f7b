//! `muster why`: who has a vulnerability, and what a workload has to upgrade. It reads what a server
//! knows already and scans nothing. Answers go to standard output, talk to standard error.

mod asked;
mod connection;
mod plan;
mod read;
mod show;
mod who;

use crate::role;
use anyhow::{Result, bail};
use asked::Asked;
use clap::{Args, ValueEnum};
use connection::Connection;
use std::process::ExitCode;

#[derive(Args)]
pub(crate) struct Why {
    /// Identifiers of vulnerabilities, such as CVE-2024-1234; or one workload, such as deployment/app
    /// or just its name.
    #[arg(required = true, value_name = "WHAT")]
    what: Vec<String>,
    /// The namespace of the workloads. If not given, vulnerabilities are looked for everywhere, and a
    /// workload in the namespace of the kubeconfig's context.
    #[arg(
        short,
        long,
        value_name = "NAMESPACE",
        conflicts_with = "all_namespaces"
    )]
    namespace: Option<String>,
    /// Look in all namespaces, which is what is done for vulnerabilities anyway.
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    /// The form of the answer.
    #[arg(short, long, value_enum, default_value = "table")]
    output: Form,
    #[command(flatten)]
    connection: connection::Choice,
}

/// The forms of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// For people.
    Table,
    /// Everything, for machines.
    Json,
    /// Everything, for machines and people.
    Yaml,
}

pub(crate) fn run(command: Why) -> Result<ExitCode> {
    role::run(answer(command))
}

async fn answer(command: Why) -> Result<ExitCode> {
    let asked = Asked::parse(&command.what)?;
    let Connection { client, namespace } = command.connection.open().await?;
    let namespace = match (&asked, command.all_namespaces, command.namespace) {
        (_, _, Some(given)) => Some(given),
        // Half an answer would sound like an all-clear.
        (_, true, None) | (Asked::Vulnerabilities(_), _, None) => None,
        (Asked::Workload(_), false, None) => Some(namespace),
    };
    if let Some(wrong) = namespace.iter().find(|name| !is_label(name)) {
        bail!("{wrong:?} is no namespace");
    }
    if let Some(name) = &namespace {
        crate::namespace::exists(&client, name).await?;
    }
    match asked {
        Asked::Vulnerabilities(ids) => {
            let answer = who::has(&client, namespace.as_deref(), ids).await?;
            show::print(command.output, &answer, show::who)?;
        }
        Asked::Workload(workload) => {
            let Some(namespace) = namespace else {
                bail!("a workload is in one namespace; name it with `-n NAMESPACE` instead of -A");
            };
            let answer = plan::of(&client, &namespace, &workload).await?;
            show::print(command.output, &answer, show::plan)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether a text could be the name of a namespace; what could not has no place in a path.
fn is_label(text: &str) -> bool {
    let is_sound = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && text.len() <= 63 && text.bytes().all(is_sound)
}
