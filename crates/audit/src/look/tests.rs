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
