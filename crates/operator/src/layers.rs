//! What others have found in a layer already. Inventories are shared through the API server
//! (docs/layers.md), so that a layer of many images is fetched once. Sharing is a favour and never a
//! condition: whatever goes wrong with it, or is wrong with what was kept, the layer is read from its
//! registry.

use async_trait::async_trait;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Limited};
use kube::Client;
use kube::client::Body;
use muster_scan::layer::{ANALYZER_VERSION, LayerInventory};
use muster_scan::limits::Limits;
use muster_source::DiffId;
use muster_source::cache::{LayerCache, Nothing, Shared};
use std::sync::Arc;
use std::time::Duration;

const MEDIA_TYPE: &str = "application/vnd.muster.layer-inventory+json";
/// A larger inventory is not shared.
const LARGEST: usize = 16 * 1024 * 1024;
/// Fetching the layer itself hardly takes longer.
const PATIENCE: Duration = Duration::from_secs(20);

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The inventories that a server shares.
pub(crate) struct Layers {
    client: Client,
}

/// The cache for an operator: shared through this client, if there is one, and among its workers.
pub(crate) fn cache(client: Option<Client>) -> Arc<dyn LayerCache> {
    let kept: Arc<dyn LayerCache> = match client {
        Some(client) => Arc::new(Layers { client }),
        None => Arc::new(Nothing),
    };
    Arc::new(Shared::new(kept))
}

#[async_trait]
impl LayerCache for Layers {
    async fn recall(&self, layer: &DiffId) -> Option<LayerInventory> {
        let recalled = tokio::time::timeout(PATIENCE, fetch(&self.client, layer)).await;
        match recalled.unwrap_or_else(|late| Err(late.into())) {
            Ok(found) => found,
            Err(error) => {
                tracing::warn!(%layer, error, "a shared inventory is not used");
                None
            }
        }
    }

    async fn keep(&self, layer: &DiffId, found: &LayerInventory) {
        let shared = tokio::time::timeout(PATIENCE, keep(&self.client, layer, found)).await;
        if let Err(error) = shared.unwrap_or_else(|late| Err(late.into())) {
            tracing::warn!(%layer, error, "an inventory is not shared");
        }
    }
}

fn target(layer: &DiffId) -> String {
    format!("/layers/{layer}?analyzers={ANALYZER_VERSION}")
}

async fn fetch(client: &Client, layer: &DiffId) -> Result<Option<LayerInventory>, Failure> {
    let request = Request::get(target(layer)).body(Body::empty())?;
    let answer = client.send(request).await?;
    match answer.status() {
        StatusCode::OK => {}
        StatusCode::NOT_FOUND => return Ok(None),
        code => return Err(format!("the server answered {code}").into()),
    }
    let body = Limited::new(answer.into_body(), LARGEST).collect().await?;
    let bytes = body.to_bytes();
    let read = move || LayerInventory::from_bytes(&bytes, &Limits::DEFAULT);
    Ok(Some(tokio::task::spawn_blocking(read).await??))
}

async fn keep(client: &Client, layer: &DiffId, found: &LayerInventory) -> Result<(), Failure> {
    let bytes = found.to_bytes()?;
    if bytes.len() > LARGEST {
        tracing::debug!(%layer, bytes = bytes.len(), "an inventory is too large to be shared");
        return Ok(());
    }
    let request = Request::builder()
        .method(Method::PUT)
        .uri(target(layer))
        .header(header::CONTENT_TYPE, MEDIA_TYPE)
        .body(Body::from(bytes))?;
    match client.send(request).await?.status() {
        code if code.is_success() => Ok(()),
        StatusCode::CONFLICT => Err("another inventory of this layer is kept".into()),
        code => Err(format!("the server answered {code}").into()),
    }
}
