//! `/layers/{diffID}?analyzers=VERSION`, where workers share the inventories of layers (see
//! docs/layers.md). To the server an inventory is bytes; whoever reads one checks it. The first
//! content of a key stays, so that nobody can change later what others have found.

use async_trait::async_trait;
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use muster_apiserver::body;
use muster_apiserver::page::{Page, store_failure};
use muster_apiserver::query::Query;
use muster_apiserver::respond::{self, Answer};
use muster_kind::Status;
use muster_kind::status::About;
use muster_store::{LARGEST_LAYER, LayerAbout, LayerKey, LayerLimits, LayerPut, Layers};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// What an inventory is sent as.
const MEDIA_TYPE: &str = "application/vnd.muster.layer-inventory+json";
const ABOUT: About<'static> = About {
    group: "",
    resource: "layers",
};
/// How often what is beyond the limits is forgotten.
const INTERVAL: Duration = Duration::from_secs(3600);
/// It is also forgotten when this part of the limit came in since.
const PART: u64 = 8;
/// What all answers on their way may take together, in pieces.
const ROOM: usize = 128 * 1024 * 1024 / PIECE;
const PIECE: usize = 64 * 1024;
/// How long an answer waits for its room.
const PATIENCE: Duration = Duration::from_secs(10);

/// The page, and the care for what it keeps.
pub(crate) struct LayersPage {
    layers: Arc<dyn Layers>,
    limits: LayerLimits,
    room: Arc<Semaphore>,
    /// Bytes that came since something was last forgotten.
    came: AtomicU64,
    full: Notify,
}

#[async_trait]
impl Page for LayersPage {
    fn root(&self) -> &'static str {
        "layers"
    }

    fn size_limit(&self) -> usize {
        LARGEST_LAYER
    }

    async fn answer(&self, parts: &Parts, query: &Query, body: Bytes) -> Result<Answer, Status> {
        let key = key(parts.uri.path(), query)?;
        match parts.method {
            Method::GET => self.get(&key, &parts.headers).await,
            Method::HEAD => self.head(&key).await,
            Method::PUT => self.put(&key, &parts.headers, body).await,
            Method::DELETE => self.delete(&key).await,
            _ => Err(Status::method_not_allowed()),
        }
    }
}

impl LayersPage {
    pub(crate) fn new(layers: Arc<dyn Layers>) -> Arc<Self> {
        Arc::new(LayersPage {
            layers,
            limits: LayerLimits::default(),
            room: Arc::new(Semaphore::new(ROOM)),
            came: AtomicU64::new(0),
            full: Notify::new(),
        })
    }

    /// Forgets what is beyond the limits, now and then, until it is told to stop.
    pub(crate) async fn keep_small(self: Arc<Self>, stop: CancellationToken) {
        let keep = async {
            loop {
                self.came.store(0, Ordering::Relaxed);
                match self.layers.upkeep(self.limits).await {
                    Ok(0) => {}
                    Ok(layers) => tracing::debug!(layers, "forgot inventories of layers"),
                    Err(error) => tracing::warn!(%error, "forgetting inventories of layers"),
                }
                // Early if much came in.
                let _ = tokio::time::timeout(INTERVAL, self.full.notified()).await;
            }
        };
        stop.run_until_cancelled(keep).await;
    }

    async fn about(&self, key: &LayerKey) -> Result<LayerAbout, Status> {
        let about = self.layers.about(key).await.map_err(store_failure)?;
        about.ok_or_else(|| Status::not_found(ABOUT, &key.to_string()))
    }

    async fn get(&self, key: &LayerKey, headers: &HeaderMap) -> Result<Answer, Status> {
        let about = self.about(key).await?;
        if names(headers, &about) {
            return Ok(described(StatusCode::NOT_MODIFIED, &about, Bytes::new()));
        }
        let room = self.room_for(about.size).await?;
        let found = self.layers.get(key).await.map_err(store_failure)?;
        let missing = || Status::not_found(ABOUT, &key.to_string());
        let (about, bytes) = found.ok_or_else(missing)?;
        let held = Bytes::from_owner(Held { bytes, _room: room });
        Ok(described(StatusCode::OK, &about, held))
    }

