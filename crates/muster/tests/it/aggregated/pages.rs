//! The web pages of `muster storage`: a token that the cluster knows leads in, at every replica, and whoever
//! shows it sees what they may read and nothing else.

use super::{
    API_VERSION, MUSTER, SOON, Stage, apply, bill, image, namespace, report, stage, workload,
};
use anyhow::{Context, Result, ensure};
use http::Method;
use muster_testkit::browser::Browser;
use muster_testkit::http::{Client, Request, Response};
use muster_testkit::kubeconfig::Kubeconfig;
use muster_testkit::kubectl::Kubectl;
use muster_testkit::wait;
use serde_json::json;
use std::path::Path;

/// All that could tell something of a namespace.
const PAGES: [&str; 13] = [
    "/ui",
    "/ui/workloads",
    "/ui/images",
    "/ui/vulnerabilities",
    "/ui/policies",
    "/ui/registries",
    "/ui/search?q=pages",
    "/ui/search?q=CVE",
    "/ui?namespace=pages-theirs",
    "/ui/workloads?namespace=pages-theirs",
    "/ui/images?namespace=pages-theirs",
    "/ui/vulnerabilities?namespace=pages-theirs",
    "/ui/policies?namespace=pages-theirs",
];

/// A namespace with an image, what was found in it, a workload that runs it and what it fails.
fn team(kubectl: &Kubectl, team: &str) -> Result<()> {
    let space = format!("pages-{team}");
    namespace(kubectl, &space)?;
    let tag = format!("tag-of-{team}");
    let mut findings = report(&space, &format!("image-of-{team}"), &tag, 1);
    let finding = &mut findings["report"]["results"][0]["vulnerabilities"][0];
    finding["cve"] = json!(format!("CVE-2026-{team}"));
    finding["fixedVersions"] = json!(["1.1"]);
    finding["packageName"] = json!(format!("package-of-{team}"));
    let line = json!({"policy": format!("policy-of-{team}"), "source": "kubewarden", "result": "fail",
        "severity": "high", "message": format!("told to {team}"),
        "properties": {"policy-name": format!("policy-of-{team}")}});
    let failed = json!({
        "apiVersion": "wgpolicyk8s.io/v1beta1", "kind": "PolicyReport",
        "metadata": {"name": format!("policies-of-{team}"), "namespace": space},
        "scope": {"apiVersion": "apps/v1", "kind": "Deployment", "name": format!("app-of-{team}"), "namespace": space},
        "summary": {"pass": 0, "fail": 1, "warn": 0, "error": 0, "skip": 0},
        "results": [line],
    });
    for object in [
        image(&space, &format!("image-of-{team}"), &tag),
        bill(&space, &format!("image-of-{team}"), &tag),
        findings,
        workload(&space, &format!("deployment-of-{team}"), &space, &tag),
        failed,
    ] {
        apply(kubectl, &object)?;
    }
    Ok(())
}

/// A token of an account that may read what was found in its own namespace.
fn token(kubectl: &Kubectl, space: &str, account: &str) -> Result<String> {
    kubectl.succeed(&["-n", space, "create", "serviceaccount", account])?;
    let subject = format!("--serviceaccount={space}:{account}");
    for role in ["muster-findings-reader", "muster-reports-reader"] {
        let (name, role) = (format!("{account}-{role}"), format!("--clusterrole={role}"));
        kubectl.succeed(&["-n", space, "create", "rolebinding", &name, &role, &subject])?;
    }
    let user = format!("system:serviceaccount:{space}:{account}");
    // A denial would be believed for some seconds.
    for resource in [
        "images.storage.sbomscanner.kubewarden.io",
        "sboms.storage.sbomscanner.kubewarden.io",
        "vulnerabilityreports.storage.sbomscanner.kubewarden.io",
        "workloadscanreports.storage.sbomscanner.kubewarden.io",
        "policyreports.wgpolicyk8s.io",
        "configauditreports.aquasecurity.github.io",
    ] {
        for verb in ["get", "list"] {
            kubectl.wait_allowed(&user, verb, resource, space)?;
        }
    }
    let token = kubectl.succeed(&["-n", space, "create", "token", account])?;
    Ok(token.trim().to_owned())
}

