use super::*;
use crate::testing::{policy, prepared, put, served};
use serde_json::json;

fn place(resource: &str) -> Place {
    Place::new((String::new(), resource.into()))
}

fn places(names: &[&str]) -> BTreeSet<Place> {
    names.iter().map(|name| place(name)).collect()
}

fn view() -> View {
    let mut view = View::default();
    view.serve(vec![
        served("pods", "Pod"),
        served("services", "Service"),
        served("events", "Event"),
    ]);
    view
}

fn everything() -> serde_json::Value {
    json!({"rules": [{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"],
        "operations": ["*"]}]})
}

#[test]
fn only_what_a_change_matters_to_is_looked_at_again() {
    let (mut view, scope) = (view(), Scope::default());
    assert_eq!(view.settle(&scope), Changed::default());
    let key = put(&mut view, policy("p", json!({})), 1);
    assert_eq!(view.settle(&scope).places, places(&["pods"]));
    assert_eq!(view.settle(&scope), Changed::default(), "nothing new");
    let wide = put(&mut view, policy("q", everything()), 1);
    let changed = view.settle(&scope);
    assert_eq!(changed.places, places(&["pods", "services"]), "no events");
    // The same text with other code, then with what it reads beside objects.
    assert!(view.prepare_policy(key, prepared(policy("p", json!({})), 2)));
    assert_eq!(view.settle(&scope).places, places(&["pods"]));
    view.write_policy(wide, None);
    let changed = view.settle(&scope);
    assert_eq!(changed.places, places(&["pods"]));
    assert_eq!(changed.left, places(&["services"]));
    view.write_policy(key, None);
    assert_eq!(view.settle(&scope).left, places(&["pods"]));
}

#[test]
fn a_new_revision_with_the_same_text_asks_nobody() {
    let (mut view, scope) = (view(), Scope::default());
    let key = put(&mut view, policy("p", json!({})), 1);
    view.settle(&scope);
    let mut same = policy("p", json!({}));
    same.resource_version = "17".into();
    assert!(!view.write_policy(key, Some(same)));
    assert_eq!(view.settle(&scope), Changed::default());
    let interest = view.interest(&place("pods")).unwrap();
    let (_, prepared) = interest.policies[0].ready.as_ref().unwrap();
    assert_eq!(prepared.policy.resource_version, "17");
}

#[test]
fn what_was_prepared_for_an_older_text_is_not_used() {
    let mut view = view();
    let key = put(&mut view, policy("p", json!({})), 1);
    let newer = policy("p", json!({"settings": {"a": 1}}));
    assert!(view.write_policy(key, Some(newer.clone())));
    assert!(!view.prepare_policy(key, prepared(policy("p", json!({})), 1)));
    assert!(view.prepare_policy(key, prepared(newer, 1)));
    view.write_policy(key, None);
    assert!(!view.prepare_policy(key, prepared(policy("p", json!({})), 1)));
}

#[test]
fn labels_of_namespaces_matter_if_a_policy_selects_by_them() {
    let mut view = view();
    let labels = |value: &str| Some(BTreeMap::from([("a".to_owned(), value.to_owned())]));
    assert!(!view.write_namespace("n", labels("b")), "no policy");
    put(
        &mut view,
        policy(
            "p",
            json!({"namespaceSelector": {"matchLabels": {"a": "b"}}}),
        ),
        1,
    );
    assert!(!view.write_namespace("n", labels("b")), "nothing new");
    assert!(view.write_namespace("n", labels("c")));
    assert!(!view.write_namespace("n", None), "nothing is left in it");
}

#[test]
fn what_a_policy_reads_is_a_reason_to_ask_it_again() {
    let (mut view, scope) = (view(), Scope::default());
    let reads = json!({"contextAwareResources": [{"apiVersion": "v1", "kind": "Service"}]});
    put(&mut view, policy("p", reads), 1);
    view.settle(&scope);
    let kind = GroupVersionKind::parse("v1", "Service");
    assert_eq!(view.context(), BTreeSet::from([kind.clone()]));
    assert!(view.touch(&kind, 7));
    assert_eq!(view.settle(&scope).places, places(&["pods"]));
    assert!(!view.touch(&GroupVersionKind::parse("v1", "Secret"), 8));
}

#[test]
fn a_policy_that_reads_the_cluster_is_asked_again_after_a_restart() {
    let reads = json!({"contextAwareResources": [
        {"apiVersion": "v1", "kind": "Service"}, {"apiVersion": "v1", "kind": "Secret"}]});
    let stamp = |since: u64, changes: &serde_json::Value| {
        let mut view = View::since(since);
        view.serve(vec![served("pods", "Pod")]);
        put(&mut view, policy("p", changes.clone()), 1);
        view.settle(&Scope::default());
        let interest = view.interest(&place("pods")).unwrap();
        assert!(view.context().iter().all(|kind| kind.kind != "Secret"));
        interest.policies[0].ready.as_ref().unwrap().0
    };
    assert_ne!(stamp(1, &reads), stamp(2, &reads));
    assert_eq!(stamp(1, &json!({})), stamp(2, &json!({})), "others are not");
}