    async fn head(&self, key: &LayerKey) -> Result<Answer, Status> {
        let about = self.about(key).await?;
        let mut answer = described(StatusCode::OK, &about, Bytes::new());
        let length = HeaderValue::from(about.size);
        answer.headers_mut().insert(header::CONTENT_LENGTH, length);
        Ok(answer)
    }

    async fn put(
        &self,
        key: &LayerKey,
        headers: &HeaderMap,
        bytes: Bytes,
    ) -> Result<Answer, Status> {
        if body::media_type(headers) != MEDIA_TYPE {
            let why = format!("the inventory of a layer is sent as {MEDIA_TYPE}");
            return Err(Status::unsupported_media_type(why));
        }
        let coding = headers.get(header::CONTENT_ENCODING);
        if coding.is_some_and(|coding| coding != "gzip" && coding != "identity") {
            let why = "a body is sent as it is, or compressed with gzip";
            return Err(Status::unsupported_media_type(why));
        }
        if bytes.is_empty() {
            return Err(Status::bad_request("there is no inventory in the body"));
        }
        let size = bytes.len() as u64;
        let put = self.layers.put(key, bytes).await.map_err(store_failure)?;
        let code = match put {
            LayerPut::New => StatusCode::CREATED,
            LayerPut::Same => StatusCode::OK,
            LayerPut::Different => {
                let why = "another inventory is kept for this layer and these analyzers";
                return Err(Status::conflict(ABOUT, &key.to_string(), why));
            }
        };
        if put == LayerPut::New
            && self.came.fetch_add(size, Ordering::Relaxed) + size > self.limits.bytes / PART
        {
            self.full.notify_one();
        }
        Ok(done(code))
    }

    async fn delete(&self, key: &LayerKey) -> Result<Answer, Status> {
        match self.layers.forget(key).await.map_err(store_failure)? {
            true => Ok(done(StatusCode::OK)),
            false => Err(Status::not_found(ABOUT, &key.to_string())),
        }
    }

    async fn room_for(&self, size: u64) -> Result<OwnedSemaphorePermit, Status> {
        let pieces = u32::try_from(size.div_ceil(PIECE as u64)).unwrap_or(u32::MAX);
        let room = self.room.clone().acquire_many_owned(pieces);
        let room = tokio::time::timeout(PATIENCE, room).await;
        room.ok().and_then(Result::ok).ok_or_else(|| {
            Status::too_many(
                "too many inventories are under way; please try again later",
                2,
            )
        })
    }
}

/// Bytes on their way, and the room they take until the last is gone.
struct Held {
    bytes: Bytes,
    _room: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Which inventory a request is about.
fn key(path: &str, query: &Query) -> Result<LayerKey, Status> {
    let diff_id = path.strip_prefix("/layers/").unwrap_or_default();
    if diff_id.is_empty() || diff_id.contains('/') {
        return Err(Status::no_such_path());
    }
    let [analyzers] = query.all("analyzers") else {
        let why = "the query must name the version of the analyzers once, as in ?analyzers=1";
        return Err(Status::bad_request(why));
    };
    // Some clients write the colon as an escape.
    let diff_id = diff_id.replace("%3A", ":").replace("%3a", ":");
    LayerKey::parse(&diff_id, analyzers).map_err(|error| Status::bad_request(error.to_string()))
}

fn done(code: StatusCode) -> Answer {
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"});
    respond::json(code, &status)
}

fn tag(about: &LayerAbout) -> String {
    format!("\"{}\"", about.digest)
}

/// Whether the client has it already.
fn names(headers: &HeaderMap, about: &LayerAbout) -> bool {
    let tag = tag(about);
    let known = headers.get_all(header::IF_NONE_MATCH).iter();
    let mut known = known.filter_map(|value| value.to_str().ok());
    known.any(|value| value.split(',').any(|known| known.trim() == tag))
}

fn described(code: StatusCode, about: &LayerAbout, bytes: Bytes) -> Answer {
    let mut answer = respond::answer(code, MEDIA_TYPE, bytes);
    let headers = answer.headers_mut();
    if let Ok(tag) = HeaderValue::try_from(tag(about)) {
        headers.insert(header::ETAG, tag);
    }
    let nosniff = HeaderValue::from_static("nosniff");
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, nosniff);
    answer
}
