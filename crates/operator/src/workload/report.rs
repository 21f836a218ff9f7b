//! The reports of a namespace's workloads, as they should be: one for each workload, with every image
//! that any of its pods runs.

use super::pod::{Container, Owner};
use super::seen::{Running, Seen};
use crate::object::{WORKLOAD_REPORT, noted};
use kube::api::ObjectMeta;
use muster_api::guard::{MANAGED_BY, MANAGER, WORKLOAD_SCAN};
use muster_api::storage::MAX_CONTAINERS;
use muster_registry::Host;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// The older label that says who manages an object.
const ALSO_MANAGED_BY: &str = "sbomscanner.kubewarden.io/managed-by";
/// A hash of what a report says, on the report: with it, one that need not be written is not.
pub(crate) const CONTENT: &str = "sbomscanner.kubewarden.io/content";
/// What its containers run, on a report, in the words of pods and container runtimes: with it, a
/// workload that runs nothing for a while keeps its report whoever looks next.
const IMAGES: &str = "sbomscanner.kubewarden.io/images";
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
/// and another does not yet, only what is known is kept. A report can have a limited number of containers: of more,
/// the first in the order of their names are kept.
pub(crate) fn gather(
    pods: impl IntoIterator<Item = (Owner, Box<[Container]>)>,
) -> BTreeMap<Owner, Images> {
    let mut workloads: BTreeMap<Owner, Images> = BTreeMap::new();
    for (workload, containers) in pods {
        workloads.entry(workload).or_default().extend(containers);
    }
    for (workload, images) in &mut workloads {
        let is_known = |one: &&Container| one.image.running != Running::Unknown;
        let known = images.iter().filter(is_known).map(asked).collect();
        let known: HashSet<Asked> = known;
        images.retain(|one| one.image.running != Running::Unknown || !known.contains(&asked(one)));
        if images.len() > MAX_CONTAINERS {
            tracing::warn!(
                kind = workload.kind,
                name = workload.name,
                containers = images.len(),
                "a workload has too many containers for one report; some are not scanned"
            );
            *images = std::mem::take(images)
                .into_iter()
                .take(MAX_CONTAINERS)
                .collect();
        }
    }
    workloads
}

/// What a container was asked to run, whatever it runs.
type Asked = (String, Host, String, Option<String>);

fn asked(one: &Container) -> Asked {
    let image = &one.image;
    let (host, repository) = (image.host.clone(), image.repository.clone());
    (one.name.clone(), host, repository, image.tag.clone())
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
            let is_plain = workload.kind.bytes().all(|b| b.is_ascii_alphanumeric());
            let fits = place == 0 && is_plain && muster_kind::name::subdomain(&name).is_empty();
            let name = match fits {
                true => name.clone(),
                false => apart(&name, workload),
            };
            names.insert(workload, name);
        }
    }
    names
}

/// A name that no other workload has. Owner references may say anything, so what no name may hold is
/// left out.
fn apart(name: &str, workload: &Owner) -> String {
    let hash = hash(&[
        workload.group(),
        &workload.kind,
        &workload.name,
        &workload.uid,
    ]);
    let plain = |c: char| match c.to_ascii_lowercase() {
        c if c.is_ascii_lowercase() || c.is_ascii_digit() => c,
        _ => '-',
    };
    let cut: String = name
        .chars()
        .map(plain)
        .take(LONGEST - hash.len() - 1)
        .collect();
    match cut.trim_matches('-') {
        "" => hash,
        cut => format!("{cut}-{hash}"),
    }
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
    held: &Held,
    containers: &[Value],
) -> (Value, String) {
    let workload = &held.workload;
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
    report["metadata"]["annotations"] = json!({IMAGES: held.spell()});
    let content = hash(&[&report.to_string()]);
    report["metadata"]["annotations"][CONTENT] = json!(content);
    (report, content)
}

/// What a report says, and about whom: as long as the workload is there and runs nothing, this is
/// what it ran last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) workload: Owner,
    pub(crate) images: Images,
}

impl Held {
    fn spell(&self) -> String {
        let images = self.images.iter().map(|one| {
            let (image, id) = one.image.spell();
            [one.name.clone(), image, id]
        });
        json!(images.collect::<Vec<_>>()).to_string()
    }

    /// Reads it from the metadata of a report; none if that says nothing of it.
    pub(crate) fn read(metadata: &ObjectMeta) -> Option<Held> {
        let workload = metadata.owner_references.as_ref()?.first()?;
        let images: Vec<[String; 3]> = serde_json::from_str(noted(metadata, IMAGES)?).ok()?;
        let images = images.into_iter().filter_map(|[name, image, id]| {
            let image = Seen::read(&image, &id).ok()?;
            Some(Container { name, image })
        });
        Some(Held {
            workload: Owner::read(workload)?,
            // An older version wrote reports without a limit.
            images: images.take(MAX_CONTAINERS).collect(),
        })
    }
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
    fn a_report_has_no_more_containers_than_it_may_have() {
        let web = owner("apps/v1", "Deployment", "web");
        let pod = |number: usize| {
            let name = format!("c{number:03}");
            let one = |image: &str| container(&name, image, "");
            (web.clone(), vec![one("app:1"), one("app:2")].into())
        };
        let found = gather((0..300).map(pod));
        assert_eq!(found[&web].len(), MAX_CONTAINERS);
        assert_eq!(found[&web].first().unwrap().name, "c000");
        let mut held = Held {
            workload: web,
            images: found.into_values().next().unwrap(),
        };
        let more = container("d", "app:1", "");
        held.images.insert(more);
        let (report, _) = object("web", "deployment-web", &held, &[]);
        let metadata = serde_json::from_value(report["metadata"].clone()).unwrap();
        assert_eq!(Held::read(&metadata).unwrap().images.len(), MAX_CONTAINERS);
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
            owner("nobody.example/v1", "Foo_Bar", "web"),
            owner("nobody.example/v1", "Foo", "a b/../c"),
            owner("nobody.example/v1", "Ü", "Ü"),
        ];
        let names = names(&workloads);
        assert_eq!(names[&workloads[0]], "deployment-web");
        assert_eq!(names[&workloads[2]], "rollout-web");
        assert_eq!(names[&workloads[3]], "pod-web");
        assert!(names[&workloads[1]].starts_with("deployment-web-"));
        let different: BTreeSet<&String> = names.values().collect();
        assert_eq!(different.len(), workloads.len());
        for name in names.values() {
            let faults = muster_kind::name::subdomain(name);
            assert!(faults.is_empty(), "{name}: {faults:?}");
        }
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
        let held = Held {
            workload: owner("apps/v1", "Deployment", "a"),
            images: BTreeSet::from([running, container("b", "app", "")]),
        };
        let (report, content) = object("web", "deployment-a", &held, &containers);
        assert_eq!(
            report["spec"]["containers"][0],
            json!({"name": "a", "message": "gone", "imageRef": {
                "registry": "workload-scan-docker-io", "namespace": "art",
                "repository": "library/nginx", "tag": "1.25", "digest": digest,
            }})
        );
        assert_eq!(report["metadata"]["annotations"][CONTENT], content.as_str());
        assert_eq!(report["metadata"]["labels"][ALSO_MANAGED_BY], "sbomscanner");
        let (_, other) = object("web", "deployment-a", &held, &[]);
        assert_ne!(content, other);
        let metadata = serde_json::from_value(report["metadata"].clone()).unwrap();
        assert_eq!(Held::read(&metadata), Some(held));
        assert_eq!(Held::read(&ObjectMeta::default()), None);
    }
}
