//! The newest events are kept in memory, and may outlive what they speak of in the store: who
//! watches from there is told to begin anew.

use anyhow::{Context, Result, ensure};
use http::{Method, Request};
use http_body_util::BodyExt;
use muster_apiserver::identity::{Identity, OwnerOnly};
use muster_apiserver::respond::{Answer, full};
use muster_apiserver::store::Store;
use muster_apiserver::{Parts, Server, Upkeep};
use muster_store::{Options, SqliteStore};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

const SBOMS: &str = "/apis/storage.sbomscanner.kubewarden.io/v1alpha1/namespaces/default/sboms";
const PATIENCE: Duration = Duration::from_secs(30);

async fn ask(server: &Arc<Server>, method: Method, path: &str, body: &Value) -> Answer {
    let mut request = Request::new(full(body.to_string()));
    *request.method_mut() = method;
    *request.uri_mut() = path.parse().unwrap();
    let owner = Identity::new("owner", &["system:masters"]);
    request.extensions_mut().insert(owner);
    server.handle(request).await
}

/// The next event of a watch that says something of an object.
async fn next(watch: &mut Answer) -> Result<Value> {
    let frame = tokio::time::timeout(PATIENCE, watch.body_mut().frame()).await?;
    let frame = frame.context("the watch has ended")?;
    let bytes = frame
        .map_err(|error| anyhow::anyhow!("{error}"))?
        .into_data();
    Ok(serde_json::from_slice(&bytes.unwrap())?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_whose_bytes_are_gone_is_too_old() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let options = Options {
        blob_idle: Duration::ZERO,
        ..Options::new(directory.path())
    };
    let store = Arc::new(SqliteStore::open(options).await?);
    let mut kinds = muster_api::builtin::builtin();
    kinds.extend(muster_api::kinds());
    let server = Server::new(Parts {
        kinds,
        store: store.clone(),
        authenticators: Vec::new(),
        authorizer: Arc::new(OwnerOnly),
        admissions: Vec::new(),
        pages: Vec::new(),
        protobuf: muster_api::builtin::protobuf::decode,
        version: json!({}),
        upkeep: Upkeep::default(),
        checks: Vec::new(),
        counters: None,
    });
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}});
    let made = ask(&server, Method::POST, "/api/v1/namespaces", &namespace).await;
    ensure!(made.status() == 201, "{}", made.status());

    let from_the_start = format!("{SBOMS}?watch=true&resourceVersion=1&timeoutSeconds=60");
    let mut witness = ask(&server, Method::GET, &from_the_start, &Value::Null).await;
    let bill = json!({
        "apiVersion": "storage.sbomscanner.kubewarden.io/v1alpha1", "kind": "SBOM",
        "metadata": {"name": "x"},
        "imageMetadata": {"registry": "r", "repository": "a"}, "spdx": {"packages": 1},
    });
    let made = ask(&server, Method::POST, SBOMS, &bill).await;
    ensure!(made.status() == 201, "{}", made.status());
    let added = next(&mut witness).await?;
    assert_eq!(
        (&added["type"], &added["object"]["spdx"]["packages"]),
        (&json!("ADDED"), &json!(1))
    );
    let delete = json!({"apiVersion": "v1", "kind": "DeleteOptions"});
    let gone = ask(&server, Method::DELETE, &format!("{SBOMS}/x"), &delete).await;
    ensure!(gone.status() == 200, "{}", gone.status());
    assert_eq!(next(&mut witness).await?["type"], "DELETED");

    store.compact(0, 0).await?;
    let mut late = ask(&server, Method::GET, &from_the_start, &Value::Null).await;
    let told = next(&mut late).await?;
    assert_eq!(
        (&told["type"], &told["object"]["code"]),
        (&json!("ERROR"), &json!(410)),
        "{told}"
    );
    drop((witness, late));
    server.shut_down().await;
    store.close().await?;
    Ok(())
}
