//! The corpus by topic. The requests themselves are data, in `corpus/`; `request.rs` says what
//! may stand there.

use super::request::Case;
use anyhow::{Context, Result, ensure};
use std::collections::BTreeSet;

const TOPICS: &[(&str, &str)] = &[
    ("apply", include_str!("corpus/apply.yaml")),
    ("body", include_str!("corpus/body.yaml")),
    ("configmap", include_str!("corpus/configmap.yaml")),
    ("create", include_str!("corpus/create.yaml")),
    ("delete", include_str!("corpus/delete.yaml")),
    ("discovery", include_str!("corpus/discovery.yaml")),
    ("dry run", include_str!("corpus/dry_run.yaml")),
    (
        "field validation",
        include_str!("corpus/field_validation.yaml"),
    ),
    ("lease", include_str!("corpus/lease.yaml")),
    ("list", include_str!("corpus/list.yaml")),
    ("namespace", include_str!("corpus/namespace.yaml")),
    ("patch", include_str!("corpus/patch.yaml")),
    ("route", include_str!("corpus/route.yaml")),
    ("schema", include_str!("corpus/schema.yaml")),
    ("secret", include_str!("corpus/secret.yaml")),
    ("selector", include_str!("corpus/selector.yaml")),
    ("status", include_str!("corpus/status.yaml")),
    ("strategic", include_str!("corpus/strategic.yaml")),
    ("update", include_str!("corpus/update.yaml")),
    ("view", include_str!("corpus/view.yaml")),
    ("watch", include_str!("corpus/watch.yaml")),
];

/// All cases of all topics.
pub(super) fn read() -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    let mut titles = BTreeSet::new();
    for (topic, text) in TOPICS {
        // Strict, so that a plain `y` or `no` is the text that it seems to be.
        let options = serde_saphyr::options! { strict_booleans: true };
        let read: Vec<Case> = serde_saphyr::from_str_with_options(text, options)
            .with_context(|| format!("corpus/{topic}"))?;
        for mut case in read {
            case.topic = topic.to_string();
            ensure!(
                titles.insert(case.title()),
                "two cases are named {}",
                case.title()
            );
            cases.push(case);
        }
    }
    Ok(cases)
}
