//! Policies change, break and go while thousands of resources are being audited: in the end every
//! resource has the report that it should have, and kinds that nobody touched were not looked at.

use super::{Place, config, refusing, said, write};
use anyhow::{Context, Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use http::Method;
use muster_testkit::http::{Client, Request};
use muster_testkit::wait;
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;

/// How many objects there are of each kind.
const EACH: usize = 1_250;
/// The kinds: where they are created, and what they are called.
const KINDS: [(&str, &str, &str); 4] = [
    ("/api/v1/namespaces/default/configmaps", "v1", "ConfigMap"),
    ("/api/v1/namespaces/default/services", "v1", "Service"),
    (
        "/api/v1/namespaces/default/serviceaccounts",
        "v1",
        "ServiceAccount",
    ),
    ("/api/v1/namespaces/default/secrets", "v1", "Secret"),
];
/// How long all of it may take, on a busy machine.
const LIMIT: Duration = Duration::from_secs(180);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_resource_ends_with_its_right_report_whatever_happens_to_policies() -> Result<()> {
    let place = Place::embedded(&[])?;
    let outcome = churn(&place).await;
    outcome.with_context(|| place.log())
}

async fn churn(place: &Place) -> Result<()> {
    let Place::Embedded(muster) = place else {
        unreachable!();
    };
    let (site, client) = (place.site()?, Client::new(muster.kubeconfig())?);
    site.kubectl
        .succeed(&["create", "namespace", super::NAMESPACE])?;
    let (one, two, three) = (refusing("one"), refusing("two"), refusing("three"));
    let all = |secret: &str, service: &str, account: &str| {
        config(
            &[
                ("secret", secret, "Secret"),
                ("service", service, "Service"),
                ("account", account, "ServiceAccount"),
            ],
            &[],
        )
    };
    write(&site, &all(&one, &one, &one))?;
    create(&client).await?;
    // They are being audited now, and policies do not wait for that.
    write(&site, &all(&two, &one, &one))?;
    write(
        &site,
        &config(
            &[
                ("secret", &two, "Secret"),
                ("account", &one, "ServiceAccount"),
            ],
            &[],
        ),
    )?;
    write(&site, &all("package main\nbroken", &two, &one))?;
    write(&site, &all(&three, &two, &one))?;
    let expected = BTreeMap::from([
        ("Secret", "secret: three"),
        ("Service", "service: two"),
        ("ServiceAccount", "account: one"),
    ]);
    current(&client, &expected).await?;
    place.settled()?;
    // Nobody has ever said anything about ConfigMaps.
    assert_eq!(place.evaluations("ConfigMap")?, 0);
    // One kind's policy changes: that kind is judged once more, the others not at all.
    let kinds = ["Secret", "Service", "ServiceAccount"];
    let count =
        || -> Result<Vec<u64>> { kinds.iter().map(|kind| place.evaluations(kind)).collect() };
    let before = count()?;
    write(&site, &all(&three, &three, &one))?;
    current(&client, &BTreeMap::from([("Service", "service: three")])).await?;
    place.settled()?;
    let judged: Vec<u64> = count()?
        .iter()
        .zip(&before)
        .map(|(now, before)| now - before)
        .collect();
    assert_eq!(judged, [0, EACH as u64, 0]);
    // Nothing was refused on the way.
    ensure!(
        place.counted("reports_total", "outcome=\"failed\"")? == 0,
        "a report was not written"
    );
    Ok(())
}

/// Creates all objects, many at once.
async fn create(client: &Client) -> Result<()> {
    let objects = KINDS
        .iter()
        .flat_map(|kind| (0..EACH).map(move |number| (kind, number)));
    stream::iter(objects)
        .map(|(&(path, api_version, kind), number)| async move {
            let mut object = json!({"apiVersion": api_version, "kind": kind,
                "metadata": {"name": format!("o-{number}"), "namespace": "default"}});
            if kind == "Service" {
                object["spec"] = json!({"ports": [{"port": 80}]});
            }
            let request = Request::new(Method::POST, path);
            let request = request.body("application/json", object.to_string())?;
            let answer = client.send(request).await?;
            ensure!(
                answer.status.is_success(),
                "{kind} {number}: {}",
                answer.status
            );
            Ok(())
        })
        .buffer_unordered(16)
        .try_collect::<Vec<()>>()
        .await?;
    Ok(())
}

/// Waits until every object of these kinds has a report that says this.
async fn current(client: &Client, expected: &BTreeMap<&str, &str>) -> Result<()> {
    wait::until_async("the reports to be right", LIMIT, || async {
        let path = "/apis/aquasecurity.github.io/v1alpha1/namespaces/default/configauditreports";
        let reports = client.get(path).await?.json()?;
        let mut right: BTreeMap<&str, usize> = BTreeMap::new();
        for report in reports["items"].as_array().context("reports")? {
            let kind = report["metadata"]["labels"]["trivy-operator.resource.kind"].as_str();
            let Some((kind, say)) = expected.get_key_value(kind.unwrap_or_default()) else {
                continue;
            };
            if said(report) != [*say] {
                return Ok(None);
            }
            *right.entry(kind).or_default() += 1;
        }
        // What comes with a namespace is judged too.
        let done = expected
            .keys()
            .all(|kind| right.get(kind).is_some_and(|count| *count >= EACH));
        Ok(done.then_some(()))
    })
    .await
}
