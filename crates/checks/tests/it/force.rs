//! One bad policy changes nothing for anybody else, and nothing for itself.

use crate::support::{judge, served, sheet, source};
use muster_checks::force::{Choice, Force, Sources};
use muster_checks::written::Written;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

fn refusing(message: &str) -> String {
    format!("package main\nimport rego.v1\ndeny contains \"{message}\" if true")
}

fn pod() -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "n"}})
}

fn messages(force: &Force) -> Vec<String> {
    let findings = judge(force, &pod());
    let failed = findings.into_iter().filter(|finding| finding.is_failure());
    let mut messages: Vec<String> = failed.flat_map(|finding| finding.messages).collect();
    messages.sort();
    messages
}

fn update(force: &mut Force, entries: &[(&str, &str)]) {
    force.update(&source(entries), &served(), &Choice::default());
}

fn troubles(force: &Force) -> Vec<String> {
    let troubles = force.troubles().iter();
    troubles
        .map(|(id, trouble)| format!("{}: {} {}", id.name, trouble.why, trouble.has_older))
        .collect()
}

#[test]
fn the_last_good_version_stays_in_force() {
    let (one, two, three) = (refusing("one"), refusing("two"), refusing("three"));
    for (key, bad, why) in [
        (
            "policy.a.rego",
            "package main\nimport rego.v1\ndeny contains",
            "line",
        ),
        (
            "policy.a.rego",
            "package main\nimport rego.v1\nallow if true",
            "none of the rules",
        ),
        ("policy.a.kinds", "Gadget", "no kind `Gadget` is served"),
        ("policy.a.kinds", "", "names no kind"),
    ] {
        let mut force = Force::default();
        let good = [
            ("policy.a.rego", one.as_str()),
            ("policy.a.kinds", "Pod"),
            ("policy.b.rego", &two),
            ("policy.b.kinds", "Pod"),
        ];
        update(&mut force, &good);
        assert_eq!(messages(&force), ["one", "two"]);
        let mut broken = good;
        for entry in &mut broken {
            if entry.0 == key {
                entry.1 = bad;
            }
        }
        // The other one is changed at the same time, and is not held up.
        broken[2].1 = &three;
        update(&mut force, &broken);
        assert_eq!(messages(&force), ["one", "three"], "{bad}");
        let told = troubles(&force);
        assert!(
            told.len() == 1 && told[0].starts_with("a: ") && told[0].contains(why),
            "{told:?}"
        );
        assert!(told[0].ends_with("true"), "{told:?}");
        // What is remembered of it is in force after a restart.
        let text = serde_json::to_string(&force.remember()).unwrap();
        let mut again = Force::recall(&serde_json::from_str(&text).unwrap());
        update(&mut again, &broken);
        assert_eq!(messages(&again), ["one", "three"], "{bad}");
        // Mended, it is in force; removed, it is gone.
        update(&mut again, &good);
        assert_eq!(messages(&again), ["one", "two"]);
        assert_eq!(troubles(&again), Vec::<String>::new());
        assert!(again.remember().is_empty());
        update(&mut again, &good[2..]);
        assert_eq!(messages(&again), ["two"]);
    }
}

#[test]
fn what_never_was_good_is_not_in_force() {
    let mut force = Force::default();
    update(
        &mut force,
        &[("policy.a.rego", "no rego"), ("policy.a.kinds", "*")],
    );
    assert_eq!(messages(&force), Vec::<String>::new());
    assert!(
        troubles(&force)[0].ends_with("false"),
        "{:?}",
        troubles(&force)
    );
}

