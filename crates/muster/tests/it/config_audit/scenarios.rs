//! The scenarios of the design, executed as they are written: for what is in namespaces and for what is
//! not, on one process and on a real kube-apiserver.

use super::{CONFIG, NAMESPACE, Place, config, hash, refusing, report, report_when, write};
use crate::auditing::Site;
use anyhow::{Context as _, Result, ensure};
use cucumber::step::Context;
use cucumber::writer::Stats;
use cucumber::{Cucumber, World};
use muster_testkit::wait;
use regex::Regex;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Where the scenarios are played now.
static STAGE: Mutex<Option<Arc<Place>>> = Mutex::new(None);
/// Where objects are.
const SHOP: &str = "shop";
/// The kinds that scenarios speak of, by the words that they have for them.
const KINDS: [(&str, &str); 4] = [
    ("K8s workload", "Workload"),
    ("ConfigMap", "ConfigMap"),
    ("ClusterRole", "ClusterRole"),
    ("Service", "Service"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_scenarios_hold_on_one_process_and_on_a_cluster() -> Result<()> {
    for place in [
        Place::embedded(&[])?,
        Place::cluster(&["--builtin-policies=off"])?,
    ] {
        let place = Arc::new(place);
        place
            .site()?
            .kubectl
            .succeed(&["create", "namespace", NAMESPACE])?;
        place
            .site()?
            .kubectl
            .succeed(&["create", "namespace", SHOP])?;
        *STAGE.lock().unwrap() = Some(place.clone());
        for feature in ["config_audit_reports", "cluster_config_audit_reports"] {
            let path = format!(
                "{}/tests/it/config_audit/features/{feature}.feature",
                env!("CARGO_MANIFEST_DIR")
            );
            let played = play(&path).await;
            ensure!(!played.execution_has_failed(), "{feature}\n{}", place.log());
            ensure!(played.skipped_steps() == 0, "{feature} has unknown steps");
            ensure!(
                played.passed_steps() == 21,
                "{feature}: {}",
                played.passed_steps()
            );
        }
        *STAGE.lock().unwrap() = None;
    }
    Ok(())
}

async fn play(feature: &str) -> impl Stats<Play> {
    let words = |text: &str| Regex::new(text).unwrap();
    Cucumber::<Play, _, _, _, _>::new()
        .with_default_cli()
        .max_concurrent_scenarios(1)
        .given(words(r"^a set of Rego policies applicable to (.+)$"), |play, at| {
            play.step(at, Play::write_policies)
        })
        .given(words(r"^a set of Rego policies not applicable to (\w+)s$"), |play, at| {
            play.step(at, Play::write_other_policies)
        })
        .given(words(r"^the \w+Report associated with a (\w+)$"), |play, at| {
            play.step(at, Play::have_report)
        })
        .when(words(r"^a (\w+) is discovered by the operator$"), |play, at| {
            play.step(at, Play::discover)
        })
        .when(words(r"^there is no \w+Report associated with the (\w+)$"), |play, at| {
            play.step(at, Play::had_no_report)
        })
        .when(words(r"^Rego policies for (\w+)s are removed$"), |play, at| {
            play.step(at, Play::remove_policies)
        })
        .when(words(r"^Rego code applicable to (\w+)s has changed$"), |play, at| {
            play.step(at, Play::change_policies)
        })
        .when(words(r"^Rego code of helper functions have changed$"), |play, at| {
            play.step(at, Play::change_helpers)
        })
        .then(words(r"^the operator scans the (\w+)$"), |play, at| {
            play.step(at, Play::is_scanned)
        })
        .then(words(r"^eventually, there is the \w+Report associated with the (\w+)$"), |play, at| {
            play.step(at, Play::is_reported)
        })
        .then(words(r"^(?:the )?operator requeues \((with|without) delay\) the reconciliation key for the (\w+)$"), |play, at| {
            play.step(at, Play::is_requeued)
        })
        .then(words(r"^operator deletes the \w+Report$"), |play, at| {
            play.step(at, Play::is_deleted)
        })
        .then(words(r"^operator deletes \w+Reports associated with (\w+)s$"), |play, at| {
            play.step(at, Play::are_replaced)
        })
        .then(words(r"^\w+Reports associated with K8s resources other than (\w+)s are left intact$"), |play, at| {
            play.step(at, Play::are_intact)
        })
        .then(words(r"^the operator deletes all \w+Reports$"), |play, at| {
            play.step(at, Play::all_are_replaced)
        })
        .run(feature)
        .await
}

/// One scenario.
struct Play {
    place: Arc<Place>,
    site: Site,
    /// The kinds that policies are about, with the texts of the policies, and the text of the library.
    policies: BTreeMap<String, String>,
    helper: String,
    /// Whether there was a report when an object was discovered.
    had_report: Option<bool>,
    /// Reports as they were before something changed.
    before: BTreeMap<String, Value>,
    /// What had been counted when the scenario began, or before something changed.
    evaluated: u64,
    requeued: u64,
}

impl std::fmt::Debug for Play {
    fn fmt(&self, formatter: &mut std::fmt::Formatter) -> std::fmt::Result {
        formatter
            .debug_struct("Play")
            .field("policies", &self.policies)
            .finish()
    }
}

impl World for Play {
    type Error = anyhow::Error;

    /// Every scenario begins with no policy, no object and no report.
    async fn new() -> Result<Play> {
        let place = STAGE.lock().unwrap().clone().context("a stage")?;
        let site = place.site()?;
        let policies = [
            "delete",
            "configmap",
            CONFIG,
            "-n",
            NAMESPACE,
            "--ignore-not-found",
        ];
        site.kubectl.succeed(&policies)?;
        for (kind, name) in ["configmap", "service", "pod"].map(|kind| (kind, "it")) {
            site.kubectl.succeed(&[
                "delete",
                kind,
                name,
                "-n",
                SHOP,
                "--ignore-not-found",
                "--grace-period=0",
                "--force",
            ])?;
        }
        site.kubectl
            .succeed(&["delete", "clusterrole", "it", "--ignore-not-found"])?;
        wait::until("the last scenario's reports to go", super::SOON, || {
            let reports = site.get(&["configauditreports,clusterconfigauditreports", "-A"])?;
            let left = reports["items"].as_array().map_or(0, Vec::len);
            Ok((left == 0).then_some(()))
        })?;
        place.settled()?;
        Ok(Play {
            place,
            site,
            policies: BTreeMap::new(),
            helper: helper("first"),
            had_report: None,
            before: BTreeMap::new(),
            evaluated: 0,
            requeued: 0,
        })
    }
}

type Step = fn(&mut Play, &[String]) -> Result<()>;

impl Play {
    fn step<'p>(&'p mut self, at: Context, step: Step) -> futures::future::LocalBoxFuture<'p, ()> {
        let words: Vec<String> = at
            .matches
            .into_iter()
            .skip(1)
            .map(|(_, word)| word)
            .collect();
        Box::pin(async move {
            if let Err(error) = step(self, &words) {
                panic!("{error:#}\n{}", self.place.log());
            }
        })
    }

    fn write(&self) -> Result<()> {
        let policies: Vec<(&str, &str, &str)> = self
            .policies
            .iter()
            .map(|(kind, text)| (kind.as_str(), text.as_str(), kind.as_str()))
            .collect();
        write(&self.site, &config(&policies, &[("helper", &self.helper)]))
    }

    fn write_policies(&mut self, words: &[String]) -> Result<()> {
        for (word, kind) in KINDS {
            if words[0].contains(word) {
                self.policies.insert(kind.into(), asking("first"));
            }
        }
        self.count(words)?;
        self.write()
    }

    fn write_other_policies(&mut self, words: &[String]) -> Result<()> {
        self.policies.insert("Ingress".into(), asking("first"));
        self.count(words)?;
        self.requeued = self.requeues(main_kind(&words[0]), true)?;
        self.write()
    }

    /// Notes what has been counted of the kind that a scenario is about.
    fn count(&mut self, words: &[String]) -> Result<()> {
        let kind = main_kind(&words[0]);
        self.evaluated = self.place.evaluations(kind)?;
        Ok(())
    }

    fn have_report(&mut self, words: &[String]) -> Result<()> {
        let kind = words[0].as_str();
        self.site.apply(&[object(kind)])?;
        let (namespace, name) = report_name(kind);
        let report = report_when(&self.site, namespace, &name, |report| !report.is_null())?;
        self.before.insert(kind.into(), report);
        Ok(())
    }

    fn discover(&mut self, words: &[String]) -> Result<()> {
        let kind = words[0].as_str();
        let (namespace, name) = report_name(kind);
        self.had_report = Some(!report(&self.site, namespace, &name)?.is_null());
        self.site.apply(&[object(kind)])
    }

    fn had_no_report(&mut self, _: &[String]) -> Result<()> {
        ensure!(self.had_report == Some(false), "there was a report");
        Ok(())
    }

    fn remove_policies(&mut self, words: &[String]) -> Result<()> {
        self.requeued = self.requeues(&words[0], false)?;
        self.policies.remove(&words[0]).context("a policy")?;
        self.policies
            .insert("Ingress".into(), refusing("unrelated"));
        self.write()
    }

    fn change_policies(&mut self, words: &[String]) -> Result<()> {
        self.have_all_reports()?;
        self.policies.insert(words[0].clone(), asking("second"));
        self.write()
    }

    fn change_helpers(&mut self, _: &[String]) -> Result<()> {
        self.have_all_reports()?;
        self.helper = helper("second");
        self.write()
    }

    /// An object of every kind that there are policies about, and its report.
    fn have_all_reports(&mut self) -> Result<()> {
        let kinds: Vec<String> = self.policies.keys().cloned().collect();
        kinds
            .into_iter()
            .try_for_each(|kind| self.have_report(&[kind]))
    }

    fn is_scanned(&mut self, words: &[String]) -> Result<()> {
        wait::until("an evaluation", super::SOON, || {
            let evaluated = self.place.evaluations(&words[0])?;
            Ok((evaluated > self.evaluated).then_some(()))
        })
    }

    fn is_reported(&mut self, words: &[String]) -> Result<()> {
        let (namespace, name) = report_name(&words[0]);
        let expected = [format!("{}: first first", words[0])];
        let is_right = |report: &Value| super::said(report) == expected;
        report_when(&self.site, namespace, &name, is_right).map(drop)
    }

    fn requeues(&self, kind: &str, is_delayed: bool) -> Result<u64> {
        let label = format!("kind=\"{kind}\",delayed=\"{is_delayed}\"");
        self.place.counted("requeues_total", &label)
    }

    fn is_requeued(&mut self, words: &[String]) -> Result<()> {
        let (is_delayed, kind) = (words[0] == "with", words[1].as_str());
        wait::until("the key to be queued again", super::SOON, || {
            let requeued = self.requeues(kind, is_delayed)?;
            Ok((requeued > self.requeued).then_some(()))
        })?;
        self.place.settled()?;
        let (namespace, name) = report_name(kind);
        ensure!(
            report(&self.site, namespace, &name)?.is_null(),
            "there is a report"
        );
        if is_delayed {
            ensure!(
                self.place.evaluations(kind)? == self.evaluated,
                "it was scanned"
            );
        }
        Ok(())
    }

    fn is_deleted(&mut self, _: &[String]) -> Result<()> {
        let kinds: Vec<&String> = self.before.keys().collect();
        for kind in kinds {
            let (namespace, name) = report_name(kind);
            report_when(&self.site, namespace, &name, Value::is_null)?;
        }
        Ok(())
    }

    /// The report of a kind is no longer what it was: its successor was made from other policies.
    fn are_replaced(&mut self, words: &[String]) -> Result<()> {
        let before = hash(&self.before[&words[0]]).to_owned();
        let (namespace, name) = report_name(&words[0]);
        report_when(&self.site, namespace, &name, |report| {
            !report.is_null() && hash(report) != before
        })?;
        Ok(())
    }

    fn are_intact(&mut self, words: &[String]) -> Result<()> {
        self.place.settled()?;
        let others = self.before.iter().filter(|(kind, _)| **kind != words[0]);
        let mut any = false;
        for (kind, before) in others {
            let (namespace, name) = report_name(kind);
            let now = report(&self.site, namespace, &name)?;
            let revision = |report: &Value| report["metadata"]["resourceVersion"].clone();
            ensure!(revision(&now) == revision(before), "{now:#}");
            any = true;
        }
        ensure!(any, "there is no other report");
        Ok(())
    }

    fn all_are_replaced(&mut self, _: &[String]) -> Result<()> {
        ensure!(self.before.len() == 3, "{:?}", self.before.keys());
        let kinds: Vec<String> = self.before.keys().cloned().collect();
        kinds
            .into_iter()
            .try_for_each(|kind| self.are_replaced(&[kind]))
    }
}

