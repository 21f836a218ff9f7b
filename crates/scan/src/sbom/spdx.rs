//! SPDX 2.3 in JSON: written for the SBOM kind, read back for matching, and read from other tools
//! by the package URLs in it. What SPDX has no field for (layer, path, detector) stands in
//! annotations of the form `Key: value`, which others use as well.

use super::licence::{self, Licence};
use super::{Bill, BillError, Subject, build_facts, build_of};
use crate::digest::Digest;
use crate::image::Component;
use crate::layer::Incomplete;
use crate::os::{Family, Os};
use crate::package::{Detector, Source};
use crate::purl::Purl;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};

const VERSION: &str = "SPDX-2.3";
const NO_ASSERTION: &str = "NOASSERTION";
const ROOT: &str = "SPDXRef-Image";
const SYSTEM: &str = "SPDXRef-OperatingSystem";
const DOCUMENT: &str = "SPDXRef-DOCUMENT";
/// How the source package is introduced; other tools look for the same words.
const BUILT_FROM: &str = "built package from: ";

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    spdx_version: String,
    #[serde(default)]
    data_license: String,
    #[serde(rename = "SPDXID", default)]
    id: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    document_namespace: String,
    #[serde(default)]
    creation_info: CreationInfo,
    #[serde(default)]
    packages: Vec<PackageEntry>,
    #[serde(default)]
    relationships: Vec<Relationship>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    has_extracted_licensing_infos: Vec<ExtractedLicence>,
}

