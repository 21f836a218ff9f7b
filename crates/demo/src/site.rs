//! The one server of a demonstration, on loopback: the registry, and beside it the VEX hub of whoever makes
//! the images. It answers plain HTTP, to a bounded number of clients, until it is told to stop.

use crate::archive::{self, File};
use crate::error::Error;
use crate::image::Image;
use crate::registry::{self, respond};
use crate::statements;
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, Uri};
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How many connections are served at once; others wait.
const CONNECTIONS: usize = 64;
/// How long a client may take to say what it wants.
const PATIENCE: Duration = Duration::from_secs(10);
const ARCHIVE: &str = "/vex.tar.gz";
const JSON: &str = "application/json";
const GZIP: &str = "application/gzip";

/// What is served, at an address.
#[derive(Clone, Debug)]
pub struct Site {
    images: Vec<Image>,
    host: String,
    hub: Bytes,
    archive: Bytes,
}

impl Site {
    /// These images at this address, and what is said about them.
    pub fn new(images: Vec<Image>, address: SocketAddr) -> Result<Site, Error> {
        let host = address.to_string();
        let hub = statements::hub(&format!("http://{host}{ARCHIVE}"));
        let [index, document] = statements::files(&host);
        let files = [
            File::new(index.0, index.1.to_string()),
            File::new(document.0, document.1.to_string()),
        ];
        Ok(Site {
            images,
            hub: hub.to_string().into(),
            archive: archive::gzip(&archive::tar(&files)?)?.into(),
            host,
        })
    }

    /// What images of it are named after: `127.0.0.1:5000`.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Where its VEX hub is.
    pub fn hub(&self) -> String {
        format!("http://{}", self.host)
    }

    /// The images.
    pub fn images(&self) -> &[Image] {
        &self.images
    }

    /// What a container runtime says it runs, of an image by name and tag.
    pub fn image_id(&self, image: &str) -> Option<String> {
        let (repository, tag) = image
            .strip_prefix(&self.host)?
            .strip_prefix('/')?
            .split_once(':')?;
        let mut images = self.images.iter();
        let found = images.find(|one| one.repository == repository && one.tag == tag)?;
        Some(format!("{}/{repository}@{}", self.host, found.digest()))
    }

    /// The answer to a question.
    pub fn answer(&self, method: &Method, uri: &Uri) -> Response<Bytes> {
        if let Some(answer) = registry::answer(&self.images, method, uri) {
            return answer;
        }
        let is_read = method == Method::GET || method == Method::HEAD;
        match uri.path() {
            statements::MANIFEST if is_read => respond(StatusCode::OK, JSON, self.hub.clone()),
            ARCHIVE if is_read => respond(StatusCode::OK, GZIP, self.archive.clone()),
            _ => respond(StatusCode::NOT_FOUND, JSON, "{}".into()),
        }
    }

    /// Serves until `stop`.
    pub async fn serve(self, listener: TcpListener, stop: CancellationToken) {
        let site = Arc::new(self);
        let room = Arc::new(Semaphore::new(CONNECTIONS));
        let served = TaskTracker::new();
        loop {
            let Ok(permit) = room.clone().acquire_owned().await else {
                return;
            };
            let accepted = tokio::select! {
                () = stop.cancelled() => break,
                accepted = listener.accept() => accepted,
            };
            // Whoever went away again does not matter to others.
            let Ok((stream, _)) = accepted else { continue };
            let (site, stop) = (site.clone(), stop.clone());
            served.spawn(async move {
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = site.converse(stream) => {}
                }
                drop(permit);
            });
        }
        served.close();
        served.wait().await;
    }

    async fn converse(&self, stream: TcpStream) {
        let service = service_fn(|request: Request<hyper::body::Incoming>| {
            let answer = self.answer(request.method(), request.uri()).map(Full::new);
            async move { Ok::<_, Infallible>(answer) }
        });
        // One that speaks TLS, as some clients try first, is told nothing it understands.
        let _ = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(PATIENCE)
            .serve_connection(TokioIo::new(stream), service)
            .await;
    }
}
