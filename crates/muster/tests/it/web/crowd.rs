//! Ten thousand workloads, looked at by one person: all are counted, the worst come first, each is found.

use super::link;
use anyhow::{Context, Result, ensure};
use muster_testkit::browser::Browser;
use muster_testkit::crowd::Crowd;
use muster_testkit::http::Client;
use muster_testkit::muster::Muster;
use serde_json::json;
use std::time::Duration;

/// A loaded machine may be slow; that a page takes so long is no failure of what it shows.
const LIMIT: Duration = Duration::from_secs(120);

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_workloads_are_counted_paged_and_found() -> Result<()> {
    let muster = Muster::start_idle(env!("CARGO_BIN_EXE_muster"))?;
    let client = Client::new(muster.kubeconfig())?;
    let crowd = Crowd {
        workloads: 10_000,
        images: 250,
        teams: 20,
    };
    crowd.fill(&client).await?;

    let link = link(&muster, 1)?;
    let site = link.split_once("/ui").context("the site")?.0.to_owned();
    let browser = Browser::start().await?;
    browser.show(1280, 900, false).await?;
    browser.open(&link).await?;
    for (target, told) in [
        // Each page is complete, or becomes so by itself.
        ("/ui", "10\u{202f}000"),
        ("/ui/workloads", "10\u{202f}000 workloads,"),
        ("/ui/workloads?sort=name&page=100", "web-09999"),
        ("/ui/workloads?namespace=team-03", "500 workloads"),
        ("/ui/workloads?q=web-04242", "1 workload"),
        ("/ui/workloads?fixable=yes", "10\u{202f}000 workloads,"),
        ("/ui/vulnerabilities", "250 vulnerabilities"),
        ("/ui/vulnerabilities/CVE-2026-00249", "40"),
        ("/ui/search?q=web-04242", "web-04242"),
    ] {
        browser.open(&format!("{site}{target}")).await?;
        let is_told = format!("return document.querySelector('main').innerText.includes({told:?})");
        let waited = browser.wait(told, LIMIT, &is_told).await;
        if let Err(error) = waited {
            let shown = browser.text("main").await?;
            return Err(error.context(format!("{target} shows:\n{shown:.2000}")));
        }
        let rows = "return document.querySelectorAll('tbody tr').length <= 120";
        ensure!(
            browser.run(rows).await? == json!(true),
            "{target} is too long"
        );
        let complaints = browser.complaints().await?;
        ensure!(complaints.is_empty(), "{target}: {complaints:?}");
    }
    browser.open(&format!("{site}/ui/workloads")).await?;
    let first = browser.text("tbody tr").await?;
    ensure!(first.contains("app-249"), "the worst comes first: {first}");
    let next = "document.querySelector('nav.pager a[rel=next]').click()";
    browser.run(next).await?;
    let is_next = "return location.search.includes('page=2') && document.readyState === 'complete'";
    browser.wait("the next page", LIMIT, is_next).await?;
    browser.end().await
}
