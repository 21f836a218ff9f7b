//! A daemon of this machine. None runs where the tests do, so the test answers over a real socket, in
//! the daemon's protocol and with the archive that it would send.

use crate::support::{Image, Told, archived, bill, digits, names, options, refusal};
use anyhow::Result;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper_util::rt::TokioIo;
use muster_source::cache::Directory;
use muster_source::{Engine, Options, Source};
use serde_json::json;
use std::convert::Infallible;
use std::path::Path;
use std::sync::{Arc, Mutex};
use tokio::net::UnixListener;
use tokio::task::JoinHandle;

struct Daemon {
    asked: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Daemon {
    /// Has one image, `team/app:1`, and sends this archive for it.
    fn start(socket: &Path, image: &Image, archive: Vec<u8>) -> Result<Daemon> {
        let listener = UnixListener::bind(socket)?;
        let config = image.config.to_string();
        let about = json!({
            "Id": format!("sha256:{}", digits(config.as_bytes())), "RepoDigests": [],
            "Created": image.config["created"], "Os": "linux", "Architecture": "amd64",
            "RootFS": {"Type": "layers", "Layers": image.config["rootfs"]["diff_ids"]},
        });
        let (about, archive) = (Bytes::from(about.to_string()), Bytes::from(archive));
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = asked.clone();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (about, archive, seen) = (about.clone(), archive.clone(), seen.clone());
                let answer = move |request: Request<Incoming>| {
                    let target = request.uri().path().to_owned();
                    seen.lock().unwrap().push(target.clone());
                    let body = match target.as_str() {
                        "/images/team/app:1/json" => Some(vec![about.clone()]),
                        // In pieces, as it would come.
                        "/images/team/app:1/get" => {
                            Some(archive.chunks(1000).map(Bytes::copy_from_slice).collect())
                        }
                        _ => None,
                    };
                    async move { Ok::<_, Infallible>(response(body)) }
                };
                let service = hyper::service::service_fn(answer);
                tokio::spawn(
                    hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service),
                );
            }
        });
        Ok(Daemon { asked, task })
    }

    fn count(&self, end: &str) -> usize {
        self.asked
            .lock()
            .unwrap()
            .iter()
            .filter(|target| target.ends_with(end))
            .count()
    }
}

fn response(
    body: Option<Vec<Bytes>>,
) -> Response<http_body_util::combinators::UnsyncBoxBody<Bytes, Infallible>> {
    let Some(pieces) = body else {
        let mut refusal =
            Response::new(Full::from(r#"{"message":"no such image"}"#).boxed_unsync());
        *refusal.status_mut() = StatusCode::NOT_FOUND;
        return refusal;
    };
    let frames = pieces.into_iter().map(|piece| Ok(Frame::data(piece)));
    Response::new(StreamBody::new(futures::stream::iter(frames)).boxed_unsync())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_of_a_daemon_is_read_as_it_comes() -> Result<()> {
    let image = Image::usual();
    let mut newer = image.layout("docker.io/team/app:1");
    newer.extend(image.saved(&["team/app:1"]).into_iter().rev().take(2));
    newer.reverse();
    // What the oldest and the newest versions send.
    for files in [image.saved(&["team/app:1"]), newer] {
        let home = tempfile::tempdir()?;
        let socket = home.path().join("socket");
        let daemon = Daemon::start(&socket, &image, archived(&files))?;
        let told = Arc::new(Told::default());
        let options = Options {
            cache: Arc::new(Directory::new(home.path().join("cache"))),
            progress: told.clone(),
            socket: Some(socket),
            ..options()
        };
        let cold = bill("docker:team/app:1", &options).await?;
        assert_eq!(names(&cold), ["base", "new"]);
        assert_eq!(cold.subject.name, "team/app:1");
        assert_eq!(daemon.count("/get"), 1);
        // What is known is not fetched again, and the bill is the same.
        let warm = bill("podman:team/app:1", &options).await?;
        assert_eq!(warm, cold);
        assert_eq!(daemon.count("/get"), 1);
        assert_eq!(told.count("recalled"), 3);
        let error = refusal("docker:team/other", &options).await;
        assert!(error.contains("Docker has no image team/other"), "{error}");
        let error = refusal("docker:team/../x y", &options).await;
        assert!(error.contains("no name of an image"), "{error}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_that_sends_something_else_is_an_error() -> Result<()> {
    let image = Image::usual();
    let whole = archived(&image.saved(&["team/app:1"]));
    let mut other = image.clone();
    other.plain.truncate(1);
    for (archive, expected) in [
        (archived(&other.saved(&["team/app:1"])), "it is not there"),
        (whole[..whole.len() / 3].to_vec(), "team/app:1 of Docker"),
        (vec![9; 2000], "checksum"),
    ] {
        let home = tempfile::tempdir()?;
        let socket = home.path().join("socket");
        let _daemon = Daemon::start(&socket, &image, archive)?;
        let options = Options {
            socket: Some(socket),
            ..options()
        };
        let error = refusal("docker:team/app:1", &options).await;
        assert!(error.contains(expected), "{error}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn no_daemon_is_an_error_that_says_where_it_was_looked_for() {
    let options = Options {
        socket: Some("/nonexistent/socket".into()),
        ..options()
    };
    let source = Source::Daemon {
        engine: Engine::Podman,
        reference: "a".into(),
    };
    let error = muster_source::bills(&source, &options).await.unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("/nonexistent/socket") && text.contains("CONTAINER_HOST"),
        "{text}"
    );
    assert!(error.is_transient());
}
