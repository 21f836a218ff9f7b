//! The cluster's roles decide, per user and namespace.

use super::{API_VERSION, MUSTER, SOON, apply, image, namespace, options, report, stage, workload};
use anyhow::Result;
use http::Method;
use muster_testkit::http::{Client, Request};
use muster_testkit::kubeconfig::Kubeconfig;
use muster_testkit::kubectl::Kubectl;
use muster_testkit::storage::Cluster;
use muster_testkit::wait;
use serde_json::json;
use std::time::Duration;

/// Lets a user do these things to these resources of ours in a namespace.
pub(super) fn grant(
    kubectl: &Kubectl,
    space: &str,
    user: &str,
    resources: &[&str],
    verbs: &[&str],
) -> Result<()> {
    let name = format!("{user}-{}", resources.join("-"));
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"name": name, "namespace": space},
        "rules": [{
            "apiGroups": ["storage.sbomscanner.kubewarden.io"],
            "resources": resources, "verbs": verbs,
        }],
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": name, "namespace": space},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    });
    apply(kubectl, &role)?;
    apply(kubectl, &binding)?;
    // A denial would be believed for some seconds.
    for resource in resources {
        let resource = format!("{resource}.storage.sbomscanner.kubewarden.io");
        for verb in verbs {
            kubectl.wait_allowed(user, verb, &resource, space)?;
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_allowed_in_one_namespace_sees_nothing_of_another() -> Result<()> {
    let stage = stage()?;
    let kubectl = &stage.kubectl;
    let (ours, theirs) = ("rights-a", "rights-b");
    for space in [ours, theirs] {
        namespace(kubectl, space)?;
        apply(kubectl, &image(space, "one", "1.0"))?;
    }
    grant(
        kubectl,
        ours,
        "alice",
        &["images"],
        &["get", "list", "watch"],
    )?;
    let alice = stage.cluster.kubectl_of("alice", &[])?;
    let listed = alice.succeed(&["-n", ours, "get", "images", "-o", "name"])?;
    assert_eq!(listed, "image.storage.sbomscanner.kubewarden.io/one\n");
    for arguments in [
        vec!["-n", theirs, "get", "image", "one"],
        vec!["-n", theirs, "get", "images"],
        vec!["-n", theirs, "get", "images", "-w"],
        vec!["get", "images", "-A"],
        vec!["-n", ours, "delete", "image", "one"],
        vec!["-n", ours, "get", "sboms"],
    ] {
        let refused = alice.fail(&arguments, "")?;
        assert!(refused.contains("Forbidden"), "{arguments:?}: {refused}");
    }
    // A watch of one namespace, open while the other changes.
    let client = Client::new(&stage.cluster.kubernetes().user("alice", &[])?)?;
    let path = format!("/apis/{API_VERSION}/namespaces/{ours}/images?watch=true");
    let mut watch = client.watch(Request::new(Method::GET, path), SOON).await?;
    assert_eq!(watch.status, 200);
    apply(kubectl, &image(theirs, "secret", "2.0"))?;
    apply(kubectl, &image(ours, "two", "2.0"))?;
    let mut seen = Vec::new();
    while !seen.iter().any(|name| name == "two") {
        let Some(event) = watch.next_event(SOON).await? else {
            anyhow::bail!("the watch ended after {seen:?}");
        };
        let metadata = &event["object"]["metadata"];
        assert_eq!(metadata["namespace"], ours, "{event}");
        seen.extend(metadata["name"].as_str().map(str::to_owned));
    }
    Ok(())
}

#[test]
fn whoever_may_only_patch_may_not_create_by_applying() -> Result<()> {
    let (stage, space) = (stage()?, "rights-apply");
    let kubectl = &stage.kubectl;
    namespace(kubectl, space)?;
    grant(kubectl, space, "patty", &["images"], &["get", "patch"])?;
    let patty = stage.cluster.kubectl_of("patty", &[])?;
    let applied = ["apply", "--server-side", "-f", "-"];
    let refused = patty.fail(&applied, &image(space, "one", "1.0").to_string())?;
    assert!(refused.contains("cannot create"), "{refused}");
    apply(kubectl, &image(space, "one", "1.0"))?;
    let mut changed = image(space, "one", "1.0");
    changed["metadata"]["labels"] = json!({"a": "b"});
    patty.succeed_with(&["apply", "--server-side", "-f", "-"], &changed.to_string())?;
    Ok(())
}

#[test]
fn a_report_on_another_namespaces_images_needs_the_right_to_read_their_findings() -> Result<()> {
    let stage = stage()?;
    let kubectl = &stage.kubectl;
    let (ours, theirs) = ("rights-author", "rights-images");
    for space in [ours, theirs] {
        namespace(kubectl, space)?;
    }
    apply(kubectl, &image(theirs, "one", "1.0"))?;
    apply(kubectl, &report(theirs, "one", "1.0", 4))?;
    let all = ["get", "create", "update", "patch", "delete"];
    grant(kubectl, ours, "bob", &["workloadscanreports"], &all)?;
    let bob = stage.cluster.kubectl_of("bob", &[])?;
    let spying = workload(ours, "spy", theirs, "1.0");
    let refused = bob.fail(&["apply", "-f", "-"], &spying.to_string())?;
    assert!(
        refused.contains("may not get vulnerabilityreports"),
        "{refused}"
    );
    // Nor by turning a report on one's own images into one on theirs.
    apply(&bob, &workload(ours, "spy", ours, "1.0"))?;
    let refused = bob.fail(&["apply", "-f", "-"], &spying.to_string())?;
    assert!(
        refused.contains("may not get vulnerabilityreports"),
        "{refused}"
    );
    grant(kubectl, theirs, "bob", &["vulnerabilityreports"], &["get"])?;
    // What was denied is remembered for some seconds.
    wait::until("the new right to count", SOON, || {
        let outcome = bob.run(&["apply", "-f", "-"], &spying.to_string())?;
        Ok(outcome.status.success().then_some(()))
    })
}

#[test]
fn a_service_accounts_token_is_as_good_as_the_cluster_says() -> Result<()> {
    let stage = stage()?;
    let (kubectl, space) = (&stage.kubectl, "rights-token");
    namespace(kubectl, space)?;
    kubectl.succeed(&["-n", space, "create", "serviceaccount", "reader"])?;
    let token = kubectl.succeed(&["-n", space, "create", "token", "reader"])?;
    let direct = Kubeconfig {
        token: Some(token.trim().into()),
        ..stage.cluster.replicas()[0].kubeconfig_with(None)
    };
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        let client = Client::new(&direct)?;
        let path = format!("/apis/{API_VERSION}/namespaces/{space}/images");
        assert_eq!(client.get(&path).await?.status, 403);
        grant(
            kubectl,
            space,
            &format!("system:serviceaccount:{space}:reader"),
            &["images"],
            &["list"],
        )?;
        wait::until_async("the role to count", SOON, || async {
            let status = client.get(&path).await?.status;
            Ok((status == 200).then_some(()))
        })
        .await?;
        let forged = Client::new(&Kubeconfig {
            token: Some("forged".into()),
            ..direct.clone()
        })?;
        assert_eq!(forged.get(&path).await?.status, 401);
        Ok(())
    })
}

