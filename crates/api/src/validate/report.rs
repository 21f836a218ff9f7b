//! Rules of policy reports.

use super::present;
use muster_kind::FieldError;
use serde_json::Value;

/// Judges a report: it is about one resource or about a selection, not both.
pub fn report(new: &Value, _old: Option<&Value>) -> Vec<FieldError> {
    if present(new, "scope").is_some() && present(new, "scopeSelector").is_some() {
        let fault = "may not be set together with scope";
        return vec![FieldError::forbidden("scopeSelector", fault)];
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;
    use serde_json::json;

    #[test]
    fn a_report_is_about_a_resource_or_a_selection() {
        for (object, fields) in [
            (json!({"scope": {"name": "a"}}), &[][..]),
            (json!({"scopeSelector": {}}), &[]),
            (
                json!({"scope": {"name": "a"}, "scopeSelector": {}}),
                &["scopeSelector"],
            ),
        ] {
            check::fields(&report(&object, None), fields, &object.to_string());
        }
    }
}
