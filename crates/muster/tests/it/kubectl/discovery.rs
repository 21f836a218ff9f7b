//! What the server says of itself: its resources, their fields, who asks and what they may do.

use super::{Scene, cells};
use anyhow::Result;

#[test]
fn api_resources_lists_ours_beside_the_built_in_ones() -> Result<()> {
    let scene = Scene::new("api-resources")?;
    let table = scene.run("api-resources")?;
    let rows = cells(&table);
    for row in [
        ["configmaps", "cm", "v1", "true", "ConfigMap"],
        ["namespaces", "ns", "v1", "false", "Namespace"],
        ["deployments", "deploy", "apps/v1", "true", "Deployment"],
        [
            "registries",
            "reg",
            "sbomscanner.kubewarden.io/v1alpha1",
            "true",
            "Registry",
        ],
        [
            "clusteradmissionpolicies",
            "cap",
            "policies.kubewarden.io/v1",
            "false",
            "ClusterAdmissionPolicy",
        ],
    ] {
        assert!(rows.contains(&row.to_vec()), "{row:?} in:\n{table}");
    }
    let wide = scene.run("api-resources --api-group=sbomscanner.kubewarden.io -o wide")?;
    let line = wide
        .lines()
        .find(|line| line.starts_with("registries "))
        .unwrap_or_default();
    assert!(
        line.contains("delete,deletecollection,get,list,patch,create,update,watch"),
        "{wide}"
    );
    let cluster = scene.run("api-resources --namespaced=false -o name")?;
    assert!(cluster.lines().any(|line| line == "namespaces"));
    assert!(!cluster.lines().any(|line| line == "configmaps"));
    Ok(())
}

#[test]
fn the_category_muster_holds_our_kinds_and_no_others() -> Result<()> {
    let scene = Scene::new("category")?;
    let names = scene.run("api-resources --categories=muster -o name")?;
    for ours in [
        "registries.sbomscanner.kubewarden.io",
        "vulnerabilityreports.storage.sbomscanner.kubewarden.io",
        "policyservers.policies.kubewarden.io",
    ] {
        assert!(names.lines().any(|name| name == ours), "{ours} in\n{names}");
    }
    assert!(!names.contains("configmaps"), "{names}");
    Ok(())
}

#[test]
fn api_versions_lists_every_group_and_version() -> Result<()> {
    let scene = Scene::new("api-versions")?;
    let versions = scene.run("api-versions")?;
    for version in [
        "v1",
        "apps/v1",
        "batch/v1",
        "sbomscanner.kubewarden.io/v1alpha1",
        "wgpolicyk8s.io/v1alpha2",
        "wgpolicyk8s.io/v1beta1",
    ] {
        assert!(versions.lines().any(|line| line == version), "{versions}");
    }
    Ok(())
}

#[test]
fn explain_goes_down_to_the_leaves() -> Result<()> {
    let scene = Scene::new("explain")?;
    for (path, expected) in [
        ("registries", "KIND:       Registry"),
        ("registries", "spec\t<Object> -required-"),
        ("registry.spec", "uri\t<string> -required-"),
        ("registry.spec.catalogType", "FIELD: catalogType <string>"),
        ("registry.spec.catalogType", "OCIDistribution"),
        (
            "registry.spec.repositories.matchConditions.expression",
            "FIELD: expression <string>",
        ),
        (
            "registry.spec.repositories.matchConditions.expression",
            "CEL over `tag`",
        ),
        (
            "registry.status.conditions.lastTransitionTime",
            "FIELD: lastTransitionTime <string>",
        ),
        (
            "registry.metadata.ownerReferences.uid",
            "FIELD: uid <string>",
        ),
        (
            "pod.spec.containers.env.valueFrom",
            "secretKeyRef\t<SecretKeySelector>",
        ),
        (
            "pod.spec.containers.env.valueFrom.secretKeyRef.key",
            "FIELD: key <string>",
        ),
        (
            "deployments.spec.template.spec.containers.securityContext.capabilities.drop",
            "FIELD: drop <[]string>",
        ),
        ("configmaps.data", "FIELD: data <map[string]string>"),
    ] {
        let text = scene.run(&format!("explain {path}"))?;
        assert!(
            text.contains(expected),
            "explain {path}: {expected:?} in:\n{text}"
        );
    }
    let recursive = scene.run("explain registries --recursive")?;
    assert!(
        recursive.contains("      matchConditions\t<[]Object>\n        expression\t<string>"),
        "{recursive}"
    );
    let older = scene.run("explain policyreports --api-version=wgpolicyk8s.io/v1alpha2")?;
    assert!(older.contains("VERSION:    v1alpha2"), "{older}");
    let wrong = scene.refused("explain registry.spec.nothing", "")?;
    assert!(
        wrong.contains("field \"nothing\" does not exist"),
        "{wrong}"
    );
    Ok(())
}

