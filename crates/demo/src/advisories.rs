//! Advisories to scan with: a few dozen that are true and well known, kept as facts in
//! `data/advisories.json` and turned into what importers read, OSV records and a catalogue of what is
//! exploited. They are for trying out: an image of which they say nothing is not therefore safe.

use crate::archive::{self, File};
use crate::error::Error;
use serde::Deserialize;
use serde_json::{Value, json};

const FACTS: &str = include_str!("../data/advisories.json");

/// What is known, and since when.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Known {
    /// What it is for.
    pub about: String,
    /// The day on which it was put together.
    pub date: String,
    /// Vulnerabilities that are known to be exploited, and since which day that is in CISA's catalogue.
    pub exploited: Vec<(String, String)>,
    /// The advisories.
    pub advisories: Vec<Advisory>,
}

/// What is known about one vulnerability.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Advisory {
    /// Its CVE number.
    pub id: String,
    /// How bad it is, in a word.
    pub severity: String,
    /// The same as a CVSS vector, or nothing.
    pub vector: String,
    /// What it is.
    pub title: String,
    /// What has it.
    pub affected: Vec<Affected>,
}

/// A package of an ecosystem of OSV, and the versions that are affected: from the first of a pair, before
/// the second.
#[derive(Clone, Debug, Deserialize)]
pub struct Affected(pub String, pub String, pub Vec<(String, String)>);

/// All that is known.
pub fn known() -> Result<Known, Error> {
    Ok(serde_json::from_str(FACTS)?)
}

impl Known {
    /// The records of OSV, as one archive.
    pub fn records(&self) -> Result<Vec<u8>, Error> {
        let file = |advisory: &Advisory| {
            let name = format!("{}.json", advisory.id);
            File::new(name, self.record(advisory).to_string())
        };
        let files: Vec<File> = self.advisories.iter().map(file).collect();
        archive::gzip(&archive::tar(&files)?)
    }

    /// One record of OSV.
    pub fn record(&self, advisory: &Advisory) -> Value {
        let id = &advisory.id;
        let affected: Vec<Value> = advisory.affected.iter().map(Affected::written).collect();
        let mut record = json!({
            "id": id, "modified": format!("{}T00:00:00Z", self.date), "summary": advisory.title,
            "database_specific": {"severity": advisory.severity}, "affected": affected,
            "references": [{"type": "WEB", "url": format!("https://www.cve.org/CVERecord?id={id}")}],
        });
        if !advisory.vector.is_empty() {
            record["severity"] = json!([{"type": "CVSS_V3", "score": advisory.vector}]);
        }
        record
    }

    /// The catalogue of what is exploited.
    pub fn catalogue(&self) -> Value {
        let exploited = self.exploited.iter();
        let exploited: Vec<Value> = exploited
            .map(|(id, day)| json!({"cveID": id, "dateAdded": day}))
            .collect();
        json!({
            "title": "Known to be exploited, as far as the demonstration goes",
            "catalogVersion": self.date, "dateReleased": format!("{}T00:00:00Z", self.date),
            "vulnerabilities": exploited,
        })
    }
}

impl Affected {
    fn written(&self) -> Value {
        let Affected(ecosystem, package, ranges) = self;
        let kind = if ecosystem == "Go" {
            "SEMVER"
        } else {
            "ECOSYSTEM"
        };
        let mut events = Vec::new();
        for (introduced, fixed) in ranges {
            events.push(json!({"introduced": introduced}));
            if !fixed.is_empty() {
                events.push(json!({"fixed": fixed}));
            }
        }
        json!({
            "package": {"ecosystem": ecosystem, "name": package},
            "ranges": [{"type": kind, "events": events}],
        })
    }
}
