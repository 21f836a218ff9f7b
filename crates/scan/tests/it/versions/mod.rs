//! Versions against the tools that define their order, over thousands of generated pairs.

mod distributions;
mod languages;

use crate::random::Random;
use muster_scan::version;
use std::cmp::Ordering;
use std::io::Write;
use std::process::{Command, Stdio};

/// Runs a program over the lines of its input and returns the lines of its output.
fn filter(program: &mut Command, input: &str) -> Vec<String> {
    let mut child = program
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the native tool runs");
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    let writer = std::thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(Into::into)
        .collect()
}

fn debian(random: &mut Random) -> String {
    let pieces = [
        "0",
        "1",
        "2",
        "9",
        "10",
        "007",
        "a",
        "b",
        "rc",
        "Z",
        ".",
        ".",
        "~",
        "+",
        "-",
        "~~",
        "+b1",
        "deb12u",
        "99999999999999999999",
    ];
    let mut version = String::new();
    if random.below(6) == 0 {
        version.push_str(random.pick(&["0:", "1:", "12:"]));
    }
    version.push_str(random.pick(&["0", "1", "2", "10"]));
    for _ in 0..random.below(6) {
        version.push_str(random.pick(&pieces));
    }
    version
}

#[test]
fn debian_versions_compare_as_dpkg_compares_them() {
    let mut random = Random(0xdeb1a);
    let mut pairs = Vec::new();
    for _ in 0..2000 {
        let left = debian(&mut random);
        // Half of the pairs differ in a little only, where mistakes hide.
        let right = match random.below(2) {
            0 => debian(&mut random),
            _ => left.clone() + random.pick(&["", "0", "~", "+", "a", ".0", "-0", "~1"]),
        };
        // These are no versions; the tool only warns about them.
        if ![&left, &right].iter().any(|version| version.ends_with('-')) {
            pairs.push((left, right));
        }
    }
    let script = "while read -r left right; do
        if dpkg --compare-versions \"$left\" lt \"$right\"; then echo '<'
        elif dpkg --compare-versions \"$left\" eq \"$right\"; then echo '='
        else echo '>'; fi; done";
    let input: String = pairs
        .iter()
        .map(|(left, right)| format!("{left} {right}\n"))
        .collect();
    let answers = filter(Command::new("sh").args(["-c", script]), &input);
    assert_eq!(answers.len(), pairs.len());
    for ((left, right), answer) in pairs.iter().zip(answers) {
        let ours = match version::dpkg::compare(left, right) {
            Some(Ordering::Less) => "<",
            Some(Ordering::Equal) => "=",
            Some(Ordering::Greater) => ">",
            None => "none",
        };
        assert_eq!(ours, answer, "{left} {right}");
    }
}

/// Python with the library that defines its versions, in the cache.
fn python() -> std::path::PathBuf {
    let cache = muster_testkit::binaries::cache().unwrap();
    let place = cache.join("python-packaging-26");
    let python = place.join("bin/python3");
    std::fs::create_dir_all(&cache).unwrap();
    let lock = std::fs::File::create(cache.join("python-packaging-26.lock")).unwrap();
    lock.lock().unwrap();
    let works = |python: &std::path::Path| {
        let import = Command::new(python)
            .args(["-c", "import packaging.version"])
            .output();
        import.is_ok_and(|output| output.status.success())
    };
    if !works(&python) {
        let made = Command::new("python3")
            .args(["-m", "venv"])
            .arg(&place)
            .status();
        assert!(made.expect("python3 runs").success());
        let pip = Command::new(&python)
            .args(["-m", "pip", "install", "-q", "packaging>=26,<27"])
            .status();
        assert!(pip.unwrap().success(), "pip installs packaging");
    }
    python
}

fn order(order: Option<Ordering>) -> &'static str {
    match order {
        Some(Ordering::Less) => "<",
        Some(Ordering::Equal) => "=",
        Some(Ordering::Greater) => ">",
        None => "none",
    }
}

/// Holds our order against the lines that a tool answers to lines of two versions.
fn hold(
    tool: &mut Command,
    pairs: &[(String, String)],
    compare: fn(&str, &str) -> Option<Ordering>,
) {
    let line = |(left, right): &(String, String)| format!("{left} {right}\n");
    let answers = filter(tool, &pairs.iter().map(line).collect::<String>());
    assert_eq!(answers.len(), pairs.len());
    for ((left, right), answer) in pairs.iter().zip(answers) {
        assert_eq!(order(compare(left, right)), answer, "{left} {right}");
    }
}

fn pairs(seed: u64, count: usize, pieces: &[&str], endings: &[&str]) -> Vec<(String, String)> {
    let mut random = Random(seed);
    let version = |random: &mut Random| {
        let mut version = random
            .pick(&["0", "1", "2", "1.0", "1.2.3", "10.0.0"])
            .to_owned();
        for _ in 0..random.below(4) {
            version.push_str(random.pick(pieces));
        }
        version
    };
    (0..count)
        .map(|_| {
            let left = version(&mut random);
            let right = match random.below(2) {
                0 => version(&mut random),
                _ => left.clone() + random.pick(endings),
            };
            (left, right)
        })
        .collect()
}

