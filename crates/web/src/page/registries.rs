//! Registries and the jobs that work on them, with how far they have come.

use crate::address::{Filter, Route};
use crate::chart;
use crate::layout::Framed;
use crate::parts::{self, Offers, number};
use crate::read::{ReadError, Resource};
use crate::reader::{LeftOut, Reader, Where};
use jiff::Timestamp;
use maud::{Markup, html};
use muster_api::scanner;
use serde::Deserialize;

/// So many jobs that ended are shown.
const ENDED: usize = 20;

/// A ScanJob or a RegistryDiscovery.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub(crate) struct Job {
    metadata: Metadata,
    spec: JobSpec,
    status: JobStatus,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    namespace: String,
    name: String,
    creation_timestamp: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
struct JobSpec {
    registry: String,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", default)]
struct JobStatus {
    conditions: Vec<Condition>,
    current_status: String,
    images_count: usize,
    scanned_images_count: usize,
    /// Of a discovery.
    sboms_count: usize,
    failed_images_count: usize,
    errors: Vec<String>,
    finished_at: Option<String>,
    completed_at: Option<String>,
    completion_time: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", default)]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
    message: String,
}

/// How a job stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stand {
    Waiting,
    Working,
    Done,
    Failed,
    CalledOff,
}

impl Job {
    fn stand(&self) -> Stand {
        let holds = |kind: &str| {
            let mut conditions = self.status.conditions.iter();
            conditions.any(|one| one.kind == kind && one.status == "True")
        };
        // The words of a discovery. When it has succeeded, all images are found; then they get their bills.
        match self.status.current_status.as_str() {
            "Succeeded" if self.status.completed_at.is_some() => return Stand::Done,
            "Succeeded" | "Running" => return Stand::Working,
            "FailStopped" => return Stand::Failed,
            "Cancel" => return Stand::CalledOff,
            _ => {}
        }
        if holds("Failed") {
            Stand::Failed
        } else if holds("Complete") {
            Stand::Done
        } else if holds("InProgress") || self.status.images_count > 0 {
            Stand::Working
        } else {
            Stand::Waiting
        }
    }

