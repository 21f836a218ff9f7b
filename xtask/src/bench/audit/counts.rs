//! What the audit counts, read from `/metrics` until nothing changes any more.

use anyhow::{Result, ensure};
use muster_testkit::http::Client;
use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

/// How often it is asked.
const LOOK: Duration = Duration::from_millis(250);
/// For how long nothing must have changed: the audit says once a second how much is left to do.
const STILL: Duration = Duration::from_secs(4);
/// How long we wait for that, and how often we say how far it is.
const LIMIT: Duration = Duration::from_secs(3600);
const WORD: Duration = Duration::from_secs(10);

/// What was counted since the process began.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    pub(super) evaluations: u64,
    /// Those that ended in an error.
    pub(super) errors: u64,
    pub(super) reports: u64,
    pub(super) looks: u64,
    pub(super) objects: u64,
    /// Policies that are ready.
    pub(super) ready: u64,
    pending: u64,
    /// Requests of the audit beside lists and watches, by verb.
    pub(super) requests: BTreeMap<String, u64>,
    /// All requests that the server answered, ours too.
    pub(super) answered: u64,
}

impl Counts {
    pub(super) async fn read(client: &Client) -> Result<Counts> {
        let answer = client.get("/metrics").await?;
        let text = String::from_utf8(answer.body.to_vec())?;
        let mut counts = Counts::default();
        for line in text.lines() {
            let Some((name, number)) = line.rsplit_once(' ') else {
                continue;
            };
            let Ok(number) = number.parse::<f64>() else {
                continue;
            };
            counts.take(name, number as u64);
        }
        Ok(counts)
    }

    fn take(&mut self, name: &str, number: u64) {
        let (name, labels) = name.split_once('{').unwrap_or((name, ""));
        match name {
            "muster_audit_evaluations_total" => {
                self.evaluations += number;
                if labels.contains("\"error\"") {
                    self.errors += number;
                }
            }
            "muster_audit_reports_total" => self.reports += number,
            "muster_audit_looks_total" => self.looks += number,
            "muster_audit_objects" => self.objects = number,
            "muster_audit_pending" => self.pending = number,
            "muster_audit_policies" if labels.contains("\"ready\"") => self.ready = number,
            "muster_audit_requests_total" => {
                let verb = labels.split('"').nth(1).unwrap_or_default();
                *self.requests.entry(verb.into()).or_default() += number;
            }
            "apiserver_requests_total" => self.answered += number,
            _ => {}
        }
    }

    /// What was counted after `before`.
    pub(super) fn since(&self, before: &Counts) -> Counts {
        let requests = self.requests.iter().map(|(verb, number)| {
            let earlier = before.requests.get(verb).copied().unwrap_or_default();
            (verb.clone(), number - earlier)
        });
        Counts {
            evaluations: self.evaluations - before.evaluations,
            errors: self.errors - before.errors,
            reports: self.reports - before.reports,
            looks: self.looks - before.looks,
            requests: requests.filter(|(_, number)| *number > 0).collect(),
            answered: self.answered - before.answered,
            ..self.clone()
        }
    }

    pub(super) fn asked(&self) -> u64 {
        self.requests.values().sum()
    }

    /// What policies are told of it every second is no part of it.
    fn work(&self) -> [u64; 3] {
        [self.evaluations, self.reports, self.looks]
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let requests = self.requests.iter();
        let requests: Vec<String> = requests.map(|(verb, n)| format!("{verb} {n}")).collect();
        write!(
            f,
            "{} evaluations, {} reports, {} looks, requests: [{}]",
            self.evaluations,
            self.reports,
            self.looks,
            requests.join(", ")
        )
    }
}

/// When everything was done that `is` wants, and how much that was.
pub(super) struct Settled {
    pub(super) counts: Counts,
    /// When the last of it was seen.
    pub(super) last: Instant,
    /// How many of our questions are among those that were answered; the last is not yet.
    pub(super) questions: u64,
}

/// Waits until it is as it should be, and nothing is left to do.
pub(super) async fn settle(client: &Client, is: impl Fn(&Counts) -> bool) -> Result<Settled> {
    let start = Instant::now();
    let mut word = start + WORD;
    let mut settled = Settled {
        counts: Counts::read(client).await?,
        last: Instant::now(),
        questions: 0,
    };
    loop {
        tokio::time::sleep(LOOK).await;
        let now = Counts::read(client).await?;
        settled.questions += 1;
        if now.work() != settled.counts.work() {
            settled.last = Instant::now();
        }
        let quiet = now.pending == 0 && settled.last.elapsed() >= STILL;
        settled.counts = now;
        if quiet && is(&settled.counts) {
            return Ok(settled);
        }
        if word < Instant::now() {
            word = Instant::now() + WORD;
            eprintln!("    {}", settled.counts);
        }
        ensure!(start.elapsed() < LIMIT, "it is still: {}", settled.counts);
    }
}
