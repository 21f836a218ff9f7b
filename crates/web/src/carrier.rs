//! Who carries vulnerabilities: images with what was found in them, distilled to what counting needs, and
//! the workloads that run them. Where findings may not be read, those that the reports of workloads quote
//! stand in.

use crate::distil::Still;
use crate::finding::{Finding, Findings};
use crate::read::{self, ReadError};
use crate::reader::{LeftOut, Reader, Seen, Where};
use crate::stock::{Name, Stock};
use crate::upgrade::rated;
use crate::workload::Workload;
use muster_scan::vulnerability::Severity;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// An image and what was found in it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Carrier {
    /// Of its report.
    pub(crate) namespace: String,
    /// Of its report.
    pub(crate) name: String,
    pub(crate) image: String,
    pub(crate) platform: String,
    /// What it answers to.
    pub(crate) links: Vec<String>,
    /// Each vulnerability once.
    pub(crate) found: Box<[Brief]>,
}

/// A vulnerability of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Brief {
    pub(crate) cve: Name,
    pub(crate) severity: Severity,
    /// Some package could be upgraded.
    pub(crate) fixable: bool,
    /// Somebody declared it harmless in all its packages.
    pub(crate) suppressed: bool,
    /// It is used to attack.
    pub(crate) exploited: bool,
}

impl Carrier {
    pub(crate) fn weight(&self) -> usize {
        let links: usize = self.links.iter().map(String::len).sum();
        let texts = self.namespace.len() + self.name.len() + self.image.len();
        size_of::<Self>() + links + texts + self.found.len() * size_of::<Brief>()
    }

    fn of(report: Findings, stock: &Stock) -> Self {
        let (namespace, name) = report.place();
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        let (image, platform, links) = (report.image(), report.platform(), report.links());
        Carrier {
            namespace,
            name,
            image,
            platform,
            links,
            found: distil(&report.findings(), stock),
        }
    }

    pub(crate) fn is_fixable(&self) -> bool {
        let mut found = self.found.iter();
        found.any(|brief| brief.fixable && !brief.suppressed)
    }
}

/// Each vulnerability once, at its worst.
fn distil(findings: &[Finding], stock: &Stock) -> Box<[Brief]> {
    let mut by_name: HashMap<Name, Brief> = HashMap::new();
    for finding in findings {
        let brief = Brief {
            cve: stock.name(&finding.cve),
            severity: rated(&finding.severity),
            fixable: !finding.suppressed && !finding.fixed_versions.is_empty(),
            suppressed: finding.suppressed,
            exploited: finding.known_exploited,
        };
        stock.also(brief.cve, finding.aliases());
        let known = by_name.entry(brief.cve).or_insert(brief);
        known.severity = known.severity.max(brief.severity);
        known.fixable |= brief.fixable;
        known.suppressed &= brief.suppressed;
        known.exploited |= brief.exploited;
    }
    let mut briefs: Vec<Brief> = by_name.into_values().collect();
    briefs.sort_by_key(|brief| brief.cve);
    briefs.into()
}

/// Which workloads run what.
pub(crate) struct Users<'w> {
    by_link: HashMap<String, Vec<usize>>,
    workloads: &'w [Workload],
}

impl<'w> Users<'w> {
    pub(crate) fn of(workloads: &'w [Workload]) -> Self {
        let mut by_link: HashMap<String, Vec<usize>> = HashMap::new();
        for (at, workload) in workloads.iter().enumerate() {
            for link in workload.containers().into_iter().filter_map(|one| one.link) {
                let users = by_link.entry(link).or_default();
                if users.last() != Some(&at) {
                    users.push(at);
                }
            }
        }
        Users { by_link, workloads }
    }

    /// The workloads that run an image, by where they are in the list.
    pub(crate) fn at(&self, links: &[String]) -> BTreeSet<usize> {
        let users = links.iter().filter_map(|link| self.by_link.get(link));
        users.flatten().copied().collect()
    }

    /// The workloads that run an image.
    pub(crate) fn running(&self, links: &[String]) -> Vec<&'w Workload> {
        let users = self.at(links).into_iter();
        users.filter_map(|at| self.workloads.get(at)).collect()
    }
}

/// How the findings of an image are distilled.
const FINDINGS: Still<Findings, Vec<Arc<Carrier>>> = Still {
    resource: read::FINDINGS,
    shelf: |stock| &stock.findings,
    distil: |report, stock| vec![Arc::new(Carrier::of(report, stock))],
};

/// Reads who carries what. Of the images that nobody of `workloads` runs, none is told where
/// a namespace was chosen.
pub(crate) async fn carriers(
    reader: &Reader,
    workloads: &[Workload],
) -> Result<Seen<Arc<Carrier>>, ReadError> {
    let is_chosen = reader.chosen().is_some();
    let mut seen = read(reader, workloads, is_chosen).await?;
    if is_chosen {
        let users = Users::of(workloads);
        seen.items
            .retain(|carrier| !users.at(&carrier.links).is_empty());
    }
    Ok(seen)
}

