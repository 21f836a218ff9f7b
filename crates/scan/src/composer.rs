//! What Composer installed: `vendor/composer/installed.json`, a list or, since its second version,
//! an object around one.

use crate::package::{Package, Reading};
use serde_json::Value;

/// Reads an `installed.json`.
pub fn installed(contents: &[u8]) -> Reading {
    let mut reading = Reading::default();
    let file: Value = match serde_json::from_slice(contents) {
        Ok(file) => file,
        Err(error) => {
            reading.problems.push(format!("no JSON: {error}"));
            return reading;
        }
    };
    let list = file.as_array().or_else(|| file["packages"].as_array());
    for entry in list.into_iter().flatten() {
        if let (Some(name), Some(version)) = (entry["name"].as_str(), entry["version"].as_str()) {
            reading.packages.push(Package {
                licence: entry["license"][0].as_str().map(Into::into),
                ..Package::new(name, version)
            });
        }
    }
    reading
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read() {
        let entry = r#"{"name": "monolog/monolog", "version": "2.0.0", "license": ["MIT"]}"#;
        for text in [
            format!("[{entry}]"),
            format!("{{\"packages\": [{entry}, {{}}]}}"),
        ] {
            let reading = installed(text.as_bytes());
            assert_eq!(reading.packages.len(), 1);
            assert_eq!(reading.packages[0].licence.as_deref(), Some("MIT"));
        }
        assert_eq!(installed(b"{").problems.len(), 1);
        assert_eq!(installed(b"{}"), Reading::default());
    }
}
