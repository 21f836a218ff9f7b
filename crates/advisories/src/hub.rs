//! Hubs of VEX documents on disk. Each hub is one file, its archive as it came, with a note behind
//! it; how old it may get is what the hub says, and an archive that did not change is not
//! transferred again.

use crate::error::Error;
use crate::part::{Note, Part, Unfinished, now, sweep};
use crate::progress::Progress;
use muster_scan::digest::Digest;
use muster_scan::purl::Purl;
use muster_scan::sbom::Bill;
use muster_scan::vex::Statements;
use muster_scan::vex::hub::{self, Hub, Location};
use reqwest::header::{ETAG, IF_NONE_MATCH};
use reqwest::{Client, StatusCode, Url};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// The hub that anybody may contribute to.
pub const DEFAULT_HUB: &str = "https://github.com/aquasecurity/vexhub";
const MANIFEST: &str = "vex-repository.json";
const MAX_MANIFEST: usize = 1 << 20;
const MAX_ARCHIVE: usize = 512 << 20;
const REDIRECTS: usize = 5;
const CONNECT: Duration = Duration::from_secs(10);
const IDLE: Duration = Duration::from_secs(60);

/// The directory of hubs.
#[derive(Clone, Debug)]
pub struct Hubs {
    path: PathBuf,
}

/// How to fetch a hub.
#[derive(Clone, Debug, Default)]
pub struct Fetch {
    /// Ask even if what is here is not old yet, and take it even if it did not change.
    pub force: bool,
    /// Certificate authorities beside the system's, in PEM.
    pub authorities: Option<Vec<u8>>,
}

/// What fetching came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fetched {
    /// There is another archive now.
    Updated,
    /// The hub has nothing new.
    Unchanged,
    /// What is here is not old yet, so nobody was asked.
    Fresh,
}

/// What a note keeps of a hub.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Memory {
    archive: String,
    directory: String,
    etag: String,
    interval_seconds: u64,
}

/// Hubs that are open, the preferred first.
#[derive(Debug)]
pub struct OpenHubs {
    hubs: Vec<(String, Hub)>,
    revision: String,
}

/// What hubs say about a bill.
#[derive(Clone, Debug, Default)]
pub struct Said {
    /// The statements.
    pub statements: Statements,
    /// Documents that they came from.
    pub documents: usize,
    /// What could not be read.
    pub problems: Vec<String>,
}

impl Hubs {
    /// The hubs in a directory. Nothing is touched before it is asked for.
    pub fn new(path: PathBuf) -> Self {
        Hubs { path }
    }

    fn place(&self, hub: &str) -> PathBuf {
        let name = Digest::of(hub.as_bytes());
        self.path.join(format!("{}.hub", &name.digits()[..32]))
    }

    /// Fetches a hub if it is due.
    pub async fn fetch(
        &self,
        hub: &str,
        options: &Fetch,
        progress: &dyn Progress,
    ) -> Result<Fetched, Error> {
        let created = fs::create_dir_all(&self.path);
        created.map_err(Error::file("creating the directory", &self.path))?;
        sweep(&self.path);
        let place = self.place(hub);
        let memory = if options.force { None } else { memory(&place) };
        if memory
            .as_ref()
            .is_some_and(|memory| is_fresh(&place, memory))
        {
            return Ok(Fetched::Fresh);
        }
        let wrong = |problem: String| Error::Hub {
            hub: hub.into(),
            problem,
        };
        let address = manifest_address(hub).map_err(&wrong)?;
        let client = client(options.authorities.as_deref(), &address).map_err(&wrong)?;
        let manifest = get(&client, address, None, MAX_MANIFEST, progress)
            .await
            .map_err(&wrong)?;
        let (manifest, _) = manifest.ok_or_else(|| wrong("there is no manifest".into()))?;
        let locations = hub::locations(&manifest).map_err(|error| wrong(error.to_string()))?;
        let mut problems = Vec::new();
        for location in &locations {
            let etag = memory
                .as_ref()
                .filter(|memory| memory.archive == location.url);
            let etag = etag
                .map(|memory| memory.etag.as_str())
                .filter(|etag| !etag.is_empty());
            let fetched = async {
                let address = secure(&location.url)?;
                progress.begins(&format!("downloading the VEX hub {hub}"), None);
                let got = get(&client, address, etag, MAX_ARCHIVE, progress).await;
                progress.ends();
                got
            };
            match fetched.await {
                Ok(Some((archive, etag))) => {
                    match self.install(hub, &place, location, archive, etag) {
                        Err(Error::Damaged { problem, .. }) => problems.push(problem),
                        outcome => return outcome.map(|()| Fetched::Updated),
                    }
                }
                Ok(None) => {
                    // What is here is as good as new.
                    let touched =
                        File::open(&place).and_then(|file| file.set_modified(SystemTime::now()));
                    touched.map_err(Error::file("touching", &place))?;
                    return Ok(Fetched::Unchanged);
                }
                Err(problem) => problems.push(format!("{}: {problem}", location.url)),
            }
        }
        let none = "its manifest names no place";
        Err(wrong(match problems.is_empty() {
            true => none.into(),
            false => problems.join("; "),
        }))
    }

