//! `muster scan`: what is wrong with some images, once. One target that cannot be scanned does not
//! keep the others from being shown.

use super::bars::Bars;
use super::data::{Knowledge, Said};
use super::outcome::{self, Outcome, Threshold};
use super::print::{self, Form};
use super::reading::Reading;
use crate::role;
use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use futures::{StreamExt, stream};
use muster_advisories::Opened;
use muster_scan::matching;
use muster_scan::output::{Ignored, Inspection, Selection};
use muster_scan::purl::Purl;
use muster_scan::report::Report;
use muster_scan::sbom::Bill;
use muster_scan::vex::Document;
use muster_scan::vulnerability::Severity;
use muster_source::{Source, attached};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// So many targets are read at once.
const AT_ONCE: usize = 4;
/// What is followed if it lies in the working directory.
const IGNORE_FILES: [&str; 4] = [
    ".musterignore",
    ".musterignore.yaml",
    ".trivyignore",
    ".trivyignore.yaml",
];

#[derive(Args)]
pub(crate) struct Scan {
    /// What to scan: image references, OCI layouts, image archives, root file systems, source
    /// directories, SPDX or CycloneDX documents. What a target is, is seen by looking at it;
    /// `registry:`, `oci:`, `archive:`, `docker:`, `podman:`, `rootfs:`, `dir:` and `sbom:` before it
    /// say so.
    #[arg(required = true, value_name = "TARGET")]
    targets: Vec<String>,
    /// The form of the result.
    #[arg(short, long, value_enum, default_value = "table")]
    output: Form,
    /// Show only findings of these severities.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "SEVERITY")]
    severity: Vec<Level>,
    /// Exit with code 3 if a finding of this severity or a higher one is not suppressed, and with code
    /// 4 if packages that could have been matched with vulnerability data were not.
    #[arg(long, value_enum, value_name = "SEVERITY")]
    fail_on: Option<Level>,
    /// Do not exit with code 4 because of packages that were not matched.
    #[arg(long)]
    allow_unmatched: bool,
    /// Show only what an update fixes.
    #[arg(long)]
    ignore_unfixed: bool,
    /// A file of findings to live with: an identifier a line, `exp:2026-01-31` after it if the
    /// decision lapses; or YAML. If not given, .musterignore or .trivyignore here is used.
    #[arg(long, value_name = "FILE")]
    ignore_file: Option<PathBuf>,
    /// List suppressed findings in the table too.
    #[arg(long)]
    show_suppressed: bool,
    #[command(flatten)]
    reading: Reading,
    #[command(flatten)]
    knowledge: Knowledge,
}

/// How bad a finding is.
#[derive(Clone, Copy, ValueEnum)]
enum Level {
    Unknown,
    Low,
    Medium,
    High,
    Critical,
}

impl From<Level> for Severity {
    fn from(level: Level) -> Self {
        match level {
            Level::Unknown => Severity::Unknown,
            Level::Low => Severity::Low,
            Level::Medium => Severity::Medium,
            Level::High => Severity::High,
            Level::Critical => Severity::Critical,
        }
    }
}

pub(crate) fn run(command: Scan) -> Result<ExitCode> {
    role::run(scan(command))
}

async fn scan(command: Scan) -> Result<ExitCode> {
    let bars = Bars::new(command.reading.quiet);
    let selection = command.selection()?;
    let options = command.reading.options(&bars)?;
    let matcher = match command.output.document() {
        Some(_) => None,
        None => Some(Arc::new(command.matcher(&bars).await?)),
    };
    let (mut bills, mut inspections, mut failed) = (Vec::new(), Vec::new(), false);
    let reading = command.targets.iter().map(async |target| {
        let read = command.reading.read(target, &options).await;
        (target, read.unwrap_or_else(|error| vec![Err(error)]))
    });
    let mut reading = stream::iter(reading).buffered(AT_ONCE);
    while let Some((target, read)) = reading.next().await {
        for one in read {
            let shown = match one {
                Ok(scanned) => {
                    let platform = scanned.platform.as_ref().map(ToString::to_string);
                    let attached = command
                        .attached(target, &scanned.bill, &options, &bars)
                        .await;
                    inspect(&matcher, scanned.bill, platform, attached).await
                }
                Err(error) => Err(error),
            };
            match shown {
                Ok((bill, inspection)) => {
                    bills.push(bill);
                    inspections.extend(inspection);
                }
                Err(error) => {
                    failed = true;
                    bars.say(&format!(
                        "error: scanning {target}: {}",
                        crate::told(&error)
                    ));
                }
            }
        }
    }
    let threshold = command.threshold();
    let (found, notes) = outcome::outcome(&inspections, threshold, &selection, &today());
    for one in &mut inspections {
        one.select(&selection, &today());
    }
    if !bills.is_empty() {
        print::findings(
            &inspections,
            &bills,
            command.output,
            command.show_suppressed,
        )?;
    }
    let warnings = match (command.output, found) {
        // The table and the error say the same.
        (Form::Table, _) | (_, Outcome::Unmatched) => Vec::new(),
        _ => outcome::warnings(&inspections),
    };
    let left_out = outcome::left_out(&inspections);
    for line in left_out.into_iter().chain(warnings).chain(notes) {
        bars.say(&line);
    }
    let outcome = if failed { Outcome::Failed } else { found };
    Ok(outcome.into())
}