    /// Whether it is under way, or will be.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.stand(), Stand::Waiting | Stand::Working)
    }

    fn told(&self) -> &str {
        if let Some(error) = self.status.errors.first() {
            return error;
        }
        let conditions = self.status.conditions.iter();
        // That of a discovery does not hold when it has failed, and says why.
        let mut telling = conditions.filter(|one| match one.kind.as_str() {
            "Failed" => one.status == "True",
            kind => kind == "Discovered",
        });
        telling.next().map_or("", |condition| &condition.message)
    }

    /// How many images nothing more will be done about.
    fn done(&self) -> usize {
        let status = &self.status;
        let good = status.scanned_images_count.max(status.sboms_count);
        good + status.failed_images_count
    }

    fn ended(&self) -> Option<&str> {
        let status = &self.status;
        let ended = [
            &status.completion_time,
            &status.completed_at,
            &status.finished_at,
        ];
        ended.into_iter().find_map(Option::as_deref)
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Registry {
    metadata: Metadata,
    spec: RegistrySpec,
    status: RegistryStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RegistrySpec {
    uri: String,
    scan_interval: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RegistryStatus {
    images_count: Option<usize>,
    last_scan: Option<LastScan>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct LastScan {
    result: String,
    message: String,
    completion_time: Option<String>,
}

/// What the page shows.
pub(crate) struct View {
    registries: Vec<Registry>,
    jobs: Vec<Job>,
    namespaces: Vec<String>,
    left_out: LeftOut,
}

const fn of(plural: &'static str) -> Resource {
    Resource {
        group: scanner::GROUP,
        version: scanner::VERSION,
        plural,
    }
}

/// The jobs, those under way first, then the last ones.
pub(crate) async fn jobs(reader: &Reader) -> Result<(Vec<Job>, LeftOut), ReadError> {
    let scans = reader.objects::<Job>(of("scanjobs"), Where::Chosen).await?;
    let finds = reader
        .objects::<Job>(of("registrydiscoveries"), Where::Chosen)
        .await?;
    let left_out = scans.left_out.and(finds.left_out);
    let mut jobs = scans.items;
    jobs.extend(finds.items);
    jobs.sort_by(|a, b| {
        let key = |job: &Job| (job.is_open(), job.metadata.creation_timestamp.clone());
        key(b)
            .cmp(&key(a))
            .then_with(|| a.metadata.name.cmp(&b.metadata.name))
    });
    Ok((jobs, left_out))
}

pub(crate) async fn load(reader: &Reader, filter: &Filter) -> Result<View, ReadError> {
    let registries = reader
        .objects::<Registry>(of("registries"), Where::Chosen)
        .await?;
    let (mut jobs, left_out) = jobs(reader).await?;
    let left_out = left_out.and(registries.left_out);
    let mut registries = registries.items;
    registries
        .retain(|one| filter.finds(&[&one.metadata.name, &one.metadata.namespace, &one.spec.uri]));
    jobs.retain(|one| {
        filter.finds(&[
            &one.metadata.name,
            &one.metadata.namespace,
            &one.spec.registry,
        ])
    });
    Ok(View {
        registries,
        jobs,
        namespaces: reader.namespaces().await?.to_vec(),
        left_out,
    })
}

pub(crate) fn draw(view: &View, filter: &Filter, now: Timestamp) -> Framed {
    let open = view.jobs.iter().filter(|job| job.is_open()).count();
    let jobs = view.jobs.get(..(open + ENDED).min(view.jobs.len()));
    let main = html! {
        h1 { "Registries and jobs" }
        (parts::left_out(view.left_out))
        (parts::filters(&Route::Registries, filter, Offers { namespaces: Some(&view.namespaces), ..Offers::default() }))
        section aria-labelledby="jobs" {
            h2 id="jobs" { "Jobs " span class="quiet" { (number(open)) " under way" } }
            @if view.jobs.is_empty() { (parts::nothing(filter, "No job has been asked for.")) } @else {
                (job_table(jobs.unwrap_or_default(), now))
            }
        }
        section aria-labelledby="registries" {
            h2 id="registries" { "Registries " span class="quiet" { (number(view.registries.len())) } }
            @if view.registries.is_empty() { (parts::nothing(filter, "There is no Registry.")) } @else {
                (registry_table(&view.registries, now))
            }
        }
    };
    Framed {
        title: "Registries and jobs".into(),
        main,
    }
}

/// Jobs with how far they have come.
pub(crate) fn job_table(jobs: &[Job], now: Timestamp) -> Markup {
    html! {
        div class="scroll" {
            table {
                caption class="hidden" { "Jobs" }
                thead { tr { th scope="col" { "Job" } th scope="col" { "Registry" } th scope="col" { "State" } th scope="col" class="wide" { "Progress" } th scope="col" { "When" } } }
                tbody { @for job in jobs.iter().take(2 * parts::ROWS) { (job_row(job, now)) } }
            }
        }
    }
}

fn job_row(job: &Job, now: Timestamp) -> Markup {
    let status = &job.status;
    let done = job.done();
    let (class, word) = match job.stand() {
        Stand::Waiting => ("wait", "waiting"),
        Stand::Working => ("wait", "under way"),
        Stand::Done => ("good", "done"),
        Stand::Failed => ("bad", "failed"),
        Stand::CalledOff => ("wait", "called off"),
    };
    html! {
        tr {
            th scope="row" { (job.metadata.name) " " span class="quiet" { (job.metadata.namespace) } }
            td { (job.spec.registry) }
            td { span class={ "state " (class) } { (word) } @if job.stand() == Stand::Failed { div class="quiet" { (job.told()) } } }
            td class="wide" {
                (chart::progress(done, status.failed_images_count, status.images_count))
                span class="quiet" { (number(done)) " of " (number(status.images_count)) }
            }
            td { (parts::ago(job.ended().or(job.metadata.creation_timestamp.as_deref()), now)) }
        }
    }
}

fn registry_table(registries: &[Registry], now: Timestamp) -> Markup {
    html! {
        div class="scroll" {
            table {
                caption class="hidden" { "Registries" }
                thead { tr { th scope="col" { "Registry" } th scope="col" { "Namespace" } th scope="col" { "Host" } th scope="col" { "Interval" } th scope="col" class="count" { "Images" } th scope="col" { "Last scan" } } }
                tbody {
                    @for one in registries.iter().take(5 * parts::ROWS) {
                        tr {
                            th scope="row" { (one.metadata.name) }
                            td { (one.metadata.namespace) }
                            td class="image" { (one.spec.uri) }
                            td { (one.spec.scan_interval.as_deref().unwrap_or("–")) }
                            td class="count" { @if let Some(count) = one.status.images_count { (number(count)) } @else { "–" } }
                            td {
                                @match &one.status.last_scan {
                                    Some(last) => {
                                        (last.result) " " (parts::ago(last.completion_time.as_deref(), now))
                                        @if !last.message.is_empty() { div class="quiet" { (last.message) } }
                                    }
                                    None => span class="quiet" { "never" },
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_job_stands_as_its_status_says() {
        let condition = |kind: &str| json!({"conditions": [{"type": kind, "status": "True"}]});
        for (status, expected) in [
            (json!({}), Stand::Waiting),
            (condition("Scheduled"), Stand::Waiting),
            (condition("InProgress"), Stand::Working),
            (json!({"imagesCount": 3}), Stand::Working),
            (condition("Complete"), Stand::Done),
            (condition("Failed"), Stand::Failed),
            (json!({"currentStatus": "Pending"}), Stand::Waiting),
            (json!({"currentStatus": "Running"}), Stand::Working),
            (json!({"currentStatus": "Succeeded"}), Stand::Working),
            (
                json!({"currentStatus": "Succeeded", "completedAt": "2026-01-01T00:00:00Z"}),
                Stand::Done,
            ),
            (json!({"currentStatus": "FailStopped"}), Stand::Failed),
            (json!({"currentStatus": "Cancel"}), Stand::CalledOff),
        ] {
            let job: Job = serde_json::from_value(json!({"status": status})).unwrap();
            assert_eq!(job.stand(), expected, "{status}");
        }
    }

    #[test]
    fn a_discovery_says_how_many_bills_there_are_and_why_it_failed() {
        let why = json!([
            {"type": "Discovering", "status": "False", "message": "asked"},
            {"type": "Discovered", "status": "False", "message": "nobody answers"},
        ]);
        let status = json!({
            "currentStatus": "FailStopped", "conditions": why,
            "imagesCount": 8, "sbomsCount": 5, "failedImagesCount": 1,
        });
        let job: Job = serde_json::from_value(json!({ "status": status })).unwrap();
        assert_eq!((job.done(), job.told()), (6, "nobody answers"));
        assert!(!job.is_open());
    }

    #[test]
    fn what_registries_say_is_text() {
        let strange = "<script>x</script>";
        let job = json!({
            "metadata": {"name": strange}, "spec": {"registry": strange},
            "status": {"errors": [strange], "currentStatus": "FailStopped"},
        });
        let registry = json!({
            "metadata": {"name": strange}, "spec": {"uri": strange},
            "status": {"lastScan": {"result": strange, "message": strange}},
        });
        let view = View {
            registries: vec![serde_json::from_value(registry).unwrap()],
            jobs: vec![serde_json::from_value(job).unwrap()],
            namespaces: Vec::new(),
            left_out: LeftOut::default(),
        };
        let page = draw(&view, &Filter::default(), Timestamp::UNIX_EPOCH);
        let page = page.main.into_string();
        assert!(!page.contains("<script"), "{page}");
    }
}
