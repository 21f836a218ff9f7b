//! The pages of ten thousand workloads: how long each takes at the first look and at those after it, beside
//! the time in which the API hands out the list that they are made of.

use anyhow::{Context, Result, ensure};
use http::Method;
use muster_testkit::crowd::Crowd;
use muster_testkit::http::{Client, Request};
use muster_testkit::muster::Muster;
use muster_testkit::wait;
use std::time::{Duration, Instant};

/// How often each page is looked at again.
const LOOKS: usize = 5;
const LIST: &str =
    "/apis/storage.sbomscanner.kubewarden.io/v1alpha1/workloadscanreports?computed=brief&limit=500";
const PAGES: [&str; 7] = [
    "/ui",
    "/ui/workloads",
    "/ui/workloads?sort=name&page=50",
    "/ui/workloads?fixable=yes",
    "/ui/images",
    "/ui/vulnerabilities",
    "/ui/search?q=web-04242",
];

pub(crate) fn run() -> Result<()> {
    let binary = super::build()?;
    super::runtime()?.block_on(measure(&binary))
}

#[expect(clippy::print_stdout, reason = "the result of the task")]
async fn measure(binary: &std::path::Path) -> Result<()> {
    let muster = Muster::start_idle(binary)?;
    let client = Client::new(muster.kubeconfig())?;
    let crowd = Crowd {
        workloads: 10_000,
        images: 10_000,
        teams: 50,
    };
    eprintln!("writing {crowd:?}");
    crowd.fill(&client).await?;
    let cookie = sign_in(&muster, &client).await?;
    let mut lists = Vec::new();
    for _ in 0..LOOKS {
        lists.push(list(&client).await?);
    }
    lists.sort();
    let list = lists.get(LOOKS / 2).copied().unwrap_or_default();
    println!(
        "{:<36} {:>9} {:>9} {:>8} {:>8}",
        "page", "first", "again", "of list", "KB"
    );
    println!(
        "{:<36} {:>9} {:>6.0} ms",
        "(the list itself, by the API)",
        "",
        millis(list)
    );
    let start = Instant::now();
    let mut looks = 1;
    while look(&client, &cookie, "/ui/vulnerabilities").await?.is_part {
        looks += 1;
    }
    println!(
        "(all findings of the images, read once: after {:.1} s, {looks} looks)",
        start.elapsed().as_secs_f64()
    );
    for page in PAGES {
        let first = look(&client, &cookie, page).await?;
        let mut again = Vec::new();
        for _ in 0..LOOKS {
            again.push(look(&client, &cookie, page).await?.took);
        }
        again.sort();
        let again = again.get(LOOKS / 2).copied().unwrap_or_default();
        let ratio = again.as_secs_f64() / list.as_secs_f64();
        println!(
            "{page:<36} {:>6.0} ms {:>6.0} ms {ratio:>7.1}x {:>8}",
            millis(first.took),
            millis(again),
            first.size / 1000
        );
    }
    Ok(())
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// The cookie of whoever opens the printed link.
async fn sign_in(muster: &Muster, client: &Client) -> Result<String> {
    let limit = Duration::from_secs(30);
    let link = wait::until("a link in what it prints", limit, || {
        let log = std::fs::read_to_string(muster.process().log())?;
        let mut words = log.split_whitespace();
        Ok(words.find_map(|word| Some(word.split_once("/ui/sign-in?")?.1.to_owned())))
    })?;
    let answer = client
        .stranger()?
        .get(&format!("/ui/sign-in?{link}"))
        .await?;
    let cookie = answer.headers.get("set-cookie").context("a cookie")?;
    let cookie = cookie.to_str()?.split(';').next().unwrap_or_default();
    Ok(cookie.to_owned())
}

/// One look at a page.
struct Look {
    took: Duration,
    /// In bytes.
    size: usize,
    /// It says that there is more.
    is_part: bool,
}

async fn look(client: &Client, cookie: &str, page: &str) -> Result<Look> {
    let start = Instant::now();
    let request = Request::new(Method::GET, page).header("cookie", cookie)?;
    let answer = client.send(request).await?;
    let took = start.elapsed();
    ensure!(answer.status.is_success(), "{page}: {}", answer.status);
    let text = String::from_utf8_lossy(&answer.body);
    Ok(Look {
        took,
        size: answer.body.len(),
        is_part: text.contains("data-more"),
    })
}

/// How long the API takes over the list, page by page.
async fn list(client: &Client) -> Result<Duration> {
    let start = Instant::now();
    let mut target = LIST.to_owned();
    loop {
        let answer = client.get(&target).await?.json()?;
        let next = answer["metadata"]["continue"].as_str().unwrap_or_default();
        if next.is_empty() {
            return Ok(start.elapsed());
        }
        target = format!("{LIST}&continue={next}");
    }
}
