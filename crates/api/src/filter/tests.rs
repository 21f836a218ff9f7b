use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

const DIGEST: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

fn holds(text: &str, tag: &str) -> bool {
    let condition = MatchCondition::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    condition.holds(Some(tag), DIGEST)
}

#[test]
fn a_condition_holds_or_it_does_not() {
    for (text, tag, expected) in [
        (r#"tag == "1.25""#, "1.25", true),
        (r#"tag == '1.25'"#, "1.26", false),
        (r#"tag != "latest""#, "1", true),
        (
            r#"tag.startsWith("v1.") && !tag.endsWith("-rc")"#,
            "v1.2",
            true,
        ),
        (
            r#"tag.startsWith("v1.") && !tag.endsWith("-rc")"#,
            "v1.2-rc",
            false,
        ),
        (r#"tag in ["stable", "lts"]"#, "lts", true),
        (r#"tag in []"#, "lts", false),
        (
            r#"tag.contains("alpine") ? tag.size() > 6 : false"#,
            "1-alpine",
            true,
        ),
        (r#"tag.matches("^v[0-9]+\\.[0-9]+$")"#, "v1.25", true),
        (r#"tag.matches("^v[0-9]+\\.[0-9]+$")"#, "v1.25-rc", false),
        (r#"matches(tag, "^v") && tag.matches("5$")"#, "v1.25", true),
        (r#"tag.split(".")[0] == "v1""#, "v1.25", true),
        (r#"tag.split("-").join("+") == "a+b""#, "a-b", true),
        (
            r#"tag.replace("v", "").substring(0, 2) == "1.""#,
            "v1.25",
            true,
        ),
        (r#"tag.lowerAscii() == "rc""#, "RC", true),
        (r#"tag.indexOf("-") == -1"#, "a-b", false),
        (r#"double(tag) >= 1.2"#, "1.25", true),
        (r#"int(tag) % 2 == 0"#, "8", true),
        (r#"size(tag) > 3"#, "1.25", true),
        (r#"digest.startsWith("sha256:e3b0")"#, "any", true),
        (r#"semver(tag).major() == 1"#, "1.2.3", true),
        (
            r#"semver(tag, true).isGreaterThan(semver("1.0.0"))"#,
            "v1.1",
            true,
        ),
        (
            r#"semver(tag, true).isGreaterThan(semver("1.0.0"))"#,
            "v1.0",
            false,
        ),
        (
            r#"semver(tag, true).isLessThan(semver("1.0.0"))"#,
            "1.0.0-rc.1",
            true,
        ),
        (
            r#"semver(tag).compareTo(semver("1.2.3+other")) == 0"#,
            "1.2.3+b",
            true,
        ),
        (r#"semver(tag) == semver("1.2.3")"#, "1.2.3", true),
        (
            r#"isSemver(tag) && !isSemver(tag, false) || isSemver(tag, true)"#,
            "v1",
            true,
        ),
        ("true", "any", true),
        ("false", "any", false),
    ] {
        assert_eq!(holds(text, tag), expected, "{text} of {tag}");
    }
}

#[test]
fn what_cannot_be_said_of_a_tag_is_no_match() {
    for text in [
        r#"semver(tag, true).isGreaterThan(semver("1.0.0"))"#,
        r#"!semver(tag).isGreaterThan(semver("1.0.0"))"#,
        r#"int(tag) > 0"#,
        r#"tag.split("-")[7] == "x""#,
        r#"tag.substring(100) == """#,
        r#"1 / 0 == 1"#,
        r#"9223372036854775807 + size(tag) > 0"#,
    ] {
        assert!(!holds(text, "latest"), "{text}");
    }
    // What is known without it decides all the same.
    assert!(holds(
        r#"semver(tag).major() > 1 || tag == "latest""#,
        "latest"
    ));
    assert!(holds(
        r#"tag == "latest" || semver(tag).major() > 1"#,
        "latest"
    ));
}

#[test]
fn what_is_no_condition_is_refused_with_the_reason() {
    for (text, why) in [
        ("", "is no CEL expression"),
        ("tag ==", "is no CEL expression: column 7"),
        ("tag = 'x'", "is no CEL expression: column 5"),
        ("tag", "must yield bool and not string"),
        ("1 + 1", "must yield bool and not int"),
        ("semver(tag)", "must yield bool and not Semver"),
        ("tag == 1", "calls _==_(string, int), which there is not"),
        ("tag + 1 == tag", "calls _+_(string, int)"),
        ("semver(tag) > semver('1.0.0')", "calls _>_(Semver, Semver)"),
        (
            "tag.major() == 1",
            "calls string.major(), which there is not",
        ),
        ("semver.major(tag) == 1", "asks for `semver`"),
        ("startsWith(tag, 'v')", "calls startsWith(string, string)"),
        (
            "tags == 'x'",
            "asks for `tags`; there are only `tag` and `digest`",
        ),
        ("tag.length == 3", "has the field `.length`"),
        ("{'a': tag}['a'] == tag", "a map or a message"),
        ("b'x' == b'x'", "no text, number or truth value"),
        ("[1, 'a'] == []", "items of several types"),
        (
            "[tag].exists(t, t == 'x')",
            "uses `exists`; conditions have no macros",
        ),
        ("[1,2].all(a, [1,2].all(b, a == b))", "uses `all`"),
        ("has(tag.x)", "uses `has`"),
        ("tag.matches(digest)", "a pattern that is no literal text"),
        (
            "tag.matches('(')",
            "a pattern that cannot be used: error: unclosed group",
        ),
        (
            "tag.matches('(\\\\w{100}){100}')",
            "a pattern that cannot be used",
        ),
        ("tag.matches()", "not one pattern"),
        ("type(tag) == string", "calls type(string)"),
        ("dyn(tag) == 1", "calls dyn(string)"),
        (
            "timestamp(tag) == timestamp(tag)",
            "calls timestamp(string)",
        ),
        (
            "'%s'.format([tag]) == tag",
            "calls string.format(list(string))",
        ),
        ("@pattern0 == tag", "is no CEL expression"),
    ] {
        let error = MatchCondition::parse(text).unwrap_err().to_string();
        assert!(error.contains(why), "{text}: {error}");
    }
    let long = format!("tag == '{}'", "x".repeat(LENGTH));
    let error = MatchCondition::parse(&long).unwrap_err().to_string();
    assert_eq!(error, "must not be longer than 4096 bytes");
}

#[test]
fn an_exact_condition_is_recognised_either_way_round() {
    let tag = |text: &str| Some(Exact::Tag(text.into()));
    for (text, exact) in [
        (r#"tag == "1.25""#, tag("1.25")),
        (r#""1.25"==tag"#, tag("1.25")),
        (r#"((tag == '1.25'))"#, tag("1.25")),
        (r#"tag == "a\"b""#, tag("a\"b")),
        (
            r#"digest == "sha256:1""#,
            Some(Exact::Digest("sha256:1".into())),
        ),
        (r#"tag != "1.25""#, None),
        (r#"tag == digest"#, None),
        (r#""a" == "a""#, None),
        (r#"tag == "a" || tag == "b""#, None),
    ] {
        let condition = MatchCondition::parse(text).unwrap();
        assert_eq!(condition.exact(), exact.as_ref(), "{text}");
    }
}

/// What an unbounded expression exceeds by far, and a bounded one on a busy machine does not.
const HANG: Duration = Duration::from_secs(5);

#[test]
fn no_expression_takes_long() {
    let deep = |left: &str, middle: &str, right: &str, times: usize| {
        format!("{}{middle}{}", left.repeat(times), right.repeat(times))
    };
    let grown = format!("tag{}", ".replace('', 'xxxxxxxxxxxxxxxx')".repeat(20));
    for text in [
        deep("(", "true", ")", 2000),
        deep("!", "true", "", 4000),
        deep("[", "1", "]", 2000),
        deep("-", "1", " == 1", 1),
        deep("true ? false : ", "true", "", 270),
        deep("size(string(", "tag", ")) == 1", 40),
        deep("tag.matches('(a*)*b') || ", "true", "", 150),
        deep("tag.matches('(.*)(.*)(.*)(.*)x') || ", "true", "", 100),
        deep("tag.contains('aaaaaaaab') || ", "true", "", 130),
        deep("'", "a", "'", 2000),
        format!("{} == tag", vec!["tag"; 800].join("+")),
        vec![r#"tag == "v1.2.3""#; 200].join(" || "),
        format!("tag in ['{}']", vec!["x"; 800].join("','")),
        format!("{grown} == tag"),
        format!("tag{} == tag", ".trim()".repeat(500)),
        "tag.split('').join(tag).split('').join(tag).split('').join(tag) == tag".into(),
        format!("tag.indexOf('{}') == 1", "a".repeat(3000)),
        "\u{0}".repeat(4096),
        "'\\".repeat(2000),
    ] {
        let start = Instant::now();
        let shown: String = text.chars().take(60).collect();
        let parsed = MatchCondition::parse(&text);
        let parsing = start.elapsed();
        assert!(parsing < HANG, "{shown}: {parsing:?}");
        let Ok(condition) = parsed else { continue };
        let tag = "a".repeat(128);
        let start = Instant::now();
        condition.holds(Some(&tag), DIGEST);
        let judging = start.elapsed();
        assert!(judging < HANG, "{shown}: {judging:?}");
    }
    let row = vec![r#"tag == "v1.2.3""#; 200].join(" || ");
    assert!(holds(&row, "v1.2.3"), "a long row of tags is fine");
}

proptest! {
    #[test]
    fn no_text_brings_it_down(text in "\\PC{0,60}", tag in "\\PC{0,20}") {
        if let Ok(condition) = MatchCondition::parse(&text) {
            condition.holds(Some(&tag), DIGEST);
        }
    }

    #[test]
    fn no_expression_brings_it_down(
        words in proptest::collection::vec(prop_oneof![
            Just("tag"), Just("digest"), Just("=="), Just("\"a\""), Just("'"), Just("("), Just(")"),
            Just("&&"), Just("||"), Just("!"), Just("?"), Just(":"), Just("["), Just("]"), Just("{"),
            Just("}"), Just("."), Just(","), Just("semver"), Just("split"), Just("matches"),
            Just("1"), Just("-"), Just("+"), Just("1.5"), Just("in"), Just("0x"), Just("\\u12"),
            Just("b'"), Just("r\""), Just("e9"), Just("size"), Just("true"), Just("null"), Just("`"),
        ], 0..14),
    ) {
        if let Ok(condition) = MatchCondition::parse(&words.concat()) {
            condition.holds(Some("v1.2.3"), DIGEST);
        }
    }
}

fn selection(expressions: &[&str], operator: Operator) -> Selection<usize> {
    let conditions = expressions.iter().enumerate();
    let conditions = conditions.map(|(index, text)| (MatchCondition::parse(text).unwrap(), index));
    Selection::new(conditions.collect(), operator)
}

#[test]
fn tags_are_listed_only_where_no_name_will_do() {
    let (a, b) = ("tag == 'a'", "tag == 'b'");
    let (x, y) = ("digest == 'x'", "'y' == digest");
    let vague = "tag.startsWith('v')";
    for (expressions, operator, listing, named) in [
        (&[][..], Operator::And, true, &[][..]),
        (&[], Operator::Or, true, &[]),
        (&[a], Operator::And, false, &["a"]),
        (&[x], Operator::And, false, &["x"]),
        (&[a, b], Operator::Or, false, &["a", "b"]),
        (&[a, x, a], Operator::Or, false, &["a", "x"]),
        (&[a, vague], Operator::Or, true, &[]),
        (&[x, vague], Operator::Or, true, &["x"]),
        (&[vague, a, x], Operator::And, false, &["a"]),
        (&[a, b], Operator::And, false, &["a"]),
        (&[x, y], Operator::And, false, &["x"]),
        (&[x, vague], Operator::And, true, &[]),
    ] {
        let found = selection(expressions, operator).candidates();
        let names: BTreeSet<&str> = found
            .named
            .iter()
            .map(|exact| match exact {
                Exact::Tag(text) | Exact::Digest(text) => text.as_str(),
            })
            .collect();
        let case = format!("{operator:?} of {expressions:?}");
        assert_eq!(found.listing, listing, "{case}");
        assert_eq!(names, named.iter().copied().collect(), "{case}");
    }
}

#[test]
fn conditions_are_combined_as_the_repository_says() {
    let both = ["tag.startsWith('v')", "digest == 'x'"];
    for (operator, tag, digest, may, met) in [
        (Operator::And, Some("v1"), "x", true, Some(&[0, 1][..])),
        (Operator::And, Some("v1"), "y", true, None),
        (Operator::And, Some("1"), "x", false, None),
        (Operator::Or, Some("v1"), "y", true, Some(&[0])),
        (Operator::Or, Some("1"), "x", true, Some(&[1])),
        (Operator::Or, Some("1"), "y", true, None),
        // An image without a tag is met by what does not ask for one.
        (Operator::Or, None, "x", true, Some(&[1])),
        (Operator::And, None, "x", true, None),
    ] {
        let selection = selection(&both, operator);
        let case = format!("{operator:?} {tag:?} {digest}");
        if let Some(tag) = tag {
            assert_eq!(selection.may_want(tag), may, "{case}");
        }
        let judged = selection.judge(tag, digest);
        let judged = judged.map(|met| met.into_iter().copied().collect::<Vec<_>>());
        assert_eq!(judged.as_deref(), met, "{case}");
    }
    let everything = selection(&[], Operator::Or);
    assert!(everything.may_want("any") && everything.judge(None, "x").is_some());
}
