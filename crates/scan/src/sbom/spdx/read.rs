//! A bill from SPDX: one of ours without loss, one of another tool as far as its package URLs go.
//! Thousands of stored bills are read after every update of the data, so texts stay where they are
//! in the document, and what matching does not need is passed over.

use super::{BUILT_FROM, NO_ASSERTION};
use crate::digest::Digest;
use crate::image::Component;
use crate::layer::Incomplete;
use crate::os::{Family, Os};
use crate::package::{Detector, Source};
use crate::purl::Purl;
use crate::sbom::{Bill, BillError, Subject, build_of};
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Deref;

/// A piece of the document, copied only where it is written with escapes.
#[derive(Default, Deserialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    #[serde(borrow)]
    spdx_version: Text<'a>,
    #[serde(borrow, default)]
    name: Text<'a>,
    #[serde(borrow, default)]
    creation_info: CreationInfo<'a>,
    #[serde(borrow, default)]
    packages: Vec<Entry<'a>>,
    #[serde(borrow, default)]
    relationships: Vec<Relationship<'a>>,
    #[serde(borrow, default)]
    has_extracted_licensing_infos: Vec<ExtractedLicence<'a>>,
}

#[derive(Default, Deserialize)]
struct CreationInfo<'a> {
    #[serde(borrow, default)]
    created: Text<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct Entry<'a> {
    #[serde(rename = "SPDXID")]
    id: Text<'a>,
    #[serde(default)]
    name: Text<'a>,
    #[serde(default)]
    version_info: Text<'a>,
    supplier: Option<Text<'a>>,
    source_info: Option<Text<'a>>,
    #[serde(default)]
    license_declared: Text<'a>,
    primary_package_purpose: Option<Text<'a>>,
    #[serde(default)]
    checksums: Vec<Checksum<'a>>,
    #[serde(default)]
    external_refs: Vec<ExternalReference<'a>>,
    #[serde(default)]
    annotations: Vec<Annotation<'a>>,
    #[serde(default)]
    attribution_texts: Vec<Text<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Checksum<'a> {
    #[serde(borrow)]
    algorithm: Text<'a>,
    #[serde(borrow)]
    checksum_value: Text<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExternalReference<'a> {
    #[serde(borrow)]
    reference_type: Text<'a>,
    #[serde(borrow)]
    reference_locator: Text<'a>,
}

#[derive(Deserialize)]
struct Annotation<'a> {
    #[serde(borrow)]
    comment: Text<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Relationship<'a> {
    #[serde(borrow)]
    relationship_type: Text<'a>,
    #[serde(borrow)]
    related_spdx_element: Text<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExtractedLicence<'a> {
    #[serde(borrow)]
    license_id: Text<'a>,
    #[serde(borrow)]
    extracted_text: Text<'a>,
}

/// Reads a bill.
pub fn read(text: &[u8]) -> Result<Bill, BillError> {
    let document: Document = serde_json::from_slice(text)?;
    if !document.spdx_version.starts_with("SPDX-2.") {
        let problem = format!("SPDX version {:?} is not 2.x", &*document.spdx_version);
        return Err(BillError::Unknown(problem));
    }
    let licences: HashMap<&str, &str> = document
        .has_extracted_licensing_infos
        .iter()
        .map(|one| (&*one.license_id, &*one.extracted_text))
        .collect();
    let mut bill = Bill {
        subject: subject(&document),
        ..Bill::default()
    };
    for entry in &document.packages {
        if entry.primary_package_purpose.as_deref() == Some("OPERATING-SYSTEM") {
            bill.os = Some(os_of(entry));
        }
        let incomplete = entry.facts("Incomplete");
        bill.incomplete.extend(incomplete.filter_map(|pair| {
            let (path, reason) = serde_json::from_str(pair).ok()?;
            Some(Incomplete { path, reason })
        }));
        match component_of(entry, &licences) {
            Some(component) => bill.components.push(component),
            None => {
                if let Some(kind) = entry.unsupported() {
                    bill.leave_out(&kind, &entry.name, &entry.version_info);
                }
            }
        }
    }
    if bill.os.is_none() {
        bill.os = os_of_purls(&document);
    }
    bill.components.sort();
    Ok(bill)
}

