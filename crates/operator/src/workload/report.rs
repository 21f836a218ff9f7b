//! The reports of a namespace's workloads, as they should be: one for each workload, with every image
//! that any of its pods runs.

use super::pod::{Container, Owner};
use crate::object::WORKLOAD_REPORT;
use muster_api::guard::{MANAGED_BY, MANAGER, WORKLOAD_SCAN};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};

/// The older label that says who manages an object.
const ALSO_MANAGED_BY: &str = "sbomscanner.kubewarden.io/managed-by";
/// A hash of what a report says, on the report: with it, one that need not be written is not.
pub(crate) const CONTENT: &str = "sbomscanner.kubewarden.io/content";
/// The longest name of an object.
const LONGEST: usize = 253;

/// What a workload runs.
pub(crate) type Images = BTreeSet<Container>;

/// Where an image is scanned.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place {
    pub(crate) namespace: String,
    pub(crate) registry: String,
}

/// Puts the images of pods together by their workloads. Of an image of which one pod knows what runs
/// and another does not yet, only what is known is kept.
pub(crate) fn gather(
    pods: impl IntoIterator<Item = (Owner, Box<[Container]>)>,
) -> BTreeMap<Owner, Images> {
    let mut workloads: BTreeMap<Owner, Images> = BTreeMap::new();
    for (workload, containers) in pods {
        workloads.entry(workload).or_default().extend(containers);
    }
    for images in workloads.values_mut() {
        let known = images.clone();
        images.retain(|one| {
            let vaguer = |other: &Container| {
                other.name == one.name && one.image.is_vaguer_than(&other.image)
            };
            !known.iter().any(vaguer)
        });
    }
    workloads
}

/// The names of the reports. Where kinds of several API groups share a name, a hash tells all but the
/// first of them apart, Kubernetes' own coming first.
pub(crate) fn names<'a>(
    workloads: impl IntoIterator<Item = &'a Owner>,
) -> BTreeMap<&'a Owner, String> {
    let mut plain: BTreeMap<String, Vec<&Owner>> = BTreeMap::new();
    for workload in workloads {
        let name = format!("{}-{}", workload.kind.to_ascii_lowercase(), workload.name);
        plain.entry(name).or_default().push(workload);
    }
    let mut names = BTreeMap::new();
    for (name, mut sharing) in plain {
        sharing.sort_by_key(|one| (one.group().contains('.'), one.group(), &one.uid));
        for (place, workload) in sharing.into_iter().enumerate() {
            let fits = place == 0 && name.len() <= LONGEST;
            let name = match fits {
                true => name.clone(),
                false => apart(&name, workload),
            };
            names.insert(workload, name);
        }
    }
    names
}

fn apart(name: &str, workload: &Owner) -> String {
    let hash = hash(&[workload.group(), &workload.kind, &workload.name]);
    let cut: String = name.chars().take(LONGEST - hash.len() - 1).collect();
    format!("{}-{hash}", cut.trim_end_matches(['-', '.']))
}

