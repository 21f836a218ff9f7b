//! VEX documents, and those of OpenVEX themselves. A statement without products we can name is of
//! no use here and left out; a document of an unknown sort is an error.

use super::{csaf, cyclonedx};
use crate::purl::Purl;
use serde::Deserialize;
use serde::de::IgnoredAny;

/// Documents beyond these are refused.
const MAX_BYTES: usize = 64 * 1024 * 1024;
const MAX_STATEMENTS: usize = 500_000;

/// The statements of a document.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    pub(super) statements: Vec<Statement>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Statement {
    /// The vulnerability's name and its other names.
    pub vulnerabilities: Vec<String>,
    pub products: Vec<Product>,
    pub verdict: Verdict,
    pub justification: String,
    /// When it was made, to the second and in UTC, so that text order is time order.
    pub timestamp: String,
}

/// A product, and the parts of it that are meant if not all.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Product {
    pub purl: Purl,
    pub parts: Vec<Purl>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    NotAffected,
    Affected,
    Fixed,
    UnderInvestigation,
}

/// Why a document could not be read.
#[derive(Debug, thiserror::Error)]
pub enum VexError {
    /// It is not JSON of the right shape.
    #[error("reading the VEX document: {0}")]
    Json(#[from] serde_json::Error),
    /// It is something else.
    #[error("reading the VEX document: {0}")]
    Unknown(String),
}

/// As much as tells the formats apart.
#[derive(Deserialize)]
struct SortValue {
    #[serde(rename = "bomFormat")]
    bom_format: Option<String>,
    document: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct DocumentValue {
    #[serde(rename = "@context", default)]
    context: String,
    #[serde(default)]
    timestamp: String,
    #[serde(default)]
    statements: Vec<StatementValue>,
}

#[derive(Deserialize)]
struct StatementValue {
    vulnerability: VulnerabilityValue,
    #[serde(default)]
    products: Vec<ProductValue>,
    status: String,
    #[serde(default)]
    justification: String,
    #[serde(default)]
    impact_statement: String,
    #[serde(default)]
    status_notes: String,
    #[serde(default)]
    timestamp: String,
}

/// The first drafts had a plain name here.
#[derive(Deserialize)]
#[serde(untagged)]
enum VulnerabilityValue {
    Name(String),
    Described {
        #[serde(default)]
        name: String,
        #[serde(default)]
        aliases: Vec<String>,
    },
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ProductValue {
    Name(String),
    Described(ComponentValue),
}

#[derive(Deserialize)]
struct ComponentValue {
    #[serde(rename = "@id", default)]
    id: String,
    #[serde(default)]
    identifiers: IdentifiersValue,
    #[serde(default)]
    subcomponents: Vec<ProductValue>,
}

#[derive(Default, Deserialize)]
struct IdentifiersValue {
    #[serde(default)]
    purl: String,
}

impl Verdict {
    pub fn name(self) -> &'static str {
        match self {
            Verdict::NotAffected => "not_affected",
            Verdict::Affected => "affected",
            Verdict::Fixed => "fixed",
            Verdict::UnderInvestigation => "under_investigation",
        }
    }

    fn named(name: &str) -> Option<Self> {
        let all = [
            Verdict::NotAffected,
            Verdict::Affected,
            Verdict::Fixed,
            Verdict::UnderInvestigation,
        ];
        all.into_iter().find(|verdict| verdict.name() == name)
    }
}

impl Document {
    /// Reads a document.
    pub fn parse(text: &[u8]) -> Result<Self, VexError> {
        if text.len() > MAX_BYTES {
            return Err(VexError::Unknown(format!("more than {MAX_BYTES} bytes")));
        }
        let sort: SortValue = serde_json::from_slice(text)?;
        let statements = if sort.bom_format.as_deref() == Some("CycloneDX") {
            cyclonedx::statements(&serde_json::from_slice(text)?)
        } else if sort.document.is_some() {
            csaf::statements(&serde_json::from_slice(text)?)
        } else {
            openvex(text)?
        };
        if statements.len() > MAX_STATEMENTS {
            let problem = format!("more than {MAX_STATEMENTS} statements");
            return Err(VexError::Unknown(problem));
        }
        Ok(Document { statements })
    }

