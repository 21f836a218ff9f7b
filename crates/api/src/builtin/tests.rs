use super::*;
use std::time::Instant;

#[test]
fn every_kind_has_a_schema_of_its_own() {
    let kinds = builtin();
    assert_eq!(kinds.len(), 28);
    for kind in &kinds {
        assert!(
            !kind.schema.properties.is_empty(),
            "{} has no schema",
            kind.kind
        );
        let component = kind.schema.component.as_deref().unwrap();
        assert!(
            component.ends_with(&format!(".v1.{}", kind.kind)),
            "{component}"
        );
        assert_eq!(muster_kind::openapi::component_name(kind, "v1"), component);
        let has_status = kind.schema.properties.contains_key("status");
        assert_eq!(has_status, kind.status, "{}", kind.kind);
    }
}

#[test]
fn the_schemas_are_read_in_a_blink() {
    let start = Instant::now();
    let kinds = builtin();
    // Some 10 ms on a busy machine with an unoptimised build; a second would be a bug.
    assert!(
        start.elapsed().as_millis() < 1000,
        "{} kinds in {:?}",
        kinds.len(),
        start.elapsed()
    );
}
