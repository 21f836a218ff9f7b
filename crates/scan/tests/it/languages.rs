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
    merge([(&layer.diff_id, &layer.inventory)]).unwrap()
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

/// Every `pom.properties` of every archive, as another library reads them.
const ARCHIVES: &str = "
import os, sys, zipfile
for folder, _, files in os.walk(sys.argv[1]):
    for name in files:
        path = os.path.join(folder, name)
        if not name.endswith('.jar') or os.path.islink(path):
            continue
        with zipfile.ZipFile(path) as archive:
            for entry in archive.namelist():
                if not entry.endswith('/pom.properties'):
                    continue
                lines = archive.read(entry).decode().splitlines()
                pairs = dict(line.split('=', 1) for line in lines if '=' in line)
                pairs = {key.strip(): value.strip() for key, value in pairs.items()}
                print(os.path.relpath(path, sys.argv[1]), pairs['groupId'] + ':' + pairs['artifactId'],
                      pairs['version'], sep='\\t')
";

#[test]
fn artefacts_of_debians_java_archives_are_those_that_they_declare() {
    let directory = Path::new("/usr/share/java");
    let listed = output(
        Command::new("python3")
            .args(["-c", ARCHIVES])
            .arg(directory),
    );
    let expected: BTreeSet<(String, String, String)> = listed
        .lines()
        .filter_map(|line| {
            let fields: Vec<&str> = line.split('\t').collect();
            let [path, name, version] = fields.as_slice() else {
                return None;
            };
            Some(((*path).into(), (*name).into(), (*version).into()))
        })
        .collect();
    assert!(
        expected.len() > 20,
        "{}: apt-get install libmaven3-core-java",
        expected.len()
    );
    let declaring: BTreeSet<&str> = expected.iter().map(|(path, ..)| path.as_str()).collect();
    let contents = scanned(directory);
    let found: BTreeSet<_> = contents
        .components
        .iter()
        // The others only state something in their manifests.
        .filter(|one| one.detector == Detector::Jar && declaring.contains(one.path.as_str()))
        .map(|one| {
            let package = &one.package;
            (
                one.path.clone(),
                package.name.clone(),
                package.version.clone(),
            )
        })
        .collect();
    assert_eq!(found, expected);
}

/// A program with a list of crates in a section of its own, as `cargo auditable` links it.
const PROGRAM: &str = r#"
#[used]
#[unsafe(link_section = ".dep-v0")]
static LIST: [u8; include_bytes!("list").len()] = *include_bytes!("list");
fn main() {
    println!("{}", LIST.len());
}
"#;

#[test]
fn crates_of_a_rust_program_are_those_of_its_section() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let crates: Vec<_> = (0..300)
        .map(|number| serde_json::json!({"name": format!("crate-{number}"), "version": format!("1.{number}.0"),
            "source": "crates.io", "kind": if number % 3 == 0 { "build" } else { "runtime" }}))
        .collect();
    let list = serde_json::json!({"packages": crates}).to_string();
    let compress =
        "import sys, zlib; sys.stdout.buffer.write(zlib.compress(sys.argv[1].encode(), 7))";
    let made = Command::new("python3")
        .args(["-c", compress, &list])
        .output();
    std::fs::write(path("list"), made.expect("python3 runs").stdout).unwrap();
    std::fs::write(path("program.rs"), PROGRAM).unwrap();
    let built = Command::new("rustc")
        .args(["--edition=2024", "-C", "debuginfo=0", "-o"])
        .args([path("program"), path("program.rs")])
        .status();
    assert!(built.expect("rustc runs").success());
    // The section as the tools of the format see it.
    let dumped = Command::new("objcopy")
        .arg("--dump-section")
        .arg(format!(".dep-v0={}", path("dumped").display()))
        .arg(path("program"))
        .status();
    assert!(
        dumped
            .expect("objcopy runs: apt-get install binutils")
            .success()
    );
    assert_eq!(
        std::fs::read(path("dumped")).unwrap(),
        std::fs::read(path("list")).unwrap()
    );
    let root = tempfile::tempdir().unwrap();
    std::fs::rename(path("program"), root.path().join("program")).unwrap();
    let found = packages(&scanned(root.path()), Detector::RustBinary);
    let expected: BTreeSet<_> = (0..300)
        .filter(|number| number % 3 != 0)
        .map(|number| (format!("crate-{number}"), format!("1.{number}.0")))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn scoped_and_nested_packages_and_eggs_are_found_where_they_lie() {
    let directory = tempfile::tempdir().unwrap();
    let put = |path: &str, contents: &str| {
        let path = directory.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, contents).unwrap();
    };
    let node = |name: &str| format!("{{\"name\": \"{name}\", \"version\": \"1.0.0\"}}");
    put("app/node_modules/a/package.json", &node("a"));
    put("app/node_modules/@s/b/package.json", &node("@s/b"));
    put(
        "app/node_modules/a/node_modules/@s/c/package.json",
        &node("@s/c"),
    );
    put("lib/python/d.egg-info/PKG-INFO", "Name: d\nVersion: 2\n");
    put("lib/python/e-1.egg-info", "Name: e\nVersion: 1\n");
    put(
        "lib/python/f.egg/EGG-INFO/PKG-INFO",
        "Name: f\nVersion: 3\n",
    );
    let contents = scanned(directory.path());
    let names = |detector| {
        let found = packages(&contents, detector);
        found.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
    };
    assert_eq!(names(Detector::NodePackage), ["@s/b", "@s/c", "a"]);
    assert_eq!(names(Detector::PythonPackage), ["d", "e", "f"]);
    assert_eq!(contents.incomplete, []);
}
