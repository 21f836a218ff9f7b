//! `kubectl create` of whole manifests and of typed kinds, whose bodies are protobuf.

use super::{Scene, cells, config_map, registry};
use anyhow::Result;
use serde_json::{Value, json};

/// Runs a typed command and returns the object that the server keeps.
fn created(scene: &Scene, command: &str, object: &str) -> Result<Value> {
    let outcome = scene.outcome(&format!("create {command} -v=8"), "")?;
    anyhow::ensure!(outcome.status.success(), "{command}: {}", outcome.stderr);
    assert!(
        outcome
            .stderr
            .contains("application/vnd.kubernetes.protobuf"),
        "create {command} speaks protobuf"
    );
    Ok(serde_json::from_str(
        &scene.run(&format!("get {object} -o json"))?,
    )?)
}

#[test]
fn manifests_are_created_once() -> Result<()> {
    let scene = Scene::new("create-manifest")?;
    let both = format!(
        "{}---\n{}",
        config_map("settings", "{a: b}"),
        registry("example", "a.example.org")
    );
    assert_eq!(
        scene.feed("create -f -", &both)?,
        "configmap/settings created\nregistry.sbomscanner.kubewarden.io/example created\n"
    );
    let again = scene.refused("create -f -", &both)?;
    assert!(
        again.contains("(AlreadyExists)")
            && again.contains("configmaps \"settings\" already exists"),
        "{again}"
    );
    let named = config_map("ignored", "{}").replace("name: ignored", "generateName: some-");
    let name = scene.feed("create -f - -o name", &named)?;
    assert!(
        name.starts_with("configmap/some-") && name.trim_end().len() == "configmap/some-".len() + 5,
        "{name}"
    );
    let invalid = scene.refused("create -f -", &registry("UPPER", "a.example.org"))?;
    assert!(
        invalid.contains("metadata.name: Invalid value"),
        "{invalid}"
    );
    Ok(())
}

#[test]
fn secrets_and_configmaps_are_made_of_literals_and_files() -> Result<()> {
    let scene = Scene::new("create-data")?;
    let file = scene.file("note.txt", "written")?;
    let secret = created(
        &scene,
        &format!(
            "secret generic s --from-literal=a=b --from-file={}",
            file.display()
        ),
        "secret/s",
    )?;
    assert_eq!(secret["type"], "Opaque");
    assert_eq!(
        secret["data"],
        json!({"a": "Yg==", "note.txt": "d3JpdHRlbg=="})
    );
    let pull = created(
        &scene,
        "secret docker-registry pull --docker-server=r.example.org --docker-username=u --docker-password=p",
        "secret/pull",
    )?;
    assert_eq!(pull["type"], "kubernetes.io/dockerconfigjson");
    assert!(pull["data"][".dockerconfigjson"].is_string());
    let map = created(
        &scene,
        &format!(
            "configmap c --from-literal=a=b --from-file={}",
            file.display()
        ),
        "cm/c",
    )?;
    assert_eq!(map["data"], json!({"a": "b", "note.txt": "written"}));
    let fields = scene.run("get cm c -o json --show-managed-fields")?;
    assert!(
        fields.contains("\"manager\": \"kubectl-create\""),
        "{fields}"
    );
    Ok(())
}

#[test]
fn rights_are_made_of_verbs_and_resources() -> Result<()> {
    let scene = Scene::new("create-rights")?;
    let account = created(&scene, "serviceaccount robot", "sa/robot")?;
    assert_eq!(account["kind"], "ServiceAccount");
    let role = created(
        &scene,
        "role reader --verb=get,list --resource=pods,deployments.apps",
        "role/reader",
    )?;
    assert_eq!(
        role["rules"],
        json!([
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]},
            {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get", "list"]},
        ])
    );
    let binding = created(
        &scene,
        "rolebinding readers --role=reader --serviceaccount=create-rights:robot --user=jane",
        "rolebinding/readers",
    )?;
    assert_eq!(binding["roleRef"]["name"], "reader");
    assert_eq!(binding["subjects"].as_array().map(Vec::len), Some(2));
    let cluster = created(
        &scene,
        "clusterrole create-rights --verb=get --non-resource-url=/metrics",
        "clusterrole/create-rights",
    )?;
    assert_eq!(cluster["rules"][0]["nonResourceURLs"], json!(["/metrics"]));
    let binding = created(
        &scene,
        "clusterrolebinding create-rights --clusterrole=create-rights --group=robots",
        "clusterrolebinding/create-rights",
    )?;
    assert_eq!(binding["subjects"][0]["kind"], "Group");
    scene.run("delete clusterrole,clusterrolebinding create-rights")?;
    Ok(())
}

#[test]
fn workloads_are_made_of_images() -> Result<()> {
    let scene = Scene::new("create-workloads")?;
    let deployment = created(
        &scene,
        "deployment web --image=nginx:1 --replicas=2 --port=80",
        "deployment/web",
    )?;
    assert_eq!(deployment["spec"]["replicas"], 2);
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["image"], "nginx:1");
    assert_eq!(container["ports"][0]["containerPort"], 80);
    // What follows the dashes is the job's own, so this one is not asked to speak up.
    scene.run("create job once --image=busybox -- echo hi")?;
    let job: Value = serde_json::from_str(&scene.run("get job once -o json")?)?;
    assert_eq!(
        job["spec"]["template"]["spec"]["containers"][0]["command"],
        json!(["echo", "hi"])
    );
    let cron = created(
        &scene,
        "cronjob often --image=busybox --schedule='*/5 * * * *'",
        "cronjob/often",
    )?;
    assert_eq!(cron["spec"]["schedule"], "*/5 * * * *");
    let from = created(&scene, "job now --from=cronjob/often", "job/now")?;
    assert_eq!(from["metadata"]["ownerReferences"][0]["name"], "often");
    Ok(())
}

#[test]
fn networks_and_limits_are_made_of_flags() -> Result<()> {
    let scene = Scene::new("create-networks")?;
    let service = created(
        &scene,
        "service clusterip front --tcp=80:8080",
        "service/front",
    )?;
    assert_eq!(service["spec"]["ports"][0]["targetPort"], 8080);
    let port = created(&scene, "service nodeport np --tcp=80:http", "service/np")?;
    assert_eq!(port["spec"]["ports"][0]["targetPort"], "http");
    created(&scene, "service loadbalancer lb --tcp=80", "service/lb")?;
    created(
        &scene,
        "service externalname en --external-name=example.org",
        "service/en",
    )?;
    let ingress = created(
        &scene,
        "ingress web --rule=example.org/path*=front:80,tls=cert",
        "ingress/web",
    )?;
    assert_eq!(
        ingress["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"],
        json!({"name": "front", "port": {"number": 80}})
    );
    assert_eq!(ingress["spec"]["tls"][0]["secretName"], "cert");
    let quota = created(&scene, "quota small --hard=cpu=1,pods=2", "quota/small")?;
    assert_eq!(quota["spec"]["hard"], json!({"cpu": "1", "pods": "2"}));
    let budget = created(
        &scene,
        "poddisruptionbudget safe --selector=app=web --min-available=50%",
        "pdb/safe",
    )?;
    assert_eq!(budget["spec"]["minAvailable"], "50%");
    let table = scene.run("get services,ingresses,quota,pdb")?;
    assert!(
        cells(&table)
            .iter()
            .any(|row| row.first() == Some(&"ingress.networking.k8s.io/web")),
        "{table}"
    );
    Ok(())
}
