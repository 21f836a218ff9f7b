use super::*;

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
