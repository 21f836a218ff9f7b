//! This very machine as an image: its package database in a layer made by the real tar, against
//! what the real dpkg-query says is installed.

use muster_scan::digest::Digest;
use muster_scan::image::merge;
use muster_scan::layer;
use muster_scan::limits::Limits;
use muster_scan::sbom::{Bill, Subject, spdx};
use std::collections::BTreeSet;
use std::process::{Command, Stdio};

type Line = (String, String, String, String, String);

fn installed() -> BTreeSet<Line> {
    let format = "${Package}\t${Version}\t${Architecture}\t${source:Package}\t${source:Version}\t\
                  ${db:Status-Status}\n";
    let output = Command::new("dpkg-query")
        .args(["-W", "-f", format])
        .output()
        .expect("dpkg-query runs: these tests need a Debian-like machine");
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .filter_map(|line| {
            let fields: Vec<&str> = line.split('\t').collect();
            let state = fields[5];
            let field = |place: usize| fields[place].to_owned();
            (!matches!(state, "config-files" | "not-installed"))
                .then(|| (field(0), field(1), field(2), field(3), field(4)))
        })
        .collect()
}

fn layer(compression: &[&str]) -> Vec<u8> {
    let output = Command::new("tar")
        .args(["--ignore-failed-read", "-C", "/"])
        .args(compression)
        .args(["-cf", "-", "var/lib/dpkg/status", "var/lib/dpkg/info"])
        .args(["etc/os-release", "usr/lib/os-release", "etc/debian_version"])
        .stderr(Stdio::null())
        .output()
        .expect("tar runs");
    output.stdout
}

fn bill(blob: &[u8]) -> Bill {
    let layer = layer::read(blob, &Limits::DEFAULT).unwrap();
    assert_eq!(layer.digest, Digest::of(blob));
    let contents = merge([(&layer.diff_id, &layer.inventory)]).unwrap();
    let subject = Subject {
        name: "machine".into(),
        digest: Digest::of(b"manifest").to_string(),
        created: None,
    };
    Bill::new(subject, contents)
}

fn lines(bill: &Bill) -> BTreeSet<Line> {
    let packages = bill.components.iter().map(|component| &component.package);
    packages
        .map(|package| {
            (
                package.name.clone(),
                package.version.clone(),
                package.architecture.clone().unwrap(),
                package.source_name().to_owned(),
                package.source_version().to_owned(),
            )
        })
        .collect()
}

#[test]
fn the_packages_of_this_machine_are_those_that_dpkg_lists() {
    let expected = installed();
    let bill = bill(&layer(&[]));
    assert!(expected.len() > 50, "{} packages", expected.len());
    assert_eq!(lines(&bill), expected);
    assert_eq!(bill.incomplete, []);
    let release = std::fs::read_to_string("/etc/os-release").unwrap();
    let os = bill.os.clone().unwrap();
    assert!(
        release.contains(&format!("ID={}", os.family.name())),
        "{os}"
    );
    assert!(
        bill.components
            .iter()
            .all(|component| component.layer.is_some())
    );
}

#[test]
fn compression_changes_nothing_but_the_digest_of_the_blob() {
    let plain = layer(&[]);
    let gzip = {
        use std::io::Write;
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(&plain).unwrap();
        encoder.finish().unwrap()
    };
    let zstd = zstd::encode_all(plain.as_slice(), 3).unwrap();
    let read = |blob: &[u8]| layer::read(blob, &Limits::DEFAULT).unwrap();
    let (plain, gzip, zstd) = (read(&plain), read(&gzip), read(&zstd));
    assert_eq!(plain.digest, plain.diff_id);
    for other in [gzip, zstd] {
        assert_ne!(other.digest, plain.digest);
        assert_eq!(other.diff_id, plain.diff_id);
        assert_eq!(other.size, plain.size);
        assert_eq!(other.inventory, plain.inventory);
    }
}