/// Ten digits that tell texts apart.
pub(crate) fn hash(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        // With its length, or two neighbours could trade letters.
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    let digits = hash.finalize();
    digits
        .iter()
        .take(5)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// A report as it is kept, with a hash of what it says.
pub(crate) fn object(
    namespace: &str,
    name: &str,
    workload: &Owner,
    containers: &[Value],
) -> (Value, String) {
    let mut report = json!({
        "apiVersion": WORKLOAD_REPORT.api_version(), "kind": WORKLOAD_REPORT.kind,
        "metadata": {
            "name": name, "namespace": namespace,
            "labels": {MANAGED_BY: MANAGER, ALSO_MANAGED_BY: MANAGER, WORKLOAD_SCAN: "true"},
            "ownerReferences": [{
                "apiVersion": workload.api_version, "kind": workload.kind,
                "name": workload.name, "uid": workload.uid,
            }],
        },
        "spec": {"containers": containers},
    });
    let content = hash(&[&report.to_string()]);
    report["metadata"]["annotations"] = json!({CONTENT: content});
    (report, content)
}

/// A container as a report names it.
pub(crate) fn container(one: &Container, place: &Place, message: Option<String>) -> Value {
    let mut reference = json!({
        "registry": place.registry, "namespace": place.namespace,
        "repository": one.image.repository,
    });
    if let Some(tag) = &one.image.tag {
        reference["tag"] = json!(tag);
    }
    if let Some(digest) = one.image.digest() {
        reference["digest"] = json!(digest.to_string());
    }
    let mut container = json!({"name": one.name, "imageRef": reference});
    if let Some(message) = message {
        container["message"] = json!(message);
    }
    container
}

#[cfg(test)]
mod tests {
    use super::super::seen::Seen;
    use super::*;

    fn owner(api_version: &str, kind: &str, name: &str) -> Owner {
        Owner {
            api_version: api_version.into(),
            kind: kind.into(),
            name: name.into(),
            uid: format!("{api_version}/{kind}/{name}"),
        }
    }

    fn container(name: &str, image: &str, id: &str) -> Container {
        Container {
            name: name.into(),
            image: Seen::read(image, id).unwrap(),
        }
    }

    #[test]
    fn all_pods_of_a_workload_count_and_what_is_known_stands() {
        let web = owner("apps/v1", "Deployment", "web");
        let id = format!("x@sha256:{}", "a".repeat(64));
        let found = gather([
            (web.clone(), vec![container("a", "app:1", &id)].into()),
            // The same revision, not started yet; and the next revision.
            (web.clone(), vec![container("a", "app:1", "")].into()),
            (web.clone(), vec![container("a", "app:2", "")].into()),
            (
                owner("v1", "Pod", "alone"),
                vec![container("a", "app:1", "")].into(),
            ),
        ]);
        let expected = [container("a", "app:1", &id), container("a", "app:2", "")];
        assert_eq!(found[&web], BTreeSet::from(expected));
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn no_two_reports_share_a_name() {
        let long = "x".repeat(250);
        let workloads = [
            owner("apps/v1", "Deployment", "web"),
            owner("example.com/v1", "Deployment", "web"),
            owner("argoproj.io/v1alpha1", "Rollout", "web"),
            owner("v1", "Pod", "web"),
            owner("apps/v1", "Deployment", &long),
        ];
        let names = names(&workloads);
        assert_eq!(names[&workloads[0]], "deployment-web");
        assert_eq!(names[&workloads[2]], "rollout-web");
        assert_eq!(names[&workloads[3]], "pod-web");
        assert!(names[&workloads[1]].starts_with("deployment-web-"));
        let different: BTreeSet<&String> = names.values().collect();
        assert_eq!(different.len(), workloads.len());
        assert!(names.values().all(|name| name.len() <= LONGEST));
    }

    #[test]
    fn a_report_names_its_workload_and_what_runs() {
        let digest = format!("sha256:{}", "a".repeat(64));
        let place = Place {
            namespace: "art".into(),
            registry: "workload-scan-docker-io".into(),
        };
        let running = container("a", "nginx:1.25", &format!("nginx@{digest}"));
        let containers = [super::container(&running, &place, Some("gone".into()))];
        let (report, content) = object(
            "web",
            "deployment-a",
            &owner("apps/v1", "Deployment", "a"),
            &containers,
        );
        assert_eq!(
            report["spec"]["containers"][0],
            json!({"name": "a", "message": "gone", "imageRef": {
                "registry": "workload-scan-docker-io", "namespace": "art",
                "repository": "library/nginx", "tag": "1.25", "digest": digest,
            }})
        );
        assert_eq!(report["metadata"]["annotations"][CONTENT], content.as_str());
        assert_eq!(report["metadata"]["labels"][ALSO_MANAGED_BY], "sbomscanner");
        let (_, other) = object(
            "web",
            "deployment-a",
            &owner("apps/v1", "Deployment", "a"),
            &[],
        );
        assert_ne!(content, other);
    }
}
