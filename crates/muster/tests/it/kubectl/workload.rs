//! Commands about workloads that need nothing but a store. No controller runs here, so nothing
//! ever rolls out; and no kind has a scale, so `kubectl scale` and `autoscale` do not work.

use super::{Scene, cells};
use anyhow::Result;
use serde_json::{Value, json};

fn template(scene: &Scene) -> Result<Value> {
    let read: Value = serde_json::from_str(&scene.run("get deployment web -o json")?)?;
    Ok(read["spec"]["template"].clone())
}

#[test]
fn get_all_shows_every_workload() -> Result<()> {
    let scene = Scene::new("workload-all")?;
    scene.run("create deployment web --image=nginx:1 --replicas=2")?;
    scene.run("create cronjob often --image=busybox --schedule='0 * * * *'")?;
    scene.run("create service clusterip front --tcp=80:8080")?;
    scene.run("run lonely --image=busybox")?;
    assert_eq!(
        scene.run("get all -o name")?,
        "pod/lonely\nservice/front\ndeployment.apps/web\ncronjob.batch/often\n"
    );
    let table = scene.run("get all")?;
    let rows = cells(&table);
    for start in [
        vec!["pod/lonely", "0/1", "Pending", "0"],
        vec!["deployment.apps/web", "0/2", "0", "0"],
        vec!["cronjob.batch/often", "0 * * * *", "<none>", "False", "0"],
    ] {
        assert!(
            rows.iter().any(|row| row.starts_with(&start)),
            "{start:?} in:\n{table}"
        );
    }
    Ok(())
}

#[test]
fn images_and_environment_are_set() -> Result<()> {
    let scene = Scene::new("workload-set")?;
    scene.run("create deployment web --image=nginx:1")?;
    assert_eq!(
        scene.run("set image deployment/web nginx=nginx:2")?,
        "deployment.apps/web image updated\n"
    );
    scene.run("set env deployment/web A=b")?;
    scene.run("set resources deployment/web --limits=cpu=1")?;
    scene.run("set serviceaccount deployment/web robot")?;
    let spec = template(&scene)?["spec"].clone();
    assert_eq!(spec["containers"][0]["image"], "nginx:2");
    assert_eq!(
        spec["containers"][0]["env"],
        json!([{"name": "A", "value": "b"}])
    );
    assert_eq!(spec["containers"][0]["resources"]["limits"]["cpu"], "1");
    assert_eq!(spec["serviceAccountName"], "robot");
    Ok(())
}

#[test]
fn a_rollout_is_asked_for_and_never_comes() -> Result<()> {
    let scene = Scene::new("workload-rollout")?;
    scene.run("create deployment web --image=nginx:1")?;
    assert_eq!(
        scene.run("rollout restart deployment web")?,
        "deployment.apps/web restarted\n"
    );
    let annotations = template(&scene)?["metadata"]["annotations"].clone();
    assert!(
        annotations["kubectl.kubernetes.io/restartedAt"].is_string(),
        "{annotations}"
    );
    assert_eq!(
        scene.run("rollout pause deployment web")?,
        "deployment.apps/web paused\n"
    );
    assert_eq!(
        scene.run("rollout resume deployment web")?,
        "deployment.apps/web resumed\n"
    );
    let waited = scene.refused("rollout status deployment web --timeout=200ms", "")?;
    assert!(waited.contains("timed out waiting"), "{waited}");
    // With a status that says so, it is over: the status is anybody's to write.
    let generation = scene.run("get deployment web -o jsonpath={.metadata.generation}")?;
    let status = format!(
        r#"{{"status":{{"observedGeneration":{generation},"replicas":1,"updatedReplicas":1,"availableReplicas":1}}}}"#
    );
    scene.run(&format!(
        "patch deployment web --subresource=status --type=merge -p '{status}'"
    ))?;
    let done = scene.run("rollout status deployment web --timeout=60s")?;
    assert_eq!(done, "deployment \"web\" successfully rolled out\n");
    Ok(())
}

