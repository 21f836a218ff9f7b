//! `muster crds`: the kinds that live in a cluster's own API server, as manifests for it.

use crate::storage::Reports;
use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use muster_kind::openapi::custom_resource_definition;
use serde_json::{Value, json};
use std::io::Write;

#[derive(Args)]
pub(crate) struct Crds {
    /// The form of the output.
    #[arg(short, long, value_enum, default_value_t = Form::Yaml)]
    output: Form,
    /// Only kinds of this group.
    #[arg(long)]
    group: Option<String>,
    /// Where policy and audit reports live; those that `muster storage` serves need no definition.
    #[arg(
        long,
        env = "MUSTER_REPORTS_BACKEND",
        value_enum,
        default_value = "crd"
    )]
    reports_backend: Reports,
}

#[derive(Clone, Copy, ValueEnum)]
enum Form {
    Yaml,
    Json,
}

pub(crate) fn run(command: Crds) -> Result<()> {
    let served = command.reports_backend.kinds();
    let definitions: Vec<Value> = muster_api::kinds()
        .iter()
        .filter(|kind| !served.iter().any(|served| served.group == kind.group))
        .filter(|kind| {
            command
                .group
                .as_ref()
                .is_none_or(|group| *group == kind.group)
        })
        .map(custom_resource_definition)
        .collect();
    let mut out = std::io::stdout().lock();
    match command.output {
        Form::Json => {
            let list = json!({"apiVersion": "v1", "kind": "List", "items": definitions});
            serde_json::to_writer_pretty(&mut out, &list).context("printing the definitions")?;
            writeln!(out)?;
        }
        Form::Yaml => {
            for definition in &definitions {
                let text = serde_saphyr::to_string(definition).context("printing a definition")?;
                writeln!(out, "---\n{}", text.trim_end())?;
            }
        }
    }
    Ok(())
}
