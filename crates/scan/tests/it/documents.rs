//! Bills of materials as others see them: written by us and held against the official schemas and
//! rules by the makers' own libraries, written in the manner of other tools and read by us.

use muster_scan::digest::Digest;
use muster_scan::image::Component;
use muster_scan::layer::Incomplete;
use muster_scan::os::{Build, Family, Os};
use muster_scan::package::{Detector, Package, Source};
use muster_scan::sbom::{Bill, Subject, cyclonedx, spdx};
use std::path::{Path, PathBuf};
use std::process::Command;

const LIBRARIES: [&str; 2] = [
    "spdx-tools==0.8.5",
    "cyclonedx-python-lib[json-validation]==11.12.0",
];

/// Python with the libraries of both formats, in the cache.
fn python() -> PathBuf {
    let cache = muster_testkit::binaries::cache().unwrap();
    let place = cache.join("python-documents-1");
    let python = place.join("bin/python3");
    std::fs::create_dir_all(&cache).unwrap();
    let lock = std::fs::File::create(cache.join("python-documents-1.lock")).unwrap();
    lock.lock().unwrap();
    let stamp = place.join("complete");
    if !stamp.exists() {
        let made = Command::new("python3")
            .args(["-m", "venv", "--clear"])
            .arg(&place)
            .status();
        assert!(
            made.expect("python3 runs: apt-get install python3-venv")
                .success()
        );
        let installed = Command::new(&python)
            .args(["-m", "pip", "install", "-q"])
            .args(LIBRARIES)
            .status();
        assert!(installed.unwrap().success(), "pip installs {LIBRARIES:?}");
        std::fs::write(stamp, "").unwrap();
    }
    python
}

/// Prints what is wrong with the documents, one problem on a line.
const VALIDATE: &str = "
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from spdx_tools.spdx.parser.parse_anything import parse_file
from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document
for path in sys.argv[1:]:
    if path.endswith('.cdx.json'):
        problem = JsonStrictValidator(SchemaVersion.V1_6).validate_str(open(path).read())
        if problem:
            print(path, problem)
    else:
        for problem in validate_full_spdx_document(parse_file(path)):
            print(path, problem.validation_message)
print('done')
";

fn bills() -> Vec<Bill> {
    let component = |detector, package, path: &str| Component {
        detector,
        package,
        path: path.into(),
        layer: Some(Digest::of(path.as_bytes())),
    };
    let mut components = Vec::new();
    for (place, detector) in Detector::ALL.into_iter().enumerate() {
        let licences = [
            "MIT",
            "GPL-2.0-or-later AND MIT",
            "see LICENSE, please",
            "(Apache-2.0 OR MIT)",
        ];
        let package = Package {
            architecture: detector.is_os().then(|| "amd64".into()),
            source: detector.is_os().then(|| Source {
                name: "origin".into(),
                version: "1:2.3-4".into(),
            }),
            vendor: detector
                .is_os()
                .then(|| "Somebody Else <a@example.com>".into()),
            licence: Some(licences[place % licences.len()].into()),
            ..Package::new(format!("group:na/me_{place} ü"), "1:2.3~rc1+dfsg-4")
        };
        components.push(component(detector, package, &format!("a b/{place}.json")));
    }
    // Two that are alike in everything, and one about which next to nothing is known.
    components.push(component(Detector::GoBinary, Package::new("x", ""), "x"));
    components.push(component(Detector::GoBinary, Package::new("x", ""), "x"));
    components.sort();
    let image = Bill {
        subject: Subject {
            name: "registry.example:5000/app/image:1.0".into(),
            digest: Digest::of(b"manifest").to_string(),
            created: Some("2024-05-06T07:08:09Z".into()),
        },
        os: Some(Os {
            repository: Some("3.20".into()),
            extended: true,
            build: Some(Build {
                content_sets: vec!["a-rpms".into(), "b-rpms".into()],
                nvr: Some("a-container-1-2".into()),
                architecture: Some("x86_64".into()),
            }),
            ..Os::new(Family::SuseEnterprise, "15.5")
        }),
        components,
        incomplete: vec![Incomplete {
            path: "a".into(),
            reason: "b".into(),
        }],
        ..Bill::default()
    };
    let directory = Bill {
        subject: Subject {
            name: "src".into(),
            ..Subject::default()
        },
        ..Bill::default()
    };
    vec![image, directory]
}

