//! One process that does everything, killed in the middle of everything: what is left to do is seen
//! from what is there, nothing is scanned less than once, and what was done is not done again.

use super::conditions::Bench;
use super::discovery::registry;
use super::faults::crowd;
use super::{LIMIT, ended, get, job, layer};
use anyhow::Result;
use http::Method;
use muster_testkit::kubectl::Kubectl;
use muster_testkit::proxy::{Fault, Proxy};
use muster_testkit::push::digest;
use muster_testkit::registry::Registry;
use muster_testkit::wait;
use serde_json::Value;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scan_that_is_killed_in_every_stage_comes_to_its_end() -> Result<()> {
    let server = Registry::start()?;
    let all = crowd(&server).await?;
    let proxy = Proxy::start(&server.host(), |_, _| Fault::Pass).await?;
    let mut bench = Bench::start()?;
    bench.apply(&registry("local", &proxy.host()))?;
    let kubectl = Kubectl::new(&bench.muster.kubeconfig_path())?;
    kubectl.succeed_with(&["apply", "-f", "-"], &job("first", "local"))?;
    let shared = digest(&layer()?.1);
    let asked = |part: &str, count: usize| proxy.count(Method::GET, part) >= count;
    let kept = |kind: &str, count: usize| -> Result<bool> {
        let listed = kubectl.succeed(&["get", kind, "-o", "name"])?;
        Ok(listed.lines().count() >= count)
    };
    type Moment<'a> = (&'a str, &'a dyn Fn() -> Result<bool>);
    let moments: [Moment<'_>; 7] = [
        ("tags are listed", &|| Ok(asked("/tags/list", 1))),
        ("manifests are read", &|| Ok(asked("/manifests/", 12))),
        ("some Images are made", &|| kept("images", 20)),
        ("the layer is read", &|| Ok(asked(&shared, 1))),
        ("some bills are made", &|| kept("sboms", 8)),
        ("some reports are made", &|| {
            kept("vulnerabilityreports", 12)
        }),
        ("most are made", &|| kept("vulnerabilityreports", all / 2)),
    ];
    for (what, reached) in moments {
        wait::until(&format!("the moment when {what}"), LIMIT, || {
            Ok(reached()?.then_some(()))
        })?;
        bench.muster.kill9()?;
        bench.muster.restart_in_place()?;
    }
    let reason = ended(&kubectl, "first")?;
    assert!(reason.contains("1 of "), "{reason}");
    let status = get(&kubectl, &["scanjob", "first"])?["status"].clone();
    assert_eq!(status["imagesCount"], all, "{status}");
    assert_eq!(status["scannedImagesCount"], all - 1, "{status}");
    for (kind, count) in [
        ("images", all),
        ("sboms", all - 1),
        ("vulnerabilityreports", all - 1),
    ] {
        let found: Value = get(&kubectl, &[kind])?;
        assert_eq!(
            found["items"].as_array().map(Vec::len),
            Some(count),
            "{kind}"
        );
    }
    // The one layer that all share was kept as soon as it was read.
    let reads = proxy.count(Method::GET, &shared);
    assert!(reads <= 3, "the shared layer was read {reads} times");
    Ok(())
}
