//! CycloneDX 1.6 in JSON, for those who want it instead of SPDX: the same bill, written without
//! loss and read back; bills of other tools are read by the package URLs in them.

use super::licence::{self, Licence};
use super::{Bill, BillError, Subject, build_facts, build_of};
use crate::digest::Digest;
use crate::image::Component;
use crate::layer::Incomplete;
use crate::os::{Family, Os};
use crate::package::{Detector, Source};
use crate::purl::Purl;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

const OURS: &str = "muster:";
/// What another widely used tool calls the same properties.
const THEIRS: &str = "aquasecurity:trivy:";
const ROOT: &str = "image";
const SYSTEM: &str = "operating-system";

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Document {
    #[serde(rename = "$schema", skip_serializing_if = "String::is_empty")]
    schema: String,
    bom_format: String,
    spec_version: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    serial_number: String,
    version: u32,
    metadata: MetadataValue,
    components: Vec<ComponentValue>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    dependencies: Vec<Dependency>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct MetadataValue {
    timestamp: String,
    /// A list in old documents, and of no interest when read.
    #[serde(skip_deserializing)]
    tools: Option<Tools>,
    component: Option<ComponentValue>,
}

#[derive(Serialize)]
struct Tools {
    components: Vec<ComponentValue>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct ComponentValue {
    #[serde(rename = "bom-ref", skip_serializing_if = "String::is_empty")]
    reference: String,
    #[serde(rename = "type")]
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    supplier: Option<Supplier>,
    #[serde(skip_serializing_if = "String::is_empty")]
    group: String,
    name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    version: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    hashes: Vec<Hash>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    licenses: Vec<LicenceChoice>,
    #[serde(skip_serializing_if = "String::is_empty")]
    purl: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    properties: Vec<Property>,
    /// Other tools put components into others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    components: Vec<ComponentValue>,
}

#[derive(Serialize, Deserialize)]
struct Supplier {
    #[serde(default)]
    name: String,
}

#[derive(Serialize, Deserialize)]
struct Hash {
    alg: String,
    content: String,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct LicenceChoice {
    #[serde(skip_serializing_if = "Option::is_none")]
    license: Option<LicenceValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expression: Option<String>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct LicenceValue {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Property {
    name: String,
    #[serde(default)]
    value: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Dependency {
    #[serde(rename = "ref")]
    reference: String,
    #[serde(default)]
    depends_on: Vec<String>,
}

/// Writes a bill. The bytes depend on the bill and on nothing else.
pub fn write(bill: &Bill) -> Result<Vec<u8>, BillError> {
    Ok(serde_json::to_vec(&document(bill))?)
}

fn property(name: &str, value: &str) -> Property {
    Property {
        name: format!("{OURS}{name}"),
        value: value.into(),
    }
}

fn document(bill: &Bill) -> Document {
    let mut components = Vec::new();
    let (mut of_root, mut of_system) = (Vec::new(), Vec::new());
    if let Some(os) = &bill.os {
        components.push(system(os));
        of_root.push(SYSTEM.to_owned());
    }
    let mut references = HashMap::new();
    for component in &bill.components {
        let mut value = component_value(component, bill.os.as_ref());
        let count = references.entry(value.reference.clone()).or_insert(0_u32);
        *count += 1;
        if *count > 1 {
            value.reference = format!("{}-{count}", value.reference);
        }
        let is_system = component.detector.is_os() && bill.os.is_some();
        let parent = if is_system {
            &mut of_system
        } else {
            &mut of_root
        };
        parent.push(value.reference.clone());
        components.push(value);
    }
    let mut dependencies = vec![Dependency {
        reference: ROOT.into(),
        depends_on: of_root,
    }];
    if bill.os.is_some() {
        dependencies.push(Dependency {
            reference: SYSTEM.into(),
            depends_on: of_system,
        });
    }
    let contents = serde_json::to_vec(&components).unwrap_or_default();
    let digest = Digest::parse(&bill.subject.digest).unwrap_or_else(|| Digest::of(&contents));
    Document {
        schema: "http://cyclonedx.org/schema/bom-1.6.schema.json".into(),
        bom_format: "CycloneDX".into(),
        spec_version: "1.6".into(),
        serial_number: serial_number(&digest),
        version: 1,
        metadata: MetadataValue {
            timestamp: bill.created(),
            tools: Some(Tools {
                components: vec![ComponentValue {
                    kind: "application".into(),
                    name: "muster".into(),
                    version: env!("CARGO_PKG_VERSION").into(),
                    ..ComponentValue::default()
                }],
            }),
            component: Some(root(bill)),
        },
        components,
        dependencies,
    }
}

/// A UUID of the kind whose bits are its maker's own, from the digest.
fn serial_number(digest: &Digest) -> String {
    let digits = digest.digits();
    format!(
        "urn:uuid:{}-{}-8{}-8{}-{}",
        &digits[..8],
        &digits[8..12],
        &digits[13..16],
        &digits[17..20],
        &digits[20..32]
    )
}

fn root(bill: &Bill) -> ComponentValue {
    let digest = Digest::parse(&bill.subject.digest);
    let incomplete = bill.incomplete.iter().map(|one| {
        let pair = serde_json::to_string(&(&one.path, &one.reason)).unwrap_or_default();
        property("Incomplete", &pair)
    });
    ComponentValue {
        reference: ROOT.into(),
        kind: "container".into(),
        name: bill.subject.name.clone(),
        version: bill.subject.digest.clone(),
        hashes: digest
            .iter()
            .map(|digest| Hash {
                alg: "SHA-256".into(),
                content: digest.digits().into(),
            })
            .collect(),
        properties: incomplete.collect(),
        ..ComponentValue::default()
    }
}

fn system(os: &Os) -> ComponentValue {
    let mut properties = Vec::new();
    if let Some(repository) = &os.repository {
        properties.push(property("Repository", repository));
    }
    if os.extended {
        properties.push(property("ExtendedSupport", "true"));
    }
    let facts = os.build.iter().flat_map(build_facts);
    properties.extend(facts.map(|(key, value)| property(key, value)));
    ComponentValue {
        reference: SYSTEM.into(),
        kind: "operating-system".into(),
        name: os.family.name().into(),
        version: os.version.clone(),
        properties,
        ..ComponentValue::default()
    }
}

fn component_value(component: &Component, os: Option<&Os>) -> ComponentValue {
    let package = &component.package;
    let purl = Purl::of(component.detector.ecosystem(), package, os).to_string();
    let mut properties = vec![
        property("PkgType", component.detector.name()),
        property("FilePath", &component.path),
    ];
    if let Some(layer) = &component.layer {
        properties.push(property("LayerDiffID", layer.as_str()));
    }
    if let Some(source) = &package.source {
        properties.push(property("SrcName", &source.name));
        properties.push(property("SrcVersion", &source.version));
    }
    let layer = component.layer.as_ref().map_or("", Digest::as_str);
    let identity = format!("{purl}\n{}\n{layer}", component.path);
    let licence = package
        .licence
        .as_deref()
        .map(|text| match licence::declared(text) {
            Licence::Expression(expression) => LicenceChoice {
                expression: Some(expression),
                license: None,
            },
            Licence::Reference(_) => LicenceChoice {
                expression: None,
                license: Some(LicenceValue {
                    id: None,
                    name: Some(text.into()),
                }),
            },
        });
    ComponentValue {
        reference: Digest::of(identity.as_bytes()).digits()[..16].into(),
        kind: "library".into(),
        supplier: package.vendor.clone().map(|name| Supplier { name }),
        name: package.name.clone(),
        version: package.version.clone(),
        licenses: licence.into_iter().collect(),
        purl,
        properties,
        ..ComponentValue::default()
    }
}

/// Reads a bill: one of ours without loss, one of another tool as far as its package URLs go.
pub fn read(text: &[u8]) -> Result<Bill, BillError> {
    let document: Document = serde_json::from_slice(text)?;
    if document.bom_format != "CycloneDX" || !document.spec_version.starts_with("1.") {
        let version = &document.spec_version;
        let problem = format!("{:?} {version:?} is not CycloneDX 1.x", document.bom_format);
        return Err(BillError::Unknown(problem));
    }
    let root = document.metadata.component.unwrap_or_default();
    let sum = root.hashes.iter().find(|hash| hash.alg == "SHA-256");
    let created = &document.metadata.timestamp;
    let unknown = created.is_empty() || created.starts_with("1970-01-01T00:00:00");
    let mut bill = Bill {
        subject: Subject {
            name: root.name.clone(),
            digest: sum.map_or(String::new(), |sum| format!("sha256:{}", sum.content)),
            created: (!unknown).then(|| created.clone()),
        },
        ..Bill::default()
    };
    let incomplete = root.facts("Incomplete").filter_map(|pair| {
        let (path, reason) = serde_json::from_str(pair).ok()?;
        Some(Incomplete { path, reason })
    });
    bill.incomplete = incomplete.collect();
    let mut values: Vec<&ComponentValue> = document.components.iter().collect();
    while let Some(value) = values.pop() {
        values.extend(&value.components);
        if value.kind == "operating-system" {
            bill.os = Some(Os {
                family: Family::named(&value.name),
                version: value.version.clone(),
                repository: value.facts("Repository").next().map(Into::into),
                extended: value.facts("ExtendedSupport").next() == Some("true"),
                build: build_of(|key| value.facts(key).map(Into::into).collect()),
            });
        }
        match component_of(value) {
            Some(component) => bill.components.push(component),
            None => {
                if let Some(kind) = value.unsupported() {
                    bill.leave_out(&kind, &value.name, &value.version);
                }
            }
        }
    }
    bill.components.sort();
    Ok(bill)
}

impl ComponentValue {
    fn facts<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.properties
            .iter()
            .filter(move |property| {
                let own = property.name.strip_prefix(OURS);
                own.or_else(|| property.name.strip_prefix(THEIRS)) == Some(name)
            })
            .map(|property| property.value.as_str())
    }

    /// The type of a package whose type is not supported; empty if a library has no package URL.
    fn unsupported(&self) -> Option<String> {
        match (Purl::parse(&self.purl), self.kind.as_str()) {
            (_, "operating-system" | "container" | "file" | "data" | "device" | "platform") => None,
            (Some(purl), _) => Some(purl.kind),
            (None, "library" | "framework") => Some(String::new()),
            (None, _) => None,
        }
    }

    fn is_ours(&self) -> bool {
        let mut properties = self.properties.iter();
        properties.any(|property| property.name.starts_with(OURS))
    }
}

fn component_of(value: &ComponentValue) -> Option<Component> {
    let (ecosystem, mut package) = Purl::parse(&value.purl)?.package()?;
    let detector = value.facts("PkgType").next().and_then(Detector::named);
    let detector = detector.filter(|detector| detector.ecosystem() == ecosystem);
    if value.is_ours() {
        package.name.clone_from(&value.name);
        package.version.clone_from(&value.version);
    }
    if let (Some(name), Some(version)) = (
        value.facts("SrcName").next(),
        value.facts("SrcVersion").next(),
    ) {
        // Another tool takes the source's version apart.
        let epoch = value
            .facts("SrcEpoch")
            .next()
            .map_or(String::new(), |one| format!("{one}:"));
        let release = value
            .facts("SrcRelease")
            .next()
            .map_or(String::new(), |one| format!("-{one}"));
        package.source = Some(Source {
            name: name.into(),
            version: format!("{epoch}{version}{release}"),
        });
    }
    package.vendor = value
        .supplier
        .as_ref()
        .map(|supplier| supplier.name.clone())
        .filter(|name| !name.is_empty());
    package.licence = value.licenses.first().and_then(|choice| {
        let named = choice.license.as_ref();
        choice
            .expression
            .clone()
            .or_else(|| named.and_then(|one| one.id.clone().or_else(|| one.name.clone())))
    });
    Some(Component {
        detector: detector.unwrap_or(ecosystem.detector()),
        package,
        path: value.facts("FilePath").next().unwrap_or_default().into(),
        layer: value.facts("LayerDiffID").next().and_then(Digest::parse),
    })
}

#[cfg(test)]
mod tests {
    use super::super::spdx::tests::bill;
    use super::*;

    #[test]
    fn a_bill_survives_being_written() {
        let bill = bill();
        let written = write(&bill).unwrap();
        assert_eq!(read(&written).unwrap(), bill);
        assert_eq!(write(&read(&written).unwrap()).unwrap(), written);
    }

    #[test]
    fn a_serial_number_is_a_uuid_that_depends_on_the_image() {
        let number = serial_number(&Digest::of(b"a"));
        assert_eq!(
            number.len(),
            "urn:uuid:00000000-0000-8000-8000-000000000000".len()
        );
        assert_ne!(number, serial_number(&Digest::of(b"b")));
    }

    #[test]
    fn bills_of_other_tools_are_read_by_their_package_urls() {
        let text = serde_json::json!({
            "bomFormat": "CycloneDX", "specVersion": "1.4",
            "metadata": {"tools": [{"vendor": "x"}], "component": {"type": "container", "name": "app"}},
            "components": [
                {"type": "operating-system", "name": "debian", "version": "12.5"},
                {"type": "library", "name": "zlib1g", "version": "1:1.2.13.dfsg-1",
                 "purl": "pkg:deb/debian/zlib1g@1.2.13.dfsg-1?arch=amd64&distro=debian-12.5&epoch=1",
                 "licenses": [{"license": {"name": "Zlib"}}],
                 "properties": [{"name": "aquasecurity:trivy:SrcName", "value": "zlib"},
                    {"name": "aquasecurity:trivy:SrcVersion", "value": "1.2.13.dfsg"},
                    {"name": "aquasecurity:trivy:SrcRelease", "value": "1"},
                    {"name": "aquasecurity:trivy:SrcEpoch", "value": "1"}]},
            ],
        });
        let bill = read(text.to_string().as_bytes()).unwrap();
        assert_eq!(bill.os, Some(Os::new(Family::Debian, "12.5")));
        let package = &bill.components[0].package;
        assert_eq!(package.version, "1:1.2.13.dfsg-1");
        assert_eq!(
            (package.source_name(), package.source_version()),
            ("zlib", "1:1.2.13.dfsg-1")
        );
    }

    #[test]
    fn other_documents_are_refused() {
        for (text, problem) in [
            ("{", "EOF"),
            ("{}", "not CycloneDX"),
            (
                r#"{"bomFormat": "CycloneDX", "specVersion": "2.0"}"#,
                "not CycloneDX",
            ),
        ] {
            let error = read(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(problem), "{error}");
        }
    }
}
