//! Bills of ours and of other tools.

use super::{read, write};
use crate::digest::Digest;
use crate::image::Component;
use crate::layer::Incomplete;
use crate::os::{Build, Family, Os};
use crate::package::{Detector, Package, Source};
use crate::sbom::{Bill, Subject};
use serde_json::Value;
use std::collections::BTreeSet;

pub(crate) fn bill() -> Bill {
    let component = |detector, package, path: &str| Component {
        detector,
        package,
        path: path.into(),
        layer: Some(Digest::of(path.as_bytes())),
    };
    let openssl = Package {
        architecture: Some("amd64".into()),
        source: Some(Source {
            name: "openssl".into(),
            version: "3.0.11-1".into(),
        }),
        vendor: Some("Debian OpenSSL Team <a@b>".into()),
        ..Package::new("libssl3", "3.0.11-1~deb12u2")
    };
    let licensed = |name: &str, licence: &str| Package {
        licence: Some(licence.into()),
        ..Package::new(name, "1.0.0")
    };
    Bill {
        subject: Subject {
            name: "registry/app:1".into(),
            digest: Digest::of(b"manifest").to_string(),
            created: Some("2024-05-06T07:08:09Z".into()),
        },
        os: Some(Os {
            build: Some(Build {
                content_sets: vec!["a-rpms: x".into(), "b-rpms".into()],
                nvr: Some("a-container-1-2".into()),
                architecture: Some("x86_64".into()),
            }),
            ..Os::new(Family::Debian, "12.7")
        }),
        components: vec![
            component(Detector::Dpkg, openssl, "var/lib/dpkg/status"),
            component(
                Detector::NodePackage,
                licensed("@a/b", "MIT"),
                "app/package.json",
            ),
            component(
                Detector::PythonPackage,
                licensed("Flask_X", "BSD"),
                "x/METADATA",
            ),
        ],
        incomplete: vec![Incomplete {
            path: "a: b".into(),
            reason: "no: reason".into(),
        }],
        ..Bill::default()
    }
}

#[test]
fn a_bill_survives_being_written() {
    let bill = bill();
    let written = write(&bill).unwrap();
    assert_eq!(read(&written).unwrap(), bill);
    assert_eq!(write(&read(&written).unwrap()).unwrap(), written);
}

#[test]
fn entries_that_look_alike_have_identifiers_of_their_own() {
    let mut bill = bill();
    bill.components = vec![bill.components[0].clone(); 3];
    let document: Value = serde_json::from_slice(&write(&bill).unwrap()).unwrap();
    let packages = document["packages"].as_array().unwrap();
    let ids: BTreeSet<_> = packages.iter().map(|one| one["SPDXID"].as_str()).collect();
    assert_eq!(ids.len(), packages.len());
}

#[test]
fn bills_of_other_tools_are_read_by_their_package_urls() {
    let text = serde_json::json!({
        "spdxVersion": "SPDX-2.3",
        "packages": [
            {"SPDXID": "a", "name": "debian", "versionInfo": "12.5",
             "primaryPackagePurpose": "OPERATING-SYSTEM", "downloadLocation": "NONE"},
            {"SPDXID": "b", "name": "zlib1g", "versionInfo": "1:1.2.13.dfsg-1",
             "sourceInfo": "built package from: zlib 1:1.2.13.dfsg-1",
             "supplier": "NOASSERTION", "licenseDeclared": "NONE",
             "attributionTexts": ["PkgType: debian", "LayerDiffID: sha256:bad"],
             "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                "referenceLocator": "pkg:deb/debian/zlib1g@1.2.13.dfsg-1?arch=amd64&distro=debian-12.5&epoch=1"}]},
            {"SPDXID": "c", "name": "no url"},
        ],
    });
    let bill = read(text.to_string().as_bytes()).unwrap();
    assert_eq!(bill.os, Some(Os::new(Family::Debian, "12.5")));
    let [component] = bill.components.as_slice() else {
        panic!("{bill:?}");
    };
    assert_eq!(component.detector, Detector::Dpkg);
    assert_eq!(component.package.version, "1:1.2.13.dfsg-1");
    assert_eq!(component.package.source_name(), "zlib");
    assert_eq!(component.package.vendor, None);
}

#[test]
fn the_distribution_is_taken_from_urls_where_nothing_else_names_it() {
    let text = r#"{"spdxVersion": "SPDX-2.2", "packages": [{"SPDXID": "a", "externalRefs": [
        {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
         "referenceLocator": "pkg:apk/alpine/musl@1.2.5-r0?distro=alpine-3.20.3"}]}]}"#;
    let bill = read(text.as_bytes()).unwrap();
    assert_eq!(bill.os, Some(Os::new(Family::Alpine, "3.20.3")));
}

#[test]
fn what_is_no_spdx_2_is_refused() {
    for (text, problem) in [
        ("{", "EOF"),
        ("[]", "invalid"),
        (r#"{"spdxVersion": "SPDX-3.0"}"#, "not 2.x"),
    ] {
        let error = read(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
}