/// Reads who carries what, whoever runs it.
pub(crate) async fn all(
    reader: &Reader,
    workloads: &[Workload],
) -> Result<Seen<Arc<Carrier>>, ReadError> {
    read(reader, workloads, false).await
}

async fn read(
    reader: &Reader,
    workloads: &[Workload],
    only_run: bool,
) -> Result<Seen<Arc<Carrier>>, ReadError> {
    let rows = reader.rows(read::FINDINGS, Where::Anywhere).await?;
    let (mut known, missing) = FINDINGS.known(&reader.stock, rows.items);
    let mut left_out = rows.left_out;
    // The reports of a few workloads are read sooner than those of all images.
    let is_quoted = only_run && missing.len() > workloads.len();
    if is_quoted {
        FINDINGS.read_behind(reader, missing);
    } else {
        let read = FINDINGS.read(reader, missing).await?;
        known.extend(read.items);
        left_out = left_out.and(read.left_out);
    }
    let mut items: Vec<Arc<Carrier>> = known.iter().flat_map(|one| one.iter().cloned()).collect();
    if left_out.forbidden || is_quoted {
        let quoted = quoted(reader, workloads, &items).await?;
        left_out = left_out.and(quoted.left_out);
        items.extend(quoted.items);
        // All that runs is known by now; that images of others are not told needs no word.
        left_out.forbidden = false;
    }
    Ok(Seen { items, left_out })
}

/// What the reports of workloads quote, as far as it is not known otherwise.
async fn quoted(
    reader: &Reader,
    workloads: &[Workload],
    known: &[Arc<Carrier>],
) -> Result<Seen<Arc<Carrier>>, ReadError> {
    let stock = reader.stock.clone();
    let answered: BTreeSet<&String> = known.iter().flat_map(|carrier| &carrier.links).collect();
    let mut found: HashMap<(String, String), Arc<Carrier>> = HashMap::new();
    let mut keep = |carriers: &[Arc<Carrier>]| {
        for carrier in carriers {
            let place = (carrier.namespace.clone(), carrier.name.clone());
            found.entry(place).or_insert_with(|| carrier.clone());
        }
    };
    let mut missing = Vec::new();
    for workload in workloads {
        let mut links = workload.containers().into_iter().filter_map(|one| one.link);
        if links.all(|link| answered.contains(&link)) {
            continue;
        }
        let (uid, revision) = workload.identity();
        match stock.findings.find(uid, revision) {
            Some(known) => keep(&known),
            None => missing.push(workload),
        }
    }
    let mut unread = 0;
    let places = missing.iter();
    let places = places.map(|one| (one.namespace().to_owned(), one.name().to_owned()));
    let see = |at: usize, whole: Option<Workload>| {
        let (Some(asked), Some(whole)) = (missing.get(at), whole) else {
            unread += 1;
            return;
        };
        let (uid, revision) = asked.identity();
        let reports = whole.findings().into_iter().flatten();
        let carriers = reports.map(|report| Arc::new(Carrier::of(report, &stock)));
        let carriers: Arc<Vec<_>> = Arc::new(carriers.collect());
        keep(&carriers);
        stock.findings.keep(uid, revision, carriers);
    };
    reader.each(read::WORKLOADS, places.collect(), see).await?;
    Ok(Seen {
        items: found.into_values().collect(),
        left_out: LeftOut {
            unread,
            ..LeftOut::default()
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_page_of_a_cve_is_not_that_of_another() {
        // As a report of an older version has it, and as one that declares aliases.
        let references = [
            "https://example.org/CVE-2024-21193",
            "https://example.org/ALSA-1-1.html",
        ];
        let finding = |more: &[&str]| -> Finding {
            let finding =
                json!({"cve": "CVE-2024-5535", "references": references, "aliases": more});
            serde_json::from_value(finding).unwrap()
        };
        for (aliases, id, expected) in [
            (&[][..], "CVE-2024-5535", true),
            (&[], "CVE-2024-21193", false),
            (&[], "ALSA-1-1.html", false),
            (
                &["ALSA-2024:9333", "CVE-2024-21193"],
                "CVE-2024-21193",
                false,
            ),
            (
                &["ALSA-2024:9333", "CVE-2024-21193"],
                "alsa-2024:9333",
                true,
            ),
        ] {
            let stock = Stock::default();
            distil(&[finding(aliases)], &stock);
            let meant = stock.meant(id);
            let is_found = meant == [stock.name("CVE-2024-5535")];
            assert_eq!((is_found, meant.is_empty()), (expected, !expected), "{id}");
        }
    }
}
