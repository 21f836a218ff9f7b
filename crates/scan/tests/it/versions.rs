//! Versions against the tools that define their order, over thousands of generated pairs.

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
