//! The image of a container: where it lies, as the pod spells it, and which one really runs, as the
//! container runtime tells. A tag may mean another image by now, so the digest that runs is what
//! counts wherever it is known.

use muster_registry::{Digest, Host, Reference, ReferenceError};

/// An image that a container runs, or is about to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Seen {
    pub(crate) host: Host,
    pub(crate) repository: String,
    pub(crate) tag: Option<String>,
    pub(crate) running: Running,
}

/// What is known of the image that runs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Running {
    /// Nothing yet: it is not there, or the runtime has not told.
    Unknown,
    /// The pod names this digest itself.
    Pinned(Digest),
    /// The runtime got it by this digest: of an index, or of one platform's manifest.
    Pulled(Digest),
    /// The runtime only knows it by its configuration, which no registry finds.
    Configured(Digest),
}

impl Seen {
    /// Reads what a pod asks for and what the runtime tells of it.
    pub(crate) fn read(image: &str, image_id: &str) -> Result<Seen, ReferenceError> {
        let reference = Reference::parse(image)?;
        let running = match reference.digest() {
            Some(pinned) => Running::Pinned(pinned.clone()),
            None => running(image_id),
        };
        Ok(Seen {
            host: reference.host().clone(),
            repository: reference.repository().name().to_owned(),
            tag: reference.tag().map(str::to_owned),
            running,
        })
    }

    /// What [`Seen::read`] reads again: the reference, and what a runtime would tell.
    pub(crate) fn spell(&self) -> (String, String) {
        let Seen {
            host, repository, ..
        } = self;
        let mut image = format!("{host}/{repository}");
        if let Some(tag) = &self.tag {
            image = format!("{image}:{tag}");
        }
        match &self.running {
            Running::Unknown => (image, String::new()),
            Running::Pinned(digest) => (format!("{image}@{digest}"), String::new()),
            Running::Pulled(digest) => (image, format!("@{digest}")),
            Running::Configured(digest) => (image, digest.to_string()),
        }
    }

    /// The digest that runs, if that is known.
    pub(crate) fn digest(&self) -> Option<&Digest> {
        match &self.running {
            Running::Unknown => None,
            Running::Pinned(digest) | Running::Pulled(digest) | Running::Configured(digest) => {
                Some(digest)
            }
        }
    }
}

/// What an image ID says: `docker.io/library/nginx@sha256:…`, with or without a scheme, or only the
/// digest of the configuration.
fn running(image_id: &str) -> Running {
    let bare = image_id.split_once("://").map_or(image_id, |(_, id)| id);
    match bare.rsplit_once('@') {
        Some((_, digest)) => Digest::parse(digest).map_or(Running::Unknown, Running::Pulled),
        None => Digest::parse(bare).map_or(Running::Unknown, Running::Configured),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(letter: &str) -> Digest {
        Digest::parse(&format!("sha256:{}", letter.repeat(64))).unwrap()
    }

    #[test]
    fn the_digest_that_runs_is_read_from_every_runtime() {
        let (a, b) = (digest("a"), digest("b"));
        for (image, id, expected, running) in [
            (
                "nginx",
                String::new(),
                "docker.io/library/nginx:latest",
                Running::Unknown,
            ),
            (
                "nginx:1.25",
                format!("docker.io/library/nginx@{a}"),
                "docker.io/library/nginx:1.25",
                Running::Pulled(a.clone()),
            ),
            (
                "index.docker.io/team/App:Odd_Tag.1".to_lowercase().as_str(),
                format!("docker-pullable://team/app@{a}"),
                "docker.io/team/app:odd_tag.1",
                Running::Pulled(a.clone()),
            ),
            (
                "quay.io/team/app:V1.0_RC-2",
                format!("docker://{b}"),
                "quay.io/team/app:V1.0_RC-2",
                Running::Configured(b.clone()),
            ),
            (
                "10.0.0.1:5000/app:1",
                b.to_string(),
                "10.0.0.1:5000/app:1",
                Running::Configured(b.clone()),
            ),
            (
                &format!("[::1]:5000/app@{a}"),
                format!("[::1]:5000/app@{b}"),
                "[::1]:5000/app:",
                Running::Pinned(a.clone()),
            ),
            (
                &format!("localhost:5000/app:1@{a}"),
                String::new(),
                "localhost:5000/app:1",
                Running::Pinned(a.clone()),
            ),
            (
                "app.example/x:1",
                "garbage@sha256:no".into(),
                "app.example/x:1",
                Running::Unknown,
            ),
        ] {
            let seen = Seen::read(image, &id).unwrap();
            let Seen {
                host,
                repository,
                tag,
                ..
            } = &seen;
            let tag = tag.as_deref().unwrap_or_default();
            assert_eq!(format!("{host}/{repository}:{tag}"), expected);
            assert_eq!(seen.running, running, "{image} {id}");
            let (image, id) = seen.spell();
            assert_eq!(Seen::read(&image, &id).unwrap(), seen);
        }
        for broken in ["", "UPPER/case", "a b", "x:y:z"] {
            assert!(Seen::read(broken, "").is_err(), "{broken:?}");
        }
    }
}
