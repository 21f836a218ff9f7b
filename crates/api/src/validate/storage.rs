//! Rules of Image, SBOM and VulnerabilityReport.

use crate::platform::Platform;
use muster_kind::FieldError;
use serde_json::Value;

/// Judges `imageMetadata.platform`, which the schema leaves open because it has two forms. Any
/// operating system and processor is fine here: images say themselves what they are built for.
pub fn image_metadata(new: &Value, _old: Option<&Value>) -> Vec<FieldError> {
    let platform = new
        .pointer("/imageMetadata/platform")
        .filter(|value| !value.is_null());
    platform
        .filter(|value| value.as_str() != Some("") && Platform::read(value).is_none())
        .map(|value| {
            let fault = "must be {os, architecture, variant} or os/architecture[/variant]";
            FieldError::invalid("imageMetadata.platform", value, fault)
        })
        .into_iter()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;
    use serde_json::json;

    #[test]
    fn a_platform_has_one_of_two_forms() {
        for (platform, fields) in [
            (Value::Null, &[][..]),
            (json!(""), &[]),
            (json!("unknown/unknown"), &[]),
            (json!({"os": "linux", "architecture": "amd64"}), &[]),
            (json!("linux"), &["imageMetadata.platform"]),
            (json!({"os": "linux"}), &["imageMetadata.platform"]),
            (json!(["linux", "amd64"]), &["imageMetadata.platform"]),
        ] {
            let object = json!({"imageMetadata": {"platform": platform}});
            check::fields(&image_metadata(&object, None), fields, &object.to_string());
        }
    }
}
