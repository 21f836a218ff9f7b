use super::*;
use crate::ledger::Place;
use crate::scope::Scope;
use crate::testing::{REFUSED, UNREACHABLE, policy, put, served};
use crate::view::View;
use serde_json::{Value, json};

fn plan(policies: &[(&str, Value, u64)], known: &Note, object: u64) -> Plan {
    let mut view = View::default();
    view.serve(vec![served("pods", "Pod")]);
    for (name, changes, code) in policies {
        put(&mut view, policy(name, changes.clone()), *code);
    }
    view.settle(&Scope::default());
    let place = Place::new((String::new(), "pods".into()));
    let Some(interest) = view.interest(&place) else {
        return Plan::default();
    };
    let labels = BTreeMap::from([("app".to_owned(), "a".to_owned())]);
    let target = Target {
        namespace: Some("n"),
        name: "p",
        labels: &labels,
    };
    Plan::new(&interest, target, &view.namespaces(), None, object, known)
}

/// The plan, answered.
fn answered(plan: &Plan, object: u64, mark: Mark) -> Note {
    let mut pairs = plan.kept.clone();
    for question in &plan.questions {
        let stamp = question.stamp;
        pairs.insert(question.key, Pair { stamp, mark });
    }
    Note {
        revision: 0,
        object: Some(object),
        pairs,
    }
}

#[test]
fn what_was_answered_is_asked_again_only_if_something_changed() {
    let plain = ("p", json!({}), 1);
    let first = plan(std::slice::from_ref(&plain), &Note::default(), 7);
    assert_eq!(first.questions.len(), 1);
    let known = answered(&first, 7, Mark::Fail);
    for (policies, object, asked, done, what) in [
        (vec![plain.clone()], 7, 0, true, "nothing"),
        (vec![plain.clone()], 8, 1, false, "the object"),
        (vec![("p", json!({}), 2)], 7, 1, false, "the code"),
        (
            vec![("p", json!({}), REFUSED)],
            7,
            1,
            false,
            "it does not load",
        ),
        (
            vec![("p", json!({"settings": {"a": 1}}), 1)],
            7,
            1,
            false,
            "the settings",
        ),
        (
            vec![plain.clone(), ("q", json!({}), 1)],
            7,
            1,
            false,
            "another policy",
        ),
        (
            vec![("p", json!({"backgroundAudit": false}), 1)],
            7,
            0,
            false,
            "it is left out",
        ),
        (
            vec![(
                "p",
                json!({"objectSelector": {"matchLabels": {"app": "b"}}}),
                1,
            )],
            7,
            0,
            false,
            "it does not select",
        ),
        (vec![], 7, 0, false, "it is gone"),
    ] {
        let plan = plan(&policies, &known, object);
        assert_eq!(plan.questions.len(), asked, "{what}");
        assert_eq!(plan.is_done(object, &known), done, "{what}");
    }
}

#[test]
fn what_was_answered_stands_while_the_policy_cannot_be_reached() {
    let changed = json!({"settings": {"a": 1}});
    let known = answered(
        &plan(&[("p", json!({}), 1)], &Note::default(), 7),
        7,
        Mark::Fail,
    );
    let never = answered(
        &plan(&[("p", json!({}), UNREACHABLE)], &Note::default(), 7),
        7,
        Mark::Error,
    );
    let why = "not evaluated: clusterwide-p: the policy cannot be reached";
    for (known, changes, object, asked, stale, what) in [
        (&known, json!({}), 7, 0, Some(why), "it answered"),
        (&known, json!({}), 8, 1, None, "the object is another"),
        (&known, changed, 7, 1, None, "the policy is another"),
        (&Note::default(), json!({}), 7, 1, None, "it never answered"),
        (
            &never,
            json!({}),
            7,
            0,
            None,
            "that it cannot be reached is told",
        ),
    ] {
        let plan = plan(&[("p", changes, UNREACHABLE)], known, object);
        assert_eq!(plan.questions.len(), asked, "{what}");
        // Nobody knows which code answered: a line that stays is marked.
        assert_eq!(plan.stale().as_deref(), stale, "{what}");
        let is_done = asked == 0 && stale.is_none();
        assert_eq!(plan.is_done(object, known), is_done, "{what}");
    }
    // Once it can be reached, the same code has nothing to add.
    let back = plan(&[("p", json!({}), 1)], &known, 7);
    assert!(back.is_done(7, &known) && back.stale().is_none());
    let back = plan(&[("p", json!({}), 1)], &never, 7);
    assert_eq!(back.questions.len(), 1, "it can be asked now");
}

#[test]
fn an_excluded_policy_is_counted_and_nothing_else() {
    let excluded = [("p", json!({"background": false}), 1)];
    let plan = plan(&excluded, &Note::default(), 7);
    let note = answered(&plan, 7, Mark::Pass);
    assert_eq!((note.skipped(), note.is_silent()), (1, true));
}

#[test]
fn a_policy_that_is_included_again_is_asked() {
    let excluded = plan(
        &[("p", json!({"background": false}), 1)],
        &Note::default(),
        7,
    );
    let known = answered(&excluded, 7, Mark::Pass);
    let plan = plan(&[("p", json!({}), 1)], &known, 7);
    assert_eq!(plan.questions.len(), 1);
}

#[test]
fn a_line_that_is_lost_is_asked_for_again() {
    let policies = [("p", json!({}), 1), ("q", json!({}), 1)];
    let known = answered(&plan(&policies, &Note::default(), 7), 7, Mark::Pass);
    let mut plan = plan(&policies, &known, 7);
    plan.ask_again(|question| question.key == Key::of("p"));
    assert_eq!((plan.questions.len(), plan.kept.len()), (1, 1));
    assert!(!plan.is_done(7, &known));
}

#[test]
fn an_object_that_nobody_cares_for_is_done_whatever_it_is() {
    let unconcerned = [(
        "p",
        json!({"objectSelector": {"matchLabels": {"app": "b"}}}),
        1,
    )];
    let plan = plan(&unconcerned, &Note::default(), 7);
    assert!(plan.is_done(7, &Note::default()));
}
