//! `kubectl apply`, client-side: three-way merges of what was, what is and what shall be.

use super::{Scene, config_map, registry};
use anyhow::Result;
use serde_json::Value;

const DEPLOYMENT: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata:
      labels: {app: web}
    spec:
      containers:
      - name: nginx
        image: nginx:1
        env:
        - {name: FIRST, value: '1'}
        - {name: SECOND, value: '2'}
        ports:
        - {containerPort: 80, protocol: TCP}
      - name: sidecar
        image: sidecar:1
";

#[test]
fn applying_creates_then_changes_then_leaves_alone() -> Result<()> {
    let scene = Scene::new("apply-ours")?;
    let name = "registry.sbomscanner.kubewarden.io/example";
    let first = registry("example", "first.example.org");
    let second = registry("example", "second.example.org");
    assert_eq!(scene.apply(&first)?, format!("{name} created\n"));
    assert_eq!(scene.apply(&first)?, format!("{name} unchanged\n"));
    assert_eq!(scene.apply(&second)?, format!("{name} configured\n"));
    let read: Value = serde_json::from_str(&scene.run("get reg example -o json")?)?;
    assert_eq!(read["spec"]["uri"], "second.example.org");
    assert_eq!(read["metadata"]["generation"], 2);
    let last = scene.run("apply view-last-applied reg example")?;
    assert!(last.contains("uri: second.example.org"), "{last}");
    Ok(())
}

#[test]
fn a_list_is_applied_and_what_was_read_is_put_back() -> Result<()> {
    let scene = Scene::new("apply-list")?;
    let items: Vec<Value> = ["one", "two"]
        .iter()
        .map(|name| {
            serde_json::json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": name}, "data": {"key": "value"},
            })
        })
        .collect();
    let list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": items});
    let applied = scene.apply(&list.to_string())?;
    assert_eq!(applied, "configmap/one created\nconfigmap/two created\n");
    let read = scene.run("get configmaps one two -o yaml")?;
    let read = read.replace("key: value", "key: other");
    let applied = scene.apply(&read)?;
    assert_eq!(
        applied,
        "configmap/one configured\nconfigmap/two configured\n"
    );
    Ok(())
}

#[test]
fn a_key_that_is_no_longer_applied_goes_and_others_keys_stay() -> Result<()> {
    let scene = Scene::new("apply-prunes")?;
    scene.apply(&config_map("settings", "{kept: '1', dropped: '2'}"))?;
    scene.run(r#"patch cm settings --type=merge -p '{"data":{"foreign":"3"}}'"#)?;
    assert_eq!(
        scene.apply(&config_map("settings", "{kept: changed}"))?,
        "configmap/settings configured\n"
    );
    let data: Value = serde_json::from_str(&scene.run("get cm settings -o jsonpath={.data}")?)?;
    assert_eq!(data, serde_json::json!({"kept": "changed", "foreign": "3"}));
    Ok(())
}

#[test]
fn a_changed_deployment_is_merged_by_the_keys_of_its_lists() -> Result<()> {
    let scene = Scene::new("apply-strategic")?;
    scene.apply(DEPLOYMENT)?;
    assert_eq!(scene.apply(DEPLOYMENT)?, "deployment.apps/web unchanged\n");
    // Somebody else adds a container; whoever applies must not take it away.
    let injected =
        r#"{"spec":{"template":{"spec":{"containers":[{"name":"injected","image":"proxy:1"}]}}}}"#;
    scene.run(&format!("patch deployment web -p '{injected}'"))?;
    let changed = DEPLOYMENT
        .replace("nginx:1", "nginx:2")
        .replace("        - {name: FIRST, value: '1'}\n", "")
        .replace("value: '2'", "value: two")
        .replace("      - name: sidecar\n        image: sidecar:1\n", "");
    let outcome = scene.outcome("apply -f - -v=8", &changed)?;
    assert!(outcome.status.success(), "{}", outcome.stderr);
    assert!(
        outcome
            .stderr
            .contains("application/strategic-merge-patch+json"),
        "kubectl merges built-in kinds strategically:\n{}",
        outcome.stderr
    );
    let read: Value = serde_json::from_str(&scene.run("get deployment web -o json")?)?;
    let containers = &read["spec"]["template"]["spec"]["containers"];
    let names: Vec<_> = containers
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|container| container["name"].as_str())
        .collect();
    assert_eq!(names, ["injected", "nginx"]);
    assert_eq!(containers[1]["image"], "nginx:2");
    assert_eq!(
        containers[1]["env"],
        serde_json::json!([{"name": "SECOND", "value": "two"}])
    );
    Ok(())
}