#[test]
fn cluster_info_and_version_name_the_server() -> Result<()> {
    let scene = Scene::new("cluster-info")?;
    let info = scene.run("cluster-info")?;
    assert!(
        info.contains("Kubernetes control plane is running at https://127.0.0.1:"),
        "{info}"
    );
    let outcome = scene.outcome("version", "")?;
    assert!(outcome.stdout.contains("Server Version: v1.36."));
    // kubectl warns here of a server whose version is too far from its own.
    assert_eq!(outcome.stderr, "");
    Ok(())
}

#[test]
fn raw_paths_are_answered() -> Result<()> {
    let scene = Scene::new("raw")?;
    for path in ["/healthz", "/livez", "/readyz"] {
        assert_eq!(scene.run(&format!("get --raw {path}"))?, "ok");
    }
    let verbose = scene.run("get --raw /readyz?verbose")?;
    assert!(verbose.ends_with("readyz check passed\n"), "{verbose}");
    let version: serde_json::Value = serde_json::from_str(&scene.run("get --raw /version")?)?;
    assert_eq!(version["minor"], "36");
    let metrics = scene.run("get --raw /metrics")?;
    assert!(
        metrics.contains("# TYPE apiserver_requests counter"),
        "{metrics}"
    );
    let missing = scene.refused("get --raw /apis/nowhere/v1", "")?;
    assert!(missing.contains("NotFound"), "{missing}");

    let target = "/api/v1/namespaces/raw/configmaps";
    let body = scene.file(
        "body.json",
        r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"raw"}}"#,
    )?;
    let created = scene.run(&format!("create --raw {target} -f {}", body.display()))?;
    assert!(created.contains(r#""name":"raw""#), "{created}");
    let listed: serde_json::Value =
        serde_json::from_str(&scene.run(&format!("get --raw {target}"))?)?;
    assert_eq!(listed["kind"], "ConfigMapList");
    assert_eq!(listed["items"][0]["metadata"]["name"], "raw");
    let deleted = scene.run(&format!("delete --raw {target}/raw"))?;
    assert!(deleted.contains(r#""status":"Success""#), "{deleted}");
    Ok(())
}

#[test]
fn the_owner_may_do_everything_and_is_told_so() -> Result<()> {
    let scene = Scene::new("auth")?;
    for question in [
        "create pods",
        "delete registries.sbomscanner.kubewarden.io --all-namespaces",
        "get /metrics",
        "'*' '*'",
    ] {
        assert_eq!(scene.run(&format!("auth can-i {question}"))?, "yes\n");
    }
    let list = scene.run("auth can-i --list")?;
    assert!(list.contains("*.*"), "{list}");
    let who = scene.run("auth whoami")?;
    let rows = cells(&who);
    assert!(rows.contains(&vec!["Username", "muster-admin"]), "{who}");
    assert!(who.contains("system:masters"), "{who}");
    let json: serde_json::Value = serde_json::from_str(&scene.run("auth whoami -o json")?)?;
    assert_eq!(json["kind"], "SelfSubjectReview");
    assert_eq!(json["status"]["userInfo"]["username"], "muster-admin");
    Ok(())
}
