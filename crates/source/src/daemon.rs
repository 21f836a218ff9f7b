//! The images of a daemon on this machine, asked over its socket in Docker's protocol, which Podman
//! speaks too. What an image consists of is asked first: where everything in it is known already, it
//! is not fetched at all. Otherwise it comes as one stream, and nothing of it is written down.

use crate::bills::Scanned;
use crate::content::{Content, Part, Place};
use crate::error::Error;
use crate::feed;
use crate::image::{self, Image};
use crate::options::Options;
use crate::{DiffId, stream};
use bytes::Bytes;
use futures::Stream;
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use muster_api::Platform;
use muster_scan::sbom::Subject;
use serde::Deserialize;
use std::env;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::time::timeout;

const CONNECT: Duration = Duration::from_secs(5);
/// Until an answer begins; a daemon may put an archive together before it sends any of it.
const ANSWER: Duration = Duration::from_secs(300);
/// Between two pieces of an archive.
const IDLE: Duration = Duration::from_secs(120);
/// Bytes of what a daemon says of an image, or of what is wrong.
const ABOUT: usize = 8 << 20;
const MOST_LAYERS: usize = 4096;

/// A daemon of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// Docker.
    Docker,
    /// Podman.
    Podman,
}

impl fmt::Display for Engine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Engine::Docker => "Docker",
            Engine::Podman => "Podman",
        })
    }
}

impl Engine {
    /// The variable of the environment that names the socket.
    pub fn variable(self) -> &'static str {
        match self {
            Engine::Docker => "DOCKER_HOST",
            Engine::Podman => "CONTAINER_HOST",
        }
    }

    /// Where the socket may be, given the environment.
    fn sockets(self, variable: impl Fn(&str) -> Option<String>) -> Result<Vec<PathBuf>, Error> {
        if let Some(host) = variable(self.variable()) {
            let socket = host.strip_prefix("unix://").map(PathBuf::from);
            return socket.map(|socket| vec![socket]).ok_or_else(|| {
                let attempt = format!("asking {self} at {host}, which {} names", self.variable());
                let reason = "only sockets of this machine are asked; set it to unix:///path, or save the image and scan the archive";
                Error::malformed(attempt, reason)
            });
        }
        let below = |name: &str, path: &str| variable(name).map(|root| format!("{root}{path}"));
        let places = match self {
            Engine::Docker => [
                Some("/var/run/docker.sock".into()),
                below("XDG_RUNTIME_DIR", "/docker.sock"),
                below("HOME", "/.docker/run/docker.sock"),
            ],
            Engine::Podman => [
                below("XDG_RUNTIME_DIR", "/podman/podman.sock"),
                Some("/run/podman/podman.sock".into()),
                Some("/var/run/podman/podman.sock".into()),
            ],
        };
        Ok(places.into_iter().flatten().map(PathBuf::from).collect())
    }
}

/// What a daemon says of an image.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct About {
    id: String,
    repo_digests: Option<Vec<String>>,
    created: Option<String>,
    os: Option<String>,
    architecture: Option<String>,
    variant: Option<String>,
    #[serde(rename = "RootFS")]
    root: Option<Layers>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Layers {
    layers: Option<Vec<String>>,
}

/// Scans an image of a daemon.
pub(crate) async fn scan(
    engine: Engine,
    reference: &str,
    options: &Options,
) -> Result<Scanned, Error> {
    let attempt = format!("asking {engine} for {reference}");
    let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || b"._-:/@".contains(&byte);
    if reference.is_empty() || reference.contains("..") || !reference.bytes().all(is_fine) {
        return Err(Error::malformed(attempt, "that is no name of an image"));
    }
    let sockets = match &options.socket {
        Some(socket) => vec![socket.clone()],
        None => engine.sockets(|name| env::var(name).ok().filter(|value| !value.is_empty()))?,
    };
    let daemon = Daemon {
        engine,
        reference,
        socket: reached(engine, sockets).await?,
    };
    let image = about(&attempt, reference, &daemon.about().await?)?;
    let wanted = [image.platform.clone()];
    if let Err(wanted) = options.platforms.choose(&wanted) {
        return Err(Error::NoPlatform {
            image: reference.into(),
            wanted,
            available: image.platform.into_iter().collect(),
        });
    }
    let content = match known(&image, options).await {
        true => Content::Streamed(stream::Streamed::default()),
        false => Content::Streamed(daemon.export(options).await?),
    };
    image::scan(&content, image, options).await
}

