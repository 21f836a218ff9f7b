//! Reviews: questions about rights and identity that are answered and not stored.

use crate::identity::{Attributes, Decision, Identity};
use crate::server::Server;
use muster_kind::Status;
use serde_json::{Value, json};

/// Answers a review of the given kind.
pub(crate) async fn answer(
    server: &Server,
    kind: &str,
    who: &Identity,
    mut review: Value,
) -> Result<Value, Status> {
    let group = match kind {
        "SelfSubjectReview" => "authentication.k8s.io",
        _ => "authorization.k8s.io",
    };
    review["apiVersion"] = json!(format!("{group}/v1"));
    review["kind"] = json!(kind);
    if !review["metadata"].is_object() {
        review["metadata"] = json!({"creationTimestamp": null});
    }
    review["status"] = match kind {
        "SelfSubjectReview" => json!({"userInfo": who.to_value()}),
        "SelfSubjectRulesReview" => rules(server, who).await,
        "SelfSubjectAccessReview" => access(server, who, &review["spec"]).await?,
        _ => {
            let spec = review["spec"].clone();
            let subject = subject(&spec)?;
            access(server, &subject, &spec).await?
        }
    };
    Ok(review)
}

fn subject(spec: &Value) -> Result<Identity, Status> {
    let user = spec["user"].as_str().unwrap_or_default();
    let groups: Vec<String> = spec["groups"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|group| group.as_str().map(Into::into))
        .collect();
    if user.is_empty() && groups.is_empty() {
        return Err(Status::bad_request(
            "at least one of user or group must be specified",
        ));
    }
    Ok(Identity {
        user: user.into(),
        groups,
        ..Identity::default()
    })
}

async fn access(server: &Server, who: &Identity, spec: &Value) -> Result<Value, Status> {
    let part = |value: &Value, field: &str| value[field].as_str().unwrap_or_default().to_owned();
    let (resource, path) = (&spec["resourceAttributes"], &spec["nonResourceAttributes"]);
    if resource.is_object() == path.is_object() {
        return Err(Status::bad_request(
            "exactly one of nonResourceAttributes or resourceAttributes must be specified",
        ));
    }
    let what = if resource.is_object() {
        Attributes {
            verb: part(resource, "verb"),
            namespace: part(resource, "namespace"),
            group: part(resource, "group"),
            version: part(resource, "version"),
            resource: part(resource, "resource"),
            subresource: part(resource, "subresource"),
            name: part(resource, "name"),
            ..Attributes::default()
        }
    } else {
        Attributes {
            verb: part(path, "verb"),
            path: part(path, "path"),
            ..Attributes::default()
        }
    };
    Ok(match server.authorizer.authorize(who, &what).await {
        Decision::Allowed => json!({"allowed": true}),
        Decision::Denied(reason) if reason.is_empty() => json!({"allowed": false}),
        Decision::Denied(reason) => json!({"allowed": false, "reason": reason}),
        Decision::Unknown(why) => json!({"allowed": false, "evaluationError": why}),
    })
}

async fn rules(server: &Server, who: &Identity) -> Value {
    let everything = Attributes {
        verb: "*".into(),
        group: "*".into(),
        resource: "*".into(),
        ..Attributes::default()
    };
    let all = server.authorizer.authorize(who, &everything).await == Decision::Allowed;
    let (resources, paths) = if all {
        (
            json!([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]),
            json!([{"verbs": ["*"], "nonResourceURLs": ["*"]}]),
        )
    } else {
        (json!([]), json!([]))
    };
    json!({"resourceRules": resources, "nonResourceRules": paths, "incomplete": false})
}