#[test]
fn documents_are_valid_by_the_rules_of_their_makers() {
    let directory = tempfile::tempdir().unwrap();
    let mut paths = Vec::new();
    for (place, bill) in bills().iter().enumerate() {
        let (one, other) = (spdx::write(bill).unwrap(), cyclonedx::write(bill).unwrap());
        assert_eq!(&spdx::read(&one).unwrap(), bill);
        assert_eq!(&cyclonedx::read(&other).unwrap(), bill);
        for (name, bytes) in [("spdx", one), ("cdx", other)] {
            let path = directory.path().join(format!("{place}.{name}.json"));
            std::fs::write(&path, bytes).unwrap();
            paths.push(path);
        }
    }
    // The rules are not blind: each of these breaks one of them.
    let written = std::fs::read_to_string(&paths[0]).unwrap();
    let broken = directory.path().join("broken.spdx.json");
    std::fs::write(&broken, written.replace("CC0-1.0", "MIT")).unwrap();
    paths.push(broken);
    let written = std::fs::read_to_string(&paths[1]).unwrap();
    let broken = directory.path().join("broken.cdx.json");
    std::fs::write(&broken, written.replace("\"library\"", "\"book\"")).unwrap();
    paths.push(broken);
    let problems = problems(&paths);
    for ending in ["spdx", "cdx"] {
        assert!(
            problems.contains(&format!("broken.{ending}.json")),
            "{problems}"
        );
    }
    let whole = |line: &&str| !line.contains("broken.") && line.contains(".json");
    assert_eq!(
        problems.lines().filter(whole).collect::<Vec<_>>(),
        Vec::<&str>::new()
    );
    assert!(problems.contains("done"), "{problems}");
}

fn problems(paths: &[impl AsRef<Path>]) -> String {
    let output = Command::new(python())
        .args(["-c", VALIDATE])
        .args(paths.iter().map(AsRef::as_ref))
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    String::from_utf8_lossy(&output.stdout).into_owned() + &errors
}

/// In the manner of a tool that names the distribution by a file and the source by a purl.
const FIRST: &str = r#"{"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
 "name": "image", "documentNamespace": "https://example.com/image-1",
 "creationInfo": {"licenseListVersion": "3.25", "creators": ["Organization: Somebody", "Tool: first-1.0"], "created": "2024-11-01T00:00:00Z"},
 "packages": [
  {"name": "libssl3", "SPDXID": "SPDXRef-Package-deb-libssl3-1", "versionInfo": "3.0.11-1~deb12u2", "supplier": "Person: Debian OpenSSL Team (a@b)",
   "downloadLocation": "NOASSERTION", "filesAnalyzed": false, "sourceInfo": "acquired package info from DPKG DB: /var/lib/dpkg/status",
   "licenseConcluded": "NOASSERTION", "licenseDeclared": "Apache-2.0 AND LicenseRef-x", "copyrightText": "NOASSERTION",
   "externalRefs": [{"referenceCategory": "SECURITY", "referenceType": "cpe23Type", "referenceLocator": "cpe:2.3:a:libssl3:libssl3:3.0.11:*:*:*:*:*:*:*"},
    {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
     "referenceLocator": "pkg:deb/debian/libssl3@3.0.11-1~deb12u2?arch=amd64&distro=debian-12&upstream=openssl"}]},
  {"name": "lodash", "SPDXID": "SPDXRef-Package-npm-lodash-2", "versionInfo": "4.17.20", "downloadLocation": "NOASSERTION",
   "licenseConcluded": "NOASSERTION", "licenseDeclared": "MIT", "copyrightText": "NOASSERTION",
   "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": "pkg:npm/lodash@4.17.20"}]},
  {"name": "image", "SPDXID": "SPDXRef-DocumentRoot-Image-image", "versionInfo": "latest", "downloadLocation": "NOASSERTION", "filesAnalyzed": false,
   "checksums": [{"algorithm": "SHA256", "checksumValue": "0000000000000000000000000000000000000000000000000000000000000001"}],
   "licenseConcluded": "NOASSERTION", "licenseDeclared": "NOASSERTION", "copyrightText": "NOASSERTION", "primaryPackagePurpose": "CONTAINER"}],
 "files": [{"fileName": "/var/lib/dpkg/status", "SPDXID": "SPDXRef-File-1", "checksums": [{"algorithm": "SHA1", "checksumValue": "0000000000000000000000000000000000000000"}],
   "licenseConcluded": "NOASSERTION", "copyrightText": ""}],
 "relationships": [{"spdxElementId": "SPDXRef-DOCUMENT", "relatedSpdxElement": "SPDXRef-DocumentRoot-Image-image", "relationshipType": "DESCRIBES"}]}"#;