/// Whether everything in an image is known already.
async fn known(image: &Image, options: &Options) -> bool {
    for part in &image.parts {
        if options.cache.recall(&part.diff_id).await.is_none() {
            return false;
        }
    }
    true
}

/// The first socket at which somebody answers.
async fn reached(engine: Engine, sockets: Vec<PathBuf>) -> Result<PathBuf, Error> {
    let mut tried = Vec::new();
    for socket in sockets {
        match timeout(CONNECT, UnixStream::connect(&socket)).await {
            Ok(Ok(_)) => return Ok(socket),
            Ok(Err(error)) => tried.push(format!("{}: {error}", socket.display())),
            Err(_) => tried.push(format!("{}: no answer", socket.display())),
        }
    }
    Err(Error::NoDaemon { engine, tried })
}

struct Daemon<'a> {
    engine: Engine,
    reference: &'a str,
    socket: PathBuf,
}

impl Daemon<'_> {
    /// What the image is.
    async fn about(&self) -> Result<Bytes, Error> {
        let answer = self.get("json").await?;
        let body = Limited::new(answer.into_body(), ABOUT).collect();
        match timeout(IDLE, body).await {
            Ok(Ok(body)) => Ok(body.to_bytes()),
            Ok(Err(error)) => Err(self.failed(error)),
            Err(_) => Err(self.failed("it stopped answering")),
        }
    }

    /// The whole image, read as it comes.
    async fn export(&self, options: &Options) -> Result<stream::Streamed, Error> {
        let answer = self.get("get").await?;
        let place = format!("{} of {}", self.reference, self.engine);
        let (limits, progress) = (options.limits, options.progress.clone());
        let work = move |fed| stream::read(fed, &place, &limits, &progress);
        feed::read(self.pieces(answer), work).await?
    }

    fn pieces(&self, answer: Response<Incoming>) -> impl Stream<Item = Result<Bytes, Error>> {
        futures::stream::try_unfold(answer.into_body(), |mut body| async {
            let frame = timeout(IDLE, body.frame()).await;
            match frame.map_err(|_| self.failed("it stopped sending"))? {
                None => Ok(None),
                Some(Err(error)) => Err(self.failed(error)),
                Some(Ok(frame)) => {
                    let bytes = frame.into_data().unwrap_or_default();
                    Ok(Some((bytes, body)))
                }
            }
        })
    }

    async fn get(&self, what: &str) -> Result<Response<Incoming>, Error> {
        let asked = async {
            let stream = UnixStream::connect(&self.socket).await;
            let stream = stream.map_err(|error| self.failed(error))?;
            let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
                .await
                .map_err(|error| self.failed(error))?;
            // It ends with the answer; what goes wrong with it is seen there.
            tokio::spawn(connection);
            let request = Request::get(format!("/images/{}/{what}", self.reference))
                .header(header::HOST, "localhost")
                .body(Empty::<Bytes>::new())
                .map_err(|error| self.failed(error))?;
            sender
                .send_request(request)
                .await
                .map_err(|error| self.failed(error))
        };
        let answer = timeout(ANSWER, asked).await;
        let answer = answer.map_err(|_| self.failed("it does not answer"))??;
        match answer.status() {
            StatusCode::OK => Ok(answer),
            StatusCode::NOT_FOUND => Err(Error::NotInDaemon {
                engine: self.engine,
                image: self.reference.into(),
            }),
            code => {
                let body = Limited::new(answer.into_body(), ABOUT).collect();
                let said = timeout(IDLE, body).await.ok().and_then(Result::ok);
                let said = said.map(|body| body.to_bytes()).unwrap_or_default();
                let said: String = String::from_utf8_lossy(&said).chars().take(300).collect();
                Err(self.failed(format!("it answered {code}: {}", said.trim())))
            }
        }
    }

    fn failed(&self, reason: impl ToString) -> Error {
        Error::Daemon {
            attempt: format!("asking {} for {}", self.engine, self.reference),
            reason: reason.to_string(),
        }
    }
}

