//! Policies that misbehave harm nobody: each gives its own error, and the others judge on.

use super::{BINARY, Site, cel};
use anyhow::{Context, Result};
use muster_testkit::muster::Muster;
use muster_testkit::policies::{self, Abi};
use serde_json::{Value, json};

/// A policy about pods, from a file.
fn from_file(name: &str, path: &std::path::Path, changes: Value) -> Value {
    let mut policy = cel("ClusterAdmissionPolicy", name, "true", json!({}));
    policy["spec"]["module"] = format!("file://{}", path.display()).into();
    policy["spec"]["settings"] = json!({});
    super::merge(&mut policy, changes);
    policy
}

#[test]
fn policies_that_misbehave_harm_nobody() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().canonicalize()?;
    let files = path.to_str().context("a path is text")?;
    let muster = Muster::start_with(BINARY, &["--policy-files", files])?;
    let site = Site::of(&muster)?;
    let changed = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "changed"}});
    // What each says of a pod, and a part of why.
    let cases: [(&str, Vec<u8>, Value, &str, &str); 12] = [
        (
            "accepts",
            policies::accepting(Abi::Wasi),
            json!({}),
            "pass",
            "",
        ),
        (
            "rejects",
            policies::rejecting(Abi::Wapc, "not this"),
            json!({}),
            "fail",
            "not this",
        ),
        (
            "mutates",
            policies::mutating(Abi::Wapc, &changed),
            json!({"spec": {"mutating": true}}),
            "pass",
            "",
        ),
        (
            "panics",
            policies::panicking(Abi::Wapc),
            json!({}),
            "error",
            "unreachable",
        ),
        (
            "spins",
            policies::spinning(Abi::Wapc),
            json!({"spec": {"timeoutEvalSeconds": 2}}),
            "error",
            "2 s",
        ),
        (
            "devours",
            policies::hungry(Abi::Wasi),
            json!({}),
            "error",
            "memory",
        ),
        (
            "floods",
            policies::verbose(Abi::Wapc),
            json!({}),
            "error",
            "answer",
        ),
        (
            "recurses",
            policies::recursing(Abi::Wasi),
            json!({}),
            "error",
            "stack",
        ),
        (
            "calls",
            policies::calling(
                Abi::Wapc,
                ["kubewarden", "oci", "v1/verify"],
                &json!({}),
                "x",
                "y",
            ),
            json!({}),
            "error",
            "oci",
        ),
        (
            "refuses-settings",
            policies::particular(Abi::Wasi, "secret", "no secrets"),
            json!({"spec": {"settings": {"a": "secret"}}}),
            "error",
            "no secrets",
        ),
        (
            "no-module",
            b"#!/bin/sh\n".to_vec(),
            json!({}),
            "error",
            "does not load",
        ),
        ("opa", policies::opa(), json!({}), "error", "OPA"),
    ];
    let mut all = Vec::new();
    for (name, bytes, changes, _, _) in &cases {
        let path = path.join(name);
        std::fs::write(&path, bytes)?;
        all.push(from_file(name, &path, changes.clone()));
    }
    site.apply(&all)?;
    let pods: Vec<Value> = (0..3)
        .map(|number| super::pod("default", &format!("pod-{number}"), json!({})))
        .collect();
    site.apply(&pods)?;
    for number in 0..3 {
        let pod = site.get(&["pod", &format!("pod-{number}"), "-n", "default"])?;
        let report = site.report_when("all verdicts", &pod, |report| {
            report["results"].as_array().map(Vec::len) == Some(cases.len())
        })?;
        let results = report["results"].as_array().context("results")?;
        for (name, _, _, result, message) in &cases {
            let policy = format!("clusterwide-{name}");
            let line = results
                .iter()
                .find(|line| line["policy"] == policy.as_str());
            let line = line.with_context(|| format!("a line of {name}"))?;
            assert_eq!(&line["result"], result, "{name}: {line}");
            let said = line["message"].as_str().unwrap_or_default();
            assert!(said.contains(message), "{name}: {said}");
            let mutated = &line["properties"]["mutated"];
            assert_eq!(mutated == "true", *name == "mutates", "{name}");
        }
    }
    let counts = |policy: &Value| policy["status"]["audit"]["mutated"] == 3;
    site.policy_when(
        "the mutations",
        &["clusteradmissionpolicy", "mutates"],
        counts,
    )?;
    Ok(())
}

#[test]
fn files_are_read_only_where_an_administrator_allowed_it() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().canonicalize()?.join("policy.wasm");
    std::fs::write(&path, policies::accepting(Abi::Wapc))?;
    let muster = Muster::start(BINARY)?;
    let site = Site::of(&muster)?;
    let pod = site.pod("default", "pod", json!({}))?;
    site.apply(&[from_file("sly", &path, json!({}))])?;
    let report = site.says(&pod, &["clusterwide-sly=error"])?;
    let message = report["results"][0]["message"].as_str().unwrap_or_default();
    assert!(message.contains("file"), "{message}");
    Ok(())
}
