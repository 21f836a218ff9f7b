use super::*;
use crate::scope::Scope;
use crate::testing::{policy, put, served};
use serde_json::json;

fn pods() -> Whereabouts {
    Whereabouts {
        place: Place::new((String::new(), "pods".into())),
        namespace: Some("n".into()),
        name: "p".into(),
    }
}

/// What is known of one pod in revision 7, by one policy that has judged it.
fn state() -> State {
    let mut state = State::default();
    state.view.serve(vec![served("pods", "Pod")]);
    put(&mut state.view, policy("p", json!({})), 1);
    state.view.settle(&Scope::default());
    let interest = state.view.interest(&pods().place).unwrap();
    let stamp = interest.policies[0].ready.as_ref().unwrap().0;
    let mark = Mark::Pass;
    let note = Note {
        object: Some(1),
        revision: 7,
        pairs: BTreeMap::from([(Key::of("p"), Pair { stamp, mark })]),
    };
    state.ledger.see("u", &pods(), 7);
    state.ledger.note("u", note, false);
    state
}

fn is_settled(state: &State, revision: u64) -> bool {
    let (at, labels) = (pods(), BTreeMap::new());
    let target = Target {
        namespace: at.namespace.as_deref(),
        name: &at.name,
        labels: &labels,
    };
    let interest = state.view.interest(&at.place).unwrap();
    state.is_settled("u", revision, &interest, target, None)
}

#[test]
fn a_revision_that_was_judged_is_not_read_again() {
    let mut known = state();
    assert!(is_settled(&known, 7));
    assert!(!is_settled(&known, 8), "another revision");
    known.ledger.confirm("u", 8);
    assert!(is_settled(&known, 8), "which turned out to be the same");
    known.ledger.mark_stale("u");
    assert!(!is_settled(&known, 8), "its report says that it is old");
    let mut doubted = state();
    doubted.ledger.doubt("u");
    assert!(!is_settled(&doubted, 7), "it is not to be relied on");
    let mut more = state();
    put(&mut more.view, policy("q", json!({})), 1);
    more.view.settle(&Scope::default());
    assert!(!is_settled(&more, 7), "another policy");
    let mut none = state();
    none.ledger.confirm("u", 1);
    assert!(!is_settled(&none, 1), "a revision that is no number");
}

#[test]
fn only_what_nobody_is_interested_in_is_left() {
    let mut state = state();
    assert!(!state.is_left("u"));
    assert!(!state.is_left("unknown"));
    state.view.write_policy(Key::of("p"), None);
    state.view.settle(&Scope::default());
    assert!(state.is_left("u"));
    // The policy is made anew before anybody has come to deleting the report.
    put(&mut state.view, policy("p", json!({})), 1);
    state.view.settle(&Scope::default());
    assert!(!state.is_left("u"));
}

