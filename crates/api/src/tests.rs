//! What must hold for every kind, so that our server and a real kube-apiserver accept it.

mod examples;

use super::*;
use muster_kind::schema::{ListType, Schema, Type};
use muster_kind::{Cell, FieldPath, structural};
use serde_json::json;
use std::collections::BTreeSet;

/// Calls `visit` for every schema of a kind, with its path.
fn walk(path: &str, schema: &Schema, visit: &mut impl FnMut(&str, &Schema)) {
    visit(path, schema);
    for (name, property) in &schema.properties {
        walk(&format!("{path}.{name}"), property, visit);
    }
    if let Some(values) = &schema.additional {
        walk(&format!("{path}.*"), values, visit);
    }
    if let Some(items) = &schema.items {
        walk(&format!("{path}[]"), items, visit);
    }
}

fn everywhere(mut visit: impl FnMut(&str, &Schema)) {
    for kind in kinds() {
        walk(
            &format!("{}/{}", kind.group, kind.kind),
            &kind.schema,
            &mut visit,
        );
    }
}

fn resolve<'a>(schema: &'a Schema, path: &FieldPath) -> Option<&'a Schema> {
    path.names().iter().try_fold(schema, |schema, name| {
        schema.property(name).map(|next| &**next)
    })
}

/// The apiVersion of the kind's preferred version, for messages.
fn title(kind: &Kind) -> String {
    format!("{} {}", kind.api_version(&kind.versions[0]), kind.kind)
}

#[test]
fn every_kind_of_the_design_is_described() {
    let found: Vec<String> = kinds().iter().map(title).collect();
    assert_eq!(
        found,
        [
            "sbomscanner.kubewarden.io/v1alpha1 Registry",
            "sbomscanner.kubewarden.io/v1alpha1 ScanJob",
            "sbomscanner.kubewarden.io/v1alpha1 RegistryDiscovery",
            "sbomscanner.kubewarden.io/v1alpha1 WorkloadScanConfiguration",
            "sbomscanner.kubewarden.io/v1alpha1 VEXHub",
            "storage.sbomscanner.kubewarden.io/v1alpha1 Image",
            "storage.sbomscanner.kubewarden.io/v1alpha1 SBOM",
            "storage.sbomscanner.kubewarden.io/v1alpha1 VulnerabilityReport",
            "storage.sbomscanner.kubewarden.io/v1alpha1 WorkloadScanReport",
            "storage.sbomscanner.kubewarden.io/v1alpha1 FindingHistory",
            "policies.kubewarden.io/v1 ClusterAdmissionPolicy",
            "policies.kubewarden.io/v1 AdmissionPolicy",
            "policies.kubewarden.io/v1 ClusterAdmissionPolicyGroup",
            "policies.kubewarden.io/v1 AdmissionPolicyGroup",
            "policies.kubewarden.io/v1 PolicyServer",
            "wgpolicyk8s.io/v1beta1 PolicyReport",
            "wgpolicyk8s.io/v1beta1 ClusterPolicyReport",
            "openreports.io/v1alpha1 Report",
            "openreports.io/v1alpha1 ClusterReport",
            "aquasecurity.github.io/v1alpha1 ConfigAuditReport",
            "aquasecurity.github.io/v1alpha1 ClusterConfigAuditReport",
        ]
    );
}

#[test]
fn every_name_means_one_kind() {
    let mut plurals = BTreeSet::new();
    let mut names = BTreeSet::new();
    for kind in kinds() {
        assert!(plurals.insert(kind.group_resource()), "{}", title(&kind));
        for name in [&kind.plural, &kind.singular]
            .into_iter()
            .chain(&kind.short_names)
        {
            assert!(names.insert(name.clone()), "{name} of {}", title(&kind));
        }
    }
    for kind in kinds() {
        assert_eq!(kind.categories.first().map(String::as_str), Some(CATEGORY));
        assert_eq!(kind.categories.len(), 2, "{}", title(&kind));
        for category in &kind.categories {
            assert!(
                !names.contains(category),
                "the category {category} hides a resource"
            );
        }
    }
}

#[test]
fn everything_is_described() {
    for kind in kinds() {
        assert!(!kind.description.is_empty(), "{}", title(&kind));
        for (name, property) in &kind.schema.properties {
            let path = format!("{}.{name}", title(&kind));
            walk(&path, property, &mut |path, schema| {
                // Items and values that are mere scalars are described by what holds them.
                let element = path.ends_with("[]") || path.ends_with(".*");
                let scalar = schema.properties.is_empty();
                assert!(
                    !schema.description.is_empty() || (element && scalar),
                    "{path}"
                );
            });
        }
    }
}

#[test]
fn every_schema_is_structural() {
    everywhere(|path, schema| {
        assert!(
            schema.of != Type::Any || schema.preserve_unknown,
            "{path} has no type"
        );
        assert!(
            schema.properties.is_empty() || schema.additional.is_none(),
            "{path} has both named and free keys"
        );
        assert_eq!(schema.items.is_some(), schema.of == Type::Array, "{path}");
        if !schema.properties.is_empty() || schema.additional.is_some() {
            assert_eq!(schema.of, Type::Object, "{path}");
        }
        for name in &schema.required {
            let property = schema.properties.get(name);
            let property = property.unwrap_or_else(|| panic!("{path}.{name} is unknown"));
            // A default would make the requirement void.
            assert!(
                property.default.is_none(),
                "{path}.{name} is required and defaulted"
            );
        }
    });
}

