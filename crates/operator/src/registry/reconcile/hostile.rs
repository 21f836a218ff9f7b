//! Registries that answer with pauses without end.

use super::*;
use crate::testing::{absent, client, json, operator};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// The address of a registry that answers every request with this status and `Retry-After`.
async fn busy(status: &'static str, retry_after: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 4096];
            let _ = stream.read(&mut request).await;
            let answer = format!(
                "HTTP/1.1 {status}\r\nretry-after: {retry_after}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            );
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    address
}

#[tokio::test]
async fn a_registry_that_asks_for_a_pause_without_end_is_unreachable() {
    for (status, retry_after) in [
        ("429 Too Many Requests", "18446744073709551615"),
        ("429 Too Many Requests", "Fri, 31 Dec 9999 23:59:59 GMT"),
        ("503 Service Unavailable", "9223372036854775807"),
    ] {
        let registry = json!({
            "apiVersion": REGISTRY.api_version(), "kind": "Registry",
            "metadata": {"name": "evil", "namespace": "n", "uid": "u", "generation": 1},
            "spec": {"uri": busy(status, retry_after).await, "scanOnChange": false},
        });
        let written: Arc<Mutex<Vec<Value>>> = Arc::default();
        let (stored, heard) = (registry.clone(), written.clone());
        let client = client(move |request| {
            let path = request.uri().path();
            match request.method().as_str() {
                "PATCH" if path.ends_with("/registries/evil/status") => {
                    heard.lock().unwrap().push(json!(path));
                    (200, json(&stored))
                }
                "GET" if path.ends_with("/registries/evil") => (200, json(&stored)),
                "GET" if path.ends_with("/scanjobs") || path.ends_with("/registrydiscoveries") => (
                    200,
                    json(&json!({"kind": "List", "metadata": {}, "items": []})),
                ),
                "POST" => (201, json(&json!({"metadata": {"name": "event"}}))),
                _ => absent(),
            }
        });
        let operator = operator(client);
        let context = Arc::new(Context {
            operator: operator.clone(),
            started: Mutex::default(),
            began: Timestamp::now(),
        });
        let object: DynamicObject = serde_json::from_value(registry).unwrap();
        reconcile(Arc::new(object.clone()), context).await.unwrap();
        assert_eq!(written.lock().unwrap().len(), 1, "{retry_after}");
        // The host is paused now, which makes the Registry unreachable, too.
        let probed = probe(&operator, &object).await.unwrap();
        assert!(!probed.reachable, "{probed:?}");
        assert_eq!(probed.reason, "Unreachable", "{probed:?}");
    }
}