#[test]
fn what_was_not_evaluated_keeps_its_result_and_is_asked_again() {
    let (key, place) = (Key::of("p"), pods().place);
    let state = state();
    let interest = state.view.interest(&place).unwrap();
    let (stamp, prepared) = interest.policies[0].ready.clone().unwrap();
    let question = Question {
        key,
        stamp,
        prepared: prepared.clone(),
        version: "v1".into(),
    };
    let refused = Verdict::transient_error("not now");
    let line = |verdict: &Verdict, now: i64| Line::new(&prepared.policy, verdict, now);
    let noted = |mark: Mark| Note {
        object: Some(1),
        revision: 7,
        pairs: BTreeMap::from([(key, Pair { stamp, mark })]),
    };
    let failed = line(&Verdict::fail("no"), 1);
    let rows = [
        ("it said something", Mark::Fail, Some(failed), "fail", 1),
        ("it said nothing", Mark::Unmet, None, "error", 2),
        ("it was not asked", Mark::Skip, None, "error", 2),
    ];
    for (what, mark, before, result, since) in rows {
        let (known, lines) = (noted(mark), before.map(|line| HashMap::from([(key, line)])));
        let answers = [(question.clone(), Some(refused.clone()))];
        let made = compose(&BTreeMap::new(), &answers, lines.as_ref(), &known, 2);
        assert_eq!(made.lines[0].result, result, "{what}");
        assert_eq!(made.lines[0].timestamp.seconds, since, "{what}");
        let why = made.stale.unwrap();
        assert_eq!(why, "not evaluated: clusterwide-p: not now", "{what}");
        // What is noted, on the report too, has it asked again.
        let pair = made.note.pairs[&key];
        assert_eq!(pair.stamp, Stamp::NONE, "{what}");
        let mut note = Note::read(&made.note.write()).unwrap();
        (note.object, note.revision) = (Some(1), 7);
        let labels = BTreeMap::new();
        let target = Target {
            namespace: Some("n"),
            name: "p",
            labels: &labels,
        };
        let plan = Plan::new(&interest, target, &state.view.namespaces(), None, 1, &note);
        assert_eq!(plan.questions.len(), 1, "{what}");
        // Once it answers, the report is current.
        let lines = HashMap::from([(key, made.lines[0].clone())]);
        let answers = [(question.clone(), Some(Verdict::pass()))];
        let made = compose(&plan.kept, &answers, Some(&lines), &note, 3);
        assert_eq!(made.stale, None, "{what}");
        let pair = Pair {
            stamp,
            mark: Mark::Pass,
        };
        assert_eq!(made.note.pairs[&key], pair, "{what}");
        assert_eq!(made.lines[0].result, "pass", "{what}");
    }
}

#[test]
fn a_result_does_not_outlive_an_evaluation_that_could_not_look() {
    let (key, state) = (Key::of("p"), state());
    let interest = state.view.interest(&pods().place).unwrap();
    let (stamp, prepared) = interest.policies[0].ready.clone().unwrap();
    let question = Question {
        key,
        stamp,
        prepared: prepared.clone(),
        version: "v1".into(),
    };
    for mark in [Mark::Pass, Mark::Fail, Mark::Error, Mark::Mutated] {
        let known = Note {
            pairs: BTreeMap::from([(key, Pair { stamp, mark })]),
            ..Note::default()
        };
        let before = Line::new(&prepared.policy, &Verdict::pass(), 1);
        let lines = HashMap::from([(key, before)]);
        let answers = [(question.clone(), Some(Verdict::unavailable("403")))];
        let made = compose(&BTreeMap::new(), &answers, Some(&lines), &known, 2);
        assert_eq!(made.lines[0].result, "error", "{mark:?}");
        assert_eq!(made.lines[0].message, "403", "{mark:?}");
        let pair = Pair {
            stamp: Stamp::NONE,
            mark: Mark::Error,
        };
        assert_eq!(made.note.pairs[&key], pair, "it is asked again");
    }
}

#[test]
fn errors_that_were_stored_before_a_start_are_evaluated_again() {
    for (mark, asked) in [(Mark::Error, 1), (Mark::Fail, 0), (Mark::Pass, 0)] {
        let mut state = state();
        let mut note = state.ledger.get("u").unwrap().note.clone();
        note.pairs.get_mut(&Key::of("p")).unwrap().mark = mark;
        let (place, metadata) = (
            pods(),
            json!({"name": "u", "namespace": "n", "annotations": {crate::note::INPUTS: note.write()},
                "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}]}),
        );
        let metadata = serde_json::from_value(metadata).unwrap();
        let found = crate::watch::Found::read(&metadata, 3).unwrap();
        state.found = Some(HashMap::from([("u".to_owned(), found)]));
        state.adopt();
        let interest = state.view.interest(&place.place).unwrap();
        let labels = BTreeMap::new();
        let target = Target {
            namespace: Some("n"),
            name: "p",
            labels: &labels,
        };
        let known = &state.ledger.get("u").unwrap().note;
        let plan = Plan::new(&interest, target, &state.view.namespaces(), None, 1, known);
        assert_eq!(plan.questions.len(), asked, "{mark:?}");
    }
}