/// Everything that a bill is judged with.
struct Matcher {
    data: Opened,
    said: Said,
}

impl Matcher {
    fn report(&self, bill: &Bill, attached: &[(String, Document)]) -> Result<Report> {
        let database = &*self.data.database;
        let now = jiff::Timestamp::now();
        let findings = matching::find_at(bill, database, now)?;
        let now = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let mut report = Report::new(bill, &findings, database.metadata(), Some(&now));
        let image = image_purl(bill);
        if let Some(statements) = self.said.about(bill, image.as_ref(), attached)? {
            statements.apply(&mut report, image.as_ref());
        }
        report.enrich(&self.data.exploitation);
        Ok(report)
    }
}

async fn inspect(
    matcher: &Option<Arc<Matcher>>,
    bill: Bill,
    platform: Option<String>,
    attached: Vec<(String, Document)>,
) -> Result<(Bill, Option<Inspection>)> {
    let Some(matcher) = matcher.clone() else {
        return Ok((bill, None));
    };
    let work = move || {
        let report = matcher.report(&bill, &attached)?;
        let inspection = Inspection::new(&bill, platform, report);
        Ok((bill, Some(inspection)))
    };
    tokio::task::spawn_blocking(work)
        .await
        .context("matching was interrupted")?
}

impl Scan {
    /// The VEX documents that are attached to an image of a registry, if they are asked for.
    async fn attached(
        &self,
        target: &str,
        bill: &Bill,
        options: &muster_source::Options,
        bars: &Bars,
    ) -> Vec<(String, Document)> {
        let Ok(Source::Registry(reference)) = Source::parse(target) else {
            return Vec::new();
        };
        if !self.knowledge.vex_attached || self.output.document().is_some() {
            return Vec::new();
        }
        match attached(&options.client, &reference, &bill.subject.digest).await {
            Ok(found) => {
                for problem in found.problems {
                    bars.say(&format!("warning: {problem}"));
                }
                found.documents
            }
            Err(error) => {
                bars.say(&format!("warning: {error}"));
                Vec::new()
            }
        }
    }

    fn selection(&self) -> Result<Selection> {
        let ignored = match &self.ignore_file {
            Some(file) => read_ignored(file)?,
            None => {
                let file = IGNORE_FILES.into_iter().map(Path::new);
                let mut file = file.filter(|file| file.is_file());
                file.next()
                    .map(read_ignored)
                    .transpose()?
                    .unwrap_or_default()
            }
        };
        Ok(Selection {
            severities: self.severity.iter().map(|level| (*level).into()).collect(),
            fixable: self.ignore_unfixed,
            ignored,
        })
    }

    async fn matcher(&self, bars: &Bars) -> Result<Matcher> {
        let (reach, offline) = (&self.reading.reach, self.reading.offline);
        Ok(Matcher {
            data: self.knowledge.open(reach, offline, bars).await?,
            said: self.knowledge.statements(reach, offline, bars).await?,
        })
    }

    /// When the scan fails because of what was found.
    fn threshold(&self) -> Option<Threshold> {
        let least = self.fail_on?.into();
        Some(Threshold {
            least,
            allow_unmatched: self.allow_unmatched,
        })
    }
}

fn read_ignored(file: &Path) -> Result<Ignored> {
    let name = file.display().to_string();
    let bytes = std::fs::read(file).with_context(|| format!("reading --ignore-file {name}"))?;
    Ok(Ignored::read(&name, &bytes)?)
}

fn today() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%d").to_string()
}

/// The package URL of the image itself, for VEX statements about a package in this image alone.
fn image_purl(bill: &Bill) -> Option<Purl> {
    let subject = &bill.subject;
    let repository = muster_registry::Reference::parse(&subject.name).ok()?;
    let repository = repository.repository();
    let place = format!("{}/{}", repository.host(), repository.name());
    let name = repository.name().rsplit('/').next()?;
    Purl::parse(&format!(
        "pkg:oci/{name}@{}?repository_url={place}",
        subject.digest
    ))
}
