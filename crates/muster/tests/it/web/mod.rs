//! The web pages of a real `muster up`, which is told what would have been found.

mod browser;
mod crowd;
mod plain;
mod stage;

use anyhow::{Context, Result, ensure};
use muster_testkit::muster::Muster;
use muster_testkit::wait;
use stage::Stage;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Loaded machines are slow; what takes longer does not happen.
const LIMIT: Duration = Duration::from_secs(90);

/// An answer as it came.
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines();
        lines.find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

/// The port of a server.
fn port(muster: &Muster) -> Result<u16> {
    let (_, port) = muster
        .kubeconfig()
        .server
        .rsplit_once(':')
        .context("a port")?;
    Ok(port.parse()?)
}

/// Says something to a server without TLS, and hears what it answers.
fn say(port: u16, request: &str) -> Result<Answer> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(LIMIT))?;
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer.split_once("\r\n\r\n").context("an answer")?;
    let status = head.split(' ').nth(1).context("a status")?.parse()?;
    Ok(Answer {
        status,
        head: head.into(),
        body: body.into(),
    })
}

/// A GET with further headers.
fn get(port: u16, target: &str, headers: &str) -> Result<Answer> {
    let request = format!(
        "GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n{headers}\r\n"
    );
    say(port, &request)
}

/// The link that was printed last, of so many.
fn link(muster: &Muster, printed: usize) -> Result<String> {
    wait::until("a link in what it prints", LIMIT, || {
        let log = std::fs::read_to_string(muster.process().log())?;
        let words = log.split_whitespace();
        let links: Vec<&str> = words
            .filter(|word| word.contains("/ui/sign-in?token="))
            .collect();
        let last = links.last().filter(|_| links.len() >= printed);
        Ok(last.map(|link| (*link).to_owned()))
    })
}

/// The cookie of somebody who is signed in.
fn sign_in(muster: &Muster) -> Result<String> {
    let link = link(muster, 1)?;
    let port = port(muster)?;
    let target = link.split_once(&format!(":{port}")).context("the port")?.1;
    let answer = get(port, target, "")?;
    ensure!(answer.status == 303, "{}", answer.head);
    let cookie = answer.header("set-cookie").context("a cookie")?;
    Ok(cookie.split(';').next().unwrap_or_default().to_owned())
}

#[test]
fn every_page_shows_what_it_is_about() -> Result<()> {
    let stage = Stage::set()?;
    let port = port(&stage.muster)?;
    let cookie = format!("Cookie: {}\r\n", sign_in(&stage.muster)?);
    let page = |target: &str| -> Result<String> {
        let answer = get(port, target, &cookie)?;
        ensure!(
            answer.status == 200,
            "{target}: {}\n{}",
            answer.head,
            answer.body
        );
        for (name, part) in [
            ("content-security-policy", "default-src 'none'"),
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
        ] {
            let value = answer.header(name).unwrap_or_default();
            ensure!(value.contains(part), "{target}: {name}: {value}");
        }
        Ok(answer.body)
    };
    for (target, told) in [
        (
            "/ui",
            &[
                "Worst workloads",
                "Findings over time",
                "now 2 critical, 6 high",
                "checkout",
                "CVE-2024-3094",
                "KSV-0014",
                "no-latest",
                "nightly-1",
            ][..],
        ),
        ("/ui?namespace=bank", &["ledger", "now 1 critical, 3 high"]),
        (
            "/ui/workloads",
            &["checkout", "ledger", "library/nginx:1.25"],
        ),
        ("/ui/workloads?namespace=bank", &["ledger", "1 workload"]),
        (
            "/ui/workloads/shop/deployment-checkout",
            &[
                "What to fix first",
                "What came and what went",
                "now 1 critical, 3 high",
                "xz-utils",
                "5.6.1+really5.4.5-1",
                "KSV-0014",
                "no-latest",
                "registry.example/library/nginx:1.25",
                "−1 high, −1 medium",
            ],
        ),
        (
            "/ui/images",
            &["registry.example/library/nginx:1.25", "not scanned yet"],
        ),
        (
            "/ui/images?fixable=yes",
            &["registry.example/library/nginx:1.25"],
        ),
        (
            "/ui/images?namespace=shop&fixable=yes",
            &["registry.example/library/nginx:1.25"],
        ),
        (
            "/ui/images/artifacts/nginx",
            &["CVE-2024-3094", "exploited", "linux/amd64"],
        ),
        (
            "/ui/images/artifacts/nginx?show=packages",
            &["xz-utils", "deb", "2 packages"],
        ),
        (
            "/ui/images/artifacts/nginx?show=layers",
            &["RUN apt-get install"],
        ),
        (
            "/ui/images/artifacts/nginx?show=workloads",
            &["checkout", "shop"],
        ),
        (
            "/ui/vulnerabilities",
            &["CVE-2024-3094", "CVE-2023-0001", "suppressed"],
        ),
        (
            "/ui/vulnerabilities/CVE-2024-3094",
            &["checkout", "xz-utils", "affected", "https://example.org/xz"],
        ),
        (
            "/ui/vulnerabilities/CVE-2023-0001",
            &["not affected", "code is not present"],
        ),
        // A reference to another CVE does not make it the same.
        (
            "/ui/vulnerabilities/CVE-2024-21193",
            &["No image that you may see has it."],
        ),
        // As others call them.
        (
            "/ui/vulnerabilities/dsa-5649-1",
            &["CVE-2024-3094", "Also known as", "xz-utils", "checkout"],
        ),
        (
            "/ui/vulnerabilities/DSA-5764-1",
            &[
                "about 2 vulnerabilities",
                "/ui/vulnerabilities/CVE-2024-0727",
                "/ui/vulnerabilities/CVE-2023-5678",
            ],
        ),
        (
            "/ui/search?q=DSA-5649-1",
            &["/ui/vulnerabilities/CVE-2024-3094"],
        ),
        ("/ui/policies", &["KSV-0014", "no-latest"]),
        (
            "/ui/policies/check/KSV-0014",
            &["checkout", "read-only root"],
        ),
        (
            "/ui/registries",
            &["nightly-1", "registry.example", "3 of 8"],
        ),
        ("/ui/search?q=ledger", &["ledger", "bank"]),
        ("/ui/search?q=3094", &["CVE-2024-3094"]),
    ] {
        let body = page(target)?;
        for told in told {
            ensure!(
                body.contains(told),
                "{target} says nothing of {told}:\n{body}"
            );
        }
        ensure!(!body.contains("<script>alert"), "{target} lets a script in");
    }
    let narrow = page("/ui/workloads?namespace=bank")?;
    ensure!(!narrow.contains(">checkout<"), "{narrow}");
    let fixable = page("/ui/images?fixable=yes")?;
    ensure!(!fixable.contains("not scanned yet"), "{fixable}");
    for (target, status) in [
        ("/ui/workloads/shop/none", 404),
        ("/ui/images/none/none", 404),
        ("/ui/nothing", 404),
    ] {
        assert_eq!(get(port, target, &cookie)?.status, status, "{target}");
    }
    let first = get(port, "/ui/workloads", &cookie)?;
    let tag = first.header("etag").context("a tag")?;
    let again = get(
        port,
        "/ui/workloads",
        &format!("{cookie}If-None-Match: {tag}\r\n"),
    )?;
    assert_eq!(again.status, 304);
    Ok(())
}