    fn install(
        &self,
        hub: &str,
        place: &Path,
        location: &Location,
        archive: Vec<u8>,
        etag: String,
    ) -> Result<(), Error> {
        let memory = Memory {
            archive: location.url.clone(),
            directory: location.directory.clone(),
            etag,
            interval_seconds: location.interval.as_secs(),
        };
        let note = Note {
            revision: Digest::of(&archive).to_string(),
            downloaded_at: Some(now()),
            origin: hub.into(),
            metadata: serde_json::to_string(&memory).ok(),
            pieces: Vec::new(),
        };
        let mut unfinished = Unfinished::begin(&self.path, "hub")?;
        let written = unfinished.write_all(&archive);
        written.map_err(Error::file("writing", unfinished.path()))?;
        // Nothing goes live that cannot be opened.
        let opened = Hub::open(archive, &location.directory);
        opened.map_err(|error| Error::damaged(Path::new(&location.url), error))?;
        unfinished.seal(&note)?;
        unfinished.place(place)
    }

    /// Opens those hubs that are here, in the order of preference. Hubs that were never fetched are
    /// an error: statements that are missing must not go unnoticed.
    pub fn open(&self, hubs: &[String]) -> Result<OpenHubs, Error> {
        let mut opened = Vec::new();
        let mut revisions = String::new();
        for hub in hubs {
            let place = self.place(hub);
            let part = Part::open(&place)?.ok_or_else(|| Error::Hub {
                hub: hub.clone(),
                problem: "it was never fetched".into(),
            })?;
            let note = part.note.clone().unwrap_or_default();
            let memory = of_note(&note).unwrap_or_default();
            revisions += &format!("{hub} {}\n", note.revision);
            let archive = Arc::new(part).data();
            let archive = Hub::open(archive, &memory.directory);
            let archive = archive.map_err(|error| Error::damaged(&place, error))?;
            opened.push((hub.clone(), archive));
        }
        Ok(OpenHubs {
            hubs: opened,
            revision: Digest::of(revisions.as_bytes()).to_string(),
        })
    }
}

impl OpenHubs {
    /// Identifies the state of all of them.
    pub fn revision(&self) -> &str {
        &self.revision
    }

    /// What they say about the packages of a bill, and about its image. Where several speak of the
    /// same package, the first has the word.
    pub fn statements(&self, bill: &Bill, image: Option<&Purl>) -> Result<Said, Error> {
        let mut said = Said {
            statements: Statements::new(&self.revision),
            ..Said::default()
        };
        let mut keys = hub::keys(bill, image);
        for (name, hub) in &self.hubs {
            let collected = hub.collect(&keys, name, &mut said.statements);
            let collected = collected.map_err(|error| Error::Hub {
                hub: name.clone(),
                problem: error.to_string(),
            })?;
            keys.retain(|key| !collected.packages.contains(key));
            said.documents += collected.documents;
            let problems = collected.problems.into_iter();
            said.problems
                .extend(problems.map(|problem| format!("{name}: {problem}")));
        }
        Ok(said)
    }
}

fn of_note(note: &Note) -> Option<Memory> {
    serde_json::from_str(note.metadata.as_deref()?).ok()
}

