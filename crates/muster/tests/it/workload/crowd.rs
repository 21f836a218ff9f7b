//! Many namespaces, one Registry, and operators that die: in the end everything is as if it had been
//! computed at once from what there is.

use super::*;
use std::collections::{BTreeMap, BTreeSet};

/// What the managed Registries hold: by repository and expression, the namespaces.
pub(crate) type Held = BTreeMap<(String, String), BTreeSet<String>>;

/// What all managed Registries hold together.
pub(crate) fn held(kubectl: &Kubectl) -> Result<Held> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut held = Held::new();
    let found = get(kubectl, &["registries", "-A", "-l", MANAGED])?;
    for registry in list(&found["items"]) {
        for repository in list(&registry["spec"]["repositories"]) {
            for condition in list(&repository["matchConditions"]) {
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                let key = (text(&repository["name"]), text(&condition["expression"]));
                let labels = condition["labels"].as_object().cloned().unwrap_or_default();
                held.entry(key).or_default().extend(labels.keys().cloned());
            }
        }
    }
    Ok(held)
}

/// What they should hold, computed from the pods that there are.
pub(crate) fn wanted(kubectl: &Kubectl, host: &str) -> Result<Held> {
    let pods = get(kubectl, &["pods", "-A"])?;
    let mut wanted = Held::new();
    for pod in pods["items"].as_array().into_iter().flatten() {
        let namespace = pod["metadata"]["namespace"].as_str().unwrap_or_default();
        if pod["metadata"]["deletionTimestamp"].is_string() {
            continue;
        }
        for container in pod["spec"]["containers"].as_array().into_iter().flatten() {
            let image = container["image"].as_str().unwrap_or_default();
            let rest = image
                .strip_prefix(host)
                .and_then(|rest| rest.strip_prefix('/'));
            let Some((repository, tag)) = rest.and_then(|rest| rest.rsplit_once(':')) else {
                continue;
            };
            let key = (repository.to_owned(), format!("tag == {tag:?}"));
            wanted.entry(key).or_default().insert(namespace.to_owned());
        }
    }
    Ok(wanted)
}

/// Waits until the Registries hold what they should.
pub(crate) fn settled(kubectl: &Kubectl, host: &str) -> Result<Held> {
    let mut last = (Held::new(), Held::new());
    let waited = wait::until("that Registries hold what runs", LIMIT, || {
        last = (held(kubectl)?, wanted(kubectl, host)?);
        Ok((last.0 == last.1).then(|| last.0.clone()))
    });
    waited.with_context(|| format!("held {:?}\nwanted {:?}", last.0, last.1))
}

#[test]
fn fifty_namespaces_share_a_registry_and_lose_nothing() -> Result<()> {
    const NAMESPACES: usize = 50;
    let registry = Registry::start()?;
    let bench = Bench::start()?;
    let site = site(&bench.kubectl, &registry);
    site.namespace("art", json!({}))?;
    site.configure(json!({"artifactsNamespace": "art", "scanOnChange": false}))?;
    let names: Vec<String> = (0..NAMESPACES).map(|at| format!("team-{at}")).collect();
    let mut objects = Vec::new();
    for (at, name) in names.iter().enumerate() {
        objects.push(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}));
        let own = site.image(&format!("team/own-{at}:1"));
        let shared = site.image("team/shared:1");
        objects.push(json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "app", "namespace": name},
            "spec": {"containers": [{"name": "own", "image": own}, {"name": "shared", "image": shared}]},
        }));
    }
    site.apply_all(&objects)?;
    let held = settled(site.kubectl, &site.host)?;
    assert_eq!(held.len(), NAMESPACES + 1);
    let shared = ("team/shared".to_owned(), r#"tag == "1""#.to_owned());
    assert_eq!(held[&shared].len(), NAMESPACES);
    assert_eq!(site.registries("art")?.len(), 1);

    // All at once, half of them go and the others run something else.
    let (going, staying) = names.split_at(NAMESPACES / 2);
    let mut changed = Vec::new();
    for name in staying {
        changed.push(json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "other", "namespace": name},
            "spec": {"containers": [{"name": "app", "image": site.image("team/shared:2")}]},
        }));
    }
    site.apply_all(&changed)?;
    let names: Vec<&str> = going.iter().map(String::as_str).collect();
    site.kubectl
        .succeed(&[&["delete", "namespace", "--wait=false"], &names[..]].concat())?;
    wait::until("the end of half of the namespaces", LIMIT, || {
        let left = site.kubectl.succeed(&["get", "namespaces", "-o", "name"])?;
        let is_going = |line: &str| going.iter().any(|name| line.ends_with(&format!("/{name}")));
        Ok((!left.lines().any(is_going)).then_some(()))
    })?;
    let held = settled(site.kubectl, &site.host)?;
    assert_eq!(held[&shared].len(), NAMESPACES / 2);
    Ok(())
}
