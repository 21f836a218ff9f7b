//! What a workload's report says, given what is known of its containers' images. The findings
//! themselves are never read: a computed body refers to the blobs of the reports it quotes.

use super::findings::Counts;
use bytes::{BufMut, BytesMut};
use muster_apiserver::store::{Detail, Key};
use muster_kind::{Body, Digest};
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashMap};

/// A container of a stored report.
#[derive(Debug)]
pub(crate) struct Container {
    name: String,
    /// What leads to its image; nothing if it names none.
    pub(crate) link: Option<String>,
    /// Why its image cannot be scanned, as far as whoever wrote the report knows.
    message: Option<String>,
}

/// What is known of the images that some containers ask for, by their links.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// The images, one for each platform.
    pub(crate) images: HashMap<String, BTreeSet<Key>>,
    /// Which of them have a report, which is named like its image.
    pub(crate) scanned: HashMap<String, BTreeSet<Key>>,
    /// Those reports, where more than their number is asked for.
    pub(crate) reports: HashMap<String, Vec<(Key, Body)>>,
    /// The findings of all platforms, each counted once.
    pub(crate) counts: HashMap<String, Counts>,
}

/// The containers of a stored report.
pub(crate) fn containers(body: &Body) -> Vec<Container> {
    let tree = body.tree(0);
    let list = tree.pointer("/spec/containers").and_then(Value::as_array);
    let container = |container: &Value| Container {
        name: container["name"].as_str().unwrap_or_default().to_owned(),
        link: muster_api::link::of_container(container),
        message: container["message"].as_str().map(str::to_owned),
    };
    list.into_iter().flatten().map(container).collect()
}

/// Adds to a stored report what is computed.
pub(crate) fn complete(
    stored: &Body,
    containers: &[Container],
    known: &Known,
    detail: Detail,
) -> Body {
    let Some((b'}', start)) = stored.text.split_last() else {
        return stored.clone();
    };
    let mut text = BytesMut::with_capacity(stored.text.len() + 256);
    text.put_slice(start);
    let mut blobs = stored.blobs.clone();
    if detail == Detail::Full {
        text.put_slice(b",\"containers\":[");
        for (at, container) in containers.iter().enumerate() {
            separate(at, &mut text);
            quote(container, known, &mut text, &mut blobs);
        }
        text.put_u8(b']');
    }
    let statuses = containers.iter().map(|container| status(container, known));
    let status = json!({ "containerStatuses": statuses.collect::<Vec<_>>() });
    text.put_slice(format!(",\"status\":{status}").as_bytes());
    let mut sum = Counts::default();
    for link in containers
        .iter()
        .filter_map(|container| container.link.as_ref())
    {
        if let Some(counts) = known.counts.get(link) {
            sum.add(counts);
        }
    }
    text.put_slice(format!(",\"summary\":{}}}", sum.summary()).as_bytes());
    Body {
        text: text.freeze(),
        revision_at: stored.revision_at,
        blobs,
    }
}

fn separate(at: usize, text: &mut BytesMut) {
    if at > 0 {
        text.put_u8(b',');
    }
}

const COMPLETE: &str = "ScanComplete";

/// What is said of a container; what stood in the way of a scan that is complete does no longer.
fn status(container: &Container, known: &Known) -> Value {
    let progress = progress(container, known);
    let mut status = json!({"name": container.name, "scanStatus": progress});
    match &container.message {
        Some(message) if progress != COMPLETE => status["message"] = json!(message),
        _ => {}
    }
    status
}

/// How far the image of a container is scanned.
fn progress(container: &Container, known: &Known) -> &'static str {
    let link = container.link.as_deref().unwrap_or_default();
    let images = known.images.get(link).filter(|images| !images.is_empty());
    let Some(images) = images else {
        return "WaitingForScan";
    };
    let scanned = known.scanned.get(link);
    match scanned.is_some_and(|scanned| images.is_subset(scanned)) {
        true => COMPLETE,
        false => "ScanInProgress",
    }
}

