//! Images for a test registry, pushed over its real API: layers, a configuration and a manifest,
//! or an index of several platforms.

use crate::registry::{Login, PASSWORD, Registry, USERNAME};
use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::{HeaderMap, Method, StatusCode};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// An OCI image manifest.
pub const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// An OCI image index.
pub const INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// An OCI image configuration.
pub const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
/// A layer of an OCI image.
pub const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// The digest of bytes.
pub fn digest(bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    let digits: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{digits}")
}

/// Something that is in the registry now.
#[derive(Clone, Debug, PartialEq)]
pub struct Pushed {
    /// Its media type.
    pub media_type: String,
    /// Its digest.
    pub digest: String,
    /// Its size.
    pub size: usize,
}

impl Pushed {
    /// The descriptor that points to it.
    pub fn descriptor(&self) -> Value {
        json!({"mediaType": self.media_type, "digest": self.digest, "size": self.size})
    }
}

/// A pushing client of a registry.
#[derive(Debug)]
pub struct Pusher {
    client: reqwest::Client,
    url: String,
    authorization: Option<String>,
}

impl Pusher {
    /// A client that may push to this registry. One that wants tokens is pushed to before tokens
    /// are required, or with a token given by [`Pusher::with_token`].
    pub fn new(registry: &Registry) -> Result<Pusher> {
        let password = BASE64_STANDARD.encode(format!("{USERNAME}:{PASSWORD}"));
        let authorization = match registry.login() {
            Login::Password => Some(format!("Basic {password}")),
            Login::Anybody | Login::Token { .. } => None,
        };
        let client = crate::http::plain_client(registry.authority())?;
        Ok(Pusher {
            client,
            url: registry.url(),
            authorization,
        })
    }

    /// The same, with a token.
    pub fn with_token(mut self, token: &str) -> Pusher {
        self.authorization = Some(format!("Bearer {token}"));
        self
    }

    /// Pushes a blob.
    pub async fn blob(&self, repository: &str, media_type: &str, bytes: &[u8]) -> Result<Pushed> {
        let digest = digest(bytes);
        let start = format!("{}/v2/{repository}/blobs/uploads/", self.url);
        let headers = self
            .send(Method::POST, &start, None, Vec::new(), StatusCode::ACCEPTED)
            .await?;
        let location = headers
            .get("location")
            .context("no place to upload to")?
            .to_str()?;
        let location = match location.starts_with('/') {
            true => format!("{}{location}", self.url),
            false => location.to_string(),
        };
        let joint = if location.contains('?') { '&' } else { '?' };
        let target = format!("{location}{joint}digest={digest}");
        let kind = Some("application/octet-stream");
        self.send(
            Method::PUT,
            &target,
            kind,
            bytes.to_vec(),
            StatusCode::CREATED,
        )
        .await?;
        Ok(Pushed {
            media_type: media_type.into(),
            digest,
            size: bytes.len(),
        })
    }

    /// Pushes a manifest or index under a tag, or under its own digest if none is given.
    pub async fn manifest(
        &self,
        repository: &str,
        tag: Option<&str>,
        media_type: &str,
        bytes: &[u8],
    ) -> Result<Pushed> {
        let digest = digest(bytes);
        let name = tag.unwrap_or(&digest);
        let target = format!("{}/v2/{repository}/manifests/{name}", self.url);
        self.send(
            Method::PUT,
            &target,
            Some(media_type),
            bytes.to_vec(),
            StatusCode::CREATED,
        )
        .await?;
        Ok(Pushed {
            media_type: media_type.into(),
            digest,
            size: bytes.len(),
        })
    }

    /// Pushes an image: its layers as they are transferred, and its configuration.
    pub async fn image(
        &self,
        repository: &str,
        tag: Option<&str>,
        layers: &[&[u8]],
        config: &Value,
    ) -> Result<Pushed> {
        let config = config.to_string();
        let layers: Vec<_> = layers.iter().map(|layer| (LAYER, *layer)).collect();
        self.artifact(repository, tag, (CONFIG, config.as_bytes()), &layers)
            .await
    }

    /// Pushes an artifact: a configuration and layers, each with its media type.
    pub async fn artifact(
        &self,
        repository: &str,
        tag: Option<&str>,
        config: (&str, &[u8]),
        layers: &[(&str, &[u8])],
    ) -> Result<Pushed> {
        let (media_type, bytes) = config;
        let config = self.blob(repository, media_type, bytes).await?;
        let mut pointers = Vec::new();
        for (media_type, bytes) in layers {
            let pushed = self.blob(repository, media_type, bytes).await?;
            pointers.push(pushed.descriptor());
        }
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": config.descriptor(),
            "layers": pointers,
        });
        self.manifest(repository, tag, MANIFEST, manifest.to_string().as_bytes())
            .await
    }

    /// Pushes an index of images that are there already, each with its platform
    /// (`os/architecture[/variant]`).
    pub async fn index(
        &self,
        repository: &str,
        tag: Option<&str>,
        images: &[(&str, &Pushed)],
    ) -> Result<Pushed> {
        let entries: Vec<Value> = images
            .iter()
            .map(|(platform, image)| {
                let parts: Vec<&str> = platform.split('/').collect();
                let mut entry = image.descriptor();
                entry["platform"] = json!({"os": parts.first(), "architecture": parts.get(1)});
                if let Some(variant) = parts.get(2) {
                    entry["platform"]["variant"] = json!(variant);
                }
                entry
            })
            .collect();
        let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": entries});
        self.manifest(repository, tag, INDEX, index.to_string().as_bytes())
            .await
    }

    /// Deletes a manifest by its digest.
    pub async fn delete(&self, repository: &str, digest: &str) -> Result<()> {
        let target = format!("{}/v2/{repository}/manifests/{digest}", self.url);
        self.send(
            Method::DELETE,
            &target,
            None,
            Vec::new(),
            StatusCode::ACCEPTED,
        )
        .await
        .map(drop)
    }

    async fn send(
        &self,
        method: Method,
        target: &str,
        media_type: Option<&str>,
        body: Vec<u8>,
        expected: StatusCode,
    ) -> Result<HeaderMap> {
        let what = format!("{method} {target}");
        let mut request = self.client.request(method, target).body(body);
        if let Some(media_type) = media_type {
            request = request.header("content-type", media_type);
        }
        if let Some(authorization) = &self.authorization {
            request = request.header("authorization", authorization);
        }
        let answer = request.send().await.with_context(|| what.clone())?;
        let (status, headers) = (answer.status(), answer.headers().clone());
        let text = answer.text().await.unwrap_or_default();
        ensure!(status == expected, "{what}: {status}: {text}");
        Ok(headers)
    }
}
