//! What real tools installed or built, against what the same tools say of it.

use muster_scan::image::{Contents, merge};
use muster_scan::layer;
use muster_scan::limits::Limits;
use muster_scan::package::Detector;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

fn scanned(directory: &Path) -> Contents {
    let mut tar = Command::new("tar")
        .args(["-cf", "-", "-C"])
        .arg(directory)
        .arg(".")
        .stdout(Stdio::piped())
        .spawn()
        .expect("tar runs");
    let layer = layer::read(tar.stdout.take().unwrap(), &Limits::DEFAULT).unwrap();
    assert!(tar.wait().unwrap().success());
    merge([(&layer.diff_id, &layer.inventory)])
}

fn packages(contents: &Contents, detector: Detector) -> BTreeSet<(String, String)> {
    let found = contents
        .components
        .iter()
        .filter(|one| one.detector == detector);
    found
        .map(|one| (one.package.name.clone(), one.package.version.clone()))
        .collect()
}

fn output(command: &mut Command) -> String {
    let output = command.output().expect("the native tool runs");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn modules_of_a_go_program_are_those_that_go_lists() {
    let program = muster_testkit::bolt::ensure_writer().unwrap();
    let directory = tempfile::tempdir().unwrap();
    std::fs::copy(&program, directory.path().join("program")).unwrap();
    let contents = scanned(directory.path());
    let listed = output(Command::new("go").args(["version", "-m"]).arg(&program));
    let mut expected = BTreeSet::new();
    for line in listed.lines() {
        let fields: Vec<&str> = line.trim().split('\t').collect();
        match fields.as_slice() {
            ["dep", path, version, ..] => {
                expected.insert(((*path).to_owned(), (*version).to_owned()));
            }
            ["mod", path, version, ..] => {
                let version = version.trim_start_matches("(devel)");
                expected.insert(((*path).to_owned(), version.to_owned()));
            }
            _ => {}
        }
        if let Some((_, version)) = line.split_once(": go") {
            expected.insert(("stdlib".into(), format!("v{version}")));
        }
    }
    assert!(expected.len() >= 4, "{expected:?}");
    assert_eq!(packages(&contents, Detector::GoBinary), expected);
    assert_eq!(contents.components[0].path, "program");
}

#[test]
fn installed_npm_packages_are_those_that_npm_lists() {
    let root = output(Command::new("npm").args(["root", "-g"]));
    let directory = Path::new(root.trim()).join("npm");
    let listed = output(
        Command::new("npm")
            .args(["ls", "--all", "--parseable", "--long"])
            .current_dir(&directory),
    );
    let expected: BTreeSet<_> = listed
        .lines()
        .filter_map(|line| {
            let (name, version) = line.split(':').nth(1)?.rsplit_once('@')?;
            Some((name.to_owned(), version.to_owned()))
        })
        .collect();
    let contents = scanned(&directory);
    let found = packages(&contents, Detector::NodePackage);
    assert!(expected.len() > 50, "{} packages", expected.len());
    let missing: Vec<_> = expected.difference(&found).collect();
    assert!(missing.is_empty(), "{missing:?}");
    // Beyond npm's list there are only files inside of packages, never an installed package.
    let installed = contents.components.iter().filter(|one| {
        let parts: Vec<&str> = one.path.rsplit('/').collect();
        parts.get(2) == Some(&"node_modules")
            || parts.get(3) == Some(&"node_modules") && parts[2].starts_with('@')
    });
    for one in installed {
        let pair = (one.package.name.clone(), one.package.version.clone());
        assert!(expected.contains(&pair), "{pair:?} at {}", one.path);
    }
}

#[test]
fn installed_python_distributions_are_those_that_pip_lists() {
    let directory = tempfile::tempdir().unwrap();
    let made = Command::new("python3")
        .args(["-m", "venv"])
        .arg(directory.path().join("venv"))
        .status();
    assert!(made.expect("python3 runs").success());
    let python = directory.path().join("venv/bin/python3");
    let script = "import importlib.metadata as m\n\
                  for d in m.distributions(): print(d.metadata['Name'], d.version)";
    let listed = output(Command::new(&python).args(["-c", script]));
    let expected: BTreeSet<_> = listed
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(name, version)| (name.to_owned(), version.to_owned()))
        .collect();
    assert!(!expected.is_empty());
    let found = packages(&scanned(directory.path()), Detector::PythonPackage);
    assert!(found.is_superset(&expected), "{found:?} {expected:?}");
}
