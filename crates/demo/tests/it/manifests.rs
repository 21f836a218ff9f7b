//! The objects that are applied, as far as they are about the images.

use muster_demo::images;
use muster_demo::manifests;
use muster_demo::site::Site;
use serde_json::Value;
use std::collections::BTreeSet;

const HOST: &str = "127.0.0.1:5000";

fn images_of(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            if let (Some(Value::String(image)), true) =
                (fields.get("image"), fields.contains_key("name"))
            {
                found.insert(image.clone());
            }
            fields.values().for_each(|value| images_of(value, found));
        }
        Value::Array(values) => values.iter().for_each(|value| images_of(value, found)),
        _ => {}
    }
}

#[test]
fn all_that_runs_in_production_is_in_the_registry() {
    let site = Site::new(images::all().unwrap(), HOST.parse().unwrap()).unwrap();
    let mut found = BTreeSet::new();
    for object in manifests::all(HOST).unwrap() {
        if object["metadata"]["namespace"] != "sandbox" {
            images_of(&object, &mut found);
        }
    }
    assert_eq!(found.len(), 7, "{found:?}");
    for image in found {
        assert!(site.image_id(&image).is_some(), "{image}");
    }
}

#[test]
fn nothing_is_left_of_what_stands_for_the_registry() {
    for object in manifests::all(HOST).unwrap() {
        let text = object.to_string();
        assert!(!text.contains("registry.demo"), "{text}");
        for field in ["apiVersion", "kind"] {
            assert!(object[field].is_string(), "{text}");
        }
        assert!(object["metadata"]["name"].is_string(), "{text}");
    }
}
