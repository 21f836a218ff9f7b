//! A writer: creates, replaces, patches and deletes at random, and keeps a ledger of what it was
//! told. Every write carries a mark of its own, so that the log can be held against the ledger.

use super::model::{Entry, identify, text};
use super::selection::{COLORS, REPOSITORIES, TIERS};
use super::target::Target;
use super::{NAMES, NAMESPACES, Resource};
use anyhow::{Context, Result, bail};
use http::Method;
use muster_testkit::http::{Request, Response};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What became of one write.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Outcome {
    /// Acknowledged, with the revision and content the client was told.
    Written(u64, u64),
    /// The same, on condition that the object was still at a revision.
    Replaced(u64, u64, u64),
    /// A deletion of the object with this uid was acknowledged.
    Deleted(String),
    /// Refused: it must not be in the log.
    Refused,
    /// The server was killed meanwhile: it may be in the log, once.
    Unknown,
}

/// One write in the ledger: its resource, its mark and what became of it.
pub(super) type Line = (Resource, String, Outcome);

pub(super) struct Writer {
    pub(super) number: usize,
    pub(super) seed: u64,
    pub(super) resources: [Resource; 2],
    pub(super) target: Target,
    pub(super) stop: Arc<AtomicBool>,
    /// How many writes all writers together have had acknowledged.
    pub(super) acknowledged: Arc<AtomicU64>,
}

impl Writer {
    /// Writes until told to stop; returns the ledger.
    pub(super) async fn run(mut self) -> Result<Vec<Line>> {
        let mut random = StdRng::seed_from_u64(self.seed ^ (self.number as u64 + 1));
        let mut ledger = Vec::new();
        while !self.stop.load(Ordering::Relaxed) {
            let resource = self.resources[random.random_range(0..2)];
            let mark = format!("{}-{}", self.number, ledger.len());
            let generation = self.target.generation(random.random_range(0..1000)).await?;
            let ask = write(&generation.client, resource, &mark, &mut random).await;
            let outcome = match ask {
                Ok(outcome) => outcome,
                Err(error) => {
                    self.target.forgive(&generation, error)?;
                    Outcome::Unknown
                }
            };
            if !matches!(outcome, Outcome::Refused | Outcome::Unknown) {
                self.acknowledged.fetch_add(1, Ordering::Relaxed);
            }
            ledger.push((resource, mark, outcome));
        }
        Ok(ledger)
    }
}

async fn write(
    client: &muster_testkit::http::Client,
    resource: Resource,
    mark: &str,
    random: &mut StdRng,
) -> Result<Outcome> {
    let namespace = format!("t-{}", random.random_range(0..NAMESPACES));
    let collection = resource.collection(&namespace);
    let name = format!("o-{}", random.random_range(0..NAMES));
    let object = format!("{collection}/{name}");
    let new = body(resource, &name, mark, random);
    let choice = random.random_range(0..10);
    match choice {
        0..=2 => {
            let request = Request::new(Method::POST, collection);
            let request = request.body("application/json", new.to_string())?;
            written(client.send(request).await?)
        }
        3..=5 => {
            let Some(old) = current(client, &object).await? else {
                return Ok(Outcome::Refused);
            };
            let mut new = new;
            new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"].clone();
            let base = text(&old, "/metadata/resourceVersion").parse()?;
            let request = Request::new(Method::PUT, object);
            let request = request.body("application/json", new.to_string())?;
            Ok(match written(client.send(request).await?)? {
                Outcome::Written(revision, content) => Outcome::Replaced(revision, content, base),
                other => other,
            })
        }
        6 => {
            let request = Request::new(Method::PATCH, object);
            let patch = json!({
                "metadata": {"labels": new["metadata"]["labels"], "annotations": {"mark": mark}},
                "imageMetadata": new["imageMetadata"],
            });
            let request = request.body("application/merge-patch+json", patch.to_string())?;
            written(client.send(request).await?)
        }
        7 => {
            let request = Request::new(Method::PATCH, object);
            let patch = json!([
                {"op": "replace", "path": "/metadata/annotations/mark", "value": mark},
                {"op": "add", "path": "/metadata/labels/color", "value": COLORS[random.random_range(0..3)]},
            ]);
            let request = request.body("application/json-patch+json", patch.to_string())?;
            written(client.send(request).await?)
        }
        _ => {
            let Some(old) = current(client, &object).await? else {
                return Ok(Outcome::Refused);
            };
            let uid = text(&old, "/metadata/uid");
            let options = json!({"preconditions": {"uid": uid}});
            let request = Request::new(Method::DELETE, object);
            let request = request.body("application/json", options.to_string())?;
            let answer = client.send(request).await?;
            match answer.status.as_u16() {
                200 => Ok(Outcome::Deleted(uid)),
                404 | 409 => Ok(Outcome::Refused),
                _ => bail!("a deletion was answered with {}", shown(&answer)),
            }
        }
    }
}