#[test]
fn python_versions_compare_as_packaging_compares_them() {
    let script = "
import sys
from packaging.version import Version, InvalidVersion
for line in sys.stdin:
    try:
        left, right = map(Version, line.split())
        print('<' if left < right else '=' if left == right else '>')
    except InvalidVersion:
        print('none')
";
    let pieces = [
        ".0", ".1", ".10", "a1", "b2", "rc1", ".dev3", ".post4", "-1", "c", "alpha", "-beta.2",
        "_pre", "+local.1", "+1", "!2", ".dev", "rev2", "r3", "x", ".post", "00", ".00",
    ];
    let endings = [
        "", ".0", "a", "a1", ".dev0", ".post1", "+a", "+1.2", "rc2", "-1", "0",
    ];
    let pairs = pairs(0x9e440, 20_000, &pieces, &endings);
    hold(
        Command::new(python()).args(["-c", script]),
        &pairs,
        version::python::compare,
    );
}

#[test]
fn npm_versions_compare_as_npm_compares_them() {
    let root = Command::new("npm")
        .args(["root", "-g"])
        .output()
        .expect("npm runs");
    let root = String::from_utf8(root.stdout).unwrap();
    let module = format!("{}/npm/node_modules/semver", root.trim());
    let script = "
const semver = require(process.argv[1]);
for (const line of require('fs').readFileSync(0, 'utf8').trim().split('\\n')) {
    const [left, right] = line.split(' ');
    if (!semver.valid(left) || !semver.valid(right)) console.log('none');
    else console.log({'-1': '<', '0': '=', '1': '>'}[semver.compare(left, right)]);
}";
    let pieces = [
        "-alpha", "-1", ".1", ".beta", "-rc.1", "+build", "-0", ".x-y", "-a.b.c", ".10", "-2",
    ];
    let endings = ["", "-0", "-a", ".1", "+b", "-rc.2", "-alpha.1", "-1.2"];
    let mut pairs = pairs(0x59e, 20_000, &pieces, &endings);
    // We read more than npm does, such as two numbers or four; held is what both read.
    let strict = |version: &String| {
        let release = version.split(['-', '+']).next().unwrap_or_default();
        release.split('.').count() == 3
            && !version.contains("+build+")
            && version.matches('+').count() < 2
    };
    pairs.retain(|(left, right)| strict(left) && strict(right));
    assert!(pairs.len() > 1000, "{}", pairs.len());
    hold(
        Command::new("node").args(["-e", script, &module]),
        &pairs,
        version::semantic::compare,
    );
}

#[test]
fn maven_versions_compare_as_maven_compares_them() {
    let library = "/usr/share/java/maven-artifact-3.x.jar";
    assert!(
        std::path::Path::new(library).exists(),
        "install the package libmaven3-core-java"
    );
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("Compare.java");
    let source = r#"
import org.apache.maven.artifact.versioning.ComparableVersion;
public class Compare {
    public static void main(String[] arguments) throws Exception {
        var input = new java.io.BufferedReader(new java.io.InputStreamReader(System.in));
        for (String line; (line = input.readLine()) != null; ) {
            var pair = line.split(" ");
            int order = new ComparableVersion(pair[0]).compareTo(new ComparableVersion(pair[1]));
            System.out.println(order < 0 ? "<" : order == 0 ? "=" : ">");
        }
    }
}"#;
    std::fs::write(&program, source).unwrap();
    let pieces = [
        ".0",
        ".1",
        ".10",
        "-1",
        "-alpha",
        "-beta2",
        "a1",
        "b",
        "m3",
        "-rc1",
        ".Final",
        "-SNAPSHOT",
        ".GA",
        "-sp",
        "-jre",
        ".x",
        "-0",
        "cr2",
        ".RELEASE",
        "-20240101",
        "99999999999999999999",
    ];
    let endings = [
        "",
        ".0",
        "-0",
        "-ga",
        ".final",
        "-1",
        "-alpha",
        ".1",
        "-x",
        "a",
        "-snapshot",
    ];
    let pairs = pairs(0x3a7e, 20_000, &pieces, &endings);
    let class_path = format!("{library}:/usr/share/java/commons-lang3.jar");
    let mut java = Command::new("java");
    hold(
        java.args(["-cp", &class_path]).arg(&program),
        &pairs,
        version::maven::compare,
    );
}

/// Versions in ascending order, each of them alone; and such that are equal.
fn ordered(
    compare: fn(&str, &str) -> Option<Ordering>,
    ascending: &[&str],
    equal: &[(&str, &str)],
) {
    for (place, left) in ascending.iter().enumerate() {
        for (other, right) in ascending.iter().enumerate() {
            assert_eq!(
                compare(left, right),
                Some(place.cmp(&other)),
                "{left} {right}"
            );
        }
    }
    for (left, right) in equal {
        assert_eq!(
            compare(left, right),
            Some(Ordering::Equal),
            "{left} {right}"
        );
    }
}
