//! What Kubernetes itself refuses, in its words: the rules a user meets first, for the kinds that
//! are mostly written by hand. Objects are stored without defaults, so an absent field is judged
//! as the default it stands for.

mod access;
mod pod;
mod selector;
mod service;
mod stored;
mod workload;

pub(super) use access::{cluster_role, cluster_role_binding, role, role_binding};
pub(super) use pod::pod;
pub(super) use service::service;
pub(super) use stored::{config_map, lease, namespace, secret};
pub(super) use workload::{
    cron_job, daemon_set, deployment, job, replica_set, replication_controller, stateful_set,
};

use muster_kind::FieldError;
use serde_json::Value;

const IMMUTABLE: &str = "field is immutable";

/// A number at `pointer` that may not be below zero.
fn nonnegative(object: &Value, pointer: &str, path: &str, errors: &mut Vec<FieldError>) {
    if let Some(value) = object.pointer(pointer)
        && value.as_f64().is_some_and(|number| number < 0.0)
    {
        errors.push(FieldError::invalid(
            path,
            value,
            "must be greater than or equal to 0",
        ));
    }
}

/// A port number.
fn port(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if !value
        .as_i64()
        .is_some_and(|port| (1..=65535).contains(&port))
    {
        errors.push(FieldError::invalid(
            path,
            value,
            "must be between 1 and 65535, inclusive",
        ));
    }
}

/// A name of a kind of object: what is wrong with it, each as an error.
fn named(name: &str, path: &str, rule: fn(&str) -> Vec<String>, errors: &mut Vec<FieldError>) {
    let value = Value::from(name);
    errors.extend(
        rule(name)
            .iter()
            .map(|wrong| FieldError::invalid(path, &value, wrong)),
    );
}

/// A protocol that ports may have; absent is TCP.
fn protocol(object: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let Some(value) = object.get("protocol") else {
        return;
    };
    if !matches!(value.as_str(), Some("SCTP" | "TCP" | "UDP")) {
        errors.push(FieldError::not_supported(
            path,
            value,
            &["SCTP", "TCP", "UDP"],
        ));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    /// Requests and the causes a real kube-apiserver gave for refusing them.
    const CASES: &str = include_str!("../../data/validation-cases.json");

    #[test]
    fn objects_are_refused_with_the_causes_the_real_server_gives() {
        let kinds = crate::builtin::builtin();
        type Case = (String, Value, Option<Value>, Vec<[String; 3]>);
        let cases: Vec<Case> = serde_json::from_str(CASES).unwrap();
        assert!(cases.len() > 60);
        for (name, object, old, causes) in cases {
            let kind = kinds.iter().find(|kind| kind.kind == name).unwrap();
            let mut object = object;
            let old = old.map(|mut old| {
                crate::builtin::prepare(&name, &mut old, None);
                old
            });
            muster_kind::structural::drop_nulls(&mut object, &kind.schema);
            crate::builtin::prepare(&name, &mut object, old.as_ref());
            let errors = kind.validator.unwrap()(&object, old.as_ref());
            let mut found: Vec<[String; 3]> = errors
                .into_iter()
                .map(|e| [e.reason.to_owned(), e.field, e.message])
                .collect();
            let mut causes = causes;
            // Go walks maps in any order.
            found.sort();
            causes.sort();
            assert_eq!(found, causes, "{name} {object}");
        }
    }
}