impl Entry<'_> {
    /// What annotations say under a key; older tools write the same as attribution texts.
    fn facts<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        let comments = self.annotations.iter().map(|one| &*one.comment);
        let texts = self.attribution_texts.iter().map(Text::deref);
        comments
            .chain(texts)
            .filter_map(move |text| text.strip_prefix(key)?.strip_prefix(": "))
    }

    /// The type of a package whose type is not supported; empty if a library has no package URL.
    fn unsupported(&self) -> Option<String> {
        let purpose = self.primary_package_purpose.as_deref().unwrap_or_default();
        match (self.purl(), purpose) {
            (_, "OPERATING-SYSTEM" | "CONTAINER" | "FILE" | "SOURCE" | "DEVICE") => None,
            (Some(purl), _) => Some(purl.kind),
            (None, "LIBRARY" | "FRAMEWORK") => Some(String::new()),
            (None, _) => None,
        }
    }

    fn purl(&self) -> Option<Purl> {
        let reference = self
            .external_refs
            .iter()
            .find(|reference| &*reference.reference_type == "purl")?;
        Purl::parse(&reference.reference_locator)
    }
}

fn subject(document: &Document) -> Subject {
    let described = document
        .relationships
        .iter()
        .find(|one| &*one.relationship_type == "DESCRIBES");
    let root = described.and_then(|one| {
        let id = &*one.related_spdx_element;
        document.packages.iter().find(|entry| &*entry.id == id)
    });
    let sum = root.and_then(|root| {
        let sha256 = |sum: &&Checksum| &*sum.algorithm == "SHA256";
        root.checksums.iter().find(sha256)
    });
    let created = &document.creation_info.created;
    let unknown = created.starts_with("1970-01-01T00:00:00");
    Subject {
        name: root.map_or(&*document.name, |root| &root.name).to_owned(),
        digest: sum.map_or(String::new(), |sum| {
            format!("sha256:{}", &*sum.checksum_value)
        }),
        created: (!created.is_empty() && !unknown).then(|| created.to_string()),
    }
}

fn os_of(entry: &Entry) -> Os {
    Os {
        family: Family::named(&entry.name),
        version: entry.version_info.to_string(),
        repository: entry.facts("Repository").next().map(Into::into),
        extended: entry.facts("ExtendedSupport").next() == Some("true"),
        build: build_of(|key| entry.facts(key).map(Into::into).collect()),
    }
}

/// The distribution as the packages' own URLs name it: `distro=debian-12` or, after a name with
/// dashes, whatever follows the last one.
fn os_of_purls(document: &Document) -> Option<Os> {
    document.packages.iter().find_map(|entry| {
        let purl = entry.purl()?;
        let (ecosystem, _) = purl.package()?;
        let distribution = purl.qualifiers.get("distro")?;
        let (name, version) = match distribution.rsplit_once('-') {
            Some((name, version)) => (name, version),
            None => (purl.namespace.as_str(), distribution.as_str()),
        };
        let name = match name {
            "rhel" => "redhat",
            "almalinux" => "alma",
            "ol" => "oracle",
            "amzn" => "amazon",
            "sles" => "suse linux enterprise server",
            name => name,
        };
        let os = Os::new(Family::named(name), version);
        ecosystem.detector().is_os().then_some(os)
    })
}

fn component_of(entry: &Entry, licences: &HashMap<&str, &str>) -> Option<Component> {
    let (ecosystem, mut package) = entry.purl()?.package()?;
    let detector = entry.facts("PkgType").next().and_then(Detector::named);
    let detector = detector.filter(|detector| detector.ecosystem() == ecosystem);
    // A URL writes some names in lower case; the entry has them as they are.
    if detector.is_some() {
        package.name = entry.name.to_string();
        package.version = entry.version_info.to_string();
    }
    if let Some(built_from) = entry.source_info.as_deref() {
        let built_from = built_from.strip_prefix(BUILT_FROM);
        if let Some((name, version)) = built_from.and_then(|text| text.rsplit_once(' ')) {
            package.source = Some(Source {
                name: name.into(),
                version: version.into(),
            });
        }
    }
    let supplier = entry.supplier.as_deref().unwrap_or_default();
    let supplier = supplier
        .strip_prefix("Organization: ")
        .or_else(|| supplier.strip_prefix("Person: "));
    package.vendor = supplier.map(Into::into);
    package.licence = match &*entry.license_declared {
        "" | "NONE" | NO_ASSERTION => None,
        licence => Some(licences.get(licence).copied().unwrap_or(licence).into()),
    };
    Some(Component {
        detector: detector.unwrap_or(ecosystem.detector()),
        package,
        path: entry.facts("FilePath").next().unwrap_or_default().into(),
        layer: entry.facts("LayerDiffID").next().and_then(Digest::parse),
    })
}
