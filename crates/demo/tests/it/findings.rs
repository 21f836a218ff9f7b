//! The images and the advisories are for each other: what is found in each image is written down here, and no
//! advisory is about what no image has.

use http::{Method, Uri};
use muster_demo::advisories::{Affected, known};
use muster_demo::image::{Image, Layer};
use muster_demo::images;
use muster_demo::site::Site;
use muster_demo::statements::{HARMLESS, MANIFEST, REPOSITORY};
use muster_scan::image::merge;
use muster_scan::limits::Limits;
use muster_scan::package::Detector;
use muster_scan::purl::Purl;
use muster_scan::report::Report;
use muster_scan::sbom::{Bill, Subject};
use muster_scan::vex::Statements;
use muster_scan::vex::hub::{self, Hub};
use muster_scan::vulnerability::Database;
use muster_scan::vulnerability::exploitation::Table;
use muster_scan::vulnerability::osv::{Compiler, OsvIndex};
use muster_scan::{layer, matching};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Cursor;

fn database() -> OsvIndex {
    let known = known().unwrap();
    let mut compiler = Compiler::new().unwrap();
    for advisory in &known.advisories {
        compiler
            .add(known.record(advisory).to_string().as_bytes())
            .unwrap();
    }
    let mut file = Cursor::new(Vec::new());
    let compiled = compiler.finish(&mut file).unwrap();
    assert_eq!(compiled.records as usize, known.advisories.len());
    let left_out = &compiled.summary.left_out;
    assert!(left_out.is_empty(), "{left_out:?}");
    OsvIndex::open(file.into_inner()).unwrap()
}

fn bill(name: &str, layers: &[Layer]) -> Bill {
    let layers: Vec<_> = layers
        .iter()
        .map(|layer| layer::read(&*layer.blob().bytes, &Limits::DEFAULT).unwrap())
        .collect();
    let contents = merge(layers.iter().map(|one| (&one.diff_id, &one.inventory))).unwrap();
    assert!(contents.incomplete.is_empty(), "{name}: {contents:?}");
    Bill::new(Subject::default(), contents)
}

fn report(image: &Image, database: &OsvIndex) -> Report {
    let bill = bill(image.repository, &image.builds[0].layers);
    let findings = matching::find(&bill, database).unwrap();
    Report::new(&bill, &findings, database.metadata(), None)
}