#[test]
fn every_list_can_be_merged_the_way_it_says() {
    let scalar = |of| {
        matches!(
            of,
            Type::String | Type::Integer | Type::Number | Type::Boolean
        )
    };
    everywhere(|path, schema| match &schema.list {
        ListType::Atomic => {}
        ListType::Set => {
            let items = schema.items.as_ref().unwrap();
            assert!(
                scalar(items.of) && !items.nullable,
                "{path} is a set of objects"
            );
        }
        ListType::Map(keys) => {
            let items = schema.items.as_ref().unwrap();
            assert_eq!(items.of, Type::Object, "{path}");
            assert!(!keys.is_empty() && !items.nullable, "{path}");
            for key in keys {
                let field = items.properties.get(key);
                let field = field.unwrap_or_else(|| panic!("{path} is keyed by unknown {key}"));
                assert!(
                    scalar(field.of) && !field.nullable,
                    "{path} is keyed by {key}"
                );
                assert!(
                    items.required.contains(key) || field.default.is_some(),
                    "{path}: {key}"
                );
            }
        }
    });
}

#[test]
fn every_default_is_a_value_of_its_field() {
    everywhere(|path, schema| {
        if let Some(default) = &schema.default {
            assert_eq!(structural::validate(default, schema), [], "{path}");
            assert_eq!(
                structural::prune(&mut default.clone(), schema),
                [""; 0],
                "{path}"
            );
        }
    });
}

#[test]
fn every_pattern_and_bound_makes_sense() {
    everywhere(|path, schema| {
        if let (Some(least), Some(most)) = (schema.min_length, schema.max_length) {
            assert!(least <= most, "{path}");
        }
        if let (Some(least), Some(most)) = (schema.minimum, schema.maximum) {
            assert!(least <= most, "{path}");
        }
        assert!(
            schema.pattern.is_none() || schema.of == Type::String,
            "{path}"
        );
        for value in &schema.one_of {
            assert_eq!(
                schema.one_of.iter().filter(|other| *other == value).count(),
                1,
                "{path}"
            );
        }
    });
    let condition = condition::conditions("");
    let judge = |kind: &str, reason: &str| {
        let value = json!([{
            "type": kind, "status": "True", "reason": reason, "message": "",
            "lastTransitionTime": "2025-05-08T15:52:20Z",
        }]);
        structural::validate(&value, &condition).is_empty()
    };
    assert!(judge("Discovering", "DiscoveryRunning"));
    assert!(judge("example.com/Ready", "A_b"));
    assert!(!judge("no blanks", "Ok") && !judge("Ready", "no blanks") && !judge("Ready", ""));
}

#[test]
fn every_path_leads_to_a_field() {
    for kind in kinds() {
        for path in kind.selectable.iter().chain(&kind.opaque) {
            let field = resolve(&kind.schema, path);
            assert!(field.is_some(), "{} has no {path}", title(&kind));
        }
        for column in &kind.columns {
            let Cell::Path(path) = &column.cell else {
                continue;
            };
            if path.starts_with(".metadata.") {
                continue;
            }
            // A filter picks an item of a list; what follows it is a field of the item.
            let mut schema = &*kind.schema;
            for part in path.split("[?(") {
                let part = part.split_once(")]").map_or(part, |(_, rest)| rest);
                let found = resolve(schema, &FieldPath::parse(part));
                let found = found.unwrap_or_else(|| panic!("{} has no {path}", title(&kind)));
                schema = found.items.as_deref().unwrap_or(found);
            }
            let of = match (schema.of, schema.format.as_deref()) {
                (Type::Integer, _) => "integer",
                (Type::Boolean, _) => "boolean",
                (Type::String, Some("date-time")) => "date",
                _ => "string",
            };
            assert_eq!(column.of, of, "{} {path}", title(&kind));
        }
    }
}

#[test]
fn fields_that_a_crd_lets_selectors_name_are_scalars() {
    for kind in kinds().iter().filter(|kind| kind.group != storage::GROUP) {
        for path in &kind.selectable {
            let field = resolve(&kind.schema, path).unwrap();
            assert_eq!(field.of, Type::String, "{} {path}", title(kind));
        }
    }
}

#[test]
fn tables_end_with_the_age_and_repeat_no_heading() {
    for kind in kinds() {
        assert_eq!(
            kind.columns.last().map(|column| column.name.as_str()),
            Some("Age")
        );
        let mut headings = BTreeSet::from(["NAME".to_owned(), "NAMESPACE".to_owned()]);
        for column in &kind.columns {
            assert!(
                headings.insert(column.name.to_uppercase()),
                "{} {}",
                title(&kind),
                column.name
            );
        }
    }
}

#[test]
fn a_kind_that_others_may_keep_as_a_crd_computes_no_column() {
    for kind in kinds().iter().filter(|kind| kind.group != storage::GROUP) {
        let computed = kind
            .columns
            .iter()
            .any(|c| matches!(c.cell, Cell::Computed(_)));
        assert!(!computed, "{}", title(kind));
    }
}

#[test]
fn a_status_subresource_has_a_status() {
    for kind in kinds().iter().filter(|kind| kind.status) {
        assert!(
            kind.schema.properties.contains_key("status"),
            "{}",
            title(kind)
        );
    }
}
