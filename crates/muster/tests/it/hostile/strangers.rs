//! Those whom nobody knows.

use super::{CONFIG_MAPS, Victim, assert_refused};
use anyhow::Result;
use http::Method;
use muster_testkit::certificates::Certificates;
use muster_testkit::http::{Client, Request};
use muster_testkit::kubeconfig::Kubeconfig;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_has_no_certificate_is_nobody() -> Result<()> {
    let mut victim = Victim::start()?;
    let stranger = victim.client.stranger()?;
    let answer = stranger.get(CONFIG_MAPS).await?;
    assert_refused("no certificate", &answer, 403, "Forbidden")?;
    for value in ["Bearer forged", "Basic YWRtaW46YWRtaW4=", "Bearer"] {
        let request = Request::new(Method::GET, CONFIG_MAPS).header("authorization", value)?;
        let answer = stranger.send(request).await?;
        assert_refused(value, &answer, 401, "Unauthorized")?;
    }
    // Headers by which a proxy would name a user count for nothing.
    let request = Request::new(Method::GET, CONFIG_MAPS)
        .header("x-remote-user", "admin")?
        .header("x-remote-group", "system:masters")?;
    let answer = stranger.send(request).await?;
    assert_refused("a claim", &answer, 403, "Forbidden")?;
    // Nobody may be somebody else; the owner may, and is then no more than that.
    let request = || Request::new(Method::GET, CONFIG_MAPS).header("impersonate-user", "jane");
    let answer = stranger.send(request()?).await?;
    assert_refused("a wish", &answer, 403, "Forbidden")?;
    let answer = victim.client.send(request()?).await?;
    assert_refused("the owner as jane", &answer, 403, "Forbidden")?;
    let masters = request()?.header("impersonate-group", "system:masters")?;
    assert_eq!(victim.client.send(masters).await?.status, 200);
    victim.still_answers().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_of_another_authority_opens_nothing() -> Result<()> {
    let mut victim = Victim::start()?;
    let forged = Certificates::generate()?;
    let stranger = Client::new(&Kubeconfig {
        certificate: Some((forged.client.into_bytes(), forged.client_key.into_bytes())),
        ..victim.muster.kubeconfig().clone()
    })?;
    if let Ok(answer) = stranger.get(CONFIG_MAPS).await {
        assert_refused("a forged certificate", &answer, 403, "Forbidden")?;
    }
    victim.still_answers().await
}