/// The image that a daemon speaks of.
fn about(attempt: &str, reference: &str, bytes: &[u8]) -> Result<Image, Error> {
    let malformed = |reason: String| Error::malformed(attempt, reason);
    let about: About =
        serde_json::from_slice(bytes).map_err(|error| malformed(error.to_string()))?;
    let layers = about.root.and_then(|root| root.layers).unwrap_or_default();
    if layers.len() > MOST_LAYERS {
        return Err(malformed(format!("more than {MOST_LAYERS} layers")));
    }
    let part = |text: String| {
        let diff_id = DiffId::parse(&text);
        let diff_id = diff_id.ok_or_else(|| malformed(format!("{text:?} is no diff ID")))?;
        let place = Place::Somewhere;
        Ok::<_, Error>(Part { place, diff_id })
    };
    // The digest that a registry knows it by, where it has one.
    let (repository, _) = reference.split_once(['@', ':']).unwrap_or((reference, ""));
    let digests = about.repo_digests.unwrap_or_default();
    let split = |digest: &String| {
        let (name, digest) = digest.split_once('@')?;
        let is_meant = name == repository || name.ends_with(&format!("/{repository}"));
        Some((!is_meant, digest.to_owned()))
    };
    let known = digests.iter().filter_map(split).min();
    let given = |text: Option<String>| text.filter(|text| !text.is_empty());
    let platform = given(about.os).zip(given(about.architecture));
    Ok(Image {
        subject: Subject {
            name: reference.into(),
            digest: known.map_or(about.id, |(_, digest)| digest),
            created: given(about.created),
        },
        platform: platform.map(|(os, architecture)| Platform {
            os,
            architecture,
            variant: given(about.variant),
        }),
        parts: layers.into_iter().map(part).collect::<Result<_, _>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_socket_is_where_the_environment_says() {
        let sockets = |engine: Engine, variables: &'static [(&str, &str)]| {
            let found = engine.sockets(|name| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            });
            found.map(|found| {
                found
                    .iter()
                    .map(|path| path.display().to_string())
                    .collect()
            })
        };
        let found: Vec<String> = sockets(
            Engine::Docker,
            &[("DOCKER_HOST", "unix:///x.sock"), ("HOME", "/h")],
        )
        .unwrap();
        assert_eq!(found, ["/x.sock"]);
        let found: Vec<String> = sockets(Engine::Docker, &[("HOME", "/h")]).unwrap();
        assert_eq!(
            found,
            ["/var/run/docker.sock", "/h/.docker/run/docker.sock"]
        );
        let found: Vec<String> =
            sockets(Engine::Podman, &[("XDG_RUNTIME_DIR", "/run/user/1")]).unwrap();
        assert_eq!(found[0], "/run/user/1/podman/podman.sock");
        let elsewhere: Result<Vec<String>, _> =
            sockets(Engine::Docker, &[("DOCKER_HOST", "tcp://host:2375")]);
        assert!(
            elsewhere
                .unwrap_err()
                .to_string()
                .contains("tcp://host:2375")
        );
    }

    #[test]
    fn an_image_is_known_by_the_digest_of_its_registry() {
        let id = format!("sha256:{}", "1".repeat(64));
        let layer = format!("sha256:{}", "2".repeat(64));
        let text = |digests: &str| {
            format!(
                r#"{{"Id":"{id}","RepoDigests":{digests},"Os":"linux","Architecture":"amd64","Variant":"",
                   "Created":"2026-01-02T03:04:05Z","RootFS":{{"Type":"layers","Layers":["{layer}"]}}}}"#
            )
        };
        for (reference, digests, digest) in [
            ("a", "null", id.as_str()),
            (
                "a:1",
                r#"["b@sha256:3","docker.io/library/a@sha256:4"]"#,
                "sha256:4",
            ),
            ("c", r#"["b@sha256:3"]"#, "sha256:3"),
        ] {
            let image = about("asking", reference, text(digests).as_bytes()).unwrap();
            assert_eq!(image.subject.digest, digest, "{reference}");
            assert_eq!(image.parts.len(), 1);
            assert_eq!(image.platform.unwrap().to_string(), "linux/amd64");
        }
        let wrong = text("null").replace(&layer, "../x");
        assert!(about("asking", "a", wrong.as_bytes()).is_err());
    }
}
