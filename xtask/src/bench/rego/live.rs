//! The audit at work: a `muster up` with all resources and policies, started, started again, and told of
//! a changed policy and a changed library. A step is over when nothing is pending and the labels of all
//! reports say that they were made by the policies that are written now.

use super::cluster;
use super::counts::{Asker, Counts, settle};
use super::policies::{Binding, Change, NAMESPACE, Policies};
use crate::bench::request::{merge, post};
use anyhow::{Context, Result, ensure};
use http::Method;
use muster_checks::report::{CONFIG_HASH, KIND, NAME};
use muster_testkit::http::{Client, Request};
use muster_testkit::muster::Muster;
use std::path::Path;
use std::time::Instant;

const REPORTS: &str = "/apis/aquasecurity.github.io/v1alpha1";
/// A list of what is said about objects, without the objects.
const METADATA: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// One step, as a line of the table.
pub(super) struct Line {
    pub(super) what: &'static str,
    pub(super) seconds: f64,
    pub(super) counts: Counts,
    pub(super) resident: u64,
    pub(super) peak: u64,
    /// Processor time of the whole process, in this step.
    pub(super) processor: f64,
}

/// Where it all happens.
struct Site {
    muster: Muster,
    asker: Asker,
    resources: usize,
    lines: Vec<Line>,
}

/// Goes through all steps.
pub(super) async fn measure(
    binary: &Path,
    policies: &mut Policies,
    resources: usize,
) -> Result<Vec<Line>> {
    let mut muster = Muster::start_idle(binary)?;
    let client = Client::new(muster.kubeconfig())?;
    eprintln!("making {resources} resources");
    let took = cluster::populate(&client, resources).await?;
    eprintln!("  {:.0} a second", resources as f64 / took.as_secs_f64());
    for map in policies.maps() {
        let target = format!("/api/v1/namespaces/{NAMESPACE}/configmaps");
        client.skim(post(target, &map.object())?).await?;
    }
    muster.terminate()?;
    muster.instruct(&[
        "--scanning",
        "off",
        "--audit",
        "off",
        "--builtin-policies",
        "off",
    ]);
    muster.tell("MUSTER_CONFIG_AUDIT", "on");
    let mut site = Site {
        muster,
        asker: Asker::new(client),
        resources,
        lines: Vec::new(),
    };
    let sheets = policies.sheets(Binding::Kinds)?;
    let asked = |kind: usize| {
        let objects = cluster::share(resources, kind);
        (objects * sheets[kind].policies().len()) as u64
    };
    let (first, every) = (asked(0), (0..sheets.len()).map(asked).sum());
    site.start("first audit", every, policies).await?;
    site.muster.terminate()?;
    site.start("again after a restart", 0, policies).await?;
    let change = policies.change_policy()?;
    site.change("a policy of one kind changed", change, first, policies)
        .await?;
    let change = policies.change_library()?;
    site.change("a library changed", change, every, policies)
        .await?;
    Ok(site.lines)
}

impl Site {
    /// Starts the process, and waits until all reports are current.
    async fn start(&mut self, what: &'static str, pairs: u64, policies: &Policies) -> Result<()> {
        eprintln!("{what}");
        let start = Instant::now();
        self.muster.restart()?;
        self.asker = Asker::new(Client::new(self.muster.kubeconfig())?);
        self.finish(what, start, (Counts::default(), 0.0), pairs, policies)
            .await
    }

    /// Changes an entry of a ConfigMap, and waits until all reports are current.
    async fn change(
        &mut self,
        what: &'static str,
        change: Change,
        pairs: u64,
        policies: &Policies,
    ) -> Result<()> {
        eprintln!("{what}");
        let before = Counts::read(&mut self.asker).await?;
        let processor = self.muster.process().processor_seconds()?;
        let start = Instant::now();
        let target = format!("/api/v1/namespaces/{NAMESPACE}/configmaps/{}", change.map);
        self.asker.send(merge(target, &change.patch)?).await?;
        self.finish(what, start, (before, processor), pairs, policies)
            .await
    }

    async fn finish(
        &mut self,
        what: &'static str,
        start: Instant,
        (before, processor): (Counts, f64),
        pairs: u64,
        policies: &Policies,
    ) -> Result<()> {
        let all = self.resources as u64;
        let is = |now: &Counts| now.objects >= all && now.evaluations >= before.evaluations + pairs;
        let settled = settle(&mut self.asker, is).await;
        let (counts, last) = settled.with_context(|| self.muster.process().log_tail())?;
        let (failed, refused) = (counts.failed, counts.refused);
        ensure!(failed == 0, "{failed} reports could not be written");
        ensure!(refused == 0, "{refused} policies are refused");
        let seconds = last.duration_since(start).as_secs_f64();
        let counts = counts.since(&before);
        eprintln!("  {seconds:.1} s: {counts}");
        let process = self.muster.process();
        self.lines.push(Line {
            what,
            seconds,
            counts,
            resident: process.resident_memory()?,
            peak: process.peak_memory()?,
            processor: process.processor_seconds()? - processor,
        });
        self.check(policies).await
    }

    /// Whether every resource has a report, made by the policies of its kind as they are written.
    async fn check(&mut self, policies: &Policies) -> Result<()> {
        let sheets = policies.sheets(Binding::Kinds)?;
        let kinds = cluster::kinds();
        let mut current = 0;
        for namespace in cluster::namespaces(self.resources) {
            let target = format!("{REPORTS}/namespaces/{namespace}/configauditreports");
            let request = Request::new(Method::GET, target).header("accept", METADATA)?;
            let list = self.asker.send(request).await?.json()?;
            let reports = list["items"].as_array().context("a list of reports")?;
            for report in reports {
                let label = |name: &str| report["metadata"]["labels"][name].as_str();
                let kind = kinds.iter().position(|one| label(KIND) == Some(&one.kind));
                // What every namespace has of its own is no part of it.
                let is_ours = label(NAME).is_some_and(|name| name.starts_with("resource-"));
                let (Some(kind), true) = (kind, is_ours) else {
                    continue;
                };
                let made_by = label(CONFIG_HASH);
                ensure!(
                    made_by == Some(sheets[kind].hash()),
                    "a report is not current: {}",
                    report["metadata"]
                );
                current += 1;
            }
        }
        let resources = self.resources;
        ensure!(
            current == resources,
            "{current} of {resources} have a report"
        );
        Ok(())
    }
}
