//! After an upgrade no image is scanned again, no report is lost, and no resource has a second report. Findings
//! may be matched again from the stored SBOMs, and policies and checks may be evaluated again.

use super::{Fixture, IDLE, MUSTER, get, identity, items};
use anyhow::{Context, Result, ensure};
use muster_testkit::kubectl::Kubectl;
use muster_testkit::muster::Muster;
use muster_testkit::wait;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(120);
const SCANNER: &str = "/apis/sbomscanner.kubewarden.io/v1alpha1";
const STORAGE: &str = "/apis/storage.sbomscanner.kubewarden.io/v1alpha1";
/// What another scan would write again.
const SCANNED: [&str; 2] = [
    "/apis/sbomscanner.kubewarden.io/v1alpha1/scanjobs",
    "/apis/storage.sbomscanner.kubewarden.io/v1alpha1/sboms",
];
/// Reports of policies and of checks. A new version of an engine evaluates once more, so they may change.
const AUDITED: [&str; 2] = [
    "/apis/wgpolicyk8s.io/v1beta1/policyreports",
    "/apis/aquasecurity.github.io/v1alpha1/configauditreports",
];

/// The upgrade comes right after the last scans, whenever the fixture was made.
fn scanned_just_now(kubectl: &Kubectl) -> Result<()> {
    let now = kubectl.succeed(&[
        "create",
        "configmap",
        "now",
        "-o",
        "jsonpath={.metadata.creationTimestamp}",
    ])?;
    for registry in items(kubectl, &format!("{SCANNER}/registries"))? {
        let [namespace, name, _] = identity(&registry).map(Option::unwrap_or_default);
        let patch = json!({"status": {"lastScan": {"completionTime": now}}}).to_string();
        kubectl.succeed(&[
            "patch",
            "registry",
            name,
            "-n",
            namespace,
            "--as=muster",
            "--as-group=system:masters",
            "--subresource=status",
            "--type=merge",
            "-p",
            &patch,
        ])?;
    }
    kubectl.succeed(&["delete", "configmap", "now"]).map(drop)
}

/// Each result with its revision.
fn results(kubectl: &Kubectl) -> Result<Vec<(String, String)>> {
    let mut results = Vec::new();
    for path in SCANNED {
        for object in items(kubectl, path)? {
            let revision = object["metadata"]["resourceVersion"].to_string();
            results.push((format!("{path} {:?}", identity(&object)), revision));
        }
    }
    Ok(results)
}

#[test]
fn nothing_is_scanned_or_reported_twice_after_an_upgrade() -> Result<()> {
    for fixture in Fixture::all()? {
        let mut muster = Muster::start_on(MUSTER, &IDLE, |data| fixture.unpack(data))?;
        let kubectl = Kubectl::new(&muster.kubeconfig_path())?;
        scanned_just_now(&kubectl)?;
        let before = results(&kubectl)?;
        ensure!(
            before.len() > SCANNED.len(),
            "the fixture has few results: {before:?}"
        );
        ensure!(muster.terminate()?.success(), "muster did not end in order");

        muster.instruct(&[]);
        muster.tell("MUSTER_CONFIG_AUDIT", "on");
        muster.restart()?;
        let kubectl = Kubectl::new(&muster.kubeconfig_path())?;
        // The operator and both audits have begun when they have reported something new.
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "new", "namespace": "sandbox"},
            "spec": {"containers": [{"name": "main", "image": "registry.example/new:1"}]},
        });
        let registry = json!({
            "apiVersion": "sbomscanner.kubewarden.io/v1alpha1", "kind": "Registry",
            "metadata": {"name": "new", "namespace": "sandbox"},
            "spec": {"uri": "127.0.0.1:1", "insecure": true, "scanOnChange": false},
        });
        for object in [&pod, &registry] {
            kubectl.succeed_with(&["create", "-f", "-"], &object.to_string())?;
        }
        let is_about_pod = |report: &Value| report.to_string().contains("\"name\":\"new\"");
        wait::until(
            "reports of a new pod and a condition of a new Registry",
            LIMIT,
            || {
                for path in AUDITED {
                    if !items(&kubectl, path)?.iter().any(is_about_pod) {
                        return Ok(None);
                    }
                }
                let registry = get(
                    &kubectl,
                    &format!("{SCANNER}/namespaces/sandbox/registries/new"),
                )?;
                Ok(registry["status"]["conditions"].is_array().then_some(()))
            },
        )
        .with_context(|| muster.process().log_tail())?;

        assert_eq!(results(&kubectl)?, before);
        let expected = fixture.expected()?;
        let expected = |path: &str| expected.get(path).with_context(|| path.to_owned());
        for resource in ["images", "vulnerabilityreports", "workloadscanreports"] {
            let path = format!("{STORAGE}/{resource}");
            let served = items(&kubectl, &path)?;
            let served: Vec<_> = served.iter().map(identity).collect();
            let expected: Vec<_> = expected(&path)?.iter().map(identity).collect();
            assert_eq!(served, expected, "{path}");
        }
        // What was added to the fixture while nothing was audited has its first report now.
        for path in AUDITED {
            let served = items(&kubectl, path)?;
            let served: BTreeSet<_> = served.iter().map(name).collect();
            for report in expected(path)? {
                assert!(served.contains(&name(report)), "{path}: {report} is gone");
            }
        }
        assert_one_report_each(&kubectl)?;
    }
    Ok(())
}

/// The namespace and the name of an object.
fn name(object: &Value) -> (Option<&str>, Option<&str>) {
    let [namespace, name, _] = identity(object);
    (namespace, name)
}

/// No resource has two reports of one kind.
fn assert_one_report_each(kubectl: &Kubectl) -> Result<()> {
    for path in AUDITED {
        let mut seen = BTreeSet::new();
        for report in items(kubectl, path)? {
            let owner = &report["metadata"]["ownerReferences"][0]["uid"];
            let scope = report["scope"].get("uid").unwrap_or(owner);
            let scope = scope
                .as_str()
                .with_context(|| format!("whom it is about: {report}"))?;
            assert!(
                seen.insert(scope.to_owned()),
                "{path}: two reports about {scope}"
            );
        }
    }
    Ok(())
}
