//! The pages in a real browser: each of them is there, without a complaint in its console; what changes
//! shows up by itself; choices are in the address. Pictures are kept for people to look at.

use super::stage::Stage;
use super::{LIMIT, link};
use anyhow::{Context, Result, ensure};
use muster_testkit::accessibility::barriers;
use muster_testkit::browser::Browser;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Every page, what its heading says, and what its picture is called.
const PAGES: [(&str, &str, &str); 14] = [
    ("/ui", "Overview", "overview"),
    ("/ui/workloads", "Workloads", "workloads"),
    (
        "/ui/workloads/shop/deployment-checkout",
        "checkout",
        "workload",
    ),
    ("/ui/images", "Images", "images"),
    ("/ui/images/artifacts/nginx", "nginx:1.25", "image"),
    (
        "/ui/images/artifacts/nginx?show=packages",
        "nginx:1.25",
        "packages",
    ),
    (
        "/ui/images/artifacts/nginx?show=layers",
        "nginx:1.25",
        "layers",
    ),
    ("/ui/vulnerabilities", "Vulnerabilities", "vulnerabilities"),
    (
        "/ui/vulnerabilities/CVE-2024-3094",
        "CVE-2024-3094",
        "vulnerability",
    ),
    ("/ui/policies", "Policies and checks", "policies"),
    ("/ui/policies/check/KSV-0014", "KSV-0014", "policy"),
    ("/ui/registries", "Registries and jobs", "registries"),
    ("/ui/search?q=openssl", "Search: openssl", "search"),
    ("/ui/search?q=ledger", "Search: ledger", "found"),
];

/// Where pictures are kept: beside what is built.
fn pictures() -> Result<PathBuf> {
    let binary = Path::new(env!("CARGO_BIN_EXE_muster"));
    let target = binary.parent().and_then(Path::parent);
    Ok(target
        .context("the directory of what is built")?
        .join("screenshots"))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_page_is_fine_in_a_browser_and_stays_current() -> Result<()> {
    let stage = Stage::set()?;
    let link = link(&stage.muster, 1)?;
    let site = link.split_once("/ui").context("the site")?.0.to_owned();
    let browser = Browser::start().await?;
    let pictures = pictures()?;

    browser.show(1280, 900, false).await?;
    browser.open(&format!("{site}/ui")).await?;
    assert_eq!(browser.text("h1").await?, "Sign in");
    browser.picture(&pictures.join("sign-in.png")).await?;
    assert_eq!(barriers(&browser).await?, [""; 0], "signing in");
    browser.open(&link).await?;
    assert_eq!(
        browser.address().await?,
        format!("{site}/ui"),
        "the token has left the address"
    );

    let mut in_the_way = Vec::new();
    for (target, heading, name) in PAGES {
        browser.show(1280, 900, false).await?;
        browser.open(&format!("{site}{target}")).await?;
        let shown = browser.text("h1").await?;
        ensure!(shown.contains(heading), "{target}: {shown}");
        let title = browser.run("return document.title").await?;
        ensure!(
            title
                .as_str()
                .is_some_and(|title| title.ends_with("· Muster")),
            "{target}: {title}"
        );
        let wide = browser
            .run("return document.documentElement.scrollWidth <= innerWidth")
            .await?;
        ensure!(wide == json!(true), "{target} is wider than its window");
        browser
            .picture(&pictures.join(format!("{name}.png")))
            .await?;
        let mut found = barriers(&browser).await?;
        browser.show(1280, 900, true).await?;
        found.extend(barriers(&browser).await?);
        in_the_way.extend(found.into_iter().map(|one| format!("{target}: {one}")));
        browser
            .picture(&pictures.join(format!("{name}-dark.png")))
            .await?;
        browser.show(390, 844, false).await?;
        let narrow = browser
            .run("return document.documentElement.scrollWidth <= innerWidth")
            .await?;
        ensure!(narrow == json!(true), "{target} is wider than a telephone");
        browser
            .picture(&pictures.join(format!("{name}-narrow.png")))
            .await?;
        let complaints = browser.complaints().await?;
        ensure!(complaints.is_empty(), "{target}: {complaints:?}");
    }
    ensure!(in_the_way.is_empty(), "{in_the_way:#?}");

    browser.show(1280, 900, false).await?;
    browser.open(&format!("{site}/ui/workloads")).await?;
    let choose = "const s = document.querySelector('select[name=severity]'); s.value = 'critical'; s.dispatchEvent(new Event('change', {bubbles: true}));";
    browser.run(choose).await?;
    let is_chosen = "return location.search.includes('severity=critical') && document.readyState === 'complete' && document.querySelectorAll('tbody tr').length === 1";
    browser
        .wait("a choice that shows in the address", LIMIT, is_chosen)
        .await?;

    browser.open(&format!("{site}/ui/registries")).await?;
    ensure!(
        browser.text("main").await?.contains("3 of 8"),
        "the job is under way"
    );
    let progress = json!({"status": {"scannedImagesCount": 6}}).to_string();
    stage.kubectl.succeed(&[
        "patch",
        "scanjob",
        "nightly-1",
        "-n",
        "artifacts",
        "--subresource=status",
        "--type=merge",
        "-p",
        &progress,
    ])?;
    let is_current = "return document.querySelector('main').innerText.includes('7 of 8')";
    browser
        .wait("progress that shows by itself", LIMIT, is_current)
        .await?;

    // The script alone never says that something is wrong here; a page that is not there does.
    browser.complaints().await?;
    browser.open(&format!("{site}/ui/nothing")).await?;
    assert_eq!(browser.text("h1").await?, "Not found");
    browser
        .run("document.querySelector('footer form').requestSubmit()")
        .await?;
    let is_out = "return document.querySelector('h1')?.innerText === 'Sign in'";
    browser.wait("the door from outside", LIMIT, is_out).await?;

    // Who looks at a page while its server goes is told so.
    browser.open(&super::link(&stage.muster, 2)?).await?;
    let is_live = "return document.querySelector('#live').innerText === 'Live'";
    browser
        .wait("a page that is kept current", LIMIT, is_live)
        .await?;
    drop(stage);
    let is_told = "return document.querySelector('#live').innerText.includes('does not answer')";
    browser
        .wait("a word about the server", LIMIT, is_told)
        .await?;
    browser.end().await
}