/// A browser at a replica that nobody is known to.
fn visitor(stage: &Stage, replica: usize) -> Result<Client> {
    Client::new(stage.cluster.replicas()[replica].kubeconfig())?.stranger()
}

async fn show(client: &Client, token: &str) -> Result<Response> {
    let form = format!("token={token}");
    let form = Request::new(Method::POST, "/ui/sign-in")
        .body("application/x-www-form-urlencoded", form)?;
    client.send(form).await
}

/// The cookie of whoever has a token.
async fn sign_in(client: &Client, token: &str) -> Result<String> {
    let answer = show(client, token).await?;
    ensure!(answer.status == 303, "{answer:?}");
    let cookie = answer.headers["set-cookie"].to_str()?;
    for part in ["HttpOnly", "SameSite=Lax", "Secure", "Path=/ui"] {
        ensure!(cookie.contains(part), "{cookie}");
    }
    ensure!(!cookie.contains(token), "the token can be read");
    Ok(cookie.split(';').next().unwrap_or_default().to_owned())
}

async fn page(client: &Client, cookie: &str, target: &str) -> Result<(u16, String)> {
    let request = Request::new(Method::GET, target).header("cookie", cookie)?;
    let answer = client.send(request).await?;
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    Ok((answer.status.as_u16(), text))
}

