//! How findings came and went, noted by the operator: a point for every change, and nothing else.

use super::*;

/// A history, if there is one.
fn history(site: &Site<'_>, name: &str) -> Result<Option<Value>> {
    let place = ["-n", "web", "findinghistories", "--ignore-not-found", name];
    let text = site
        .kubectl
        .succeed(&[&["get", "-o", "json"][..], &place].concat())?;
    match text.trim() {
        "" => Ok(None),
        text => Ok(Some(serde_json::from_str(text)?)),
    }
}

/// Workloads and critical findings at every point; of a workload's history, only the latter.
fn points(history: &Value) -> Vec<(Option<u64>, u64)> {
    let points = history["points"].as_array().into_iter().flatten();
    let told = |point: &Value| {
        let critical = point["summary"]["critical"].as_u64();
        (point["workloads"].as_u64(), critical.unwrap_or_default())
    };
    points.map(told).collect()
}

/// Waits until the last point of a history is this one.
fn noted(site: &Site<'_>, name: &str, last: (Option<u64>, u64)) -> Result<Value> {
    let mut seen = None;
    let waited = wait::until(&format!("{last:?} in the history {name}"), LIMIT, || {
        seen = history(site, name)?;
        let fits = |history: &Value| points(history).last() == Some(&last);
        Ok(seen.clone().filter(fits))
    });
    waited.with_context(|| format!("the history is {seen:?}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_history_has_a_point_for_every_change_and_goes_with_its_workload() -> Result<()> {
    let (mut bench, registry) = embedded()?;
    push(&registry, "team/app", Some("1.0"), 2024).await?;
    push(&registry, "team/app", Some("2.0"), 2025).await?;
    let revision = {
        let site = site(&bench.kubectl, &registry);
        site.namespace("web", json!({}))?;
        site.configure(json!({}))?;
        let (first, second) = (site.image("team/app:1.0"), site.image("team/app:2.0"));
        let (_, set) = site.deployment("web", "shop")?;
        site.pod("web", "shop-1", Some(&set), &[("app", &first)])?;
        let shop = noted(&site, "deployment-shop", (None, 1))?;
        assert_eq!(points(&shop), [(None, 1)], "nothing was noted too early");
        let owner = &shop["metadata"]["ownerReferences"][0];
        assert_eq!(owner["kind"], "WorkloadScanReport", "{shop}");
        noted(&site, "namespace", (Some(1), 1))?;

        // Another workload is the namespace's news, and not this one's.
        let (_, other) = site.deployment("web", "other")?;
        site.pod("web", "other-1", Some(&other), &[("app", &first)])?;
        noted(&site, "namespace", (Some(2), 2))?;
        let still = history(&site, "deployment-shop")?.context("a history")?;
        assert_eq!(still, shop, "nothing is written while nothing changes");

        // A second revision beside the first: while it is scanned nothing seems mended.
        site.pod("web", "shop-2", Some(&set), &[("app", &second)])?;
        let shop = noted(&site, "deployment-shop", (None, 2))?;
        assert_eq!(points(&shop), [(None, 1), (None, 2)]);
        let web = noted(&site, "namespace", (Some(2), 3))?;
        assert_eq!(points(&web), [(Some(1), 1), (Some(2), 2), (Some(2), 3)]);
        let table = site.kubectl.succeed(&["-n", "web", "get", "fh"])?;
        assert!(table.contains("CRITICAL"), "{table}");
        shop["metadata"]["resourceVersion"].clone()
    };

    // Who starts again goes on where the last one stopped.
    bench.muster.kill9()?;
    bench.muster.restart_in_place()?;
    let site = site(&bench.kubectl, &registry);
    let removed = ["delete", "pod", "shop-1", "--force"];
    site.kubectl
        .succeed(&[&["-n", "web"][..], &removed].concat())?;
    let shop = noted(&site, "deployment-shop", (None, 1))?;
    assert_eq!(points(&shop), [(None, 1), (None, 2), (None, 1)]);
    assert_ne!(shop["metadata"]["resourceVersion"], revision);

    // It goes with its workload; the namespace remembers.
    site.kubectl
        .succeed(&["-n", "web", "delete", "deployment", "shop"])?;
    wait::until("the end of the history", LIMIT, || {
        Ok(history(&site, "deployment-shop")?.is_none().then_some(()))
    })?;
    let web = noted(&site, "namespace", (Some(1), 1))?;
    assert!(points(&web).contains(&(Some(2), 3)), "{web}");
    Ok(())
}
