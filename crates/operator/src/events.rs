//! News as Kubernetes Events, where `kubectl describe` shows them. There is one Event for each
//! object and reason: what happens again raises its count and tells the latest message, whoever
//! tells it and whatever was restarted meanwhile, so that nobody is flooded. An Event that cannot be
//! written is no matter for the work it tells of.

use crate::news::News;
use crate::object::{Kind, MANAGER, now};
use crate::work::Operator;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, ObjectMeta, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::time::Duration;

/// How long telling may take.
const PATIENCE: Duration = Duration::from_secs(3);
/// How many characters of a message are told.
const LONGEST: usize = 1000;
/// Where Events about objects without a namespace are.
const ELSEWHERE: &str = "default";

/// Tells of an object.
pub(crate) async fn tell(operator: &Operator, kind: Kind, about: &ObjectMeta, news: &News) {
    let event = event(kind, about, news, &now());
    match tokio::time::timeout(PATIENCE, write(operator, event)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(%error, reason = news.reason, "telling of an event"),
        Err(_) => tracing::warn!(reason = news.reason, "telling of an event took too long"),
    }
}

async fn write(operator: &Operator, event: DynamicObject) -> Result<(), kube::Error> {
    let namespace = event.metadata.namespace.as_deref().unwrap_or(ELSEWHERE);
    let api: Api<DynamicObject> =
        Api::namespaced_with(operator.client().clone(), namespace, &resource());
    let parameters = PostParams {
        field_manager: Some(MANAGER.into()),
        ..PostParams::default()
    };
    match api.create(&parameters, &event).await {
        Err(kube::Error::Api(refused)) if refused.reason == "AlreadyExists" => {}
        other => return other.map(drop),
    }
    let name = event.metadata.name.as_deref().unwrap_or_default();
    let known = api.get(name).await?;
    let patch = Patch::Merge(again(&known.data, &event.data));
    let parameters = PatchParams::apply(MANAGER);
    api.patch(name, &parameters, &patch).await.map(drop)
}

/// What changes when the same happens again.
fn again(known: &Value, event: &Value) -> Value {
    let count = known["count"].as_u64().unwrap_or(1).saturating_add(1);
    json!({
        "count": count.min(i32::MAX as u64), "message": event["message"],
        "lastTimestamp": event["lastTimestamp"],
    })
}

fn resource() -> ApiResource {
    ApiResource {
        group: String::new(),
        version: "v1".into(),
        api_version: "v1".into(),
        kind: "Event".into(),
        plural: "events".into(),
    }
}

fn event(kind: Kind, about: &ObjectMeta, news: &News, now: &str) -> DynamicObject {
    let uid = about.uid.as_deref().unwrap_or_default();
    let hash = Sha256::digest(json!([uid, news.reason]).to_string());
    let hash = hash.iter().take(8).map(|byte| format!("{byte:02x}"));
    let object = about.name.as_deref().unwrap_or_default();
    // With the dot and the hash it is a name still.
    let start: String = object.chars().take(230).collect();
    let start = start.trim_end_matches(['-', '.']);
    let name = format!("{start}.{}", hash.collect::<String>());
    let mut event = DynamicObject::new(&name, &resource());
    event.metadata.namespace = Some(about.namespace.clone().unwrap_or(ELSEWHERE.into()));
    let mut involved = json!({
        "apiVersion": kind.api_version(), "kind": kind.kind, "name": object, "uid": uid,
    });
    if let Some(namespace) = &about.namespace {
        involved["namespace"] = json!(namespace);
    }
    let message: String = news.message.chars().take(LONGEST).collect();
    event.data = json!({
        "involvedObject": involved, "reason": news.reason, "message": message,
        "type": if news.is_bad { "Warning" } else { "Normal" },
        "source": {"component": MANAGER}, "reportingComponent": MANAGER, "reportingInstance": "",
        "firstTimestamp": now, "lastTimestamp": now, "count": 1,
    });
    event
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::{SCAN_JOB, VEX_HUB};

    fn about(name: &str, namespace: Option<&str>) -> ObjectMeta {
        ObjectMeta {
            name: Some(name.to_owned()),
            namespace: namespace.map(str::to_owned),
            uid: Some("u".into()),
            ..ObjectMeta::default()
        }
    }

    #[test]
    fn an_event_names_its_object_and_is_one_for_each_reason() {
        let failed = News::bad("Failed", "x".repeat(5000));
        let told = event(SCAN_JOB, &about("nightly", Some("a")), &failed, "now");
        assert_eq!(told.metadata.namespace.as_deref(), Some("a"));
        let involved = &told.data["involvedObject"];
        assert_eq!(involved["kind"], "ScanJob");
        assert_eq!(
            (&involved["name"], &involved["namespace"]),
            (&json!("nightly"), &json!("a"))
        );
        assert_eq!(told.data["type"], "Warning");
        assert_eq!(told.data["message"].as_str().unwrap().len(), LONGEST);
        let name = |news: &News| {
            event(SCAN_JOB, &about("nightly", None), news, "now")
                .metadata
                .name
        };
        assert_eq!(name(&failed), name(&News::bad("Failed", "another")));
        assert_ne!(name(&failed), name(&News::good("Started", "")));
        let long = event(SCAN_JOB, &about(&"x".repeat(253), None), &failed, "now");
        assert!(long.metadata.name.unwrap().len() <= 253);
        let hub = event(VEX_HUB, &about("hub", None), &failed, "now");
        assert_eq!(hub.metadata.namespace.as_deref(), Some("default"));
        assert_eq!(hub.data["involvedObject"]["namespace"], Value::Null);
    }

    #[test]
    fn what_happens_again_is_counted_and_tells_the_latest() {
        let event = json!({"message": "new", "lastTimestamp": "now"});
        for (known, count) in [
            (json!({"count": 1}), 2),
            (json!({}), 2),
            (json!({"count": i64::from(i32::MAX)}), i64::from(i32::MAX)),
        ] {
            let patch = again(&known, &event);
            assert_eq!(patch["count"], count);
            assert_eq!(patch["message"], "new");
        }
    }
}
