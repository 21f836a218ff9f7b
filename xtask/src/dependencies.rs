//! Bans and licences, over what cargo itself says of the dependency tree.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::process::Command;

/// Crates that must not come in, and why.
const BANNED: [(&str, &str); 6] = [
    ("aws-lc-sys", "ring is the one provider of cryptography"),
    ("openssl-sys", "rustls is the one TLS"),
    ("native-tls", "rustls is the one TLS"),
    ("chrono", "jiff is the one time library"),
    (
        "serde_yaml",
        "unmaintained; serde-saphyr reads and writes YAML",
    ),
    ("rusqlite", "sqlx owns SQLite"),
];

/// Licences that may come in; an expression is fine if one of its alternatives is.
const LICENCES: [&str; 13] = [
    "Apache-2.0",
    "MIT",
    "MIT-0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "Unicode-3.0",
    "Unlicense",
    "CC0-1.0",
    "0BSD",
    "CDLA-Permissive-2.0",
    "Apache-2.0 WITH LLVM-exception",
];

/// Fails if the tree holds a banned crate or a licence nobody has agreed to.
pub(crate) fn check() -> Result<()> {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version=1",
            "--locked",
            "--filter-platform",
        ])
        .arg(host()?)
        .current_dir(crate::run::root())
        .output()
        .context("asking cargo for the dependency tree")?;
    if !output.status.success() {
        bail!(
            "cargo metadata: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let metadata: Value = serde_json::from_slice(&output.stdout).context("reading it")?;
    let mut wrong = Vec::new();
    for package in used(&metadata) {
        let name = package["name"].as_str().unwrap_or_default();
        if let Some((_, why)) = BANNED.iter().find(|(banned, _)| *banned == name) {
            wrong.push(format!("{name} is banned: {why}"));
        }
        let licence = package["license"].as_str().unwrap_or_default();
        if !acceptable(licence) {
            wrong.push(format!(
                "{name} has the licence {licence:?}, which nobody has agreed to"
            ));
        }
    }
    if !wrong.is_empty() {
        bail!("dependencies:\n  {}", wrong.join("\n  "));
    }
    Ok(())
}

/// The packages that are really built here: what the resolver reached for this platform.
fn used(metadata: &Value) -> Vec<&Value> {
    let reached: Vec<&str> = metadata["resolve"]["nodes"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|node| node["id"].as_str())
        .collect();
    let packages = metadata["packages"].as_array().into_iter().flatten();
    packages
        .filter(|p| p["id"].as_str().is_some_and(|id| reached.contains(&id)))
        .collect()
}

fn acceptable(expression: &str) -> bool {
    let expression = expression.replace('/', " OR ").replace(['(', ')'], "");
    expression.split(" OR ").any(|choice| {
        choice
            .split(" AND ")
            .all(|licence| LICENCES.contains(&licence.trim()))
    })
}

fn host() -> Result<String> {
    let output = Command::new("rustc")
        .arg("-vV")
        .output()
        .context("asking rustc for its host")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(Into::into).context("rustc does not name its host")
}

#[cfg(test)]
mod tests {
    use super::acceptable;

    #[test]
    fn an_expression_is_fine_if_one_alternative_is() {
        for (expression, fine) in [
            ("MIT", true),
            ("MIT OR GPL-3.0", true),
            ("MIT/Apache-2.0", true),
            ("GPL-3.0", false),
            ("MIT AND GPL-3.0", false),
            ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
            ("", false),
        ] {
            assert_eq!(acceptable(expression), fine, "{expression}");
        }
    }
}