/// The kind that a scenario is about: the one that is no workload and no Service.
fn main_kind(words: &str) -> &'static str {
    match words.contains("ClusterRole") {
        true => "ClusterRole",
        false => "ConfigMap",
    }
}

/// A policy that says a word, and what the library says.
fn asking(word: &str) -> String {
    format!(
        "package main\nimport rego.v1\nimport data.lib.helper\n\
         deny contains sprintf(\"{word} %s\", [helper.word]) if input.metadata.name == \"it\""
    )
}

fn helper(word: &str) -> String {
    format!("package lib.helper\nimport rego.v1\nword := \"{word}\"")
}

fn object(kind: &str) -> Value {
    let metadata = json!({"name": "it", "namespace": SHOP});
    match kind {
        "ConfigMap" => {
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "b"}})
        }
        "Service" => {
            json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": [{"port": 80}]}})
        }
        "ClusterRole" => {
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "it"}, "rules": []})
        }
        _ => json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata,
            "spec": {"containers": [{"name": "c", "image": "nginx:1"}]}}),
    }
}

fn report_name(kind: &str) -> (Option<&'static str>, String) {
    match kind {
        "ClusterRole" => (None, "clusterrole-it".into()),
        "Workload" => (Some(SHOP), "pod-it".into()),
        kind => (Some(SHOP), format!("{}-it", kind.to_lowercase())),
    }
}