#[test]
fn the_same_image_yields_the_same_bytes_and_they_are_read_back_without_loss() {
    let blob = layer(&[]);
    let (first, second) = (bill(&blob), bill(&blob));
    let written = spdx::write(&first).unwrap();
    assert_eq!(written, spdx::write(&second).unwrap());
    assert_eq!(spdx::read(&written).unwrap(), first);
}

#[test]
fn an_inventory_survives_being_kept() {
    let layer = layer::read(layer(&[]).as_slice(), &Limits::DEFAULT).unwrap();
    let kept = serde_json::to_vec(&layer.inventory).unwrap();
    let read: layer::LayerInventory = serde_json::from_slice(&kept).unwrap();
    assert_eq!(read, layer.inventory);
    assert_eq!(serde_json::to_vec(&read).unwrap(), kept);
}

/// A root file system with links in it, archived by the real tar.
fn linked(make: &str) -> Bill {
    let directory = tempfile::tempdir().unwrap();
    let status = Command::new("sh")
        .args(["-ec", make])
        .current_dir(directory.path())
        .status();
    assert!(status.unwrap().success());
    let output = Command::new("tar")
        .args(["--sort=name", "-cf", "-", "-C"])
        .arg(directory.path())
        .arg(".")
        .output()
        .expect("tar runs");
    bill(&output.stdout)
}

#[test]
fn databases_behind_links_are_found() {
    let stanza =
        "printf 'Package: a\\nStatus: install ok installed\\nArchitecture: all\\nVersion: 1\\n'";
    for (make, names, incomplete) in [
        // A merged usr, where /lib is a link; apk's database is reached through it.
        (
            "mkdir -p usr/lib/apk/db && ln -s usr/lib lib && printf 'P:a\\nV:1\\nA:all\\n\\n' > lib/apk/db/installed"
                .to_owned(),
            vec!["a"],
            0,
        ),
        // A hard link to a file of the same layer that is a database, too.
        (
            format!("mkdir -p var/lib/dpkg/status.d && {stanza} > var/lib/dpkg/status && ln var/lib/dpkg/status var/lib/dpkg/status.d/a"),
            vec!["a"],
            0,
        ),
        // One to a file that says nothing by its name: missed, and said to be.
        (
            format!("mkdir -p var/lib/dpkg data && {stanza} > data/x && ln data/x var/lib/dpkg/status"),
            vec![],
            1,
        ),
        (
            format!("mkdir -p data/dpkg var/lib && {stanza} > data/dpkg/status && ln -s ../../data/dpkg var/lib/dpkg"),
            vec![],
            1,
        ),
    ] {
        let bill = linked(&make);
        let found: Vec<_> = bill.components.iter().map(|one| one.package.name.as_str()).collect();
        assert_eq!(found, names, "{make}");
        assert_eq!(bill.incomplete.len(), incomplete, "{:?}", bill.incomplete);
    }
}

#[test]
fn the_packages_of_a_fresh_debian_are_those_that_dpkg_lists() {
    let root = muster_testkit::debian::root().unwrap();
    let expected: BTreeSet<Line> = muster_testkit::debian::installed(&root)
        .unwrap()
        .into_iter()
        .map(|[name, version, architecture, source, source_version]| {
            (name, version, architecture, source, source_version)
        })
        .collect();
    assert!(expected.len() > 50, "{} packages", expected.len());
    let mut tar = muster_testkit::debian::archive(&root).unwrap();
    let layer = layer::read(tar.stdout.take().unwrap(), &Limits::DEFAULT).unwrap();
    assert!(tar.wait().unwrap().success());
    let contents = merge([(&layer.diff_id, &layer.inventory)]).unwrap();
    let bill = Bill::new(Subject::default(), contents);
    // Everything there is the distribution's: no file of its packages counts a second time.
    assert_eq!(lines(&bill), expected);
    assert_eq!(bill.components.len(), expected.len());
    assert_eq!(bill.incomplete, []);
    assert_eq!(bill.os.as_ref().unwrap().family.name(), "debian");
    let licensed = |one: &&muster_scan::image::Component| one.package.licence.is_some();
    let licensed = bill.components.iter().filter(licensed).count();
    assert!(licensed * 2 > expected.len(), "{licensed} have a licence");
}