#[test]
fn several_documents_and_a_selector_for_what_is_gone() -> Result<()> {
    let scene = Scene::new("apply-prune")?;
    let both = format!(
        "{}---\n{}",
        config_map("a", "{k: v}").replace("metadata:", "metadata:\n  labels: {set: pruned}"),
        config_map("b", "{k: v}").replace("metadata:", "metadata:\n  labels: {set: pruned}"),
    );
    assert_eq!(
        scene.apply(&both)?,
        "configmap/a created\nconfigmap/b created\n"
    );
    let one = both.split("---\n").next().unwrap_or_default();
    let pruned = scene.feed(
        "apply -f - --prune -l set=pruned --prune-allowlist=core/v1/ConfigMap",
        one,
    )?;
    assert_eq!(pruned, "configmap/a unchanged\nconfigmap/b pruned\n");
    Ok(())
}

#[test]
fn a_kustomization_is_applied() -> Result<()> {
    let scene = Scene::new("apply-kustomize")?;
    scene.file("registry.yaml", &registry("base", "base.example.org"))?;
    let directory = scene.file(
        "kustomization.yaml",
        "namePrefix: my-\nresources: [registry.yaml]\n\
         configMapGenerator:\n- name: settings\n  literals: [a=b]\n  \
         options: {disableNameSuffixHash: true}\n\
         patches:\n- target: {kind: Registry}\n  patch: |\n    \
         - {op: replace, path: /spec/uri, value: patched.example.org}\n",
    )?;
    let directory = directory.parent().unwrap_or(&directory).display();
    let applied = scene.run(&format!("apply -k {directory}"))?;
    assert_eq!(
        applied,
        "configmap/my-settings created\nregistry.sbomscanner.kubewarden.io/my-base created\n"
    );
    let uri = scene.run("get reg my-base -o jsonpath={.spec.uri}")?;
    assert_eq!(uri, "patched.example.org");
    assert!(scene.run(&format!("diff -k {directory}"))?.is_empty());
    let deleted = scene.run(&format!("delete -k {directory}"))?;
    assert!(
        deleted.contains("configmap \"my-settings\" deleted"),
        "{deleted}"
    );
    Ok(())
}

#[test]
fn a_diff_ends_with_one_where_there_is_a_difference_and_changes_nothing() -> Result<()> {
    let scene = Scene::new("diff")?;
    let manifest = registry("example", "first.example.org");
    for flags in ["", "--server-side"] {
        scene.feed(&format!("apply {flags} -f -"), &manifest)?;
        let line = format!("diff {flags} -f -");
        let same = scene.outcome(&line, &manifest)?;
        assert_eq!(same.status.code(), Some(0), "{flags}: {}", same.stdout);
        let changed = registry("example", "second.example.org");
        let other = scene.outcome(&line, &changed)?;
        assert_eq!(other.status.code(), Some(1), "{flags}: {}", other.stderr);
        assert!(other.stdout.contains("-  uri: first.example.org"));
        assert!(other.stdout.contains("+  uri: second.example.org"));
        assert!(other.stdout.contains("-  generation: 1"));
        let fresh = scene.outcome(&line, &registry("fresh", "new.example.org"))?;
        assert_eq!(fresh.status.code(), Some(1));
        assert!(fresh.stdout.contains("+  uri: new.example.org"));
        assert_eq!(
            scene.run("get reg -o jsonpath={.items[*].spec.uri}")?,
            "first.example.org"
        );
        scene.run("delete reg --all")?;
    }
    Ok(())
}
