//! What the configuration audit counts, read from `/metrics` until nothing is left to do.

use anyhow::{Result, ensure};
use muster_testkit::http::{Client, Request, Response};
use std::fmt;
use std::time::{Duration, Instant};

/// How often it is asked.
const LOOK: Duration = Duration::from_millis(100);
/// For how long nothing must have changed: the audit says four times a second how much is left.
const STILL: Duration = Duration::from_secs(3);
/// How long we wait for that, and how often we say how far it is.
const LIMIT: Duration = Duration::from_secs(3600);
const WORD: Duration = Duration::from_secs(10);

/// A client that counts what it asks, so that it can be told apart from what others ask.
pub(super) struct Asker {
    client: Client,
    asked: u64,
}

impl Asker {
    pub(super) fn new(client: Client) -> Asker {
        Asker { client, asked: 0 }
    }

    /// Sends a request that must succeed.
    pub(super) async fn send(&mut self, request: Request) -> Result<Response> {
        let target = request.target.clone();
        let answer = self.client.send(request).await?;
        self.asked += 1;
        let (status, body) = (answer.status, String::from_utf8_lossy(&answer.body));
        ensure!(status.is_success(), "{target} answered {status}: {body}");
        Ok(answer)
    }
}

/// What was counted since the process began.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    pub(super) evaluations: u64,
    /// Reports that were written.
    pub(super) written: u64,
    /// Reports that could not be.
    pub(super) failed: u64,
    /// Objects that have a report.
    pub(super) objects: u64,
    /// Policies and libraries that are not in force.
    pub(super) refused: u64,
    pending: u64,
    /// Requests of the audit beside watches and the lists with which they begin.
    pub(super) requests: u64,
    /// All requests that the server answered, without ours.
    pub(super) answered: u64,
}

impl Counts {
    pub(super) async fn read(asker: &mut Asker) -> Result<Counts> {
        let ours = asker.asked;
        let request = Request::new(http::Method::GET, "/metrics");
        let answer = asker.send(request).await?;
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
        // The question itself is not among them yet.
        counts.answered = counts.answered.saturating_sub(ours);
        Ok(counts)
    }

    fn take(&mut self, name: &str, number: u64) {
        let (name, labels) = name.split_once('{').unwrap_or((name, ""));
        let is = |word: &str| labels.contains(&format!("\"{word}\""));
        match name {
            "muster_config_audit_evaluations_total" => self.evaluations += number,
            "muster_config_audit_reports_total" if is("written") => self.written += number,
            "muster_config_audit_reports_total" if is("failed") => self.failed += number,
            "muster_config_audit_objects" => self.objects = number,
            "muster_config_audit_policies" if !is("ready") => self.refused += number,
            "muster_config_audit_pending" => self.pending = number,
            "muster_config_audit_requests_total" => self.requests += number,
            "apiserver_requests_total" => self.answered += number,
            _ => {}
        }
    }

    /// What was counted after `before`.
    pub(super) fn since(&self, before: &Counts) -> Counts {
        Counts {
            evaluations: self.evaluations - before.evaluations,
            written: self.written - before.written,
            failed: self.failed - before.failed,
            requests: self.requests - before.requests,
            answered: self.answered.saturating_sub(before.answered),
            ..self.clone()
        }
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} evaluations, {} reports written, {} objects, {} requests, {} pending",
            self.evaluations, self.written, self.objects, self.requests, self.pending
        )
    }
}

/// Waits until it is as it should be, and nothing is left to do; gives when the last was done, or, if
/// nothing had to be, when that was known.
pub(super) async fn settle(
    asker: &mut Asker,
    is: impl Fn(&Counts) -> bool,
) -> Result<(Counts, Instant)> {
    let start = Instant::now();
    let mut word = start + WORD;
    let (mut counts, mut busy) = (Counts::read(asker).await?, Instant::now());
    let mut worked = None;
    loop {
        tokio::time::sleep(LOOK).await;
        let now = Counts::read(asker).await?;
        let work = |counts: &Counts| (counts.evaluations, counts.written);
        if work(&now) != work(&counts) {
            worked = Some(Instant::now());
        }
        if now.pending > 0 {
            busy = Instant::now();
        }
        counts = now;
        // A report may be looked at once more after it was written, which changes nothing.
        let last = worked.unwrap_or(busy);
        if last.max(busy).elapsed() >= STILL && is(&counts) {
            return Ok((counts, last));
        }
        if word < Instant::now() {
            word = Instant::now() + WORD;
            eprintln!("    {counts}");
        }
        ensure!(start.elapsed() < LIMIT, "it is still: {counts}");
    }
}
