//! How a target is reached and read: the options that `scan` and `sbom` share, and what they mean.

use super::bars::Bars;
use super::places;
use anyhow::{Context, Result, bail};
use clap::Args;
use muster_advisories::hub::Fetch;
use muster_api::Platform;
use muster_registry::{Client, Credentials, Host, Mirror, Mirrors, Options, Traffic, Transport};
use muster_source::cache::{Directory, Nothing, Shared};
use muster_source::{LayerCache, Platforms, Scanned, Source};
use std::path::PathBuf;
use std::sync::Arc;

/// How registries are reached.
#[derive(Args)]
pub(crate) struct Reach {
    /// Certificate authorities to trust beside the system's, as a PEM file.
    #[arg(long, env = "MUSTER_CA", value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Accept any certificate, and plain HTTP.
    #[arg(long, env = "MUSTER_INSECURE")]
    insecure: bool,
    /// Ask a mirror before a registry: `docker.io=https://mirror.example/hub`. May be repeated.
    #[arg(
        long,
        env = "MUSTER_MIRRORS",
        value_name = "HOST=MIRROR",
        value_delimiter = ','
    )]
    mirror: Vec<String>,
}

impl Reach {
    /// The authorities that were named, in PEM.
    pub(crate) fn authorities(&self) -> Result<Option<Vec<u8>>> {
        let read = |file: &PathBuf| {
            std::fs::read(file).with_context(|| format!("reading --ca {}", file.display()))
        };
        self.ca.as_ref().map(read).transpose()
    }

    /// How VEX hubs are fetched.
    pub(crate) fn hubs(&self) -> Result<Fetch> {
        Ok(Fetch {
            authorities: self.authorities()?,
            ..Fetch::default()
        })
    }

    /// The mirrors that were named.
    pub(crate) fn mirrors(&self) -> Result<Mirrors> {
        let mut mirrors = Mirrors::default();
        for text in &self.mirror {
            let Some((host, mirror)) = text.split_once('=') else {
                bail!("--mirror {text:?} is not of the form HOST=MIRROR");
            };
            let host = Host::parse(host).with_context(|| format!("reading --mirror {text}"))?;
            let mirror =
                Mirror::parse(mirror).with_context(|| format!("reading --mirror {text}"))?;
            mirrors.add(host, mirror);
        }
        Ok(mirrors)
    }

    /// A client with the user's own docker logins.
    pub(crate) fn client(&self) -> Result<Client> {
        let options = Options {
            credentials: Credentials::of_user()?,
            authorities: self.authorities()?,
            transport: match self.insecure {
                true => Transport::Insecure,
                false => Transport::Verified,
            },
            mirrors: self.mirrors()?,
            ..Options::default()
        };
        Ok(Client::new(options, Traffic::default())?)
    }
}

/// How a target is read.
#[derive(Args)]
pub(crate) struct Reading {
    /// The platform of an image that has several, such as linux/arm64, or `all`. If not given,
    /// this machine's processor on Linux, or the only one there is.
    #[arg(long, env = "MUSTER_PLATFORM", value_name = "OS/ARCH")]
    platform: Option<String>,
    /// Use nothing but this machine: no registry is asked and no data is fetched.
    #[arg(long, env = "MUSTER_OFFLINE")]
    pub(crate) offline: bool,
    /// Where inventories of layers are kept for the next scan; `none` keeps nothing.
    #[arg(long, env = "MUSTER_LAYER_CACHE", value_name = "DIR", default_value_os_t = places::layers())]
    cache: PathBuf,
    /// Show no progress.
    #[arg(short, long)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) reach: Reach,
}

impl Reading {
    /// Everything that reading targets needs.
    pub(crate) fn options(&self, bars: &Bars) -> Result<muster_source::Options> {
        let platforms = match self.platform.as_deref() {
            None => Platforms::Default,
            Some("all") => Platforms::All,
            Some(text) => {
                let platform = Platform::parse(text).with_context(|| {
                    format!("--platform {text:?} is neither `all` nor like linux/arm64")
                })?;
                Platforms::One(platform)
            }
        };
        let kept: Arc<dyn LayerCache> = match self.cache.as_os_str() == "none" {
            true => Arc::new(Nothing),
            false => Arc::new(Directory::new(self.cache.clone())),
        };
        Ok(muster_source::Options {
            platforms,
            cache: Arc::new(Shared::new(kept)),
            parallel: std::thread::available_parallelism().map_or(2, usize::from),
            progress: Arc::new(bars.clone()),
            ..muster_source::Options::new(self.reach.client()?)
        })
    }

    /// Reads a target.
    pub(crate) async fn read(
        &self,
        target: &str,
        options: &muster_source::Options,
    ) -> Result<Vec<Result<Scanned>>> {
        let source = Source::parse(target)?;
        if self.offline && matches!(source, Source::Registry(_)) {
            bail!(
                "--offline asks no registry; save the image to a file first, for instance with `docker save` or `skopeo copy docker://{target} oci-archive:image.tar`, and scan that"
            );
        }
        let read = muster_source::bills(&source, options).await?;
        Ok(read.into_iter().map(|one| Ok(one?)).collect())
    }
}
