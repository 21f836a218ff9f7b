//! Repositories of VEX documents: a manifest says where the archive is, the archive's index says
//! which document speaks of which package, and only those of the packages at hand are read. All of
//! it is untrusted.

use super::{Document, Statements, VexError};
use crate::archive::{ArchiveError, ArchiveLimits, each_file};
use crate::package::Ecosystem;
use crate::purl::Purl;
use crate::sbom::Bill;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

/// The version of the layout that is understood.
const SPECIFICATION: &str = "0.";
const INDEX: &str = "index.json";
const MIB: u64 = 1 << 20;
const MAX_MANIFEST: usize = MIB as usize;
const MAX_PACKAGES: usize = 2_000_000;
const LIMITS: ArchiveLimits = ArchiveLimits {
    entries: 4_000_000,
    file_bytes: 64 * MIB,
    bytes: 4096 * MIB,
};
/// How often to look where a repository does not say.
const INTERVAL: Duration = Duration::from_secs(24 * 3600);
/// The longest time until a hub is fetched again. The manifest is the hub's, so it may say anything.
const MAX_INTERVAL: Duration = Duration::from_secs(30 * 24 * 3600);

/// Where an archive is, and how often it changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// Its address.
    pub url: String,
    /// The directory in it that is meant; empty for the whole.
    pub directory: String,
    /// How long what was read once is good.
    pub interval: Duration,
}

#[derive(Deserialize)]
struct ManifestValue {
    #[serde(default)]
    versions: VersionsValue,
}

/// Hubs list their versions; an object of named ones is read too.
#[derive(Deserialize)]
#[serde(untagged)]
enum VersionsValue {
    Listed(Vec<VersionValue>),
    Named(BTreeMap<String, VersionValue>),
}

impl Default for VersionsValue {
    fn default() -> Self {
        VersionsValue::Listed(Vec::new())
    }
}

impl VersionsValue {
    fn iter(&self) -> Box<dyn Iterator<Item = &VersionValue> + '_> {
        match self {
            VersionsValue::Listed(list) => Box::new(list.iter()),
            VersionsValue::Named(map) => Box::new(map.values()),
        }
    }
}

#[derive(Deserialize)]
struct VersionValue {
    #[serde(default)]
    spec_version: String,
    #[serde(default)]
    locations: Vec<LocationValue>,
    #[serde(default)]
    update_interval: String,
}

#[derive(Deserialize)]
struct LocationValue {
    #[serde(default)]
    url: String,
}

#[derive(Deserialize)]
struct IndexValue {
    #[serde(default)]
    updated_at: String,
    packages: Vec<PackageValue>,
}

#[derive(Deserialize)]
struct PackageValue {
    #[serde(default)]
    id: String,
    #[serde(default)]
    location: String,
}

/// The places that a manifest names for the layout that is understood, the preferred first.
pub fn locations(manifest: &[u8]) -> Result<Vec<Location>, VexError> {
    if manifest.len() > MAX_MANIFEST {
        return Err(VexError::Unknown("the manifest is too large".into()));
    }
    let read: ManifestValue = serde_json::from_slice(manifest)?;
    let minor = |one: &VersionValue| {
        let version = one.spec_version.trim_start_matches('v');
        let minor = version.strip_prefix(SPECIFICATION)?;
        Some(minor.parse::<u64>().unwrap_or(0))
    };
    // The later the version, the better.
    let known = read.versions.iter().filter(|one| minor(one).is_some());
    let Some(best) = known.max_by_key(|one| minor(one)) else {
        let versions = read.versions.iter().map(|one| one.spec_version.as_str());
        let versions: Vec<&str> = versions.take(8).collect();
        let versions = versions.join(", ");
        return Err(VexError::Unknown(format!(
            "of its versions ({versions}) none is known here"
        )));
    };
    let interval = duration(&best.update_interval).unwrap_or(INTERVAL);
    let interval = interval.min(MAX_INTERVAL);
    let location = |value: &LocationValue| {
        let (scheme, rest) = value.url.split_once("://")?;
        let (place, directory) = rest.split_once("//").unwrap_or((rest, ""));
        Some(Location {
            url: format!("{scheme}://{place}"),
            directory: directory.trim_matches('/').into(),
            interval,
        })
    };
    Ok(best
        .locations
        .iter()
        .take(16)
        .filter_map(location)
        .collect())
}

/// A duration as Go writes it: `24h`, `1h30m`.
fn duration(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut sum = Duration::ZERO;
    if rest.is_empty() || rest.len() > 64 {
        return None;
    }
    while !rest.is_empty() {
        let end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
        let number: f64 = rest[..end].parse().ok()?;
        let unit = &rest[end..];
        let unit_end = unit
            .find(|letter: char| letter.is_ascii_digit())
            .unwrap_or(unit.len());
        let seconds = match &unit[..unit_end] {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 0.001,
            _ => return None,
        };
        sum = sum.checked_add(Duration::try_from_secs_f64(number * seconds).ok()?)?;
        rest = &unit[unit_end..];
    }
    Some(sum)
}