#[test]
fn a_library_that_breaks_leaves_those_who_use_it_as_they_were() {
    let library = |says: &str| format!("package lib.words\nimport rego.v1\nword(x) := \"{says}\"");
    let user =
        "package main\nimport rego.v1\nimport data.lib.words\ndeny contains words.word(1) if true";
    let entries = |library: &str| -> Vec<(String, String)> {
        [
            ("library.words.rego", library),
            ("policy.a.rego", user),
            ("policy.a.kinds", "Pod"),
        ]
        .map(|(key, text)| (key.to_owned(), text.to_owned()))
        .into()
    };
    let take = |force: &mut Force, library: &str| {
        let entries = entries(library);
        let entries: Vec<(&str, &str)> = entries
            .iter()
            .map(|(key, text)| (&**key, &**text))
            .collect();
        update(force, &entries);
    };
    let mut force = Force::default();
    take(&mut force, &library("first"));
    assert_eq!(messages(&force), ["first"]);
    take(&mut force, &library("second"));
    assert_eq!(messages(&force), ["second"]);
    // One that cannot be read is not taken.
    take(&mut force, "package lib.words\nimport rego.v1\nword(x) := ");
    assert_eq!(messages(&force), ["second"]);
    assert_eq!(troubles(&force).len(), 1);
    let mut again = Force::recall(&force.remember());
    take(&mut again, "package lib.words\nimport rego.v1\nword(x) := ");
    assert_eq!(messages(&again), ["second"]);
    // One that lacks what a policy uses is taken, and that policy stays with the one before.
    take(
        &mut force,
        "package lib.words\nimport rego.v1\nother(x) := \"third\"",
    );
    assert_eq!(messages(&force), ["second"]);
    assert!(
        troubles(&force)[0].starts_with("a: "),
        "{:?}",
        troubles(&force)
    );
    let mut again = Force::recall(&force.remember());
    take(
        &mut again,
        "package lib.words\nimport rego.v1\nother(x) := \"third\"",
    );
    assert_eq!(messages(&again), ["second"]);
}

#[test]
fn nothing_of_a_configmap_that_cannot_be_read_changes() {
    let one = refusing("one");
    let mut force = Force::default();
    update(
        &mut force,
        &[("policy.a.rego", &one), ("policy.a.kinds", "Pod")],
    );
    let unreadable = Written::read("policies", Some("v7"), &BTreeMap::new());
    let sources = Sources::from([("muster/policies".to_owned(), unreadable)]);
    force.update(&sources, &served(), &Choice::default());
    assert_eq!(messages(&force), ["one"]);
    assert_eq!(troubles(&force).len(), 1);
    let mut again = Force::recall(&force.remember());
    again.update(&sources, &served(), &Choice::default());
    assert_eq!(messages(&again), ["one"]);
}

/// Text and kinds of a policy that takes its message from a library.
fn importing(library: &str) -> String {
    format!(
        "package main\nimport rego.v1\nimport data.{library}\ndeny contains {library}.word if true"
    )
}

fn library(package: &str, word: &str) -> String {
    format!("package {package}\nimport rego.v1\nword := \"{word}\"")
}

/// What is in force if all that was before is what is remembered.
fn restarted(force: &Force, sources: &Sources) -> Force {
    let text = serde_json::to_string(&force.remember()).unwrap();
    let mut again = Force::recall(&serde_json::from_str(&text).unwrap());
    again.update(sources, &served(), &Choice::default());
    again
}

