//! CSAF documents of the VEX profile: products in a tree, vulnerabilities that name them by
//! identifiers of the document's own. A product without a package URL is left out, and a part of
//! such a product with it: what cannot be named is never widened.

use super::openvex::{Product, Statement, Verdict, moment};
use crate::purl::Purl;
use serde::Deserialize;
use std::collections::HashMap;

/// Branches within branches.
const MAX_DEPTH: usize = 64;

#[derive(Deserialize)]
pub(super) struct CsafValue {
    document: DocumentValue,
    #[serde(default)]
    product_tree: TreeValue,
    #[serde(default)]
    vulnerabilities: Vec<VulnerabilityValue>,
}

#[derive(Deserialize)]
struct DocumentValue {
    #[serde(default)]
    tracking: TrackingValue,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TrackingValue {
    current_release_date: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TreeValue {
    branches: Vec<BranchValue>,
    full_product_names: Vec<ProductValue>,
    relationships: Vec<RelationshipValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct BranchValue {
    branches: Vec<BranchValue>,
    product: Option<ProductValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ProductValue {
    product_id: String,
    product_identification_helper: HelperValue,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct HelperValue {
    purl: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RelationshipValue {
    product_reference: String,
    relates_to_product_reference: String,
    full_product_name: ProductValue,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct VulnerabilityValue {
    cve: String,
    ids: Vec<IdValue>,
    product_status: StatusValue,
    flags: Vec<RemarkValue>,
    threats: Vec<RemarkValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct IdValue {
    text: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct StatusValue {
    known_not_affected: Vec<String>,
    known_affected: Vec<String>,
    fixed: Vec<String>,
    first_fixed: Vec<String>,
    under_investigation: Vec<String>,
}

/// A flag, or what a threat amounts to; about some products or all.
#[derive(Default, Deserialize)]
#[serde(default)]
struct RemarkValue {
    label: String,
    category: String,
    details: String,
    product_ids: Vec<String>,
}

/// The statements of a document.
pub(super) fn statements(value: &CsafValue) -> Vec<Statement> {
    let mut purls = HashMap::new();
    let tree = &value.product_tree;
    for product in &tree.full_product_names {
        remember(product, &mut purls);
    }
    for branch in &tree.branches {
        climb(branch, 0, &mut purls);
    }
    let mut products: HashMap<&str, Product> = HashMap::new();
    for relation in &tree.relationships {
        let part = purls.get(relation.product_reference.as_str());
        let whole = purls.get(relation.relates_to_product_reference.as_str());
        if let (Some(part), Some(whole)) = (part, whole) {
            let product = Product {
                purl: whole.clone(),
                parts: vec![part.clone()],
            };
            products.insert(&relation.full_product_name.product_id, product);
        }
    }
    // A name that is given to a part in a whole is not also one of its own.
    for relation in &tree.relationships {
        purls.remove(relation.full_product_name.product_id.as_str());
    }
    for (id, purl) in purls {
        let parts = Vec::new();
        products.entry(id).or_insert(Product { purl, parts });
    }
    let timestamp = moment(&value.document.tracking.current_release_date);
    let mut statements = Vec::new();
    for vulnerability in &value.vulnerabilities {
        let others = vulnerability.ids.iter().map(|id| &id.text);
        let names = std::iter::once(&vulnerability.cve).chain(others);
        let names: Vec<String> = names.filter(|name| !name.is_empty()).cloned().collect();
        let status = &vulnerability.product_status;
        for (verdict, ids) in [
            (Verdict::NotAffected, &status.known_not_affected),
            (Verdict::Fixed, &status.fixed),
            (Verdict::Fixed, &status.first_fixed),
            (Verdict::Affected, &status.known_affected),
            (Verdict::UnderInvestigation, &status.under_investigation),
        ] {
            for id in ids {
                let Some(product) = products.get(id.as_str()) else {
                    continue;
                };
                statements.push(Statement {
                    vulnerabilities: names.clone(),
                    products: vec![product.clone()],
                    verdict,
                    justification: vulnerability.remark(id),
                    timestamp: timestamp.clone(),
                });
            }
        }
    }
    statements
}

impl VulnerabilityValue {
    fn remark(&self, product: &str) -> String {
        let about = |remark: &&RemarkValue| {
            remark.product_ids.is_empty() || remark.product_ids.iter().any(|id| id == product)
        };
        if let Some(flag) = self.flags.iter().find(about) {
            return flag.label.clone();
        }
        let impacts = self
            .threats
            .iter()
            .filter(|threat| threat.category == "impact");
        let impact = impacts.into_iter().find(about);
        impact.map_or(String::new(), |threat| threat.details.clone())
    }
}

fn climb<'a>(branch: &'a BranchValue, depth: usize, purls: &mut HashMap<&'a str, Purl>) {
    if depth > MAX_DEPTH {
        return;
    }
    if let Some(product) = &branch.product {
        remember(product, purls);
    }
    for branch in &branch.branches {
        climb(branch, depth + 1, purls);
    }
}

fn remember<'a>(product: &'a ProductValue, purls: &mut HashMap<&'a str, Purl>) {
    if let Some(purl) = Purl::parse(&product.product_identification_helper.purl) {
        purls.insert(&product.product_id, purl);
    }
}