/// An archive of documents.
pub struct Hub {
    archive: Box<dyn AsRef<[u8]> + Send + Sync>,
    /// The files that speak of a package, by its name without version.
    files: HashMap<String, BTreeSet<String>>,
    updated_at: Option<String>,
}

impl std::fmt::Debug for Hub {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Hub({} packages)", self.files.len())
    }
}

/// What a hub had to say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// The packages it speaks of, as [`key`] names them.
    pub packages: BTreeSet<String>,
    /// Documents that were read.
    pub documents: usize,
    /// Documents that were not, and why.
    pub problems: Vec<String>,
}

impl From<ArchiveError> for VexError {
    fn from(error: ArchiveError) -> Self {
        VexError::Unknown(error.to_string())
    }
}

/// A package without its version: what a hub is asked by. Images of different registries may have
/// the same name.
pub fn key(purl: &Purl) -> String {
    let registry = purl
        .qualifiers
        .get("repository_url")
        .filter(|_| purl.kind == "oci");
    let registry = registry.map(String::as_str).unwrap_or_default();
    format!("{}/{}/{}?{registry}", purl.kind, purl.namespace, purl.name)
}

/// What a bill's packages are called, and its image.
pub fn keys(bill: &Bill, image: Option<&Purl>) -> BTreeSet<String> {
    let packages = bill.components.iter().map(|component| {
        let ecosystem: Ecosystem = component.detector.ecosystem();
        key(&Purl::of(ecosystem, &component.package, bill.os.as_ref()))
    });
    packages.chain(image.map(key)).collect()
}

impl Hub {
    /// Reads the index of an archive, of which `directory` is meant.
    pub fn open(
        archive: impl AsRef<[u8]> + Send + Sync + 'static,
        directory: &str,
    ) -> Result<Self, VexError> {
        let within = |path: &str| match directory {
            "" => path.to_owned(),
            directory => format!("{directory}/{path}"),
        };
        let wanted = within(INDEX);
        let mut text = None;
        each_file(archive.as_ref(), &LIMITS, |path, file| {
            if path == wanted && text.is_none() {
                let mut bytes = Vec::new();
                file.read_to_end(&mut bytes)?;
                text = Some(bytes);
            }
            Ok(())
        })?;
        let text = text.ok_or_else(|| VexError::Unknown(format!("there is no {wanted} in it")))?;
        let index: IndexValue = serde_json::from_slice(&text)?;
        if index.packages.len() > MAX_PACKAGES {
            return Err(VexError::Unknown(format!(
                "more than {MAX_PACKAGES} packages"
            )));
        }
        let mut files: HashMap<String, BTreeSet<String>> = HashMap::new();
        for package in &index.packages {
            let place = crate::layer::path::normal(&within(&package.location));
            if let (Some(purl), Some(place)) = (Purl::parse(&package.id), place) {
                files.entry(key(&purl)).or_default().insert(place);
            }
        }
        Ok(Hub {
            archive: Box::new(archive),
            files,
            updated_at: Some(index.updated_at).filter(|time| !time.is_empty()),
        })
    }

    /// How many packages it speaks of.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Whether it speaks of none.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// When its makers last changed it, as they write it.
    pub fn updated_at(&self) -> Option<&str> {
        self.updated_at.as_deref()
    }

