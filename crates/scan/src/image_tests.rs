//! Layers laid over one another.

use super::*;
use crate::embedded::Stated;

const STATUS: &str = "var/lib/dpkg/status";

fn layer(files: &[(&str, &[&str])]) -> LayerInventory {
    let mut layer = LayerInventory::default();
    for (path, packages) in files {
        let detector = match path.contains("dpkg") {
            true => Detector::Dpkg,
            false => Detector::NodePackage,
        };
        let packages = packages
            .iter()
            .map(|name| Package::new(*name, "1"))
            .collect();
        let owned = PathSet::default();
        let found = Found::Packages {
            detector,
            packages,
            owned,
        };
        layer.files.insert((*path).into(), found);
        layer.paths.insert(path);
    }
    layer.paths.seal();
    layer
}

fn merged(layers: &[LayerInventory]) -> Vec<(String, usize)> {
    let digests: Vec<_> = (0..layers.len())
        .map(|place| Digest::of(&[place as u8]))
        .collect();
    let contents = merge(digests.iter().zip(layers)).unwrap();
    let place = |digest: &Option<Digest>| {
        let digest = digest.as_ref().unwrap();
        digests.iter().position(|other| other == digest).unwrap()
    };
    contents
        .components
        .iter()
        .map(|component| (component.package.name.clone(), place(&component.layer)))
        .collect()
}

fn names(expected: &[(&str, usize)]) -> Vec<(String, usize)> {
    let pair = |(name, place): &(&str, usize)| ((*name).to_owned(), *place);
    expected.iter().map(pair).collect()
}

#[test]
fn a_package_belongs_to_the_layer_that_brought_it() {
    let layers = [
        layer(&[(STATUS, &["a", "b"])]),
        layer(&[(STATUS, &["a", "b", "c"])]),
        layer(&[(STATUS, &["b", "c"])]),
        layer(&[(STATUS, &["a", "b", "c"])]),
    ];
    assert_eq!(merged(&layers[..2]), names(&[("a", 0), ("b", 0), ("c", 1)]));
    assert_eq!(merged(&layers[..3]), names(&[("b", 0), ("c", 1)]));
    assert_eq!(merged(&layers), names(&[("a", 3), ("b", 0), ("c", 1)]));
}

#[test]
fn upper_layers_delete_hide_and_replace() {
    let base = || {
        layer(&[
            ("app/x/package.json", &["x"]),
            ("app/y/package.json", &["y"]),
        ])
    };
    let mut deleted = LayerInventory::default();
    deleted.whiteouts.insert("app/x".into());
    let mut like = LayerInventory::default();
    like.whiteouts.insert("app/x/pack".into());
    let mut opaque = layer(&[("app/z/package.json", &["z"])]);
    opaque.opaque.insert("app".into());
    let mut everything = LayerInventory::default();
    everything.opaque.insert(String::new());
    let hiding = |path: &str| {
        let mut layer = LayerInventory::default();
        layer.paths.insert(path);
        layer.paths.seal();
        layer
    };
    for (upper, expected) in [
        (deleted, vec![("y", 0)]),
        (like, vec![("x", 0), ("y", 0)]),
        (opaque, vec![("z", 1)]),
        (everything, vec![]),
        (hiding("app/x/package.json"), vec![("y", 0)]),
        (hiding("app/x/package.json/"), vec![("y", 0)]),
        (hiding("app/x"), vec![("y", 0)]),
        (hiding("app/x/"), vec![("x", 0), ("y", 0)]),
        (hiding("app"), vec![]),
    ] {
        assert_eq!(merged(&[base(), upper]), names(&expected));
    }
}

#[test]
fn a_database_behind_links_is_the_same_database() {
    let mut base = layer(&[("usr/lib/dpkg/status", &["a"])]);
    base.links.insert("var/lib".into(), "lib".into());
    base.links.insert("lib".into(), "usr/lib".into());
    let upper = layer(&[(STATUS, &["a", "b"])]);
    assert_eq!(merged(&[base.clone(), upper]), names(&[("a", 0), ("b", 1)]));
    let mut deleting = LayerInventory::default();
    deleting.whiteouts.insert(STATUS.into());
    assert_eq!(merged(&[base, deleting]), names(&[]));
}

#[test]
fn links_in_a_circle_end() {
    let mut circle = layer(&[(STATUS, &["a"])]);
    circle.links.insert("var".into(), "run".into());
    circle.links.insert("run".into(), "var".into());
    assert_eq!(merged(&[circle]).len(), 1);
}

