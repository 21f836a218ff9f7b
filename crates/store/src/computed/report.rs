//! What a workload's report says, given what is known of its containers' images. The findings
//! themselves are never read: a computed body refers to the blobs of the reports it quotes. Containers with
//! one image share one quote, however many there are.

use super::findings::Counts;
use super::quotes::Quotes;
use bytes::{BufMut, BytesMut};
use muster_apiserver::store::{Detail, Key};
use muster_kind::{Body, Quote};
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

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
    /// Those reports as they are quoted, where more than their number is asked for.
    pub(crate) reports: Quotes,
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

/// Half of some reports, at least one: for a lookup that quotes more than its budget.
pub(crate) fn first_half<'a>(
    bodies: &'a [Body],
    containers: &'a [Vec<Container>],
) -> (&'a [Body], &'a [Vec<Container>]) {
    let half = (bodies.len() / 2).max(1);
    (&bodies[..half], &containers[..half])
}

/// Adds what is computed to stored reports.
pub(crate) fn complete(
    bodies: &[Body],
    containers: &[Vec<Container>],
    mut known: Known,
    detail: Detail,
) -> Vec<Body> {
    let quotes = std::mem::take(&mut known.reports).finish();
    let both = bodies.iter().zip(containers);
    both.map(|(stored, containers)| {
        let quotes = (detail == Detail::Full).then_some(&quotes);
        complete_one(stored, containers, &known, quotes)
    })
    .collect()
}

fn complete_one(
    stored: &Body,
    containers: &[Container],
    known: &Known,
    quotes: Option<&HashMap<String, Arc<Quote>>>,
) -> Body {
    let Some((b'}', start)) = stored.text.split_last() else {
        return stored.clone();
    };
    let mut text = BytesMut::with_capacity(stored.text.len() + 256);
    text.put_slice(start);
    let mut quoted = Vec::new();
    if let Some(quotes) = quotes {
        text.put_slice(b",\"containers\":[");
        for (at, container) in containers.iter().enumerate() {
            if at > 0 {
                text.put_u8(b',');
            }
            let name = json!(container.name);
            text.put_slice(format!("{{\"name\":{name},\"vulnerabilityReports\":").as_bytes());
            match container.link.as_ref().and_then(|link| quotes.get(link)) {
                Some(quote) => quoted.push((text.len(), quote.clone())),
                None => text.put_slice(b"[]"),
            }
            text.put_u8(b'}');
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
        blobs: stored.blobs.clone(),
        quotes: quoted,
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

#[cfg(test)]
mod tests {
    use super::*;
    use muster_kind::{Digest, FieldPath};

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
        let mut reports = Quotes::new(usize::MAX);
        for (link, name, digest) in [
            (&a, "a-amd", &digests[0]),
            (&a, "a-arm", &digests[1]),
            (&b, "b-amd", &digests[0]),
        ] {
            reports
                .add(link, &key(name), || Ok(report(name, digest)))
                .unwrap();
        }
        let known = Known {
            images: HashMap::from([
                (a.clone(), BTreeSet::from([key("a-amd"), key("a-arm")])),
                (b.clone(), BTreeSet::from([key("b-amd"), key("b-arm")])),
            ]),
            scanned: HashMap::from([
                (a.clone(), BTreeSet::from([key("a-amd"), key("a-arm")])),
                (b.clone(), BTreeSet::from([key("b-amd")])),
            ]),
            reports,
            counts: HashMap::from([
                (a, Counts([1, 2, 0, 0, 0, 3])),
                (b, Counts([0, 1, 0, 0, 7, 0])),
            ]),
        };
        let asked = [containers(&stored)];
        let stored = [stored];
        let counts = Known {
            images: known.images.clone(),
            scanned: known.scanned.clone(),
            counts: known.counts.clone(),
            reports: Quotes::default(),
        };
        let brief = complete(&stored, &asked, counts, Detail::Brief)[0].tree(5);
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
        let full = complete(&stored, &asked, known, Detail::Full).remove(0);
        // Both containers with the first image share one text.
        assert!(Arc::ptr_eq(&full.quotes[0].1, &full.quotes[2].1));
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
