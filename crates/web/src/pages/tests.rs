use super::*;
use crate::door::Way;
use async_trait::async_trait;
use serde_json::{Value, json};
use std::convert::Infallible;

/// A door for whoever shows their name; what they may see is decided by the server behind it.
struct Open(kube::Client);

#[async_trait]
impl Door for Open {
    fn way(&self) -> Way {
        Way::Token
    }
    fn cookie(&self) -> &str {
        "who"
    }
    fn admit(&self, cookie: &str) -> Option<Visitor> {
        Some(Visitor {
            name: cookie.into(),
            client: self.0.clone(),
        })
    }
    async fn knock(&self, _: &Request<Bytes>) -> Entry {
        Entry::Out("")
    }
}

/// A server on which only `shop` may be read: its workloads and namespaces, and no images.
fn server(request: &Request<kube::client::Body>) -> (u16, Value) {
    let forbidden = json!({"kind": "Status", "status": "Failure", "code": 403, "reason": "Forbidden", "message": "no"});
    let table = request.headers().get(header::ACCEPT).is_some_and(|accept| {
        accept
            .to_str()
            .is_ok_and(|accept| accept.contains("as=Table"))
    });
    let path = request.uri().path();
    let workload = json!({
        "metadata": {"namespace": "shop", "name": "deployment-web", "uid": "u1", "resourceVersion": "7",
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "d1"}]},
        "spec": {"containers": [{"name": "main", "imageRef": {
            "registry": "hub", "namespace": "hidden", "repository": "app", "tag": "1"}}]},
        "status": {"containerStatuses": [{"scanStatus": "ScanComplete"}]},
        "summary": {"critical": 1, "high": 0, "medium": 0, "low": 0, "unknown": 0, "suppressed": 0},
        "containers": [{"name": "main", "vulnerabilityReports": [{
            "namespace": "hidden", "name": "app-1",
            "imageMetadata": {"registry": "hub", "repository": "app", "tag": "1"},
            "report": {"results": [{"type": "dpkg", "vulnerabilities": [{
                "cve": "CVE-2024-1", "packageName": "openssl", "installedVersion": "1", "severity": "CRITICAL",
                "fixedVersions": ["2"], "purl": "pkg:deb/debian/openssl@1", "title": "<b>bad</b>"}]}]},
        }]}],
    });
    let row = |metadata: &Value| json!({"cells": [], "object": {"metadata": metadata}});
    match path {
        "/api/v1/namespaces" => {
            let rows = ["shop", "bank"].map(|name| row(&json!({"name": name})));
            (
                200,
                json!({"metadata": {}, "columnDefinitions": [], "rows": rows}),
            )
        }
        _ if path.ends_with("/namespaces/shop/workloadscanreports") => match table {
            true => (
                200,
                json!({"metadata": {}, "rows": [row(&workload["metadata"])]}),
            ),
            false => (200, json!({"metadata": {}, "items": [workload]})),
        },
        _ if path.ends_with("/namespaces/shop/workloadscanreports/deployment-web") => {
            (200, workload)
        }
        _ => (403, forbidden),
    }
}

fn pages() -> Pages {
    let service = tower::service_fn(|request: Request<kube::client::Body>| async move {
        let (code, body) = server(&request);
        let mut response = Response::new(kube::client::Body::from(body.to_string().into_bytes()));
        *response.status_mut() = StatusCode::from_u16(code).unwrap();
        Ok::<_, Infallible>(response)
    });
    Pages::new(Arc::new(Open(kube::Client::new(service, "default"))))
}