#[test]
fn a_deployment_is_exposed_by_a_service() -> Result<()> {
    let scene = Scene::new("workload-expose")?;
    scene.run("create deployment web --image=nginx:1 --port=80")?;
    assert_eq!(
        scene.run("expose deployment web --name=front --port=8080 --target-port=80")?,
        "service/front exposed\n"
    );
    let read: Value = serde_json::from_str(&scene.run("get service front -o json")?)?;
    assert_eq!(read["spec"]["selector"], json!({"app": "web"}));
    assert_eq!(read["spec"]["ports"][0]["targetPort"], 80);
    Ok(())
}

#[test]
fn a_workloads_report_is_a_line_that_says_how_far_it_is_scanned() -> Result<()> {
    let scene = Scene::new("workload-report")?;
    scene.run("create deployment web --image=nginx:1")?;
    let uid = scene.run("get deployment web -o jsonpath={.metadata.uid}")?;
    let space = &scene.namespace;
    let storage = "storage.sbomscanner.kubewarden.io/v1alpha1";
    let digest = format!("sha256:{}", "0123456789abcdef".repeat(4));
    let container = |name: &str, repository: &str, selector: Value| {
        let mut reference = json!({
            "registry": "hub", "namespace": space, "repository": repository,
        });
        for (key, value) in selector.as_object().into_iter().flatten() {
            reference[key] = value.clone();
        }
        json!({"name": name, "imageRef": reference})
    };
    let mut gone = container("gone", "team/app", json!({"digest": digest}));
    gone["message"] = json!("the registry no longer has it");
    let report = json!({
        "apiVersion": storage, "kind": "WorkloadScanReport",
        "metadata": {"name": "deployment-web", "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": uid},
        ]},
        "spec": {"containers": [container("web", "library/nginx", json!({"tag": "1"})), gone]},
    });
    let about = json!({"registry": "hub", "repository": "library/nginx", "tag": "1"});
    let image = json!({
        "apiVersion": storage, "kind": "Image", "metadata": {"name": "nginx"},
        "imageMetadata": about,
    });
    let finding = |cve: &str| json!({"cve": cve, "packageName": "p", "severity": "HIGH"});
    let found = json!({
        "apiVersion": storage, "kind": "VulnerabilityReport", "metadata": {"name": "nginx"},
        "imageMetadata": about,
        "report": {"results": [
            {"target": "t", "vulnerabilities": [finding("CVE-1"), finding("CVE-2")]},
        ]},
    });
    let row = || -> Result<Vec<String>> {
        let table = scene.run("get workloadscanreports -o wide")?;
        let rows = cells(&table);
        assert_eq!(rows[0][..4], ["NAME", "KIND", "WORKLOAD", "CONTAINERS"]);
        assert!(rows[0].contains(&"IMAGES"), "{table}");
        Ok(rows[1].iter().map(|cell| (*cell).to_owned()).collect())
    };
    let images = "library/nginx:1,team/app@sha256:0123456789ab".to_owned();
    scene.apply(&report.to_string())?;
    let begun = row()?;
    assert_eq!(
        begun[..5],
        ["deployment-web", "Deployment", "web", "0/2", "-"]
    );
    scene.apply(&image.to_string())?;
    assert_eq!(row()?[3], "0/2");
    scene.apply(&found.to_string())?;
    let done = row()?;
    assert_eq!(
        done[..6],
        ["deployment-web", "Deployment", "web", "1/2", "-", "2"]
    );
    assert!(done.contains(&images), "{done:?}");
    let shown = scene.run("get workloadscanreports")?;
    assert!(!shown.contains(&images), "{shown}");
    let messages = "get wsr deployment-web -o jsonpath={.status.containerStatuses[*].message}";
    assert_eq!(scene.run(messages)?, "the registry no longer has it");
    Ok(())
}
