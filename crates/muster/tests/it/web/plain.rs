//! Without TLS there are the pages, for browsers on this machine, and nothing else.

use super::{get, link, port, say, sign_in};
use anyhow::{Context, Result, ensure};
use muster_testkit::http::{Client, Request};
use muster_testkit::muster::Muster;

#[tokio::test(flavor = "multi_thread")]
async fn a_link_leads_in_once_and_strangers_see_nothing() -> Result<()> {
    let mut muster = Muster::start_idle(env!("CARGO_BIN_EXE_muster"))?;
    let port_number = port(&muster)?;
    for (target, leads_to) in [
        ("/ui", "/ui/sign-in"),
        ("/ui/workloads", "/ui/sign-in?to=%2Fui%2Fworkloads"),
        ("/ui/search?q=a", "/ui/sign-in?to=%2Fui%2Fsearch%3Fq%3Da"),
    ] {
        let answer = get(port_number, target, "")?;
        assert_eq!(
            (answer.status, answer.header("location")),
            (303, Some(leads_to))
        );
    }
    let answer = get(port_number, "/ui/sign-in", "")?;
    ensure!(answer.body.contains("prints a link"), "{}", answer.body);

    let first = link(&muster, 1)?;
    ensure!(
        first.starts_with(&format!("http://127.0.0.1:{port_number}/ui/sign-in?token=")),
        "{first}"
    );
    let target = first
        .split_once(&port_number.to_string())
        .context("a target")?
        .1;
    let answer = get(port_number, target, "")?;
    assert_eq!(
        (answer.status, answer.header("location")),
        (303, Some("/ui"))
    );
    let cookie = answer.header("set-cookie").context("a cookie")?.to_owned();
    for part in ["HttpOnly", "SameSite=Lax", "Path=/ui"] {
        ensure!(cookie.contains(part), "{cookie}");
    }
    assert_eq!(
        get(port_number, target, "")?.status,
        403,
        "it leads in once"
    );
    let cookie = cookie.split(';').next().unwrap_or_default().to_owned();
    let known = format!("Cookie: {cookie}\r\n");
    assert_eq!(get(port_number, "/ui", &known)?.status, 200);
    let second = link(&muster, 2)?;
    ensure!(second != first, "there is another link");

    // A cookie is good for pages, and for nothing else.
    let client = Client::new(muster.kubeconfig())?.stranger()?;
    let request =
        Request::new(http::Method::GET, "/api/v1/namespaces").header("cookie", &cookie)?;
    assert_eq!(client.send(request).await?.status, 403);
    // Over TLS there are pages too, and their cookies stay there.
    let target = second
        .split_once(&port_number.to_string())
        .context("a target")?
        .1;
    let answer = client.get(target).await?;
    let secure = answer.headers["set-cookie"].to_str()?;
    ensure!(secure.contains("Secure"), "{secure}");
    // Who asks for the root in a browser is led to the pages; clients are not.
    let browser = Request::new(http::Method::GET, "/").header("accept", "text/html")?;
    assert_eq!(client.send(browser).await?.headers["location"], "/ui");
    assert_eq!(client.get("/").await?.status, 403);

    muster.kill9()?;
    muster.restart()?;
    let port_number = port(&muster)?;
    assert_eq!(
        get(port_number, "/ui", &known)?.status,
        303,
        "a new process knows nobody"
    );
    Ok(())
}

#[test]
fn without_tls_there_are_pages_and_nothing_else() -> Result<()> {
    let muster = Muster::start_idle(env!("CARGO_BIN_EXE_muster"))?;
    let port = port(&muster)?;
    let cookie = format!("Cookie: {}\r\n", sign_in(&muster)?);
    for (target, status) in [
        ("/ui/style.css", 200),
        ("/", 303),
        ("/api/v1/namespaces", 400),
        ("/apis", 400),
        ("/metrics", 400),
        ("/readyz", 400),
        ("/layers/x", 400),
        ("/uix", 400),
        ("//ui", 400),
    ] {
        let answer = get(port, target, &cookie)?;
        assert_eq!(answer.status, status, "{target}: {}", answer.body);
    }
    let to = |host: &str| {
        let request =
            format!("GET /ui/sign-in HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        say(port, &request).map(|answer| answer.status)
    };
    assert_eq!(to(&format!("localhost:{port}"))?, 200);
    assert_eq!(to(&format!("rebound.example:{port}"))?, 400);
    assert_eq!(to("127.0.0.1")?, 400);
    let sent = |headers: &str| {
        let request = format!(
            "POST /ui/sign-out HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n{cookie}Content-Length: 0\r\n{headers}\r\n"
        );
        say(port, &request)
    };
    assert_eq!(sent("Origin: http://evil.example\r\n")?.status, 403);
    assert_eq!(sent("Sec-Fetch-Site: cross-site\r\n")?.status, 403);
    let out = sent(&format!("Origin: http://127.0.0.1:{port}\r\n"))?;
    assert_eq!(out.status, 303);
    ensure!(
        out.header("set-cookie")
            .is_some_and(|cookie| cookie.contains("Max-Age=0")),
        "{}",
        out.head
    );
    Ok(())
}
