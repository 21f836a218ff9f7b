//! That the law of watches catches every way to break it.

#![allow(clippy::unwrap_used)]

use super::model::{Change, Entry, Facts, Sighting, Step, check, check_log};
use super::selection::{Field, Labels, Selection};

/// An entry of the log whose content is its revision, as is that of a deletion's last state.
fn entry(change: Change, key: &str, revision: u64, content: u64, color: &str) -> Entry {
    let (namespace, name) = key.split_once('/').unwrap();
    Entry {
        sighting: seen(change, key, revision, content),
        facts: Facts {
            namespace: namespace.into(),
            name: name.into(),
            labels: [("color".to_owned(), color.to_owned())].into(),
            repository: String::new(),
        },
        uid: key.into(),
        mark: revision.to_string(),
    }
}

fn seen(change: Change, key: &str, revision: u64, content: u64) -> Sighting {
    Sighting {
        change,
        key: key.into(),
        revision,
        content,
    }
}

/// Two objects in two namespaces; `a/x` turns red, turns blue and goes.
fn log() -> Vec<Entry> {
    vec![
        entry(Change::Added, "a/x", 2, 2, "blue"),
        entry(Change::Added, "b/y", 3, 3, "red"),
        entry(Change::Modified, "a/x", 4, 4, "red"),
        entry(Change::Modified, "a/x", 5, 5, "red"),
        entry(Change::Modified, "a/x", 6, 6, "blue"),
        entry(Change::Modified, "a/x", 7, 7, "red"),
        entry(Change::Deleted, "a/x", 8, 7, "red"),
    ]
}

fn red_in_a() -> Selection {
    Selection {
        namespace: Some("a".into()),
        labels: Labels::Is("color", "red"),
        field: Field::All,
    }
}

/// What a faultless watcher of red objects in `a` sees.
fn faultless() -> Vec<Step> {
    [
        seen(Change::Added, "a/x", 4, 4),
        seen(Change::Modified, "a/x", 5, 5),
        seen(Change::Deleted, "a/x", 6, 5),
        seen(Change::Added, "a/x", 7, 7),
        seen(Change::Deleted, "a/x", 8, 7),
    ]
    .map(Step::Event)
    .into()
}

fn fault(trace: &[Step]) -> String {
    check(&log(), &red_in_a(), trace, 8).unwrap_err()
}

#[test]
fn entering_is_an_addition_and_leaving_a_deletion_of_what_was() {
    assert_eq!(check(&log(), &red_in_a(), &faultless(), 8), Ok(()));
    assert_eq!(check_log(&log()), Ok(()));
}

#[test]
fn a_missing_event_is_caught_wherever_it_stood() {
    for missing in 0..5 {
        let mut trace = faultless();
        trace.remove(missing);
        assert!(fault(&trace).contains("missed"), "without {missing}");
    }
    let bookmark = [Step::Mark(5)];
    assert!(fault(&bookmark).contains("missed"));
}

#[test]
fn a_doubled_event_is_caught_wherever_it_stands() {
    for doubled in 0..5 {
        let mut trace = faultless();
        trace.insert(doubled, trace[doubled].clone());
        assert!(fault(&trace).contains("doubled"), "with {doubled} twice");
    }
}

#[test]
fn reordered_events_are_caught() {
    for first in 0..4 {
        let mut trace = faultless();
        trace.swap(first, first + 1);
        assert!(!fault(&trace).is_empty());
    }
}

#[test]
fn an_event_of_another_namespace_or_selection_is_caught() {
    for leaked in [
        seen(Change::Added, "b/y", 3, 3),
        seen(Change::Added, "a/x", 2, 2),
    ] {
        let mut trace = faultless();
        trace.insert(0, Step::Event(leaked));
        assert!(fault(&trace).contains("leaked"));
    }
}

#[test]
fn a_wrong_type_content_or_revision_is_caught() {
    for wrong in [
        seen(Change::Modified, "a/x", 6, 5),
        seen(Change::Deleted, "a/x", 6, 6),
        seen(Change::Deleted, "a/y", 6, 5),
    ] {
        let mut trace = faultless();
        trace[2] = Step::Event(wrong);
        assert!(fault(&trace).contains("should be"));
    }
}

#[test]
fn a_list_forgoes_events_and_must_show_the_state_of_its_revision() {
    let state = |revision, shown| Step::State(revision, shown);
    let at_5 = [("a/x".into(), (5, 5))];
    let right = [&[state(5, at_5.clone().into())], &faultless()[2..]].concat();
    assert_eq!(check(&log(), &red_in_a(), &right, 8), Ok(()));
    assert!(fault(&[state(5, [].into())]).contains("should be"));
    assert!(fault(&[state(4, at_5.clone().into())]).contains("should be"));
    let back = [&faultless()[..3], &[state(5, at_5.into())]].concat();
    assert!(fault(&back).contains("went back"));
}

#[test]
fn a_log_with_a_gap_or_an_impossible_change_is_none() {
    let mut gap = log();
    gap.remove(3);
    assert!(check_log(&gap).is_err());
    let twice = vec![
        entry(Change::Added, "a/x", 2, 2, "red"),
        entry(Change::Added, "a/x", 3, 3, "red"),
    ];
    assert!(check_log(&twice).is_err());
}