#[test]
fn files_of_the_distribution_are_not_reported_twice() {
    let mut owned = PathSet::default();
    owned.insert("usr/share/node/package.json");
    owned.seal();
    let mut base = layer(&[
        ("usr/share/node/package.json", &["x"]),
        ("app/package.json", &["y"]),
    ]);
    let path = "var/lib/dpkg/info/node:amd64.md5sums".into();
    base.files.insert(path, Found::Owned(owned));
    assert_eq!(merged(&[base.clone()]), names(&[("y", 0)]));
    // Unless somebody else made the package.
    let mut node = Package::new("node", "1");
    node.vendor = Some("A <a@nodesource.com>".into());
    let status = Found::Packages {
        detector: Detector::Dpkg,
        packages: vec![node],
        owned: PathSet::default(),
    };
    base.files.insert(STATUS.into(), status);
    assert_eq!(merged(&[base]), names(&[("node", 0), ("x", 0), ("y", 0)]));
}

#[test]
fn builds_add_up_and_the_uppermost_names_the_image() {
    let built = |path: &str, sets: &[&str], nvr: Option<&str>| {
        let mut layer = LayerInventory::default();
        let build = Build {
            content_sets: sets.iter().map(|set| (*set).to_owned()).collect(),
            nvr: nvr.map(Into::into),
            architecture: None,
        };
        let fact = OsFact {
            build: Some(build),
            ..OsFact::default()
        };
        layer.files.insert(path.into(), Found::Os(fact));
        layer
    };
    let mut base = built("root/buildinfo/Dockerfile-z-1-1", &["b"], Some("z-1-1"));
    let release = OsFact {
        family: Some(crate::os::Family::RedHat),
        ..OsFact::default()
    };
    let path = "etc/os-release".into();
    base.files.insert(path, Found::Os(release));
    let upper = built(
        "root/buildinfo/Dockerfile-a-1-1",
        &["b", "a"],
        Some("a-1-1"),
    );
    let digests = [Digest::of(b"0"), Digest::of(b"1")];
    let contents = merge(digests.iter().zip([&base, &upper])).unwrap();
    let build = contents.os.unwrap().build.unwrap();
    assert_eq!(build.content_sets, ["a", "b"]);
    assert_eq!(build.nvr.as_deref(), Some("a-1-1"));
}

#[test]
fn a_bill_counts_where_nothing_else_speaks() {
    let stated = |detector, name: &str, version: &str| Stated {
        detector,
        package: Package::new(name, version),
    };
    let bill = vec![
        stated(Detector::NodePackage, "x", "1"),
        stated(Detector::NodePackage, "x", "2"),
        stated(Detector::GoBinary, "y", "1"),
        stated(Detector::Dpkg, "z", "1"),
    ];
    let path = "opt/a/bill.spdx.json";
    let mut base = layer(&[("app/package.json", &["x"])]);
    base.files.insert(path.into(), Found::Stated(bill));
    let all = names(&[("z", 0), ("y", 0), ("x", 0), ("x", 0)]);
    assert_eq!(merged(&[base.clone()]), all);
    let upper = layer(&[(STATUS, &["a"])]);
    let expected = names(&[("a", 1), ("y", 0), ("x", 0), ("x", 0)]);
    assert_eq!(merged(&[base.clone(), upper]), expected);
    // Nor where the distribution put it there.
    let mut owned = PathSet::default();
    owned.insert(path);
    owned.seal();
    let list = "var/lib/dpkg/info/a.md5sums".into();
    base.files.insert(list, Found::Owned(owned));
    assert_eq!(merged(&[base]), names(&[("x", 0)]));
}

#[test]
fn a_database_that_is_linked_to_and_was_not_read_is_missed() {
    let mut base = LayerInventory::default();
    base.links.insert("var/lib/dpkg".into(), "data/dpkg".into());
    base.paths.insert("data/dpkg/status");
    base.paths.seal();
    let contents = merge([(&Digest::of(b"0"), &base)]).unwrap();
    let paths: Vec<_> = contents.incomplete.iter().map(|one| &one.path).collect();
    assert_eq!(paths, [STATUS]);
}

#[test]
fn licences_come_from_where_the_package_keeps_them() {
    let mut base = layer(&[(STATUS, &["a", "b"])]);
    let path = "usr/share/doc/a/copyright".into();
    base.files.insert(path, Found::Licence("MIT".into()));
    let contents = merge([(&Digest::of(b"0"), &base)]).unwrap();
    let licences: Vec<_> = contents
        .components
        .iter()
        .map(|one| one.package.licence.as_deref())
        .collect();
    assert_eq!(licences, [Some("MIT"), None]);
}

#[test]
fn a_package_of_the_distribution_counts_once() {
    let base = layer(&[(STATUS, &["a"]), ("var/lib/dpkg/status.d/a", &["a"])]);
    assert_eq!(merged(&[base]), names(&[("a", 0)]));
}