    /// Adds what it says about these packages. A document that cannot be read is told and spoils no
    /// others.
    pub fn collect(
        &self,
        keys: &BTreeSet<String>,
        repository: &str,
        statements: &mut Statements,
    ) -> Result<Collected, VexError> {
        let mut collected = Collected::default();
        let mut wanted = BTreeSet::new();
        for key in keys {
            if let Some(files) = self.files.get(key) {
                collected.packages.insert(key.clone());
                wanted.extend(files);
            }
        }
        if wanted.is_empty() {
            return Ok(collected);
        }
        // In the order of their names, whatever the order in the archive is.
        let mut documents = BTreeMap::new();
        each_file((*self.archive).as_ref(), &LIMITS, |path, file| {
            if let Some(path) = wanted.take(&path.to_owned()) {
                let mut text = Vec::new();
                file.read_to_end(&mut text)?;
                documents.insert(path.clone(), Document::parse(&text));
            }
            Ok(())
        })?;
        for (path, document) in documents {
            match document {
                Ok(document) => {
                    statements.add(&document, repository);
                    collected.documents += 1;
                }
                Err(error) => collected.problems.push(format!("{path}: {error}")),
            }
        }
        let missing = wanted.iter().map(|path| format!("{path}: it is not there"));
        collected.problems.extend(missing);
        Ok(collected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Cursor, Write};

    fn archive(files: &[(&str, String)]) -> Vec<u8> {
        let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
        for (name, text) in files {
            let options = zip::write::SimpleFileOptions::default();
            writer.start_file(*name, options).unwrap();
            writer.write_all(text.as_bytes()).unwrap();
        }
        writer.finish().unwrap().into_inner()
    }

    fn document(purl: &str) -> String {
        serde_json::json!({
            "@context": "https://openvex.dev/ns/v0.2.0", "timestamp": "2026-01-01T00:00:00Z",
            "statements": [{"vulnerability": {"name": "CVE-1"}, "products": [{"@id": purl}], "status": "not_affected"}],
        })
        .to_string()
    }

    fn named(purls: &[&str]) -> BTreeSet<String> {
        purls
            .iter()
            .map(|purl| key(&Purl::parse(purl).unwrap()))
            .collect()
    }

    #[test]
    fn a_published_manifest_lists_its_versions() {
        let manifest = serde_json::json!({"name": "hub", "versions": [
            {"spec_version": "0.1", "update_interval": "24h",
             "locations": [{"url": "https://example.org/main.zip//hub-main"}]},
            {"spec_version": "1.0", "locations": [{"url": "https://example.org/later.zip"}]},
        ]});
        let found = locations(manifest.to_string().as_bytes()).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].url, "https://example.org/main.zip");
        assert_eq!(found[0].directory, "hub-main");
    }

    #[test]
    fn a_manifest_leads_to_the_archive() {
        let manifest = serde_json::json!({"name": "hub", "versions": {
            "v1": {"spec_version": "v1.0", "locations": [{"url": "https://x/v1.zip"}], "update_interval": "1h"},
            "v0": {"spec_version": "v0.1", "locations": [
                {"url": "https://github.example/archive/main.zip//vexhub-main"}, {"url": "https://y/a.tar.gz"}, {"url": "odd"},
            ], "update_interval": "1h30m"},
        }});
        let found = locations(manifest.to_string().as_bytes()).unwrap();
        let interval = Duration::from_secs(5400);
        let location = |url: &str, directory: &str| Location {
            url: url.into(),
            directory: directory.into(),
            interval,
        };
        assert_eq!(
            found,
            [
                location("https://github.example/archive/main.zip", "vexhub-main"),
                location("https://y/a.tar.gz", ""),
            ]
        );
        let slow = serde_json::json!({"name": "hub", "versions": {"v0": {
            "spec_version": "v0.1", "locations": [{"url": "https://x/a.zip"}], "update_interval": "99999999h",
        }}});
        let found = locations(slow.to_string().as_bytes()).unwrap();
        assert_eq!(found[0].interval, MAX_INTERVAL);
        for wrong in [
            "",
            "{}",
            r#"{"versions": {"v1": {"spec_version": "v1.0"}}}"#,
        ] {
            assert!(locations(wrong.as_bytes()).is_err(), "{wrong}");
        }
        for (text, seconds) in [
            ("24h", Some(86400)),
            ("30m", Some(1800)),
            ("", None),
            ("1d", None),
            ("h", None),
            ("1e9h", None),
        ] {
            assert_eq!(duration(text), seconds.map(Duration::from_secs), "{text}");
        }
    }

    #[test]
    fn only_documents_about_the_packages_at_hand_are_read() {
        let index = serde_json::json!({"updated_at": "2026-01-01T00:00:00Z", "packages": [
            {"id": "pkg:npm/lodash", "location": "pkg/npm/lodash/vex.json"},
            {"id": "pkg:oci/app?repository_url=ghcr.io%2Forg%2Fapp", "location": "pkg/oci/app/vex.json", "format": "openvex"},
            {"id": "pkg:npm/broken", "location": "pkg/npm/broken/vex.json"},
            {"id": "pkg:npm/gone", "location": "pkg/npm/gone/vex.json"},
            {"id": "pkg:npm/outside", "location": "../../../etc/passwd"},
            {"id": "nothing", "location": "x"},
        ]});
        let bytes = archive(&[
            (
                "main/pkg/npm/lodash/vex.json",
                document("pkg:npm/lodash@4.17.20"),
            ),
            ("main/index.json", index.to_string()),
            ("main/pkg/npm/broken/vex.json", "{".into()),
            (
                "main/pkg/oci/app/vex.json",
                document("pkg:oci/app?repository_url=ghcr.io/org/app"),
            ),
        ]);
        let hub = Hub::open(bytes.clone(), "main").unwrap();
        assert_eq!(hub.updated_at(), Some("2026-01-01T00:00:00Z"));
        let mut statements = Statements::new("r");
        let wanted = named(&[
            "pkg:npm/lodash@4.17.20",
            "pkg:npm/broken@1",
            "pkg:npm/gone@1",
            "pkg:npm/other@1",
        ]);
        let collected = hub.collect(&wanted, "hub", &mut statements).unwrap();
        assert_eq!((collected.documents, collected.packages.len()), (1, 3));
        assert_eq!(collected.problems.len(), 2, "{:?}", collected.problems);
        let image = named(&["pkg:oci/app@sha256:abc?repository_url=ghcr.io/org/app"]);
        assert_eq!(
            hub.collect(&image, "hub", &mut statements)
                .unwrap()
                .documents,
            1
        );
        let other = named(&["pkg:oci/app@sha256:abc?repository_url=quay.io/org/app"]);
        assert_eq!(
            hub.collect(&other, "hub", &mut statements)
                .unwrap()
                .documents,
            0
        );
        assert!(Hub::open(bytes, "").is_err());
        assert!(Hub::open(b"PK".to_vec(), "").is_err());
    }
}