fn memory(place: &Path) -> Option<Memory> {
    let part = Part::open(place).ok().flatten()?;
    of_note(part.note.as_ref()?)
}

fn is_fresh(place: &Path, memory: &Memory) -> bool {
    let modified = fs::metadata(place).and_then(|metadata| metadata.modified());
    let age = modified
        .ok()
        .and_then(|time| SystemTime::now().duration_since(time).ok());
    age.is_some_and(|age| age < Duration::from_secs(memory.interval_seconds))
}

/// Where the manifest of a hub is: at a place of its own on a web server, at the top of a
/// repository on GitHub.
fn manifest_address(hub: &str) -> Result<Url, String> {
    let mut address = secure(hub)?;
    let path = address.path().trim_end_matches('/').to_owned();
    if address.host_str() == Some("github.com") {
        let changed = address.set_host(Some("raw.githubusercontent.com"));
        changed.map_err(|error| error.to_string())?;
        address.set_path(&format!("{path}/main/{MANIFEST}"));
    } else {
        address.set_path(&format!("{path}/.well-known/{MANIFEST}"));
    }
    Ok(address)
}

/// An address whose answers can be trusted to come from there.
fn secure(address: &str) -> Result<Url, String> {
    let parsed = Url::parse(address).map_err(|error| format!("{address}: {error}"))?;
    match is_secure(&parsed) {
        true => Ok(parsed),
        false => Err(format!("{address} is not https")),
    }
}

fn is_secure(address: &Url) -> bool {
    address.scheme() == "https" || (address.scheme() == "http" && is_loopback(address))
}

fn is_loopback(address: &Url) -> bool {
    address.host_str().is_some_and(|host| {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let address = host.parse::<std::net::IpAddr>();
        host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    })
}

/// A client for a hub. This machine itself is never asked through a proxy.
fn client(authorities: Option<&[u8]>, hub: &Url) -> Result<Client, String> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    for certificate in authorities
        .into_iter()
        .flat_map(CertificateDer::pem_slice_iter)
    {
        let certificate =
            certificate.map_err(|error| format!("a certificate authority: {error}"))?;
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let redirects = reqwest::redirect::Policy::custom(|attempt| {
        if attempt.previous().len() > REDIRECTS {
            attempt.error("too many redirects")
        } else if !is_secure(attempt.url()) {
            attempt.error("redirected to plain HTTP")
        } else {
            attempt.follow()
        }
    });
    let builder = Client::builder();
    let builder = match is_loopback(hub) {
        true => builder.no_proxy(),
        false => builder,
    };
    let built = builder
        .tls_backend_preconfigured(tls)
        .redirect(redirects)
        .connect_timeout(CONNECT)
        .read_timeout(IDLE)
        .user_agent(concat!("muster/", env!("CARGO_PKG_VERSION")))
        .build();
    built.map_err(|error| error.to_string())
}

/// The body and its tag; nothing where it did not change.
async fn get(
    client: &Client,
    address: Url,
    etag: Option<&str>,
    limit: usize,
    progress: &dyn Progress,
) -> Result<Option<(Vec<u8>, String)>, String> {
    let mut request = client.get(address);
    if let Some(etag) = etag {
        request = request.header(IF_NONE_MATCH, etag);
    }
    let mut answer = request.send().await.map_err(told)?;
    if etag.is_some() && answer.status() == StatusCode::NOT_MODIFIED {
        return Ok(None);
    }
    if answer.status() != StatusCode::OK {
        return Err(format!("the answer is {}", answer.status()));
    }
    let etag = answer
        .headers()
        .get(ETAG)
        .and_then(|etag| etag.to_str().ok());
    let etag = etag.unwrap_or_default().to_owned();
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(told)? {
        if body.len() + chunk.len() > limit {
            return Err(format!("it has more than {limit} bytes"));
        }
        body.extend_from_slice(&chunk);
        progress.advances(chunk.len() as u64);
    }
    Ok(Some((body, etag)))
}

/// An error with its causes.
fn told(error: reqwest::Error) -> String {
    let mut text = error.to_string();
    let mut next = std::error::Error::source(&error);
    while let Some(cause) = next {
        text += &format!(": {cause}");
        next = cause.source();
    }
    text
}
