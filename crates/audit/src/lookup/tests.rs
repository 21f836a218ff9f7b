//! The lookup against an API that counts what it is asked.

use super::*;
use http::{Request, Response};
use kube::client::Body;
use serde_json::json;
use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Answers by path and query, and remembers what it was asked.
#[derive(Default)]
struct Cluster {
    asked: Mutex<Vec<String>>,
    expired: AtomicUsize,
}

impl Cluster {
    fn answer(&self, target: &str) -> (u16, Value) {
        self.asked.lock().unwrap().push(target.into());
        let path = target.split('?').next().unwrap_or_default();
        let pod = |name: &str| json!({"metadata": {"name": name, "managedFields": [{}]}});
        match path {
            "/api/v1" => {
                let resources = json!([
                    {"name": "pods/status", "kind": "Pod", "namespaced": true},
                    {"name": "pods", "kind": "Pod", "namespaced": true},
                    {"name": "namespaces", "kind": "Namespace", "namespaced": false},
                    {"name": "secrets", "kind": "Secret", "namespaced": true},
                ]);
                (200, json!({"resources": resources}))
            }
            "/api/v1/namespaces/n/pods" if target.contains("continue=more") => {
                if self.expired.load(Ordering::SeqCst) > 0 {
                    self.expired.fetch_sub(1, Ordering::SeqCst);
                    return (410, json!({"message": "expired"}));
                }
                (
                    200,
                    json!({"metadata": {"resourceVersion": "7"}, "items": [pod("b")]}),
                )
            }
            "/api/v1/namespaces/n/pods" => {
                let metadata = json!({"resourceVersion": "7", "continue": "more"});
                (200, json!({"metadata": metadata, "items": [pod("a")]}))
            }
            "/api/v1/namespaces/n/pods/a" => (200, pod("a")),
            "/api/v1/namespaces" => (
                200,
                json!({"items": [{"metadata": {"name": "n"}, "kind": "Namespace"}]}),
            ),
            "/api/v1/secrets" => (403, json!({"message": "secrets is forbidden"})),
            "/api/v1/pods" => (200, json!({"items": [pod(&"x".repeat(4096))]})),
            "/api/v1/namespaces/n/pods/missing" => (
                404,
                json!({"message": "not found", "details": {"name": "missing"}}),
            ),
            "/api/v1/namespaces/n/pods/a%3Fwatch%3Dtrue" => (
                404,
                json!({"message": "not found", "details": {"name": "a?watch=true"}}),
            ),
            "/api/v1/namespaces/n/pods/unwell" => (503, json!({"message": "etcd is away"})),
            _ => (404, json!({"message": "not found"})),
        }
    }

    fn count(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

fn lookup(options: Options) -> (Arc<Cluster>, Arc<ClusterLookup>) {
    let cluster = Arc::new(Cluster::default());
    let shared = cluster.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let target = request.uri().to_string();
        let (status, body) = shared.answer(&target);
        async move {
            let body = Body::from(body.to_string().into_bytes());
            let response = Response::builder().status(status).body(body).unwrap();
            Ok::<_, Infallible>(response)
        }
    });
    let client = kube::Client::new(service, "default");
    let lookup = ClusterLookup::new(client, options, Handle::current());
    (cluster, Arc::new(lookup))
}

fn kind(kind: &str) -> GroupVersionKind {
    GroupVersionKind::parse("v1", kind)
}

async fn blocking<T: Send + 'static>(
    lookup: &Arc<ClusterLookup>,
    work: impl FnOnce(&ClusterLookup) -> T + Send + 'static,
) -> T {
    let lookup = lookup.clone();
    tokio::task::spawn_blocking(move || work(&lookup))
        .await
        .unwrap()
}

#[tokio::test]
async fn a_list_is_read_page_by_page_and_says_what_its_items_are() {
    let (cluster, lookup) = lookup(Options::default());
    cluster.expired.store(1, Ordering::SeqCst);
    let list = blocking(&lookup, |lookup| {
        lookup.list(&kind("Pod"), Some("n"), Some("a=b,c"), Some("x=y"))
    });
    let pod = |name: &str| json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}});
    assert_eq!(
        list.await.unwrap(),
        json!({"apiVersion": "v1", "kind": "PodList", "metadata": {"resourceVersion": "7"},
            "items": [pod("a"), pod("b")]})
    );
    let asked = cluster.asked.lock().unwrap().clone();
    let first = "/api/v1/namespaces/n/pods?limit=500&labelSelector=a%3Db%2Cc&fieldSelector=x%3Dy";
    let second = format!("{first}&continue=more");
    assert_eq!(asked, ["/api/v1", first, &second, first, &second]);
}

