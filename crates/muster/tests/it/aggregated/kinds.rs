//! The kinds through the aggregator, a command at a time.

use super::{API_VERSION, SOON, apply, bill, image, namespace, read, report, stage, workload};
use anyhow::{Context, Result};
use muster_testkit::wait;
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

#[test]
fn kubectl_gets_lists_explains_and_deletes_every_kind() -> Result<()> {
    let (stage, space) = (stage()?, "kinds");
    let kubectl = &stage.kubectl;
    namespace(kubectl, space)?;
    for (resource, name, object) in [
        ("image", "one", image(space, "one", "1.0")),
        ("sbom", "one", bill(space, "one", "1.0")),
        ("vulnerabilityreport", "one", report(space, "one", "1.0", 3)),
        (
            "workloadscanreport",
            "deployment-app",
            workload(space, "deployment-app", space, "1.0"),
        ),
        (
            "findinghistory",
            "namespace",
            json!({
                "apiVersion": API_VERSION, "kind": "FindingHistory",
                "metadata": {"name": "namespace", "namespace": space},
                "points": [{"time": "2026-01-01T00:00:00Z", "workloads": 1, "summary": {"critical": 3}}],
            }),
        ),
    ] {
        let group = "storage.sbomscanner.kubewarden.io";
        assert_eq!(
            apply(kubectl, &object)?,
            format!("{resource}.{group}/{name} created\n")
        );
        assert_eq!(
            apply(kubectl, &object)?,
            format!("{resource}.{group}/{name} unchanged\n")
        );
        let table = kubectl.succeed(&["-n", space, "get", resource])?;
        assert!(
            table.lines().count() == 2 && table.contains(name),
            "{table}"
        );
        let explained = kubectl.succeed(&["explain", resource])?;
        assert!(explained.contains(group), "{explained}");
        let labelled = ["-n", space, "label", resource, name, "team=a"];
        assert!(kubectl.succeed(&labelled)?.contains("labeled"));
        let found =
            kubectl.succeed(&["-n", space, "get", resource, "-l", "team=a", "-o", "name"])?;
        assert_eq!(found, format!("{resource}.{group}/{name}\n"));
    }
    let seen = read(kubectl, space, "workloadscanreport", "deployment-app")?;
    assert_eq!(seen["summary"]["critical"], json!(3), "{seen:#}");
    let applied = kubectl.succeed_with(
        &["apply", "--server-side", "--field-manager=me", "-f", "-"],
        &image(space, "two", "2.0").to_string(),
    )?;
    assert!(applied.contains("serverside-applied"), "{applied}");
    for resource in [
        "findinghistory",
        "workloadscanreport",
        "vulnerabilityreport",
        "sbom",
        "image",
    ] {
        kubectl.succeed(&["-n", space, "delete", resource, "--all"])?;
        let left = kubectl.succeed(&["-n", space, "get", resource, "-o", "name"])?;
        assert_eq!(left, "");
    }
    Ok(())
}

#[test]
fn a_change_of_findings_is_seen_by_kubectl_that_watches_the_workload() -> Result<()> {
    let (stage, space) = (stage()?, "kinds-watch");
    let kubectl = &stage.kubectl;
    namespace(kubectl, space)?;
    apply(kubectl, &image(space, "one", "1.0"))?;
    apply(kubectl, &workload(space, "deployment-app", space, "1.0"))?;
    let columns = "-o=custom-columns=CRITICAL:.summary.critical";
    let watched = ["-n", space, "get", "wsr", "-w", "--no-headers", columns];
    let mut child = kubectl.command(&watched).stdout(Stdio::piped()).spawn()?;
    let output = child.stdout.take().context("no standard output")?;
    let lines = std::thread::spawn(move || {
        let lines = BufReader::new(output).lines().map_while(Result::ok);
        // What it says last is what the last change made of it.
        lines.take_while(|line| line.trim() != "5").count()
    });
    let write = |critical| apply(kubectl, &report(space, "one", "1.0", critical));
    write(2)?;
    write(5)?;
    let seen = wait::until("the last change to be seen", SOON, || {
        Ok(lines.is_finished().then_some(()))
    });
    let _ = child.kill();
    let _ = child.wait();
    seen
}

#[test]
fn reports_are_served_when_asked_for() -> Result<()> {
    let (stage, space) = (stage()?, "kinds-reports");
    let kubectl = &stage.kubectl;
    namespace(kubectl, space)?;
    let policy = json!({
        "apiVersion": "wgpolicyk8s.io/v1beta1", "kind": "PolicyReport",
        "metadata": {"name": "one", "namespace": space},
        "summary": {"pass": 1, "fail": 0, "warn": 0, "error": 0, "skip": 0},
    });
    apply(kubectl, &policy)?;
    for (resource, kind) in [
        (
            "policyreports.v1alpha2.wgpolicyk8s.io",
            "wgpolicyk8s.io/v1alpha2",
        ),
        (
            "policyreports.v1beta1.wgpolicyk8s.io",
            "wgpolicyk8s.io/v1beta1",
        ),
    ] {
        assert_eq!(read(kubectl, space, resource, "one")?["apiVersion"], kind);
    }
    for resource in [
        "clusterpolicyreports.wgpolicyk8s.io",
        "reports.openreports.io",
        "configauditreports.aquasecurity.github.io",
        "clusterconfigauditreports.aquasecurity.github.io",
    ] {
        kubectl.succeed(&["-n", space, "get", resource])?;
    }
    Ok(())
}
