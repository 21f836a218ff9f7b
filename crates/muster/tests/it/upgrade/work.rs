//! An upgrade is no reason to work: what the older version has scanned and audited is not scanned and
//! audited again, and has no second report. Findings may be matched again from the stored SBOMs.

use super::{Fixture, IDLE, MUSTER, get, identity, items};
use anyhow::{Context, Result, ensure};
use muster_testkit::kubectl::Kubectl;
use muster_testkit::muster::Muster;
use muster_testkit::wait;
use serde_json::{Value, json};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(120);
const SCANNER: &str = "/apis/sbomscanner.kubewarden.io/v1alpha1";
const STORAGE: &str = "/apis/storage.sbomscanner.kubewarden.io/v1alpha1";
/// What another scan or audit would write again. Configuration checks are left out: a new version of the
/// engine evaluates them once more.
const RESULTS: [&str; 4] = [
    "/apis/sbomscanner.kubewarden.io/v1alpha1/scanjobs",
    "/apis/storage.sbomscanner.kubewarden.io/v1alpha1/sboms",
    "/apis/wgpolicyk8s.io/v1beta1/policyreports",
    "/apis/wgpolicyk8s.io/v1beta1/clusterpolicyreports",
];
const CHECKED: &str = "/apis/aquasecurity.github.io/v1alpha1/configauditreports";

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
    for path in RESULTS {
        for object in items(kubectl, path)? {
            let revision = object["metadata"]["resourceVersion"].to_string();
            results.push((format!("{path} {:?}", identity(&object)), revision));
        }
    }
    Ok(results)
}

#[test]
fn nothing_is_scanned_or_audited_again_after_an_upgrade() -> Result<()> {
    for fixture in Fixture::all()? {
        let mut muster = Muster::start_on(MUSTER, &IDLE, |data| fixture.unpack(data))?;
        let kubectl = Kubectl::new(&muster.kubeconfig_path())?;
        scanned_just_now(&kubectl)?;
        let before = results(&kubectl)?;
        ensure!(before.len() > 20, "the fixture has few results: {before:?}");
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
                for path in [RESULTS[2], CHECKED] {
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

        let after = results(&kubectl)?;
        let after: Vec<_> = after
            .into_iter()
            .filter(|(name, _)| !name.contains("sandbox"))
            .collect();
        let before: Vec<_> = before
            .into_iter()
            .filter(|(name, _)| !name.contains("sandbox"))
            .collect();
        assert_eq!(after, before);
        let expected = fixture.expected()?;
        let stored = ["images", "vulnerabilityreports", "workloadscanreports"];
        let stored = stored.map(|resource| format!("{STORAGE}/{resource}"));
        for path in stored.iter().map(String::as_str).chain([CHECKED]) {
            // Reports of checks are replaced by successors with the same names.
            let shown = |object: &Value| {
                let [namespace, name, uid] = identity(object).map(|text| text.map(str::to_owned));
                (namespace, name, uid.filter(|_| path != CHECKED))
            };
            let of_others =
                |(namespace, ..): &(Option<String>, _, _)| namespace.as_deref() != Some("sandbox");
            let served: Vec<_> = items(&kubectl, path)?
                .iter()
                .map(shown)
                .filter(of_others)
                .collect();
            let expected = expected.get(path).context(path.to_owned())?;
            let expected: Vec<_> = expected.iter().map(shown).filter(of_others).collect();
            assert_eq!(served, expected, "{path}");
        }
    }
    Ok(())
}