fn body(resource: Resource, name: &str, mark: &str, random: &mut StdRng) -> Value {
    let mut labels = json!({"color": COLORS[random.random_range(0..3)]});
    if random.random_bool(0.5) {
        labels["tier"] = TIERS[random.random_range(0..2)].into();
    }
    let metadata = json!({"name": name, "labels": labels, "annotations": {"mark": mark}});
    match resource {
        Resource::ConfigMaps => json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata,
            "data": {"text": "x".repeat(random.random_range(0..200))},
        }),
        Resource::Images => json!({
            "apiVersion": "storage.sbomscanner.kubewarden.io/v1alpha1", "kind": "Image",
            "metadata": metadata,
            "imageMetadata": {"registry": "r", "repository": REPOSITORIES[random.random_range(0..3)]},
        }),
        // The bill of materials is a blob of its own in the store, shared by equal ones.
        Resource::Sboms => json!({
            "apiVersion": "storage.sbomscanner.kubewarden.io/v1alpha1", "kind": "SBOM",
            "metadata": metadata,
            "imageMetadata": {"registry": "r", "repository": REPOSITORIES[random.random_range(0..3)]},
            "spdx": {"packages": random.random_range(0..20)},
        }),
    }
}

async fn current(client: &muster_testkit::http::Client, object: &str) -> Result<Option<Value>> {
    let answer = client.get(object).await?;
    match answer.status.as_u16() {
        200 => answer.json().map(Some),
        404 => Ok(None),
        _ => bail!("a read was answered with {}", shown(&answer)),
    }
}

fn written(answer: Response) -> Result<Outcome> {
    match answer.status.as_u16() {
        200 | 201 => {
            let (revision, _, content) = identify(&answer.json()?).context("an object")?;
            Ok(Outcome::Written(revision, content))
        }
        404 | 409 => Ok(Outcome::Refused),
        _ => bail!("a write was answered with {}", shown(&answer)),
    }
}

fn shown(answer: &Response) -> String {
    let body = String::from_utf8_lossy(&answer.body);
    format!("{}: {body}", answer.status)
}

/// Holds the log of a resource against the ledgers: every acknowledged write is in it, once, at
/// the revision the client was told; what replaced a state follows on that very state, so that no
/// update is lost; what was refused is not in it; and nobody else wrote.
pub(super) fn check(resource: Resource, log: &[Entry], ledgers: &[Line]) -> Result<(), String> {
    let mut marks: BTreeMap<&str, &Entry> = BTreeMap::new();
    let mut deleted: BTreeMap<&str, usize> = BTreeMap::new();
    let mut newest: BTreeMap<&str, u64> = BTreeMap::new();
    let mut before: BTreeMap<u64, u64> = BTreeMap::new();
    for entry in log {
        let seen = &entry.sighting;
        if let Some(previous) = newest.insert(&seen.key, seen.revision) {
            before.insert(seen.revision, previous);
        }
        match entry.sighting.change {
            super::model::Change::Deleted => *deleted.entry(&entry.uid).or_default() += 1,
            _ => {
                if let Some(before) = marks.insert(&entry.mark, entry) {
                    return Err(format!("written twice: {before:?} and {entry:?}"));
                }
            }
        }
    }
    let mut acknowledged: BTreeMap<&str, &str> = BTreeMap::new();
    for (_, mark, outcome) in ledgers.iter().filter(|line| line.0 == resource) {
        let found = marks.remove(mark.as_str());
        match (outcome, found) {
            (Outcome::Replaced(revision, _, base), _) if before.get(revision) != Some(base) => {
                let found = before.get(revision);
                return Err(format!(
                    "lost update: {mark} at {revision} replaced {base}, but {found:?} was there"
                ));
            }
            (
                Outcome::Written(revision, content) | Outcome::Replaced(revision, content, _),
                Some(entry),
            ) => {
                let seen = &entry.sighting;
                if (seen.revision, seen.content) != (*revision, *content) {
                    return Err(format!(
                        "{mark} was told {revision}, but {seen} is in the log"
                    ));
                }
            }
            (Outcome::Written(revision, _) | Outcome::Replaced(revision, ..), None) => {
                return Err(format!("lost: {mark} was told {revision}"));
            }
            (Outcome::Deleted(uid), _) => {
                if deleted.get(uid.as_str()) != Some(&1) {
                    return Err(format!("lost: {mark} deleted {uid}"));
                }
                if let Some(other) = acknowledged.insert(uid, mark) {
                    return Err(format!("{mark} and {other} both deleted {uid}"));
                }
            }
            (Outcome::Refused, Some(entry)) => {
                return Err(format!("{mark} was refused, but {entry:?} is in the log"));
            }
            (Outcome::Refused, None) | (Outcome::Unknown, _) => {}
        }
    }
    match marks.into_values().next() {
        Some(entry) => Err(format!("nobody wrote {entry:?}")),
        None => Ok(()),
    }
}
