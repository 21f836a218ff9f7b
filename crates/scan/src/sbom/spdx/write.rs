//! A bill as SPDX. The bytes depend on the bill and on nothing else.

use super::{BUILT_FROM, NO_ASSERTION};
use crate::digest::Digest;
use crate::image::Component;
use crate::os::Os;
use crate::purl::Purl;
use crate::sbom::licence::{self, Licence};
use crate::sbom::{Bill, BillError, build_facts};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

const VERSION: &str = "SPDX-2.3";
const ROOT: &str = "SPDXRef-Image";
const SYSTEM: &str = "SPDXRef-OperatingSystem";
const DOCUMENT: &str = "SPDXRef-DOCUMENT";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    spdx_version: String,
    data_license: String,
    #[serde(rename = "SPDXID")]
    id: String,
    name: String,
    document_namespace: String,
    creation_info: CreationInfo,
    packages: Vec<PackageEntry>,
    relationships: Vec<Relationship>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    has_extracted_licensing_infos: Vec<ExtractedLicence>,
}

#[derive(Default, Serialize)]
struct CreationInfo {
    created: String,
    creators: Vec<String>,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct PackageEntry {
    #[serde(rename = "SPDXID")]
    id: String,
    name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    version_info: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    supplier: Option<String>,
    download_location: String,
    files_analyzed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    source_info: Option<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    license_declared: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    license_concluded: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    copyright_text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    primary_package_purpose: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    checksums: Vec<Checksum>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    external_refs: Vec<ExternalReference>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    annotations: Vec<Annotation>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Checksum {
    algorithm: String,
    checksum_value: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ExternalReference {
    reference_category: String,
    reference_type: String,
    reference_locator: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Annotation {
    annotation_date: String,
    annotation_type: String,
    annotator: String,
    comment: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Relationship {
    spdx_element_id: String,
    relationship_type: String,
    related_spdx_element: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ExtractedLicence {
    license_id: String,
    extracted_text: String,
    name: String,
}

/// Writes a bill.
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
