//! The versions of rpm and apk.

use super::{hold, ordered, pairs};
use muster_scan::version;
use std::process::Command;

#[test]
fn rpm_versions_compare_as_rpm_compares_them() {
    // All pairs in one program, since starting one takes longer than comparing.
    let script = "rpm --eval \"%{lua:
        for line in io.lines('/dev/stdin') do
            local left, right = line:match('^(%S+) (%S+)$')
            local order = rpm.vercmp(left, right)
            print((order < 0 and '<' or order == 0 and '=' or '>') .. '\\n')
        end}\" | grep .";
    let pieces = [
        ".1",
        ".10",
        ".01",
        "a",
        "b2",
        "rc1",
        "~",
        "~rc1",
        "^",
        "^git1",
        "+",
        "_",
        "..",
        "-1",
        "-2.el9",
        "-2.el9_4",
        "99999999999999999999",
        "Z",
        ".0",
        "00",
    ];
    let endings = ["", "0", "~", "^", "a", ".0", "~1", "^1", ".", "-1", "+"];
    let mut pairs = pairs(0x49a, 20_000, &pieces, &endings);
    // The tool takes epoch, version and release apart at one dash only.
    let plain = |version: &String| version.matches('-').count() < 2 && !version.ends_with('-');
    pairs.retain(|(left, right)| plain(left) && plain(right));
    let pairs: Vec<_> = pairs
        .into_iter()
        .enumerate()
        .map(|(place, (left, right))| match place % 5 {
            0 => (format!("1:{left}"), right),
            1 => (format!("0:{left}"), format!("2:{right}")),
            _ => (left, right),
        })
        .collect();
    hold(
        Command::new("bash").args(["-c", script]),
        &pairs,
        version::rpm::compare,
    );
}

#[test]
fn alpine_versions_compare_as_its_documents_say() {
    ordered(
        version::apk::compare,
        &[
            "0.1_alpha1",
            "0.1.3_alpha",
            "1.0_beta",
            "1.0_pre2",
            "1.0_rc1",
            "1.0_rc2",
            "1.0",
            "1.0-r1",
            "1.0-r10",
            "1.0_cvs1",
            "1.0_svn1",
            "1.0_git20250101",
            "1.0_hg1",
            "1.0_p1",
            "1.0_p10",
            "1.0a",
            "1.0b",
            "1.0.1",
            "1.1",
            "1.10",
            "2.0",
            "12",
        ],
        &[("1.0", "1.0"), ("1.0-r0", "1.0-r00"), ("01.0", "1.0")],
    );
}
