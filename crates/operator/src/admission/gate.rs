//! The gate before a Registry: a job that is about to be created claims it, for as long as its
//! object may take to appear. One that comes second is let in, is told for whom it waits, and
//! waits; on a Registry that is being deleted nothing begins any more. The claim is only earlier
//! truth: the reconciler asks again, so whoever cannot be asked here lets the job in.

use crate::lease::{self, Outcome, Place};
use crate::message::{Job, JobKind};
use crate::work::Trouble;
use kube::Client;
use muster_api::scanner;
use muster_kind::object::meta;
use muster_kind::status::About;
use muster_kind::{Kind, Status};
use serde_json::Value;
use std::time::Duration;

/// How long the claim may take, well within what kube-apiserver waits for.
const PATIENCE: Duration = Duration::from_secs(5);

/// Lets jobs in.
#[derive(Clone)]
pub struct Gate {
    client: Client,
    installation: String,
}

/// An object that is about to be created.
#[derive(Clone, Copy)]
pub struct Newcomer<'a> {
    /// Its kind; the gate is for jobs.
    pub kind: &'a Kind,
    /// The namespace it comes to.
    pub namespace: &'a str,
    /// The object itself.
    pub object: &'a Value,
    /// Nothing will be kept of it, and nothing may be of the claim.
    pub dry_run: bool,
}

impl Gate {
    /// A gate whose claims are Leases in the installation namespace.
    pub fn new(client: Client, installation: &str) -> Self {
        Gate {
            client,
            installation: installation.to_owned(),
        }
    }

    /// Lets an object in, with what its author should know, or says why not.
    pub async fn admit(&self, newcomer: &Newcomer<'_>) -> Result<Vec<String>, Status> {
        let Some((me, registry)) = job(newcomer) else {
            return Ok(Vec::new());
        };
        let place = Place {
            namespace: newcomer.namespace,
            registry,
        };
        let claim = self.claim(place, &me, newcomer.dry_run);
        let claim = tokio::time::timeout(PATIENCE, claim).await;
        match claim.unwrap_or_else(|_| Err(late())) {
            Ok(outcome) => told(&outcome, newcomer, registry),
            Err(trouble) => {
                tracing::warn!(job = %me, registry, %trouble, "letting a job in unasked");
                Ok(Vec::new())
            }
        }
    }

    async fn claim(&self, place: Place<'_>, me: &Job, dry: bool) -> Result<Outcome, Trouble> {
        // A name that is taken is refused, and must not claim anything for who is not there.
        let taken = me.kind.object().within(&self.client, place.namespace);
        let dry = dry || taken.get_metadata_opt(&me.name).await?.is_some();
        // Looking first leaves nothing behind where there is nothing to claim.
        match lease::look(&self.client, &self.installation, place, me).await? {
            Outcome::Acquired if !dry => {
                lease::reserve(&self.client, &self.installation, place, me).await
            }
            outcome => Ok(outcome),
        }
    }
}

/// The job that an object is, and the Registry it is about.
fn job<'a>(newcomer: &Newcomer<'a>) -> Option<(Job, &'a str)> {
    let kind = match (newcomer.kind.group.as_str(), newcomer.kind.kind.as_str()) {
        (scanner::GROUP, "ScanJob") => JobKind::ScanJob,
        (scanner::GROUP, "RegistryDiscovery") => JobKind::RegistryDiscovery,
        _ => return None,
    };
    let registry = newcomer.object.pointer("/spec/registry")?.as_str()?;
    let job = Job {
        kind,
        namespace: newcomer.namespace.to_owned(),
        name: meta(newcomer.object, "name").to_owned(),
        uid: meta(newcomer.object, "uid").to_owned(),
    };
    let named = !registry.is_empty() && !job.name.is_empty();
    named.then_some((job, registry))
}

/// What a claim comes to for the author of a job.
fn told(outcome: &Outcome, newcomer: &Newcomer<'_>, registry: &str) -> Result<Vec<String>, Status> {
    match outcome {
        // A job of no Registry says so itself.
        Outcome::Acquired | Outcome::Absent => Ok(Vec::new()),
        Outcome::HeldBy(other) => Ok(vec![format!(
            "{other} works on the Registry {registry:?}; this {} waits until it has ended",
            newcomer.kind.kind
        )]),
        Outcome::Closing => {
            let about = About {
                group: &newcomer.kind.group,
                resource: &newcomer.kind.plural,
            };
            let why = format!("the Registry {registry:?} is being deleted, nothing begins on it");
            let name = meta(newcomer.object, "name");
            Err(Status::forbidden(about, name, &why))
        }
    }
}

fn late() -> Trouble {
    Trouble::Transient(format!("not answered within {} s", PATIENCE.as_secs()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn kind(name: &str) -> Kind {
        let kinds = scanner::kinds();
        kinds.into_iter().find(|kind| kind.kind == name).unwrap()
    }

    fn newcomer<'a>(kind: &'a Kind, object: &'a Value) -> Newcomer<'a> {
        Newcomer {
            kind,
            namespace: "default",
            object,
            dry_run: false,
        }
    }

    #[test]
    fn jobs_come_through_the_gate_and_others_by_it() {
        let named = |spec: Value| json!({"metadata": {"name": "x", "uid": "1"}, "spec": spec});
        for (kind_name, object, expected) in [
            (
                "ScanJob",
                named(json!({"registry": "r"})),
                Some("ScanJob default/x"),
            ),
            (
                "RegistryDiscovery",
                named(json!({"registry": "r"})),
                Some("RegistryDiscovery default/x"),
            ),
            ("ScanJob", named(json!({})), None),
            ("ScanJob", named(json!({"registry": ""})), None),
            ("ScanJob", named(json!({"registry": 1})), None),
            ("ScanJob", json!({"spec": {"registry": "r"}}), None),
            ("Registry", named(json!({"registry": "r"})), None),
        ] {
            let kind = kind(kind_name);
            let found = job(&newcomer(&kind, &object)).map(|(job, _)| job.to_string());
            assert_eq!(found.as_deref(), expected, "{kind_name} {object}");
        }
    }

    #[test]
    fn who_comes_second_is_told_for_whom_it_waits() {
        let kind = kind("ScanJob");
        let object = json!({"metadata": {"name": "x"}, "spec": {"registry": "r"}});
        let newcomer = newcomer(&kind, &object);
        let other = Job {
            kind: JobKind::RegistryDiscovery,
            namespace: "default".into(),
            name: "nightly".into(),
            uid: "1".into(),
        };
        for outcome in [Outcome::Acquired, Outcome::Absent] {
            assert_eq!(told(&outcome, &newcomer, "r"), Ok(Vec::new()));
        }
        let warned = told(&Outcome::HeldBy(other), &newcomer, "r").unwrap();
        assert_eq!(
            warned,
            [
                r#"RegistryDiscovery default/nightly works on the Registry "r"; this ScanJob waits until it has ended"#
            ]
        );
        let refused = told(&Outcome::Closing, &newcomer, "r").unwrap_err();
        assert_eq!(refused.code, 403);
        assert!(refused.message.contains("is being deleted"), "{refused}");
    }
}
