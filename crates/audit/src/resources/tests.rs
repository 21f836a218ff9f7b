use super::*;
use crate::ledger::Whereabouts;
use crate::scope::Scope;
use crate::testing::{policy, put, served};
use serde_json::json;

fn place(resource: &str) -> Place {
    Place::new((String::new(), resource.into()))
}

#[test]
fn what_could_not_be_done_about_an_object_is_not_verified() {
    let mut state = State::default();
    let at = Whereabouts {
        place: place("pods"),
        namespace: None,
        name: "p".into(),
    };
    state.ledger.see("u", &at, 1);
    state.failures.insert("u".into(), 3);
    state.failures.insert("gone".into(), 1);
    state.verify(&place("pods"));
    state.verify(&place("services"));
    assert_eq!(state.verified.get(&place("pods")), None);
    assert!(state.verified.contains_key(&place("services")));
    state.failures.remove("u");
    state.verify(&place("pods"));
    assert!(state.verified.contains_key(&place("pods")));
}

#[test]
fn those_that_read_a_busy_kind_are_asked_again_in_proportion_to_the_work() {
    let mut state = State::default();
    state
        .view
        .serve(vec![served("pods", "Pod"), served("services", "Service")]);
    let reads = json!({"contextAwareResources": [{"apiVersion": "v1", "kind": "Node"}]});
    put(&mut state.view, policy("p", reads), 1);
    state.view.settle(&Scope::default());
    let (node, now) = (GroupVersionKind::parse("v1", "Node"), Instant::now());
    assert_eq!(state.too_soon(&node, now), None);
    assert!(state.sweeps.begin(&(place("services"), None), now));
    assert_eq!(state.too_soon(&node, now), None, "nobody judges services");
    assert!(state.sweeps.begin(&(place("pods"), None), now));
    assert!(state.too_soon(&node, now).is_some(), "it is under way");
    let later = now + Duration::from_secs(3);
    state.sweeps.end(&(place("pods"), None), true, later);
    let wait = Some(Duration::from_secs(30));
    assert_eq!(state.too_soon(&node, later), wait);
    let other = GroupVersionKind::parse("v1", "Namespace");
    assert_eq!(state.too_soon(&other, later), None, "nobody reads it");
}