#[test]
fn the_last_good_version_is_remembered_with_its_libraries_whatever_became_of_them() {
    let (user, good, other) = (
        importing("words"),
        library("words", "one"),
        library("words", "two"),
    );
    let lacking = "package words\nimport rego.v1\nother := 1";
    let entries = |policy: &str, library: Option<&str>| {
        let mut entries = vec![("policy.a.rego", policy), ("policy.a.kinds", "Pod")];
        entries.extend(library.map(|text| ("library.words.rego", text)));
        source(&entries)
    };
    for (library, message) in [
        // The library is as good as ever.
        (Some(good.as_str()), "one"),
        (Some(&other), "one"),
        (Some(lacking), "one"),
        (Some("package words\nno"), "one"),
        (None, "one"),
    ] {
        let mut force = Force::default();
        force.update(&entries(&user, Some(&good)), &served(), &Choice::default());
        assert_eq!(messages(&force), ["one"]);
        let broken = entries("package main\nno", library);
        force.update(&broken, &served(), &Choice::default());
        assert_eq!(messages(&force), [message], "{library:?}");
        // And once more, as what is recalled is remembered in turn.
        let once = restarted(&force, &broken);
        let twice = restarted(&once, &broken);
        for again in [&once, &twice] {
            assert_eq!(messages(again), [message], "{library:?}");
            assert_eq!(troubles(again), troubles(&force), "{library:?}");
            assert_eq!(again.remember(), force.remember(), "{library:?}");
            let hash = |force: &Force| sheet(force, "Pod").unwrap().hash().to_owned();
            assert_eq!(hash(again), hash(&force), "{library:?}");
        }
    }
}

#[test]
fn libraries_of_a_configmap_that_cannot_be_read_are_remembered_for_others() {
    let written = |schema: Option<&str>, entries: &[(&str, &str)]| {
        let entries = entries.iter();
        let data = entries.map(|(key, text)| ((*key).to_owned(), (*text).to_owned()));
        Written::read("policies", schema, &data.collect())
    };
    let (user, words) = (importing("words"), library("words", "one"));
    let own = refusing("own");
    let libraries = [
        ("library.words.rego", words.as_str()),
        ("policy.own.rego", &own),
        ("policy.own.kinds", "Pod"),
    ];
    let users = [("policy.a.rego", user.as_str()), ("policy.a.kinds", "Pod")];
    let sources = |schema: Option<&str>| {
        Sources::from([
            ("muster/libraries".to_owned(), written(schema, &libraries)),
            ("muster/users".to_owned(), written(None, &users)),
        ])
    };
    let mut force = Force::default();
    force.update(&sources(None), &served(), &Choice::default());
    assert_eq!(messages(&force), ["one", "own"]);
    let unreadable = sources(Some("v7"));
    force.update(&unreadable, &served(), &Choice::default());
    assert_eq!(messages(&force), ["one", "own"]);
    let once = restarted(&force, &unreadable);
    for again in [&once, &restarted(&once, &unreadable)] {
        assert_eq!(messages(again), ["one", "own"]);
        assert_eq!(troubles(again), troubles(&force));
    }
}

#[test]
fn in_the_old_schema_whatever_refuses_nothing_is_a_library() {
    let data = BTreeMap::from(
        [
            (
                "conftest.policy.a.rego",
                "package main\nimport rego.v1\nimport data.help\ndeny contains help.word if true",
            ),
            (
                "conftest.policy.help.rego",
                "package help\nimport rego.v1\nword := \"helped\"",
            ),
        ]
        .map(|(key, text)| (key.to_owned(), text.to_owned())),
    );
    let written = Written::read("trivy-operator-conftest-config", None, &data);
    let sources = Sources::from([("trivy-operator/x".to_owned(), written)]);
    let mut force = Force::default();
    force.update(&sources, &served(), &Choice::default());
    assert_eq!(troubles(&force), Vec::<String>::new());
    assert_eq!(messages(&force), ["helped"]);
}

#[test]
fn checks_can_be_disabled_by_name_or_identifier() {
    let (one, two) = (refusing("one"), refusing("two"));
    let named = format!("# METADATA\n# custom:\n#   id: X-1\n{two}");
    let entries = [
        ("policy.a.rego", one.as_str()),
        ("policy.a.kinds", "Pod"),
        ("policy.b.rego", &named),
        ("policy.b.kinds", "Pod"),
    ];
    for (disabled, left) in [("a", "two"), ("X-1", "one")] {
        let mut force = Force::default();
        let choice = Choice {
            builtin: false,
            disabled: BTreeSet::from([disabled.to_owned()]),
        };
        force.update(&source(&entries), &served(), &choice);
        assert_eq!(messages(&force), [left]);
    }
}