#[test]
fn every_image_has_what_it_is_meant_to_have() {
    let database = database();
    let found: BTreeMap<String, String> = images::all()
        .unwrap()
        .iter()
        .map(|image| {
            let summary = report(image, &database).summary;
            let counts = format!(
                "{} {} {} {}",
                summary.critical, summary.high, summary.medium, summary.low
            );
            (format!("{}:{}", image.repository, image.tag), counts)
        })
        .collect();
    let expected = [
        ("platform/backup:1.2.0", "6 13 15 2"),
        ("platform/gateway:3.1.0", "0 0 0 0"),
        ("platform/metrics:0.9.0", "0 3 0 0"),
        ("shop/cache:7.2.5", "2 7 9 0"),
        ("shop/cart:1.8.0", "3 14 12 1"),
        ("shop/cart:1.9.0", "2 6 9 0"),
        ("shop/payments:4.2.1", "2 9 2 0"),
        ("shop/storefront:2.3.0", "4 11 10 0"),
    ];
    let expected: BTreeMap<String, String> = expected
        .into_iter()
        .map(|(name, counts)| (name.to_owned(), counts.to_owned()))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn every_advisory_is_about_a_package_that_some_layer_brings() {
    let mut brought = BTreeSet::new();
    for image in images::all().unwrap() {
        for build in &image.builds {
            // What a layer above takes away or replaces counts too: those are the near misses.
            for count in 1..=build.layers.len() {
                for component in bill(image.repository, &build.layers[..count]).components {
                    let (ecosystem, name) = match component.detector {
                        Detector::Dpkg => ("Debian:12", component.package.source_name()),
                        Detector::Apk => ("Alpine:v3.20", component.package.source_name()),
                        Detector::NodePackage => ("npm", component.package.name.as_str()),
                        _ => ("Go", component.package.name.as_str()),
                    };
                    brought.insert((ecosystem.to_owned(), name.to_owned()));
                }
            }
        }
    }
    let known = known().unwrap();
    for advisory in &known.advisories {
        for Affected(ecosystem, package, ranges) in &advisory.affected {
            let key = (ecosystem.clone(), package.clone());
            assert!(brought.contains(&key), "{}: {key:?}", advisory.id);
            assert!(!ranges.is_empty(), "{}", advisory.id);
        }
    }
    let ids: BTreeSet<&str> = known.advisories.iter().map(|one| &*one.id).collect();
    assert_eq!(ids.len(), known.advisories.len(), "each is there once");
    assert!(known.exploited.iter().all(|(id, _)| ids.contains(&**id)));
}

#[test]
fn some_advisories_miss_by_a_little() {
    let database = database();
    let images = images::all().unwrap();
    let found: BTreeSet<(String, String)> = images
        .iter()
        .flat_map(|image| {
            let report = report(image, &database);
            let found: Vec<_> = report
                .findings()
                .map(|finding| (image.repository.to_owned(), finding.cve.clone()))
                .collect();
            found
        })
        .collect();
    let has = |image: &str, id: &str| found.contains(&(image.to_owned(), id.to_owned()));
    for (image, id, expected) in [
        // The layer above upgraded OpenSSL, and took curl away.
        ("platform/backup", "CVE-2024-6119", true),
        ("shop/storefront", "CVE-2024-6119", false),
        ("platform/backup", "CVE-2023-38545", true),
        ("shop/storefront", "CVE-2023-38545", false),
        // The backdoor was out of the package again.
        ("shop/cart", "CVE-2024-3094", false),
        ("shop/cart", "CVE-2025-31115", true),
        // The module is newer, or the toolchain is.
        ("shop/payments", "CVE-2022-32149", false),
        ("shop/payments", "CVE-2024-24790", true),
        ("platform/metrics", "CVE-2024-24790", false),
    ] {
        assert_eq!(has(image, id), expected, "{id} in {image}");
    }
}

#[test]
fn what_is_declared_harmless_is_suppressed_in_that_image_alone() {
    let address = "127.0.0.1:5000".parse().unwrap();
    let site = Site::new(images::all().unwrap(), address).unwrap();
    let get = |path: &str| {
        let uri: Uri = path.parse().unwrap();
        site.answer(&Method::GET, &uri).into_body()
    };
    let locations = hub::locations(&get(MANIFEST)).unwrap();
    let path = locations[0].url.strip_prefix(&site.hub()).unwrap();
    let hub = Hub::open(get(path).to_vec(), "").unwrap();
    let database = database();
    for image in site.images() {
        let bill = bill(image.repository, &image.builds[0].layers);
        let name = image.repository.rsplit('/').next().unwrap();
        let purl = format!(
            "pkg:oci/{name}@{}?repository_url={}/{}",
            image.digest(),
            site.host(),
            image.repository
        );
        let purl = Purl::parse(&purl);
        let mut statements = Statements::new("1");
        let keys = hub::keys(&bill, purl.as_ref());
        hub.collect(&keys, "demo", &mut statements).unwrap();
        let mut report = report(image, &database);
        statements.apply(&mut report, purl.as_ref());
        let suppressed: BTreeSet<&str> = report
            .findings()
            .filter(|finding| finding.suppressed)
            .map(|finding| &*finding.cve)
            .collect();
        let expected = match image.repository == REPOSITORY {
            true => BTreeSet::from(HARMLESS),
            false => BTreeSet::new(),
        };
        assert_eq!(suppressed, expected, "{}", image.repository);
    }
}

#[test]
fn importers_read_the_catalogue_of_what_is_exploited() {
    let known = known().unwrap();
    let table = Table::of_catalogue(known.catalogue().to_string().as_bytes()).unwrap();
    assert_eq!(table.len(), known.exploited.len());
}
