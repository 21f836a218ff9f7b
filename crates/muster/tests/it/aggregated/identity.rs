//! Who asks: nobody is whoever they say, unless the front proxy says it.

use super::{API_VERSION, MUSTER, SOON, apply, image, namespace, options, stage};
use anyhow::{Context, Result};
use http::Method;
use muster_testkit::certificates::{Authority, Pair};
use muster_testkit::http::{Client, Request};
use muster_testkit::kubernetes::FRONT_PROXY;
use muster_testkit::storage::{Cluster, Replica};
use muster_testkit::wait;
use serde_json::json;

/// Asks a replica directly as somebody who claims to be an administrator.
async fn claim(replica: &Replica, pair: Option<Pair>) -> Result<u16> {
    let client = Client::new(&replica.kubeconfig_with(pair))?;
    let request = Request::new(Method::GET, format!("/apis/{API_VERSION}/images"))
        .header("x-remote-user", "admin")?
        .header("x-remote-group", "system:masters")?;
    Ok(client.send(request).await?.status.as_u16())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn headers_count_only_from_the_front_proxy() -> Result<()> {
    let stage = stage()?;
    let replica = &stage.cluster.replicas()[0];
    let proxy = stage.cluster.kubernetes().front_proxy()?;
    assert_eq!(claim(replica, Some(proxy)).await?, 200);
    assert_eq!(claim(replica, None).await?, 403, "no certificate");
    let stranger = Authority::new("front proxy authority")?.client(FRONT_PROXY, &[])?;
    assert_eq!(
        claim(replica, Some(stranger)).await?,
        403,
        "another authority"
    );
    let user = stage.cluster.kubernetes().user("mallory", &[])?;
    let (certificate, key) = user.certificate.context("a user has a certificate")?;
    let user = Pair {
        certificate: String::from_utf8(certificate)?,
        key: String::from_utf8(key)?,
    };
    assert_eq!(claim(replica, Some(user)).await?, 403, "a mere user");
    let named = stage.cluster.kubernetes().user(FRONT_PROXY, &[])?;
    let (certificate, key) = named.certificate.context("a user has a certificate")?;
    let named = Pair {
        certificate: String::from_utf8(certificate)?,
        key: String::from_utf8(key)?,
    };
    assert_eq!(
        claim(replica, Some(named)).await?,
        403,
        "the proxy's name from the users' authority"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rotated_front_proxy_authority_and_serving_certificate_are_taken_up() -> Result<()> {
    let cluster = Cluster::start(MUSTER, &options()?)?;
    let kubectl = cluster.kubectl()?;
    namespace(&kubectl, "rotated")?;
    let replica = &cluster.replicas()[0];
    let old = cluster.kubernetes().front_proxy()?;
    assert_eq!(claim(replica, Some(old.clone())).await?, 200);
    cluster.kubernetes().rotate_front_proxy()?;
    let new = cluster.kubernetes().front_proxy()?;
    let limit = SOON * 3;
    wait::until_async("the new authority to be believed", limit, || async {
        let status = claim(replica, Some(new.clone())).await?;
        Ok((status == 200).then_some(()))
    })
    .await?;
    // kube-apiserver leaves it to an administrator to take the old authority away.
    let authority = cluster.kubernetes().front_proxy_authority()?;
    let patch = json!({"data": {"requestheader-client-ca-file": authority}}).to_string();
    let map = ["configmap", "extension-apiserver-authentication"];
    let patched = ["patch", map[0], map[1], "--type=merge", "-p", &patch];
    kubectl.succeed(&[&["-n", "kube-system"], &patched[..]].concat())?;
    wait::until_async("the old authority to be forgotten", SOON, || async {
        let status = claim(replica, Some(old.clone())).await?;
        Ok((status == 403).then_some(()))
    })
    .await?;
    wait::until("kube-apiserver to use its new certificate", limit, || {
        let outcome = kubectl.run(&["get", "images", "-A"], "")?;
        Ok(outcome.status.success().then_some(()))
    })?;
    // The serving certificate too, without a restart: kubectl goes on as if nothing had happened.
    let renewed = cluster.serving(&[
        "muster-storage.muster.svc",
        "localhost",
        "127.0.0.1",
        "renewed",
    ])?;
    cluster.write_certificate(&renewed)?;
    wait::until_async("the new certificate to be shown", SOON, || async {
        let client = Client::new(replica.kubeconfig())?;
        let stream = client.connect().await?;
        let shown = stream.get_ref().1.peer_certificates();
        let shown = shown
            .and_then(|chain| chain.first())
            .context("no certificate")?;
        let text = String::from_utf8_lossy(shown).into_owned();
        Ok(text.contains("renewed").then_some(()))
    })
    .await?;
    apply(&kubectl, &image("rotated", "one", "1.0"))?;
    Ok(())
}
