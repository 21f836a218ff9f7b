//! A registry that is away while it is scanned, and comes back.

use super::*;
use crate::progress::laid_over;
use crate::testing::{absent, client, json};
use jiff::SignedDuration;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// An API server with one Registry, one failed ScanJob of it, and the ScanJobs that are created.
#[derive(Clone)]
struct Kept {
    registry: Arc<Mutex<Value>>,
    created: Arc<Mutex<Vec<Value>>>,
}

impl Kept {
    fn new(address: &str) -> Kept {
        let ago = |minutes| spell(Timestamp::now() - SignedDuration::from_mins(minutes));
        let condition = |kind: &str, reason: &str, since| {
            json!({
                "type": kind, "status": "False", "reason": reason, "message": "",
                "lastTransitionTime": since, "observedGeneration": 1,
            })
        };
        let registry = json!({
            "apiVersion": REGISTRY.api_version(), "kind": "Registry",
            "metadata": {
                "name": "hub", "namespace": "n", "uid": "u", "generation": 1,
                "creationTimestamp": ago(600),
            },
            "spec": {"uri": address, "insecure": true, "scanInterval": "24h", "scanOnChange": false},
            "status": {
                "conditions": [
                    condition("Reachable", "Unreachable", ago(300)),
                    condition("UpToDate", "ScanFailed", ago(300)),
                ],
                "lastScan": {"name": "first", "result": "Failed", "completionTime": ago(5)},
                "lastProbeTime": ago(2),
            },
        });
        Kept {
            registry: Arc::new(Mutex::new(registry)),
            created: Arc::default(),
        }
    }

    fn operator(&self) -> Arc<Operator> {
        let kept = self.clone();
        crate::testing::operator(client(move |request| {
            let (path, registry) = (request.uri().path(), &kept.registry);
            match request.method().as_str() {
                "GET" if path.ends_with("/registries/hub") => {
                    (200, json(&registry.lock().unwrap()))
                }
                "GET" if path.ends_with("/scanjobs") || path.ends_with("/registrydiscoveries") => (
                    200,
                    json(&json!({"kind": "List", "metadata": {}, "items": []})),
                ),
                "PATCH" if path.ends_with("/registries/hub/status") => {
                    (200, json(&registry.lock().unwrap()))
                }
                "POST" if path.ends_with("/scanjobs") => {
                    kept.created.lock().unwrap().push(json!(path));
                    (201, json(&json!({"metadata": {"name": "second"}})))
                }
                "POST" => (201, json(&json!({"metadata": {"name": "event"}}))),
                _ => absent(),
            }
        }))
    }

    /// Looks at the Registry once, and stores what is told of it.
    async fn look(&self, operator: &Arc<Operator>) -> Value {
        let object: DynamicObject =
            serde_json::from_value(self.registry.lock().unwrap().clone()).unwrap();
        let context = Context {
            operator: operator.clone(),
            started: Mutex::default(),
            began: Timestamp::UNIX_EPOCH,
        };
        let runs = Vec::new();
        let registry = Registry::read(&object);
        let now = Timestamp::now();
        let due = status::is_due(&registry, &runs, context.began, now);
        look(&object, &context).await.unwrap();
        let probe = match due {
            true => Some(probe(operator, &object).await.unwrap()),
            false => None,
        };
        let told = status::status(
            &registry,
            &runs,
            &plan(&registry, &runs, now),
            probe.as_ref(),
            now,
        );
        let mut kept = self.registry.lock().unwrap();
        kept["status"] = laid_over(&kept["status"], &told);
        kept["status"].clone()
    }

    fn started(&self) -> usize {
        self.created.lock().unwrap().len()
    }
}

/// Answers every request with 200 while the registry is back, and drops every connection before. It
/// listens the whole time, so no other process can take the address.
fn serve(listener: TcpListener, is_back: Arc<AtomicBool>) {
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            if !is_back.load(Ordering::SeqCst) {
                continue;
            }
            let mut request = [0; 4096];
            let _ = stream.read(&mut request).await;
            let answer = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
}

#[tokio::test]
async fn a_registry_that_is_back_is_scanned_at_the_next_look() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let is_back = Arc::new(AtomicBool::new(false));
    serve(listener, is_back.clone());
    let kept = Kept::new(&address);
    // Five hours of failures: the next scan is due in an hour.
    let status = kept.look(&kept.operator()).await;
    assert_eq!(status["conditions"][0]["status"], "False", "{status}");
    assert_eq!(kept.started(), 0);

    is_back.store(true, Ordering::SeqCst);
    kept.registry.lock().unwrap()["status"]["lastProbeTime"] = json!(CREATED_LONG_AGO);
    let operator = kept.operator();
    let status = kept.look(&operator).await;
    assert_eq!(status["conditions"][0]["status"], "True", "{status}");
    assert_eq!(kept.started(), 0, "this look asked whether it is back");
    // Before a job is started its Registry is held.
    let held = json!(["sbomscanner.kubewarden.io/running-job"]);
    kept.registry.lock().unwrap()["metadata"]["finalizers"] = held;
    kept.look(&operator).await;
    assert_eq!(kept.started(), 1);
}

const CREATED_LONG_AGO: &str = "2026-01-01T00:00:00Z";