#[tokio::test]
async fn a_thousand_evaluations_ask_once() {
    let (cluster, lookup) = lookup(Options::default());
    let mut all = tokio::task::JoinSet::new();
    for _ in 0..1000 {
        let lookup = lookup.clone();
        all.spawn_blocking(move || lookup.get(&kind("Pod"), Some("n"), "a").unwrap());
    }
    while let Some(found) = all.join_next().await {
        assert_eq!(found.unwrap(), json!({"metadata": {"name": "a"}}));
    }
    assert_eq!(cluster.count(), 2, "which resource it is, and the object");
}

#[tokio::test]
async fn what_was_found_is_good_for_a_moment_only() {
    let options = Options {
        kept: Duration::ZERO,
        ..Options::default()
    };
    let (cluster, lookup) = lookup(options);
    for asked in [2, 3] {
        let found = blocking(&lookup, |lookup| lookup.get(&kind("Pod"), Some("n"), "a"));
        assert!(found.await.is_ok());
        assert_eq!(cluster.count(), asked);
    }
    let forgotten = async {
        while !lookup.answers.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    let patience = Duration::from_secs(30);
    tokio::time::timeout(patience, forgotten).await.unwrap();
}

#[tokio::test]
async fn only_a_definite_no_is_an_answer() {
    use LookupError::{ClusterWide, NoNamespace, NotFound};
    let options = Options {
        largest: 2048,
        ..Options::default()
    };
    let (_, lookup) = lookup(options);
    // A negative answer, or part of a reason and whether it may go away.
    type Expected = Result<(), (Option<LookupError>, &'static str, bool)>;
    let negative = |error| Err((Some(error), "", false));
    let unavailable = |why, is_transient| Err((None, why, is_transient));
    type Asked = (&'static str, Option<&'static str>, Option<&'static str>);
    let cases: [(Asked, Expected); 16] = [
        (("Pod", Some("n"), Some("a")), Ok(())),
        (("Namespace", None, None), Ok(())),
        (("Pod", Some("n"), Some("missing")), negative(NotFound)),
        (("Pod", Some("n"), Some("a?watch=true")), negative(NotFound)),
        (("Namespace", Some("n"), None), negative(ClusterWide)),
        (("Pod", None, Some("a")), negative(NoNamespace)),
        // The server of the kind may be the one that is missing.
        (("Pod", Some("n"), Some("b")), unavailable("404", true)),
        (
            ("Pod", Some("n"), Some("unwell")),
            unavailable("etcd is away", true),
        ),
        (
            ("Pod", None, None),
            unavailable("more than the 2048 bytes", false),
        ),
        (
            ("Secret", None, None),
            unavailable("give the audit this permission", true),
        ),
        (
            ("Nothing", None, None),
            unavailable("does not serve this kind", true),
        ),
        (
            ("Pod", Some("n"), Some("../secrets/s")),
            unavailable("is no name", false),
        ),
        (
            ("Pod", Some("n"), Some("..")),
            unavailable("is no name", false),
        ),
        (
            ("Pod", Some("n/pods/a?x="), Some("a")),
            unavailable("is no name", false),
        ),
        (
            ("Pod", Some(""), Some("a")),
            unavailable("is no name", false),
        ),
        (
            ("Pod", Some("n"), Some("a%2f..")),
            unavailable("is no name", false),
        ),
    ];
    for ((name, namespace, object), expected) in cases {
        let found = blocking(&lookup, move |lookup| match object {
            Some(object) => lookup.get(&kind(name), namespace, object),
            None => lookup.list(&kind(name), namespace, None, None),
        });
        let asked = format!("{name} {namespace:?} {object:?}");
        match (found.await, expected) {
            (Ok(_), Ok(())) => {}
            (
                Err(LookupError::Unavailable {
                    reason,
                    is_transient,
                }),
                Err((None, why, expected)),
            ) => {
                assert!(reason.contains(why), "{asked}: {reason}");
                assert!(reason.starts_with(&format!("v1 {name}")), "{reason}");
                assert_eq!(is_transient, expected, "{asked}: {reason}");
            }
            (Err(found), Err((Some(expected), ..))) => assert_eq!(found, expected, "{asked}"),
            (found, expected) => panic!("{asked}: {found:?} and {expected:?}"),
        }
    }
}
