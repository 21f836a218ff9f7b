//! The kubeconfig with which kubectl finds a standalone server and proves to be its owner.

use crate::certificates::{Pair, write_private};
use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use std::path::Path;

/// Writes `DIR/kubeconfig`, readable by its owner alone.
pub(crate) fn write(path: &Path, server: &str, authority: &str, owner: &Pair) -> Result<()> {
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{
            "name": "muster",
            "cluster": {
                "server": server,
                "certificate-authority-data": STANDARD.encode(authority),
            },
        }],
        "users": [{
            "name": "muster",
            "user": {
                "client-certificate-data": STANDARD.encode(&owner.certificate),
                "client-key-data": STANDARD.encode(&owner.key),
            },
        }],
        "contexts": [{
            "name": "muster",
            "context": {"cluster": "muster", "user": "muster", "namespace": "default"},
        }],
        "current-context": "muster",
    });
    let text = serde_saphyr::to_string(&config).context("writing the kubeconfig")?;
    write_private(path, &text)
}
