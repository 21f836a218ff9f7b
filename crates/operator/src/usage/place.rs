//! Where the Images behind a link lie. Those of managed Registries are watched; a report that shows
//! what a Registry of the user's has found leads to Images that are not, and they are looked for.

/// How the names of managed Registries begin.
const MANAGED: &str = "workload-scan-";

/// A repository of a Registry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) namespace: String,
    pub(super) registry: String,
    pub(super) repository: String,
}

impl Place {
    /// Where to look for the Images of a link: nowhere if they are watched, or if the link is none
    /// that a field selector could spell.
    pub(super) fn unwatched(link: &str) -> Option<Place> {
        let (namespace, rest) = link.split_once('/')?;
        let (registry, rest) = rest.split_once('/')?;
        let (repository, _) = rest.split_once('@').or_else(|| rest.rsplit_once(':'))?;
        let is_plain = |text: &str| {
            let plain = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
            !text.is_empty() && text.chars().all(plain)
        };
        let sound = [namespace, registry, repository].into_iter().all(is_plain);
        (sound && !registry.starts_with(MANAGED)).then(|| Place {
            namespace: namespace.into(),
            registry: registry.into(),
            repository: repository.into(),
        })
    }

    /// The field selector of its Images.
    pub(super) fn selector(&self) -> String {
        let Place {
            registry,
            repository,
            ..
        } = self;
        format!("imageMetadata.registry={registry},imageMetadata.repository={repository}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_images_of_other_registries_are_looked_for() {
        for (link, repository) in [
            ("a/hub/library/nginx:1.25", Some("library/nginx")),
            ("a/hub/nginx@sha256:12", Some("nginx")),
            ("a/hub/nginx:1@sha256:12", None),
            ("a/workload-scan-docker-io/library/nginx:1", None),
            ("a/hub/x,metadata.name=y:1", None),
            ("a/hub/:1", None),
            ("a/hub", None),
            ("", None),
        ] {
            let place = Place::unwatched(link);
            let found = place.as_ref().map(|place| place.repository.as_str());
            assert_eq!(found, repository, "{link}");
        }
    }
}
