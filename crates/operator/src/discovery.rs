//! How far a RegistryDiscovery has come.

use serde_json::Value;

/// Whether a discovery's status says that nothing is left to do: it failed, was called off, or
/// no image waits for its SBOM any more. One that merely succeeded still has SBOMs made.
pub(crate) fn has_ended(status: &Value) -> bool {
    match status["currentStatus"].as_str() {
        Some("FailStopped" | "Cancel") => true,
        Some("Succeeded") => status["completedAt"].is_string(),
        _ => false,
    }
}