/// In the manner of a tool that nests the packages below the files that declare them.
const SECOND: &str = r#"{"$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json", "bomFormat": "CycloneDX", "specVersion": "1.6",
 "serialNumber": "urn:uuid:3e671687-395b-41f5-a30f-a58921a69b79", "version": 1,
 "metadata": {"timestamp": "2024-11-01T00:00:00+00:00", "tools": {"components": [{"type": "application", "name": "second", "version": "1"}]},
  "component": {"bom-ref": "root", "type": "container", "name": "image", "properties": [{"name": "aquasecurity:trivy:SchemaVersion", "value": "2"}]}},
 "components": [
  {"bom-ref": "os", "type": "operating-system", "name": "debian", "version": "12.5", "properties": [{"name": "aquasecurity:trivy:Type", "value": "debian"}]},
  {"bom-ref": "lib", "type": "library", "name": "libssl3", "version": "3.0.11-1~deb12u2", "supplier": {"name": "Debian OpenSSL Team"},
   "licenses": [{"license": {"name": "Apache-2.0"}}], "purl": "pkg:deb/debian/libssl3@3.0.11-1~deb12u2?arch=amd64&distro=debian-12.5",
   "properties": [{"name": "aquasecurity:trivy:PkgType", "value": "debian"}, {"name": "aquasecurity:trivy:SrcName", "value": "openssl"},
    {"name": "aquasecurity:trivy:SrcVersion", "value": "3.0.11"}, {"name": "aquasecurity:trivy:SrcRelease", "value": "1~deb12u2"},
    {"name": "aquasecurity:trivy:LayerDiffID", "value": "sha256:0000000000000000000000000000000000000000000000000000000000000001"}]},
  {"bom-ref": "lock", "type": "application", "name": "app/package-lock.json",
   "components": [{"bom-ref": "npm", "type": "library", "name": "lodash", "version": "4.17.20", "purl": "pkg:npm/lodash@4.17.20"}]}],
 "dependencies": [], "vulnerabilities": []}"#;

#[test]
fn documents_of_other_tools_are_read() {
    let first = spdx::read(FIRST.as_bytes()).unwrap();
    let second = cyclonedx::read(SECOND.as_bytes()).unwrap();
    for bill in [&first, &second] {
        assert_eq!(bill.subject.name, "image");
        assert_eq!(bill.os.as_ref().unwrap().family, Family::Debian);
        let found: Vec<_> = bill
            .components
            .iter()
            .map(|one| {
                let package = &one.package;
                (
                    one.detector,
                    package.name.as_str(),
                    package.version.as_str(),
                    package.source_name(),
                )
            })
            .collect();
        assert_eq!(
            found,
            [
                (Detector::Dpkg, "libssl3", "3.0.11-1~deb12u2", "openssl"),
                (Detector::NodePackage, "lodash", "4.17.20", "lodash")
            ]
        );
        assert_eq!(
            bill.components[0].package.source_version(),
            "3.0.11-1~deb12u2"
        );
        assert_eq!(
            bill.components[0].package.architecture.as_deref(),
            Some("amd64")
        );
    }
    // These samples are no straw men: the makers' libraries take them.
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("second.cdx.json");
    std::fs::write(&path, SECOND).unwrap();
    assert_eq!(problems(&[path]), "done\n");
}