#[derive(Default, Serialize, Deserialize)]
struct CreationInfo {
    #[serde(default)]
    created: String,
    #[serde(default)]
    creators: Vec<String>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PackageEntry {
    #[serde(rename = "SPDXID")]
    id: String,
    #[serde(default)]
    name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    version_info: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    supplier: Option<String>,
    #[serde(default)]
    download_location: String,
    #[serde(default)]
    files_analyzed: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    source_info: Option<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    license_declared: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    license_concluded: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    copyright_text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    primary_package_purpose: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    checksums: Vec<Checksum>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    external_refs: Vec<ExternalReference>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    annotations: Vec<Annotation>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    attribution_texts: Vec<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Checksum {
    algorithm: String,
    checksum_value: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExternalReference {
    reference_category: String,
    reference_type: String,
    reference_locator: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Annotation {
    #[serde(default)]
    annotation_date: String,
    #[serde(default)]
    annotation_type: String,
    #[serde(default)]
    annotator: String,
    comment: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Relationship {
    spdx_element_id: String,
    relationship_type: String,
    related_spdx_element: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExtractedLicence {
    license_id: String,
    extracted_text: String,
    name: String,
}

/// Writes a bill. The bytes depend on the bill and on nothing else.
pub fn write(bill: &Bill) -> Result<Vec<u8>, BillError> {
    Ok(serde_json::to_vec(&document(bill))?)
}

fn document(bill: &Bill) -> Document {
    let created = bill.created();
    let annotation = |key: &str, value: &str| Annotation {
        annotation_date: created.clone(),
        annotation_type: "OTHER".into(),
        annotator: creator(),
        comment: format!("{key}: {value}"),
    };
    let mut packages = vec![root(bill, &annotation)];
    let mut relationships = vec![relationship(DOCUMENT, "DESCRIBES", ROOT)];
    if let Some(os) = &bill.os {
        packages.push(system(os, &annotation));
        relationships.push(relationship(ROOT, "CONTAINS", SYSTEM));
    }
    let mut licences = BTreeMap::new();
    let mut identifiers = HashMap::new();
    for component in &bill.components {
        let mut entry = component_entry(component, bill.os.as_ref(), &mut licences, &annotation);
        // Two entries may be alike in all that we write; their identifiers may not.
        let count = identifiers.entry(entry.id.clone()).or_insert(0_u32);
        *count += 1;
        if *count > 1 {
            entry.id = format!("{}-{count}", entry.id);
        }
        let is_system = component.detector.is_os() && bill.os.is_some();
        let parent = if is_system { SYSTEM } else { ROOT };
        relationships.push(relationship(parent, "CONTAINS", &entry.id));
        packages.push(entry);
    }
    let namespace = match Digest::parse(&bill.subject.digest) {
        Some(digest) => digest,
        // Without a digest the packages themselves make the difference.
        None => Digest::of(&serde_json::to_vec(&packages).unwrap_or_default()),
    };
    Document {
        spdx_version: VERSION.into(),
        data_license: "CC0-1.0".into(),
        id: DOCUMENT.into(),
        name: bill.subject.name.clone(),
        document_namespace: format!("https://spdx.org/spdxdocs/muster-{}", namespace.digits()),
        creation_info: CreationInfo {
            created: created.clone(),
            creators: vec!["Organization: Muster".into(), creator()],
        },
        packages,
        relationships,
        has_extracted_licensing_infos: licences
            .into_iter()
            .map(|(license_id, text)| ExtractedLicence {
                license_id,
                name: text.clone(),
                extracted_text: text,
            })
            .collect(),
    }
}

fn creator() -> String {
    format!("Tool: muster-{}", env!("CARGO_PKG_VERSION"))
}

fn relationship(from: &str, kind: &str, to: &str) -> Relationship {
    Relationship {
        spdx_element_id: from.into(),
        relationship_type: kind.into(),
        related_spdx_element: to.into(),
    }
}

fn entry(id: String, name: &str, version: &str) -> PackageEntry {
    PackageEntry {
        id,
        name: name.into(),
        version_info: version.into(),
        download_location: NO_ASSERTION.into(),
        ..PackageEntry::default()
    }
}

fn root(bill: &Bill, annotation: &impl Fn(&str, &str) -> Annotation) -> PackageEntry {
    let subject = &bill.subject;
    let digest = Digest::parse(&subject.digest);
    let incomplete = bill.incomplete.iter().map(|one| {
        // A path may hold anything, so both parts are written as one JSON array.
        let pair = serde_json::to_string(&(&one.path, &one.reason)).unwrap_or_default();
        annotation("Incomplete", &pair)
    });
    PackageEntry {
        primary_package_purpose: Some("CONTAINER".into()),
        checksums: digest
            .iter()
            .map(|digest| Checksum {
                algorithm: "SHA256".into(),
                checksum_value: digest.digits().into(),
            })
            .collect(),
        annotations: incomplete.collect(),
        ..entry(ROOT.into(), &subject.name, &subject.digest)
    }
}

fn system(os: &Os, annotation: &impl Fn(&str, &str) -> Annotation) -> PackageEntry {
    let mut annotations = Vec::new();
    if let Some(repository) = &os.repository {
        annotations.push(annotation("Repository", repository));
    }
    if os.extended {
        annotations.push(annotation("ExtendedSupport", "true"));
    }
    let facts = os.build.iter().flat_map(build_facts);
    annotations.extend(facts.map(|(key, value)| annotation(key, value)));
    PackageEntry {
        primary_package_purpose: Some("OPERATING-SYSTEM".into()),
        annotations,
        ..entry(SYSTEM.into(), os.family.name(), &os.version)
    }
}

fn component_entry(
    component: &Component,
    os: Option<&Os>,
    licences: &mut BTreeMap<String, String>,
    annotation: &impl Fn(&str, &str) -> Annotation,
) -> PackageEntry {
    let package = &component.package;
    let purl = Purl::of(component.detector.ecosystem(), package, os).to_string();
    let mut annotations = vec![annotation("PkgType", component.detector.name())];
    annotations.push(annotation("FilePath", &component.path));
    if let Some(layer) = &component.layer {
        annotations.push(annotation("LayerDiffID", layer.as_str()));
    }
    let layer = component.layer.as_ref().map_or("", Digest::as_str);
    let identity = format!("{purl}\n{}\n{layer}", component.path);
    let id = &Digest::of(identity.as_bytes()).digits()[..16].to_owned();
    let license_declared = match package.licence.as_deref() {
        None => String::new(),
        Some(text) => match licence::declared(text) {
            Licence::Expression(expression) => expression,
            Licence::Reference(reference) => {
                licences.insert(reference.clone(), text.to_owned());
                reference
            }
        },
    };
    PackageEntry {
        supplier: package
            .vendor
            .as_ref()
            .map(|vendor| format!("Organization: {vendor}")),
        source_info: package
            .source
            .as_ref()
            .map(|source| format!("{BUILT_FROM}{} {}", source.name, source.version)),
        license_declared,
        primary_package_purpose: Some("LIBRARY".into()),
        external_refs: vec![ExternalReference {
            reference_category: "PACKAGE-MANAGER".into(),
            reference_type: "purl".into(),
            reference_locator: purl,
        }],
        annotations,
        ..entry(
            format!("SPDXRef-Package-{id}"),
            &package.name,
            &package.version,
        )
    }
}

/// Reads a bill: one of ours without loss, one of another tool as far as its package URLs go.
pub fn read(text: &[u8]) -> Result<Bill, BillError> {
    let document: Document = serde_json::from_slice(text)?;
    if !document.spdx_version.starts_with("SPDX-2.") {
        let problem = format!("SPDX version {:?} is not 2.x", document.spdx_version);
        return Err(BillError::Unknown(problem));
    }
    let licences: HashMap<&str, &str> = document
        .has_extracted_licensing_infos
        .iter()
        .map(|one| (one.license_id.as_str(), one.extracted_text.as_str()))
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
        bill.components.extend(component_of(entry, &licences));
    }
    if bill.os.is_none() {
        bill.os = os_of_purls(&document);
    }
    bill.components.sort();
    Ok(bill)
}

impl PackageEntry {
    /// What annotations say under a key; older tools write the same as attribution texts.
    fn facts<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        let comments = self.annotations.iter().map(|one| one.comment.as_str());
        let texts = self.attribution_texts.iter().map(String::as_str);
        comments
            .chain(texts)
            .filter_map(move |text| text.strip_prefix(key)?.strip_prefix(": "))
    }

    fn purl(&self) -> Option<Purl> {
        let reference = self
            .external_refs
            .iter()
            .find(|reference| reference.reference_type == "purl")?;
        Purl::parse(&reference.reference_locator)
    }
}

fn subject(document: &Document) -> Subject {
    let described = document
        .relationships
        .iter()
        .find(|one| one.relationship_type == "DESCRIBES");
    let root = described.and_then(|one| {
        let id = &one.related_spdx_element;
        document.packages.iter().find(|entry| entry.id == *id)
    });
    let sum = root.and_then(|root| {
        let sha256 = |sum: &&Checksum| sum.algorithm == "SHA256";
        root.checksums.iter().find(sha256)
    });
    let created = &document.creation_info.created;
    let unknown = created.starts_with("1970-01-01T00:00:00");
    Subject {
        name: root.map_or(&document.name, |root| &root.name).clone(),
        digest: sum.map_or(String::new(), |sum| {
            format!("sha256:{}", sum.checksum_value)
        }),
        created: (!created.is_empty() && !unknown).then(|| created.clone()),
    }
}

fn os_of(entry: &PackageEntry) -> Os {
    Os {
        family: Family::named(&entry.name),
        version: entry.version_info.clone(),
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

fn component_of(entry: &PackageEntry, licences: &HashMap<&str, &str>) -> Option<Component> {
    let (ecosystem, mut package) = entry.purl()?.package()?;
    let detector = entry.facts("PkgType").next().and_then(Detector::named);
    let detector = detector.filter(|detector| detector.ecosystem() == ecosystem);
    // A URL writes some names in lower case; the entry has them as they are.
    if detector.is_some() {
        package.name.clone_from(&entry.name);
        package.version.clone_from(&entry.version_info);
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
    package.licence = match entry.license_declared.as_str() {
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

#[cfg(test)]
pub(crate) mod tests;
