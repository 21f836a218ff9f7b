//! A scan as whoever watches it with kubectl sees it.

use super::conditions::Bench;
use super::discovery::{Gate, registry};
use super::{LIMIT, job, layer, push};
use anyhow::{Context, Result};
use http::Method;
use muster_testkit::process::Process;
use muster_testkit::push::digest;
use muster_testkit::registry::Registry;
use muster_testkit::wait;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_watches_a_scan_sees_how_far_it_has_come() -> Result<()> {
    let server = Registry::start()?;
    push(&server, 2024).await?;
    let gate = Gate::default();
    let proxy = gate.before(&server).await?;
    let bench = Bench::start()?;
    bench.apply(&registry("local", &proxy.host()))?;
    let shared = digest(&layer()?.1);
    gate.close("/tags/list");
    gate.close(&shared);

    let files = tempfile::tempdir()?;
    let mut watch = bench
        .kubectl
        .command(&["get", "scanjobs", "--watch", "--no-headers"]);
    let watch = Process::start("kubectl", &mut watch, &files.path().join("watch.log"))?;
    let shows = |word: &str| {
        wait::until(&format!("{word} in the watch"), LIMIT, || {
            let shown = std::fs::read_to_string(watch.log())?;
            // A row comes cell by cell.
            let whole = shown.contains(word) && shown.ends_with('\n');
            Ok(whole.then_some(shown))
        })
    };
    let apply = |object: &str| bench.kubectl.succeed_with(&["apply", "-f", "-"], object);
    apply(&job("first", "local"))?;
    shows("CatalogCreationInProgress")?;
    gate.open("/tags/list");
    shows("SBOMGenerationInProgress")?;
    wait::until("a question for the layer", LIMIT, || {
        Ok((proxy.count(Method::GET, &shared) > 0).then_some(()))
    })?;
    gate.open(&shared);
    let shown = shows("AllImagesScanned")?;

    let at = |word: &str| shown.find(word).context(word.to_owned());
    let catalog = at("CatalogCreationInProgress")?;
    let bills = at("SBOMGenerationInProgress")?;
    assert!(
        catalog < bills && bills < at("AllImagesScanned")?,
        "{shown}"
    );
    let last = shown.lines().last().context("a line")?;
    let cells: Vec<&str> = last.split_whitespace().collect();
    let expected = ["first", "local", "Complete", "AllImagesScanned", "2", "2"];
    assert_eq!(&cells[..6], expected, "{shown}");
    Ok(())
}