/// Sees that a page tells something, now or at one of the next looks: a busy server leaves out what it has
/// no time for.
async fn shows(client: &Client, cookie: &str, target: &str, told: &str) -> Result<()> {
    wait::until_async(&format!("{told} on {target}"), SOON, || async {
        let (status, text) = page(client, cookie, target).await?;
        ensure!(status == 200, "{target}: {status}\n{text}");
        Ok(text.contains(told).then_some(()))
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_and_api_show_one_namespace_to_who_is_allowed_in_one() -> Result<()> {
    let stage = stage()?;
    let kubectl = &stage.kubectl;
    team(kubectl, "ours")?;
    team(kubectl, "theirs")?;
    let token = token(kubectl, "pages-ours", "viewer")?;
    let (first, second) = (visitor(&stage, 0)?, visitor(&stage, 1)?);

    // Nobody comes in without a token that is good.
    for target in PAGES {
        let (status, text) = page(&first, "", target).await?;
        ensure!(status == 303, "{target}: {status}\n{text}");
    }
    for wrong in ["", "nobody's", &token[..token.len() - 4]] {
        let answer = show(&first, wrong).await?;
        assert_eq!(answer.status, 403, "{wrong}");
        ensure!(!answer.headers.contains_key("set-cookie"), "{answer:?}");
    }

    // What another team has just looked at is remembered there, for that team.
    let theirs = self::token(kubectl, "pages-theirs", "viewer")?;
    let theirs = sign_in(&second, &theirs).await?;
    shows(&second, &theirs, "/ui/vulnerabilities", "CVE-2026-theirs").await?;
    for target in PAGES {
        page(&second, &theirs, target).await?;
    }

    // A cookie of one replica is good at the other, and shows one team's findings.
    let cookie = sign_in(&first, &token).await?;
    for (target, told) in [
        ("/ui", "CVE-2026-ours"),
        ("/ui/workloads", "deployment-of-ours"),
        (
            "/ui/workloads/pages-ours/deployment-of-ours",
            "package-of-ours",
        ),
        ("/ui/images", "tag-of-ours"),
        ("/ui/images/pages-ours/image-of-ours", "CVE-2026-ours"),
        ("/ui/vulnerabilities", "CVE-2026-ours"),
        ("/ui/vulnerabilities/CVE-2026-ours", "package-of-ours"),
        ("/ui/policies", "policy-of-ours"),
        (
            "/ui/search?q=of-ours",
            "/ui/workloads/pages-ours/deployment-of-ours",
        ),
    ] {
        shows(&second, &cookie, target, told).await?;
    }
    for target in PAGES {
        let (status, text) = page(&second, &cookie, target).await?;
        ensure!(status == 200, "{target}: {status}\n{text}");
        for secret in ["-of-theirs", "CVE-2026-theirs"] {
            ensure!(
                !text.contains(secret),
                "{target} tells of {secret}:\n{text}"
            );
        }
    }
    // What is there and may not be seen looks like what is not there.
    for (there, absent) in [
        (
            "/ui/workloads/pages-theirs/deployment-of-theirs",
            "/ui/workloads/pages-theirs/none",
        ),
        (
            "/ui/images/pages-theirs/image-of-theirs",
            "/ui/images/pages-theirs/none",
        ),
    ] {
        let (status, text) = page(&second, &cookie, there).await?;
        ensure!(
            matches!(status, 403 | 404) && !text.contains("tag-of-theirs"),
            "{text}"
        );
        assert_eq!(page(&second, &cookie, absent).await?, (status, text));
    }
    let (_, text) = page(&second, &cookie, "/ui/vulnerabilities/CVE-2026-theirs").await?;
    ensure!(!text.contains("-of-theirs"), "{text}");

    // The API says the same to the same token.
    let api = Client::new(&Kubeconfig {
        token: Some(token.clone()),
        certificate: None,
        ..stage.cluster.kubernetes().kubeconfig().clone()
    })?;
    for (collection, status) in [
        ("namespaces/pages-ours/vulnerabilityreports", 200),
        ("namespaces/pages-theirs/vulnerabilityreports", 403),
        ("namespaces/pages-theirs/images/image-of-theirs", 403),
        ("vulnerabilityreports", 403),
    ] {
        let answer = api
            .get(&format!("/apis/{API_VERSION}/{collection}"))
            .await?;
        assert_eq!(answer.status, status, "{collection}");
    }

    // A cookie is good for pages alone, and ends with what its token stands for.
    let path = format!("/apis/{API_VERSION}/images");
    let (status, _) = page(&first, &cookie, &path).await?;
    assert_eq!(status, 403);
    kubectl.succeed(&["-n", "pages-ours", "delete", "serviceaccount", "viewer"])?;
    wait::until_async("the end of a deleted account", SOON, || async {
        let (status, _) = page(&second, &cookie, "/ui/workloads").await?;
        Ok((status == 303).then_some(()))
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_signs_in_with_a_token_in_a_browser() -> Result<()> {
    let stage = stage()?;
    team(&stage.kubectl, "browsed")?;
    let token = token(&stage.kubectl, "pages-browsed", "person")?;
    let site = stage.cluster.replicas()[0].kubeconfig().server.clone();
    let browser = Browser::start().await?;
    browser.show(1280, 900, false).await?;
    browser.open(&format!("{site}/ui")).await?;
    assert_eq!(browser.text("h1").await?, "Sign in");
    let target = Path::new(MUSTER).parent().and_then(Path::parent);
    let pictures = target.context("a target directory")?.join("screenshots");
    browser.picture(&pictures.join("sign-in-token.png")).await?;
    browser.submit("input[name=token]", "wrong").await?;
    let is_told = "return document.querySelector('[role=alert]')?.innerText.includes('does not know this token') ?? false";
    browser
        .wait("a word about a wrong token", SOON, is_told)
        .await?;
    browser.submit("input[name=token]", &token).await?;
    let is_in = "return document.querySelector('h1')?.innerText.startsWith('Overview') ?? false";
    browser.wait("the overview", SOON, is_in).await?;
    let is_told = "return document.querySelector('main').innerText.includes('CVE-2026-browsed')";
    browser.wait("what was found", SOON, is_told).await?;
    browser
        .picture(&pictures.join("overview-in-a-cluster.png"))
        .await?;
    browser.open(&format!("{site}/ui/workloads")).await?;
    let is_told =
        "return document.querySelector('main').innerText.includes('deployment-of-browsed')";
    browser.wait("a workload", SOON, is_told).await?;
    let out = "document.querySelector('footer form').requestSubmit()";
    browser.run(out).await?;
    let is_out = "return document.querySelector('h1')?.innerText === 'Sign in'";
    browser.wait("the door from outside", SOON, is_out).await?;
    browser.end().await
}