    /// How many statements it makes.
    pub fn len(&self) -> usize {
        self.statements.len()
    }

    /// Whether it makes none.
    pub fn is_empty(&self) -> bool {
        self.statements.is_empty()
    }
}

fn openvex(text: &[u8]) -> Result<Vec<Statement>, VexError> {
    let value: DocumentValue = serde_json::from_slice(text)?;
    if !value.context.starts_with("https://openvex.dev/ns") {
        let problem = format!("its context {:?} is not OpenVEX", value.context);
        return Err(VexError::Unknown(problem));
    }
    let statements = value.statements.into_iter();
    let statements = statements.filter_map(|one| statement(one, &value.timestamp));
    Ok(statements.collect())
}

/// A time to the second and in UTC; empty where it is none.
pub(super) fn moment(text: &str) -> String {
    let time: Option<jiff::Timestamp> = text.parse().ok();
    time.map_or(String::new(), |time| {
        time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    })
}

fn statement(value: StatementValue, written: &str) -> Option<Statement> {
    let vulnerabilities = match value.vulnerability {
        VulnerabilityValue::Name(name) => vec![name],
        VulnerabilityValue::Described { name, aliases } => [vec![name], aliases].concat(),
    };
    let timestamp = match value.timestamp.as_str() {
        "" => written,
        timestamp => timestamp,
    };
    let timestamp = moment(timestamp);
    let products: Vec<Product> = value.products.iter().filter_map(product).collect();
    let words = [
        value.justification,
        value.impact_statement,
        value.status_notes,
    ];
    (!products.is_empty()).then_some(Statement {
        vulnerabilities,
        products,
        verdict: Verdict::named(&value.status)?,
        justification: words
            .into_iter()
            .find(|words| !words.is_empty())
            .unwrap_or_default(),
        timestamp,
    })
}

fn product(value: &ProductValue) -> Option<Product> {
    let parts = match value {
        ProductValue::Name(_) => Vec::new(),
        ProductValue::Described(component) => {
            let parts: Vec<Purl> = component.subcomponents.iter().filter_map(purl).collect();
            // Parts that we cannot name must not become the whole product.
            if parts.is_empty() && !component.subcomponents.is_empty() {
                return None;
            }
            parts
        }
    };
    Some(Product {
        purl: purl(value)?,
        parts,
    })
}

fn purl(value: &ProductValue) -> Option<Purl> {
    match value {
        ProductValue::Name(name) => Purl::parse(name),
        ProductValue::Described(component) => {
            Purl::parse(&component.identifiers.purl).or_else(|| Purl::parse(&component.id))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_named_is_left_out_and_never_widened() {
        let text = r#"{"@context": "https://openvex.dev/ns/v0.2.0", "statements": [
            {"vulnerability": {"name": "CVE-1"}, "products": [{"@id": "nothing"}], "status": "fixed"},
            {"vulnerability": {"name": "CVE-1"}, "products": [{"@id": "pkg:oci/app",
                "subcomponents": [{"@id": "nothing"}]}], "status": "fixed"},
            {"vulnerability": {"name": "CVE-1"}, "products": [{"@id": "pkg:oci/app"}], "status": "maybe"},
            {"vulnerability": {"name": "CVE-1"}, "products": [{"@id": "x",
                "identifiers": {"purl": "pkg:oci/app"}}], "status": "fixed"}]}"#;
        assert_eq!(Document::parse(text.as_bytes()).unwrap().len(), 1);
    }

    #[test]
    fn other_documents_are_refused() {
        for (text, problem) in [
            ("{", "EOF"),
            ("{}", "not OpenVEX"),
            (r#"{"@context": "csaf"}"#, "not OpenVEX"),
        ] {
            let error = Document::parse(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(problem), "{error}");
        }
    }
}