/// Quotes the reports of a container's image.
fn quote(
    container: &Container,
    known: &Known,
    text: &mut BytesMut,
    blobs: &mut Vec<(usize, Digest)>,
) {
    let name = json!(container.name);
    text.put_slice(format!("{{\"name\":{name},\"vulnerabilityReports\":[").as_bytes());
    let reports = container
        .link
        .as_ref()
        .and_then(|link| known.reports.get(link));
    for (at, (key, report)) in reports.into_iter().flatten().enumerate() {
        separate(at, text);
        let (namespace, name) = (json!(key.namespace), json!(key.name));
        text.put_slice(format!("{{\"namespace\":{namespace},\"name\":{name}").as_bytes());
        for field in ["imageMetadata", "report"] {
            report.quote(field, text, blobs);
        }
        text.put_u8(b'}');
    }
    text.put_slice(b"]}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_kind::FieldPath;

    fn key(name: &str) -> Key {
        Key {
            namespace: "art".into(),
            name: name.into(),
        }
    }

    fn report(name: &str, digest: &Digest) -> Body {
        let tree = json!({
            "metadata": {"name": name, "namespace": "art"}, "imageMetadata": {"tag": name},
            "report": {"results": digest.to_string(), "summary": {"high": 1}},
        });
        Body::encode(&tree, &[FieldPath::parse(".report.results")])
    }

    #[test]
    fn a_report_says_what_is_known_of_its_containers() {
        let digests = [Digest([1; 32]), Digest([2; 32])];
        let tree = json!({
            "metadata": {"name": "deployment-web", "namespace": "web"},
            "spec": {"containers": [
                {"name": "done", "imageRef": {"registry": "r", "namespace": "art", "repository": "a", "tag": "1"}},
                {"name": "half", "imageRef": {"registry": "r", "namespace": "art", "repository": "b", "tag": "1"}},
                {"name": "none", "imageRef": {"registry": "r", "namespace": "art", "repository": "c", "tag": "1"}, "message": "gone"},
                {"name": "done", "imageRef": {"registry": "r", "namespace": "art", "repository": "a", "tag": "1"}, "message": "late"},
            ]},
        });
        let stored = Body::encode(&tree, &[]);
        let (a, b) = ("art/r/a:1".to_owned(), "art/r/b:1".to_owned());
        let known = Known {
            images: HashMap::from([
                (a.clone(), BTreeSet::from([key("a-amd"), key("a-arm")])),
                (b.clone(), BTreeSet::from([key("b-amd"), key("b-arm")])),
            ]),
            scanned: HashMap::from([
                (a.clone(), BTreeSet::from([key("a-amd"), key("a-arm")])),
                (b.clone(), BTreeSet::from([key("b-amd")])),
            ]),
            reports: HashMap::from([
                (
                    a.clone(),
                    vec![
                        (key("a-amd"), report("a-amd", &digests[0])),
                        (key("a-arm"), report("a-arm", &digests[1])),
                    ],
                ),
                (
                    b.clone(),
                    vec![(key("b-amd"), report("b-amd", &digests[0]))],
                ),
            ]),
            counts: HashMap::from([
                (a, Counts([1, 2, 0, 0, 0, 3])),
                (b, Counts([0, 1, 0, 0, 7, 0])),
            ]),
        };
        let containers = containers(&stored);
        let brief = complete(&stored, &containers, &known, Detail::Brief).tree(5);
        let summary =
            json!({"critical": 2, "high": 5, "medium": 0, "low": 0, "unknown": 7, "suppressed": 6});
        assert_eq!(brief["summary"], summary);
        assert_eq!(brief.get("containers"), None);
        let messages = brief.pointer("/status/containerStatuses").unwrap();
        let messages = messages.as_array().unwrap().iter();
        let messages: Vec<&Value> = messages.map(|status| &status["message"]).collect();
        assert_eq!(
            messages,
            [&json!(null), &json!(null), &json!("gone"), &json!(null)]
        );
        let full = complete(&stored, &containers, &known, Detail::Full);
        let mut whole = BytesMut::new();
        full.render(5, &mut whole, |digest| format!("[{}]", digest.0[0]).into());
        let whole: Value = serde_json::from_slice(&whole).unwrap();
        assert_eq!(whole["metadata"]["resourceVersion"], "5");
        assert_eq!(whole["spec"], tree["spec"]);
        assert_eq!(
            (&whole["summary"], &whole["status"]),
            (&summary, &brief["status"])
        );
        let statuses = whole.pointer("/status/containerStatuses").unwrap();
        let statuses: Vec<_> = statuses
            .as_array()
            .unwrap()
            .iter()
            .map(|s| &s["scanStatus"])
            .collect();
        assert_eq!(
            statuses,
            [
                "ScanComplete",
                "ScanInProgress",
                "WaitingForScan",
                "ScanComplete"
            ]
        );
        let quoted = &whole["containers"];
        assert_eq!(quoted[0], quoted[3]);
        assert_eq!(
            quoted[0]["vulnerabilityReports"][1]["report"]["results"],
            json!([2])
        );
        assert_eq!(
            quoted[1]["vulnerabilityReports"][0]["report"]["results"],
            json!([1])
        );
        assert_eq!(
            quoted[1]["vulnerabilityReports"][0]["imageMetadata"]["tag"],
            "b-amd"
        );
        assert_eq!(quoted[2]["vulnerabilityReports"], json!([]));
    }
}
