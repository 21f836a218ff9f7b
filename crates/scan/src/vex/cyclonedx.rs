//! CycloneDX documents with an analysis of vulnerabilities: each names what it affects by a
//! reference into this or another bill, or by a package URL.

use super::openvex::{Product, Statement, Verdict, moment};
use crate::purl::Purl;
use serde::Deserialize;
use std::collections::HashMap;

/// Components within components.
const MAX_DEPTH: usize = 64;

#[derive(Deserialize)]
pub(super) struct CycloneDxValue {
    #[serde(default)]
    metadata: MetadataValue,
    #[serde(default)]
    components: Vec<ComponentValue>,
    #[serde(default)]
    vulnerabilities: Vec<VulnerabilityValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct MetadataValue {
    timestamp: String,
    component: Option<ComponentValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ComponentValue {
    #[serde(rename = "bom-ref")]
    reference: String,
    purl: String,
    components: Vec<ComponentValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct VulnerabilityValue {
    id: String,
    analysis: AnalysisValue,
    affects: Vec<AffectsValue>,
    updated: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AnalysisValue {
    state: String,
    justification: String,
    detail: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AffectsValue {
    #[serde(rename = "ref")]
    reference: String,
}

/// The statements of a document.
pub(super) fn statements(value: &CycloneDxValue) -> Vec<Statement> {
    let mut purls = HashMap::new();
    for component in value.metadata.component.iter().chain(&value.components) {
        remember(component, 0, &mut purls);
    }
    let statement = |one: &VulnerabilityValue| {
        let verdict = match one.analysis.state.as_str() {
            "not_affected" | "false_positive" => Verdict::NotAffected,
            "resolved" | "resolved_with_pedigree" => Verdict::Fixed,
            "exploitable" => Verdict::Affected,
            "in_triage" => Verdict::UnderInvestigation,
            _ => return None,
        };
        let product = |affects: &AffectsValue| {
            let reference = affects.reference.as_str();
            // `urn:cdx:serial/version#reference` leads into another bill.
            let local = reference
                .rsplit_once('#')
                .filter(|_| reference.starts_with("urn:cdx:"));
            let local = local.map_or(reference, |(_, local)| local);
            let purl = purls.get(local).cloned().or_else(|| Purl::parse(local))?;
            let parts = Vec::new();
            Some(Product { purl, parts })
        };
        let products: Vec<Product> = one.affects.iter().filter_map(product).collect();
        let timestamp = match one.updated.as_str() {
            "" => &value.metadata.timestamp,
            _ => &one.updated,
        };
        let words = [&one.analysis.justification, &one.analysis.detail];
        let words = words.into_iter().find(|words| !words.is_empty());
        (!products.is_empty()).then(|| Statement {
            vulnerabilities: vec![one.id.clone()],
            products,
            verdict,
            justification: words.cloned().unwrap_or_default(),
            timestamp: moment(timestamp),
        })
    };
    value.vulnerabilities.iter().filter_map(statement).collect()
}

fn remember<'a>(component: &'a ComponentValue, depth: usize, purls: &mut HashMap<&'a str, Purl>) {
    if depth > MAX_DEPTH {
        return;
    }
    if let Some(purl) = Purl::parse(&component.purl) {
        purls.insert(&component.reference, purl);
    }
    for component in &component.components {
        remember(component, depth + 1, purls);
    }
}