#[test]
fn without_kube_apiserver_nobody_is_let_in_and_everybody_is_told_to_come_again() -> Result<()> {
    let mut cluster = Cluster::start(MUSTER, &options()?)?;
    let user = cluster.kubernetes().user("carol", &[])?;
    let pair = user.certificate.clone();
    let direct = Kubeconfig {
        certificate: pair,
        ..cluster.replicas()[0].kubeconfig_with(None)
    };
    // Silent, not gone: nobody hangs up on those who ask.
    cluster.silence_kubernetes()?;
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        let client = Client::new(&direct)?;
        let path = format!("/apis/{API_VERSION}/images");
        let answer = tokio::time::timeout(Duration::from_secs(60), client.get(&path)).await??;
        assert_eq!(answer.status, 503);
        assert!(answer.headers.contains_key("retry-after"));
        // The administrators' own certificate still opens it: no one need be asked.
        let admin = Client::new(cluster.replicas()[0].kubeconfig())?;
        assert_eq!(admin.get(&path).await?.status, 200);
        Ok(())
    })
}

#[test]
fn what_one_worker_found_in_a_layer_another_reads_at_any_replica() -> Result<()> {
    let stage = stage()?;
    let (kubectl, space) = (&stage.kubectl, "rights-layers");
    namespace(kubectl, space)?;
    kubectl.succeed(&["-n", space, "create", "serviceaccount", "worker"])?;
    let token = kubectl.succeed(&["-n", space, "create", "token", "worker"])?;
    let clients = stage.cluster.replicas().iter().map(|replica| {
        Client::new(&Kubeconfig {
            token: Some(token.trim().into()),
            ..replica.kubeconfig_with(None)
        })
    });
    let clients = clients.collect::<Result<Vec<_>>>()?;
    let path = format!("/layers/sha256:{:064x}?analyzers=test", 7);
    let put = || {
        let media = "application/vnd.muster.layer-inventory+json";
        Request::new(Method::PUT, &path).body(media, r#"{"packages":[]}"#)
    };
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        assert_eq!(clients[0].send(put()?).await?.status, 403);
        assert_eq!(clients[1].get(&path).await?.status, 403);
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": "test-layers"},
            "rules": [{"nonResourceURLs": ["/layers/*"], "verbs": ["get", "put"]}],
        });
        apply(kubectl, &role)?;
        let account = format!("--serviceaccount={space}:worker");
        let bind = ["create", "clusterrolebinding", "test-layers"];
        kubectl.succeed(&[&bind[..], &["--clusterrole=test-layers", &account]].concat())?;
        wait::until_async("the role to count", SOON, || async {
            Ok((clients[0].send(put()?).await?.status == 201).then_some(()))
        })
        .await?;
        wait::until_async("the other replica to show it", SOON, || async {
            let answer = clients[1].get(&path).await?;
            Ok((answer.status == 200).then_some(answer.body))
        })
        .await
        .map(|body| assert_eq!(body, r#"{"packages":[]}"#))
    })
}
