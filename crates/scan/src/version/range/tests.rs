use super::*;
use crate::version::semantic::compare;

#[test]
fn versions_lie_in_ranges_of_every_spelling() {
    for (range, inside, outside) in [
        (
            ">= 1.0.0, < 1.2.3",
            vec!["1.0.0", "1.2.2", "1.2.3-rc.1"],
            vec!["0.9", "1.2.3"],
        ),
        (
            "<1.2.3||>=2.0.0 <2.1.0",
            vec!["1.0", "2.0.5"],
            vec!["1.2.3", "2.1.0"],
        ),
        ("= 1.2.3", vec!["1.2.3", "v1.2.3"], vec!["1.2.4"]),
        ("1.2.3", vec!["1.2.3"], vec!["1.2.4"]),
        (
            "[1.0,2.0),[3.0,)",
            vec!["1.0", "1.9", "4"],
            vec!["2.0", "0.9"],
        ),
        ("(,1.5]", vec!["0.1", "1.5"], vec!["1.6"]),
        ("[1.5]", vec!["1.5.0"], vec!["1.6"]),
        ("^1.2.3", vec!["1.2.3", "1.9"], vec!["2.0.0", "1.2.2"]),
        ("^0.2.3", vec!["0.2.3", "0.2.9"], vec!["0.3.0"]),
        ("~1.2.3", vec!["1.2.9"], vec!["1.3.0"]),
        ("~> 1.2.3", vec!["1.2.9"], vec!["1.3.0"]),
        ("~> 1.2", vec!["1.9"], vec!["2.0"]),
        ("1.2.x", vec!["1.2.0", "1.2.9"], vec!["1.3.0", "1.1"]),
        ("*", vec!["0", "9"], vec![]),
        ("1.0 - 2.0", vec!["1.0", "2.0"], vec!["2.0.1"]),
        ("!= 1.0, < 2", vec!["1.1"], vec!["1.0", "2"]),
    ] {
        let range = Range::parse(range).unwrap();
        for version in inside {
            assert!(range.contains(version, compare), "{version} {range:?}");
        }
        for version in outside {
            assert!(!range.contains(version, compare), "{version} {range:?}");
        }
    }
    for wrong in ["<", ">= ,", "[1,2", "[", "^a"] {
        assert_eq!(Range::parse(wrong), None, "{wrong}");
    }
}

#[test]
fn a_range_tells_where_it_ends() {
    for (text, expected) in [
        (
            ">= 1.0, < 1.2.3 || >= 2, <2.1 || <= 3",
            vec!["1.2.3", "2.1"],
        ),
        ("<1.2.3||>=2.0.0 <2.1.0", vec!["1.2.3", "2.1.0"]),
        ("[1.0,2.0),[3.0,)", vec!["2.0"]),
        ("(,1.5]", vec![]),
        ("= 1.0", vec![]),
        ("=< 1.0", vec![]),
        ("<", vec![]),
    ] {
        assert_eq!(Range::ends_in(text), expected, "{text}");
    }
}

#[test]
fn each_ecosystem_means_its_own_by_a_sign() {
    use crate::version::{python, ruby};
    use Dialect::{Npm, Plain, Python, Ruby};
    let npm: Compare = compare;
    for (dialect, order, range, inside, outside) in [
        (
            Npm,
            npm,
            "=2.0",
            vec!["2.0.0", "2.0.1", "2.0.0-a"],
            vec!["2.1.0"],
        ),
        (
            Npm,
            npm,
            ">1.1",
            vec!["1.2.0", "1.2.0-a"],
            vec!["1.1.0", "1.1.9"],
        ),
        (
            Npm,
            npm,
            "<=11",
            vec!["11.2.3", "0.1.0"],
            vec!["12.0.0", "12.0.0-0"],
        ),
        (
            Npm,
            npm,
            "<1.1",
            vec!["1.0.9"],
            vec!["1.1.0", "1.1.0-alpha"],
        ),
        (Npm, npm, "~1.2", vec!["1.2.9"], vec!["1.3.0"]),
        (Npm, npm, "^0.0", vec!["0.0.9"], vec!["0.1.0"]),
        (Npm, npm, "^1.x", vec!["1.9.9"], vec!["2.0.0"]),
        (Npm, npm, "*", vec!["1.0.0", "0.0.0-a"], vec![]),
        (Npm, npm, "<1.2.3", vec!["1.2.3-rc.1"], vec!["1.2.3"]),
        (Plain, npm, "~1.2.3.4", vec!["1.2.3.9"], vec!["1.2.4.0"]),
        (Plain, npm, "~1", vec!["1.9"], vec!["2.0"]),
        (
            Python,
            python::compare_with_bound,
            "<3.1",
            vec!["3.0", "3.0.dev1"],
            vec!["3.1rc1", "3.1.dev0"],
        ),
        (
            Python,
            python::compare_with_bound,
            "<3.1rc2",
            vec!["3.1rc1"],
            vec!["3.1"],
        ),
        (
            Python,
            python::compare_with_bound,
            ">3.1",
            vec!["3.2.post1"],
            vec!["3.1.post1", "3.1"],
        ),
        (
            Python,
            python::compare_with_bound,
            "==3.1",
            vec!["3.1", "3.1.0", "3.1+local"],
            vec!["3.1.1"],
        ),
        (
            Python,
            python::compare_with_bound,
            "==3.*",
            vec!["3", "3.1", "3.9rc1"],
            vec!["30", "4.0", "2.3"],
        ),
        (
            Python,
            python::compare_with_bound,
            "!=3.*",
            vec!["4"],
            vec!["3.1"],
        ),
        (
            Python,
            python::compare_with_bound,
            "~=2.2",
            vec!["2.2", "2.9"],
            vec!["3.0", "2.1"],
        ),
        (
            Python,
            python::compare_with_bound,
            "~=1.4.5",
            vec!["1.4.6"],
            vec!["1.5.0"],
        ),
        (
            Python,
            python::compare_with_bound,
            "*",
            vec!["0.1", "1rc1"],
            vec![],
        ),
        (
            Ruby,
            ruby::compare,
            "~> 1.2",
            vec!["1.2", "1.9"],
            vec!["2.0", "2.0.rc1", "1.1"],
        ),
        (
            Ruby,
            ruby::compare,
            "~> 1.2.3",
            vec!["1.2.9"],
            vec!["1.3.0.pre"],
        ),
        (
            Ruby,
            ruby::compare,
            "~> 1.0.rc1",
            vec!["1.0.rc2", "1.0"],
            vec!["2.0"],
        ),
    ] {
        let parsed = Range::parse_as(range, dialect).unwrap();
        for version in inside {
            assert!(parsed.contains(version, order), "{version} {range}");
        }
        for version in outside {
            assert!(!parsed.contains(version, order), "{version} {range}");
        }
    }
}
