use super::*;
use crate::note::{Pair, Stamp};
use proptest::prelude::*;

fn at(name: &str) -> Whereabouts {
    Whereabouts {
        place: Arc::new((String::new(), "pods".into())),
        namespace: Some("n".into()),
        name: name.into(),
    }
}

fn note(marks: &[(&str, Mark)]) -> Note {
    let pairs = marks.iter().map(|(uid, mark)| {
        let stamp = Stamp::new(0, 0);
        (Key::of(uid), Pair { stamp, mark: *mark })
    });
    Note {
        revision: 0,
        object: Some(1),
        pairs: pairs.collect(),
    }
}

#[test]
fn an_older_revision_is_no_news() {
    let mut ledger = Ledger::default();
    for (revision, news) in [(5, true), (5, true), (4, false), (6, true)] {
        assert_eq!(ledger.see("u", &at("a"), revision), news, "{revision}");
    }
}

#[test]
fn what_somebody_else_does_to_a_report_is_noticed() {
    let mut ledger = Ledger::default();
    ledger.see("u", &at("a"), 1);
    // Ours, whether it is seen before or after we know that it was written.
    ledger.begin("u");
    assert!(!ledger.seen("u", Some(7)));
    assert!(!ledger.end("u", Some(Some(7))));
    ledger.begin("u");
    assert!(!ledger.end("u", Some(Some(8))));
    assert!(!ledger.seen("u", Some(8)));
    // Somebody else's.
    assert!(ledger.seen("u", Some(9)));
    ledger.begin("u");
    assert!(!ledger.seen("u", Some(11)), "it may be ours");
    assert!(ledger.end("u", Some(Some(10))), "it was not");
    assert!(ledger.seen("u", None));
    // Deleted by us, whether it is seen before or after we know it.
    ledger.begin("u");
    assert!(
        !ledger.end("u", Some(None)),
        "what was seen of it before is no news"
    );
    assert!(!ledger.seen("u", None));
    // Somebody else's, about an object of which there is nothing to say: it is to be deleted.
    assert!(ledger.seen("u", Some(12)));
    assert!(ledger.get("u").is_some_and(Entry::has_report));
    ledger.begin("u");
    assert!(!ledger.end("u", Some(None)));
    assert!(!ledger.get("u").is_some_and(Entry::has_report));
    // Deleted by somebody else while it is written.
    ledger.begin("u");
    assert!(!ledger.seen("u", Some(13)));
    assert!(!ledger.seen("u", None));
    assert!(ledger.end("u", Some(Some(13))), "it is lost");
    assert!(!ledger.seen("unknown", Some(3)));
}

#[test]
fn a_report_of_an_object_that_nobody_has_seen_yet_is_left_alone() {
    let mut ledger = Ledger::default();
    ledger.adopt("u", at("a"), note(&[("p", Mark::Fail)]), false, 5);
    assert!(!ledger.seen("u", Some(9)));
    assert!(
        ledger
            .get("u")
            .is_some_and(|entry| entry.has_report() && !entry.is_seen())
    );
    assert!(ledger.see("u", &at("a"), 1));
    assert_eq!(ledger.counts(Key::of("p")).fail, 1);
    ledger.doubt("u");
    assert!(
        ledger
            .get("u")
            .is_some_and(|entry| entry.note.object.is_none())
    );
    assert_eq!(ledger.counts(Key::of("p")).fail, 1);
    assert!(ledger.forget("u"));
    assert_eq!(ledger.counts(Key::of("p")), Counts::default());
}

#[test]
fn what_could_not_be_judged_is_doubted_and_nothing_else() {
    let mut ledger = Ledger::default();
    let mut pairs = note(&[("p", Mark::Fail), ("q", Mark::Error)]);
    for pair in pairs.pairs.values_mut() {
        pair.stamp = Stamp::new(u64::MAX, u64::MAX);
    }
    ledger.see("u", &at("a"), 1);
    ledger.note("u", pairs.clone(), false);
    ledger.doubt_errors();
    let doubted = &ledger.get("u").unwrap().note;
    let stamp = |key: &str| doubted.pairs[&Key::of(key)].stamp;
    assert_eq!(stamp("p"), Stamp::new(u64::MAX, u64::MAX));
    assert_eq!(stamp("q"), Stamp::new(0, 0));
    assert_eq!(ledger.counts(Key::of("q")).error, 1);
}

fn marks() -> impl Strategy<Value = Mark> {
    prop_oneof![
        Just(Mark::Pass),
        Just(Mark::Fail),
        Just(Mark::Error),
        Just(Mark::Mutated),
        Just(Mark::Skip),
        Just(Mark::Unmet)
    ]
}

proptest! {
    #[test]
    fn counts_are_those_of_the_notes(
        steps in prop::collection::vec(
            (0..5usize, prop::option::of(prop::collection::vec((0..3usize, marks()), 0..4))),
            0..60,
        )
    ) {
        let names = ["p", "q", "r"];
        let mut ledger = Ledger::default();
        let mut model: BTreeMap<usize, Note> = BTreeMap::new();
        for (object, step) in steps {
            let uid = object.to_string();
            match step {
                Some(pairs) => {
                    let pairs: Vec<_> = pairs.iter().map(|(p, mark)| (names[*p], *mark)).collect();
                    ledger.see(&uid, &at(&uid), 1);
                    ledger.note(&uid, note(&pairs), false);
                    model.insert(object, note(&pairs));
                }
                None => {
                    ledger.forget(&uid);
                    model.remove(&object);
                }
            }
        }
        for name in names {
            let mut expected = Counts::default();
            for note in model.values() {
                if let Some(pair) = note.pairs.get(&Key::of(name)) {
                    expected.change(pair.mark, true);
                }
            }
            prop_assert_eq!(ledger.counts(Key::of(name)), expected);
        }
    }
}

#[test]
fn what_one_policy_said_is_doubted_apart_from_others() {
    let mut ledger = Ledger::default();
    for (uid, marks) in [
        ("a", [("p", Mark::Pass), ("q", Mark::Error)]),
        ("b", [("p", Mark::Error), ("q", Mark::Pass)]),
        ("c", [("p", Mark::Skip), ("q", Mark::Pass)]),
    ] {
        ledger.see(uid, &at(uid), 1);
        let mut note = note(&marks);
        for pair in note.pairs.values_mut() {
            pair.stamp = Stamp::new(u64::MAX, u64::MAX);
        }
        ledger.note(uid, note, false);
    }
    let doubted = |ledger: &Ledger| {
        let mut all = ledger.find(|_, entry| {
            let mut pairs = entry.note.pairs.values();
            pairs.any(|pair| pair.stamp == Stamp::NONE)
        });
        all.sort();
        all
    };
    assert_eq!(
        ledger.doubt_policy(Key::of("p"), |pair| pair.mark == Mark::Error),
        ["b"]
    );
    assert_eq!(doubted(&ledger), ["b"]);
    assert_eq!(ledger.doubt_policy(Key::of("p"), |_| true).len(), 2);
    assert_eq!(doubted(&ledger), ["a", "b"], "not what is left out");
    assert_eq!(ledger.counts(Key::of("p")).pass, 1, "it is still counted");
}
