use super::super::ladder::Wish;
use super::*;
use crate::object::MISSING;
use kube::api::DynamicObject;
use serde_json::Value;

fn place(namespace: &str, registry: &str) -> Place {
    Place {
        namespace: namespace.into(),
        registry: registry.into(),
    }
}

fn configured(spec: Value) -> Configuration {
    let object = json!({"metadata": {"name": "default"}, "spec": spec});
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    Configuration::read(&object).unwrap().unwrap()
}

fn metadata(value: Value) -> Option<ObjectMeta> {
    Some(serde_json::from_value(value).unwrap())
}

fn wanted(registry: &Place, tag: &str) -> Wanted {
    let wishes = BTreeMap::from([("app".into(), BTreeSet::from([Wish::Tag(tag.into())]))]);
    Wanted::from([(registry.clone(), (Host::parse("a.io").unwrap(), wishes))])
}

#[test]
fn only_what_is_new_is_news() {
    let mut view = View::default();
    let labelled = || metadata(json!({"labels": {"a": "b"}}));
    assert!(view.namespace("web", labelled()));
    assert!(!view.namespace("web", labelled()));
    assert!(view.namespace("web", metadata(json!({}))));
    let going = metadata(json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}));
    assert!(view.namespace("web", going.clone()));
    assert!(!view.namespace("web", going));
    let pod = || {
        Some(Pod {
            uid: "u".into(),
            owner: None,
            containers: Box::new([]),
        })
    };
    assert!(view.pod("web", "p", pod()));
    assert!(!view.pod("web", "p", pod()));
    assert!(view.pod("web", "p", None));
    assert!(!view.pod("web", "p", None));
    let report = Report {
        content: "1".into(),
        held: None,
    };
    assert_eq!(view.report("web", "r", Some(report.clone())), None);
    assert_eq!(view.report("web", "r", None), Some(report));
    assert_eq!(view.report("web", "r", None), None);
}

#[test]
fn a_namespace_is_seen_while_it_is_selected() {
    let mut view = View::default();
    view.namespace("web", metadata(json!({"labels": {"scan": "me"}})));
    view.namespace("play", metadata(json!({})));
    let sees = |view: &View, name: &str| view.scene(name).configuration.is_some();
    assert!(!sees(&view, "web"));
    let selected = json!({"namespaceSelector": {"matchLabels": {"scan": "me"}}});
    assert!(view.configure(Some(configured(selected.clone()))));
    assert!(!view.configure(Some(configured(selected))));
    assert!(sees(&view, "web") && !sees(&view, "play") && !sees(&view, "gone"));
    assert!(view.configure(None));
    assert!(!sees(&view, "web"));
}

#[test]
fn registries_of_others_and_missing_images_are_reasons_to_look() {
    let mut view = View::default();
    view.configure(Some(configured(json!({"artifactsNamespace": "art"}))));
    for name in ["a", "b"] {
        view.namespace(name, metadata(json!({})));
    }
    let (ours, mine) = (place("art", "ours"), place("art", "mine"));
    let managed = |missing: &str| {
        metadata(json!({
            "labels": {guard::WORKLOAD_SCAN: "true"}, "annotations": {MISSING: missing},
        }))
    };
    assert_eq!(view.registry(&ours, managed("[]")), Affected::Nothing);
    assert!(!view.scene("a").has_others);
    view.note("a", wanted(&ours, "1"));
    let missing = r#"["app:1"]"#;
    let affected = Affected::Namespaces(BTreeSet::from(["a".into()]));
    assert_eq!(view.registry(&ours, managed(missing)), affected);
    assert_eq!(view.registry(&ours, managed(missing)), Affected::Nothing);
    // Another operator wrote it, or we did.
    let written = |generation: i64| {
        let mut metadata = managed(missing).unwrap();
        metadata.generation = Some(generation);
        Some(metadata)
    };
    assert_eq!(view.registry(&ours, written(1)), Affected::Registry);
    view.wrote(&ours, 2);
    assert_eq!(view.registry(&ours, written(2)), Affected::Nothing);
    assert!(view.is_missing(&ours, "app:1") && !view.is_missing(&ours, "app:2"));
    let around = || Affected::Around("art".into());
    assert_eq!(view.registry(&mine, metadata(json!({}))), around());
    assert!(view.scene("a").has_others);
    assert_eq!(view.around("art").len(), 2);
    assert_eq!(view.registry(&mine, None), around());
    assert!(!view.scene("a").has_others);
    assert_eq!(view.registry(&ours, None), Affected::Registry);
}

#[test]
fn a_registry_holds_what_all_want_and_keeps_what_is_not_known() {
    let mut view = View::default();
    view.configure(Some(configured(json!({"artifactsNamespace": "art"}))));
    for name in ["a", "b", "c"] {
        view.namespace(name, metadata(json!({})));
    }
    let ours = place("art", "ours");
    let names = |holdings: &Holdings, tag: &str| -> Vec<String> {
        let held = holdings
            .get("app")
            .and_then(|held| held.get(&Wish::Tag(tag.into())));
        held.into_iter().flatten().cloned().collect()
    };
    let before = ["b", "c", "gone"].map(str::to_owned);
    let before = BTreeMap::from([(Wish::Tag("1".into()), BTreeSet::from(before))]);
    let before = Holdings::from([("app".to_owned(), before)]);
    assert_eq!(view.note("a", wanted(&ours, "1")), [place("art", "ours")]);
    assert!(view.note("a", wanted(&ours, "1")).is_empty());
    assert_eq!(view.note("b", wanted(&ours, "2")), [place("art", "ours")]);
    assert!(!view.has_come_round());
    let (host, held) = view.wanted(&ours, &before);
    assert_eq!(host.unwrap().as_str(), "a.io");
    // `c` was not looked at yet; `gone` is not there.
    assert_eq!(names(&held, "1"), ["a", "c"]);
    assert_eq!(names(&held, "2"), ["b"]);
    view.note("c", Wanted::new());
    assert!(view.has_come_round() && !view.has_come_round());
    let (_, held) = view.wanted(&ours, &before);
    assert_eq!(names(&held, "1"), ["a"]);
    view.namespace("a", None);
    // It was looked at while it went.
    assert_eq!(view.note("a", Wanted::new()), [place("art", "ours")]);
    view.configure(None);
    view.note("b", Wanted::new());
    let (host, held) = view.wanted(&ours, &before);
    assert!(host.is_none() && held.is_empty());
}