async fn ask(pages: &Pages, target: &str, headers: &[(&'static str, &str)]) -> Response<Bytes> {
    let mut request = Request::get(target).body(Bytes::new()).unwrap();
    for (name, value) in headers {
        request.headers_mut().insert(*name, value.parse().unwrap());
    }
    pages.answer(request, true).await
}

fn text(response: &Response<Bytes>) -> String {
    String::from_utf8_lossy(response.body()).into_owned()
}

#[tokio::test]
async fn who_may_look_into_one_namespace_sees_it_and_nothing_else() {
    let pages = pages();
    let jane = [("cookie", "who=jane")];
    let page = ask(&pages, "/ui", &jane).await;
    assert_eq!(page.status(), 200, "{}", text(&page));
    let page = text(&page);
    for told in [
        "You may not read everything",
        "web",
        "CVE-2024-1",
        "shop",
        "jane",
    ] {
        assert!(page.contains(told), "{told}: {page}");
    }
    let page = text(&ask(&pages, "/ui/workloads", &jane).await);
    assert!(
        page.contains("deployment-web") && page.contains("1 workload"),
        "{page}"
    );
    let page = ask(&pages, "/ui/workloads?namespace=bank", &jane).await;
    assert_eq!(page.status(), 200);
    let page = text(&page);
    assert!(
        page.contains("You may not") && !page.contains("deployment-web"),
        "{page}"
    );
    let page = text(&ask(&pages, "/ui/vulnerabilities/CVE-2024-1", &jane).await);
    for told in ["openssl", "&lt;b&gt;bad", "affected"] {
        assert!(page.contains(told), "{told}: {page}");
    }
    let page = text(&ask(&pages, "/ui/workloads/shop/deployment-web", &jane).await);
    for told in ["What to fix first", "openssl", "version good\">2<"] {
        assert!(page.contains(told), "{told}: {page}");
    }
    for (target, code) in [
        ("/ui/images/hidden/app-1", 404),
        ("/ui/workloads/bank/deployment-web", 403),
        ("/ui/images", 200),
        ("/ui/policies", 200),
        ("/ui/registries", 200),
        ("/ui/search?q=web", 200),
        ("/ui/nothing", 404),
    ] {
        assert_eq!(ask(&pages, target, &jane).await.status(), code, "{target}");
    }
}

#[tokio::test]
async fn a_stranger_is_shown_the_way_in_and_nothing_else() {
    let pages = pages();
    for (target, leads_to) in [
        ("/ui", "/ui/sign-in"),
        ("/ui/none", "/ui/sign-in"),
        ("/ui/images/a/b", "/ui/sign-in?to=%2Fui%2Fimages%2Fa%2Fb"),
        (
            "/ui/workloads?severity=high&x=1",
            "/ui/sign-in?to=%2Fui%2Fworkloads%3Fseverity%3Dhigh",
        ),
    ] {
        let answer = ask(&pages, target, &[]).await;
        assert_eq!(answer.status(), 303, "{target}");
        assert_eq!(answer.headers()["location"], leads_to);
    }
    for target in [
        "/ui/sign-in",
        "/ui/style.css",
        "/ui/script.js",
        "/ui/icon.svg",
    ] {
        assert_eq!(ask(&pages, target, &[]).await.status(), 200, "{target}");
    }
}

#[tokio::test]
async fn who_signs_in_sees_what_they_came_for_and_nothing_of_another_site() {
    let pages = pages();
    let form = |to: &str| format!("/ui/sign-in?to={to}");
    for (to, kept) in [
        (
            "/ui/workloads?severity=high",
            Some("/ui/workloads?severity=high"),
        ),
        ("/ui/images/a/b?other=1", Some("/ui/images/a/b")),
        ("https://evil.example/ui", None),
        ("//evil.example/ui", None),
        ("/ui/sign-out", None),
        ("/ui/style.css", None),
        ("/apis", None),
        ("", None),
    ] {
        let page = text(&ask(&pages, &form(to), &[]).await);
        let field = kept.map(|kept| format!("name=\"to\" value=\"{kept}\""));
        match &field {
            Some(field) => assert!(page.contains(field), "{to}: {page}"),
            None => assert!(!page.contains("name=\"to\""), "{to}: {page}"),
        }
        // Who is in already is led there at once.
        let answer = ask(&pages, &form(to), &[("cookie", "who=jane")]).await;
        assert_eq!(answer.status(), 303, "{to}");
        assert_eq!(answer.headers()["location"], kept.unwrap_or("/ui"), "{to}");
    }
}

#[tokio::test]
async fn every_answer_forbids_what_no_page_does_and_is_sent_once() {
    let pages = pages();
    let (jane, nobody) = (("cookie", "who=jane"), ("cookie", "other=1"));
    for (target, who) in [
        ("/ui", jane),
        ("/ui/none", jane),
        ("/ui/sign-in", nobody),
        ("/ui/sign-in", jane),
        ("/ui/style.css", jane),
    ] {
        let answer = ask(&pages, target, &[who]).await;
        let headers = answer.headers();
        assert!(
            headers["content-security-policy"]
                .to_str()
                .unwrap()
                .contains("default-src 'none'")
        );
        assert_eq!(headers["x-content-type-options"], "nosniff");
        assert_eq!(headers["referrer-policy"], "no-referrer");
        let page = text(&answer);
        assert!(
            !page.contains(" style=") && !page.contains(" onclick="),
            "{page}"
        );
    }
    let cookie = ("cookie", "who=jane");
    let first = ask(&pages, "/ui/workloads", &[cookie]).await;
    let tag = first.headers()["etag"].to_str().unwrap().to_owned();
    let again = ask(&pages, "/ui/workloads", &[cookie, ("if-none-match", &tag)]).await;
    assert_eq!((again.status().as_u16(), again.body().len()), (304, 0));
}

#[tokio::test]
async fn a_form_of_another_site_is_not_taken() {
    let pages = pages();
    for (headers, code) in [
        (&[("sec-fetch-site", "cross-site")][..], 403),
        (
            &[("origin", "https://evil.example"), ("host", "127.0.0.1:1")],
            403,
        ),
        (&[("origin", "null"), ("host", "127.0.0.1:1")], 403),
        (
            &[("origin", "http://127.0.0.1:1"), ("host", "127.0.0.1:1")],
            303,
        ),
        (&[("sec-fetch-site", "same-origin")], 303),
        (
            &[("sec-fetch-site", "same-origin"), ("origin", "null")],
            303,
        ),
        (&[("sec-fetch-site", "cross-site"), ("origin", "null")], 403),
    ] {
        let mut request = Request::post("/ui/sign-out").body(Bytes::new()).unwrap();
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        let answer = pages.answer(request, false).await;
        assert_eq!(answer.status(), code, "{headers:?}");
    }
    // As it comes over HTTP/2.
    for (origin, code) in [("https://here.example", 303), ("https://evil.example", 403)] {
        let request = Request::post("https://here.example/ui/sign-out").header("origin", origin);
        let request = request.body(Bytes::new()).unwrap();
        let answer = pages.answer(request, true).await;
        assert_eq!(answer.status(), code, "{origin}");
    }
}
