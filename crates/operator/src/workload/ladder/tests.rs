use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

fn wishes(of: &[(&str, &[&str])]) -> Wishes {
    of.iter()
        .map(|(repository, tags)| {
            let tags = tags.iter().map(|tag| Wish::Tag((*tag).into()));
            ((*repository).into(), tags.collect())
        })
        .collect()
}

fn settle(before: &Holdings, wishes: &BTreeMap<&str, Wishes>) -> Holdings {
    let all = wishes.iter().map(|(name, wishes)| (*name, wishes));
    climb(before, all, |_| false)
}

#[test]
fn a_label_goes_then_its_condition_then_the_repository_then_all() {
    let a = wishes(&[("nginx", &["1", "2"]), ("redis", &["7"])]);
    let b = wishes(&[("nginx", &["1"])]);
    let nothing = Wishes::new();
    let mut all = BTreeMap::from([("a", a), ("b", b)]);
    let mut held = settle(&Holdings::new(), &all);
    let labels = |held: &Holdings, repository: &str, tag: &str| -> Option<Vec<String>> {
        let wish = Wish::Tag(tag.into());
        Some(held.get(repository)?.get(&wish)?.iter().cloned().collect())
    };
    assert_eq!(labels(&held, "nginx", "1").unwrap(), ["a", "b"]);
    assert_eq!(labels(&held, "redis", "7").unwrap(), ["a"]);

    all.insert("a", nothing.clone());
    held = settle(&held, &all);
    assert_eq!(labels(&held, "nginx", "1").unwrap(), ["b"]);
    assert_eq!(labels(&held, "nginx", "2"), None);
    assert!(!held.contains_key("redis"));

    all.insert("b", nothing);
    assert_eq!(settle(&held, &all), Holdings::new());
}

#[test]
fn only_what_is_new_is_to_be_scanned() {
    let before = settle(
        &Holdings::new(),
        &BTreeMap::from([("a", wishes(&[("nginx", &["1"])]))]),
    );
    for (now, targets) in [
        (vec![("a", wishes(&[("nginx", &["1"])]))], None),
        // Another namespace wants what is there already.
        (
            vec![
                ("a", wishes(&[("nginx", &["1"])])),
                ("b", wishes(&[("nginx", &["1"])])),
            ],
            None,
        ),
        (vec![("a", Wishes::new())], None),
        (
            vec![
                ("a", wishes(&[("nginx", &["1", "2"])])),
                ("b", wishes(&[("redis", &["7"])])),
            ],
            Some(json!([
                {"name": "nginx", "matchConditions": ["tag-2"]},
                {"name": "redis", "matchConditions": ["tag-7"]},
            ])),
        ),
    ] {
        let after = settle(&before, &now.into_iter().collect());
        let added = added(&before, &after).map(|targets| targets.repositories());
        assert_eq!(added, targets);
        let lost = lessened(&before, &after);
        assert_eq!(lost.is_empty(), !after.is_empty(), "{after:?}");
    }
}

#[test]
fn what_is_written_is_read_again() {
    let digest = format!("sha256:{}", "a".repeat(64));
    let mut holdings = settle(
        &Holdings::new(),
        &BTreeMap::from([
            ("team-a", wishes(&[("library/nginx", &["1.25", "V_2-x"])])),
            ("team-b", wishes(&[("library/nginx", &["1.25"])])),
        ]),
    );
    let images = holdings.get_mut("library/nginx").unwrap();
    images.insert(Wish::Digest(digest.clone()), BTreeSet::from(["b".into()]));
    let spelled = spell(&holdings);
    let first = &spelled[0]["matchConditions"][0];
    assert_eq!(first["name"], "tag-1.25");
    assert_eq!(first["expression"], r#"tag == "1.25""#);
    assert_eq!(first["labels"], json!({"team-a": "true", "team-b": "true"}));
    assert_eq!(spelled[0]["matchOperator"], "Or");
    let last = &spelled[0]["matchConditions"][2];
    assert_eq!(last["expression"], format!("digest == {digest:?}"));
    assert_eq!(read(&spelled), holdings);
    // What is not ours is nothing to us.
    let strange = json!([{"name": "x", "matchConditions": [
        {"name": "c", "expression": "tag.startsWith(\"1\")", "labels": {"a": "true"}}, 7,
    ]}, {}, 3]);
    assert_eq!(read(&strange), Holdings::new());
}

const NAMESPACES: [&str; 4] = ["a", "b", "c", "d"];

/// A step: a namespace comes to want something else, or the operator starts anew and has looked at
/// some namespaces only.
#[derive(Clone, Debug)]
enum Step {
    Wants(usize, Wishes),
    Restart,
    Look(usize),
    Write,
}

fn any_wishes() -> impl Strategy<Value = Wishes> {
    let tags = proptest::collection::btree_set("[12]".prop_map(Wish::Tag), 1..3);
    proptest::collection::btree_map("[xy]", tags, 0..3)
}

fn any_step() -> impl Strategy<Value = Step> {
    let namespace = 0..NAMESPACES.len();
    prop_oneof![
        3 => (namespace.clone(), any_wishes()).prop_map(|(n, wishes)| Step::Wants(n, wishes)),
        1 => Just(Step::Restart),
        3 => namespace.prop_map(Step::Look),
        3 => Just(Step::Write),
    ]
}

proptest! {
    #[test]
    fn whatever_came_before_the_end_is_what_is_wanted_at_the_end(
        steps in proptest::collection::vec(any_step(), 0..40),
    ) {
        let mut truth: BTreeMap<&str, Wishes> = BTreeMap::new();
        // What the operator has seen so far, and what the Registry holds.
        let mut seen: BTreeMap<&str, Wishes> = BTreeMap::new();
        let mut held = Holdings::new();
        let write = |held: &Holdings, seen: &BTreeMap<&str, Wishes>| {
            let wishes = seen.iter().map(|(name, wishes)| (*name, wishes));
            let after = climb(held, wishes, |name| !seen.contains_key(name));
            // As the Registry keeps it.
            read(&spell(&after))
        };
        for step in steps {
            match step {
                Step::Wants(at, wishes) => drop(truth.insert(NAMESPACES[at], wishes)),
                Step::Restart => seen.clear(),
                Step::Look(at) => {
                    let name = NAMESPACES[at];
                    seen.insert(name, truth.get(name).cloned().unwrap_or_default());
                }
                Step::Write => {
                    let before = held.clone();
                    held = write(&held, &seen);
                    // Nobody who has not been looked at loses anything.
                    for (repository, wishes) in &before {
                        for (wish, names) in wishes {
                            for name in names.iter().filter(|name| !seen.contains_key(name.as_str())) {
                                prop_assert!(held[repository][wish].contains(name));
                            }
                        }
                    }
                }
            }
        }
        for name in NAMESPACES {
            seen.insert(name, truth.get(name).cloned().unwrap_or_default());
        }
        held = write(&held, &seen);
        prop_assert_eq!(held, settle(&Holdings::new(), &seen));
    }
}
