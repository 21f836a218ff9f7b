//! What the tests share: a registry with an image in it, and quick clients.

use anyhow::Result;
use muster_registry::{
    Client, Credentials, Descriptor, Error, Host, Layer, Login, Manifest, Options, Repository,
    Retry, Secret, Traffic,
};
use muster_testkit::push::{Pushed, Pusher};
use muster_testkit::registry::{PASSWORD, Registry, USERNAME};
use serde_json::{Value, json};
use std::time::Duration;

/// Options whose pauses are short.
pub fn options() -> Options {
    Options {
        retry: Retry {
            attempts: 5,
            first: Duration::from_millis(5),
            longest: Duration::from_millis(50),
            patience: Duration::from_secs(20),
        },
        ..Options::default()
    }
}

pub fn client(options: Options) -> Result<Client> {
    Ok(Client::new(options, Traffic::default())?)
}

pub fn host(text: &str) -> Host {
    Host::parse(text).expect("a host")
}

pub fn repository(host_text: &str, name: &str) -> Repository {
    Repository::on(&host(host_text), name).expect("a repository")
}

pub fn password(host_text: &str, password: &str) -> Credentials {
    let username = USERNAME.into();
    let login = Login::Password {
        username,
        password: Secret::new(password),
    };
    Credentials::for_host(&host(host_text), login)
}

pub fn right_password(host_text: &str) -> Credentials {
    password(host_text, PASSWORD)
}

pub fn config(architecture: &str) -> Value {
    json!({
        "os": "linux", "architecture": architecture, "created": "2026-01-02T03:04:05Z",
        "rootfs": {"type": "layers", "diff_ids": [muster_testkit::push::digest(b"a layer")]},
        "history": [{"created_by": "COPY / /"}],
    })
}

/// Bytes that are not all the same, so that a piece in the wrong place is noticed.
pub fn noise(size: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    (0..size)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 56) as u8
        })
        .collect()
}

/// A registry that has `team/app:1` with one layer of these bytes.
pub async fn with_image(layer: &[u8]) -> Result<(Registry, Pushed)> {
    let registry = Registry::start()?;
    let pushed = Pusher::new(&registry)?
        .image("team/app", Some("1"), &[layer], &config("amd64"))
        .await?;
    Ok((registry, pushed))
}

/// The first layer of `team/app:1` as a host has it.
pub async fn first_layer(client: &Client, host: &str) -> Result<(Repository, Descriptor)> {
    let repository = repository(host, "team/app");
    let fetched = client.manifest(&repository.tagged("1")?).await?;
    let Manifest::Image(manifest) = fetched.manifest else {
        anyhow::bail!("no image")
    };
    Ok((repository, manifest.layers[0].clone()))
}

pub async fn read(mut layer: Layer) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    while let Some(chunk) = layer.chunk().await? {
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}
