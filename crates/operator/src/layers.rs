//! What others have found in a layer already. Inventories are shared through the API server
//! (docs/layers.md), so that a layer of many images is fetched once. Sharing is a favour and never a
//! condition: whatever goes wrong with it, or is wrong with what was kept, the layer is read from its
//! registry.

use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Limited};
use kube::Client;
use kube::client::Body;
use muster_scan::digest::Digest;
use muster_scan::layer::{ANALYZER_VERSION, LayerInventory};
use muster_scan::limits::Limits;
use std::time::Duration;
use tokio::sync::{Mutex, MutexGuard};

const MEDIA_TYPE: &str = "application/vnd.muster.layer-inventory+json";
/// A larger inventory is not shared.
const LARGEST: usize = 16 * 1024 * 1024;
/// Fetching the layer itself hardly takes longer.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long somebody waits for another who reads the same layer, before both do.
const WAIT: Duration = Duration::from_secs(60);
/// Where those who read wait for each other; layers that share a place do so too.
const PLACES: usize = 64;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The inventories that are shared, and who of this process reads which layer.
pub(crate) struct Layers {
    client: Option<Client>,
    places: [Mutex<()>; PLACES],
}

impl Layers {
    /// Shared through this client, if there is one.
    pub(crate) fn new(client: Option<Client>) -> Self {
        Layers {
            client,
            places: std::array::from_fn(|_| Mutex::new(())),
        }
    }

    /// What was found in a layer before; else what `read` finds in it now, for others to recall.
    pub(crate) async fn inventory<E>(
        &self,
        layer: &Digest,
        read: impl Future<Output = Result<LayerInventory, E>>,
    ) -> Result<LayerInventory, E> {
        if self.client.is_none() {
            return read.await;
        }
        if let Some(known) = self.recall(layer).await {
            return Ok(known);
        }
        // Somebody of this process may be reading it just now.
        let _turn = self.turn(layer).await;
        if let Some(known) = self.recall(layer).await {
            return Ok(known);
        }
        let found = read.await?;
        self.share(layer, &found).await;
        Ok(found)
    }

    /// Waits until nobody else of this process reads the layer, but not for ever: a registry may
    /// be slow, or slow on purpose.
    async fn turn(&self, layer: &Digest) -> Option<MutexGuard<'_, ()>> {
        let digits = layer.digits().get(..8)?;
        let number = u32::from_str_radix(digits, 16).ok()? as usize;
        let place = self.places.get(number % PLACES)?;
        tokio::time::timeout(WAIT, place.lock()).await.ok()
    }

    /// What is kept of a layer, if there is something and it makes sense.
    async fn recall(&self, layer: &Digest) -> Option<LayerInventory> {
        let client = self.client.as_ref()?;
        let recalled = tokio::time::timeout(PATIENCE, fetch(client, layer)).await;
        match recalled.unwrap_or_else(|late| Err(late.into())) {
            Ok(found) => found,
            Err(error) => {
                tracing::warn!(%layer, error, "a shared inventory is not used");
                None
            }
        }
    }

    /// Tells others what was found in a layer.
    async fn share(&self, layer: &Digest, inventory: &LayerInventory) {
        let Some(client) = &self.client else { return };
        let shared = tokio::time::timeout(PATIENCE, keep(client, layer, inventory)).await;
        if let Err(error) = shared.unwrap_or_else(|late| Err(late.into())) {
            tracing::warn!(%layer, error, "an inventory is not shared");
        }
    }
}

fn target(layer: &Digest) -> String {
    format!("/layers/{layer}?analyzers={ANALYZER_VERSION}")
}

async fn fetch(client: &Client, layer: &Digest) -> Result<Option<LayerInventory>, Failure> {
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

async fn keep(client: &Client, layer: &Digest, found: &LayerInventory) -> Result<(), Failure> {
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
