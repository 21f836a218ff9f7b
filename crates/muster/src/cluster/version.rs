//! The versions of Kubernetes that the operator works with.

use anyhow::{Result, ensure};
use k8s_openapi::apimachinery::pkg::version::Info;
use kube::Client;
use std::fmt;
use std::time::Duration;

/// Pause before kube-apiserver is asked again if it did not answer.
const RETRY_AFTER: Duration = Duration::from_secs(2);
/// The first version that selects custom resources by the fields that their CRD names, without a
/// feature gate.
const NEEDED: Version = Version {
    major: 1,
    minor: 31,
};

/// A version of Kubernetes, without its patch level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Version {
    major: u32,
    minor: u32,
}

impl Version {
    /// Reads `v1.30.4+k3s1`, `1.31` and `1.31+`.
    fn parse(text: &str) -> Option<Version> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let (major, rest) = text.split_once('.')?;
        let end = rest.find(|letter: char| !letter.is_ascii_digit());
        let (minor, rest) = rest.split_at(end.unwrap_or(rest.len()));
        if !(rest.is_empty() || rest.starts_with(['.', '+', '-'])) {
            return None;
        }
        // `parse` takes a sign.
        let number = |digits: &str| match digits.starts_with(|first: char| first.is_ascii_digit()) {
            true => digits.parse().ok(),
            false => None,
        };
        Some(Version {
            major: number(major)?,
            minor: number(minor)?,
        })
    }

    /// The version in an answer of `/version`. Some distributions leave `major` and `minor` empty, and
    /// some put their own version into `gitVersion`.
    fn of(info: &Info) -> Option<Version> {
        let parts = Version::parse(&format!("{}.{}", info.major, info.minor));
        parts.or_else(|| Version::parse(&info.git_version))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Waits until kube-apiserver says its version; an error if that is too old. An unknown version is
/// accepted.
pub(crate) async fn require(client: &Client) -> Result<()> {
    loop {
        match client.apiserver_version().await {
            Ok(info) => return check(&info),
            Err(kube::Error::Api(status)) if matches!(status.code, 403 | 404) => {
                tracing::warn!(error = %status, "failed to read the version of kube-apiserver; assuming {NEEDED}");
                return Ok(());
            }
            Err(error) => tracing::warn!(%error, "waiting for kube-apiserver"),
        }
        tokio::time::sleep(RETRY_AFTER).await;
    }
}

fn check(info: &Info) -> Result<()> {
    let Some(found) = Version::of(info) else {
        let version = &info.git_version;
        tracing::warn!(
            version,
            "unknown version of kube-apiserver; assuming {NEEDED}"
        );
        return Ok(());
    };
    ensure!(
        found >= NEEDED,
        "cannot run on Kubernetes {}: Muster needs Kubernetes {NEEDED} or newer, because the operator \
         finds the jobs of a Registry by the field `spec.registry`, and an older kube-apiserver cannot \
         select custom resources by a field; upgrade the cluster",
        match info.git_version.as_str() {
            "" => found.to_string(),
            version => version.to_owned(),
        }
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::json;
    use std::convert::Infallible;

    fn info(major: &str, minor: &str, git_version: &str) -> Info {
        Info {
            major: major.into(),
            minor: minor.into(),
            git_version: git_version.into(),
            ..Info::default()
        }
    }

    #[test]
    fn versions_are_read_as_distributions_write_them() {
        for (text, expected) in [
            ("v1.30.4+k3s1", Some((1, 30))),
            ("v1.31.0-alpha.1", Some((1, 31))),
            ("v1.28.5-eks-1", Some((1, 28))),
            ("v1.36.3", Some((1, 36))),
            ("1.31+", Some((1, 31))),
            ("1.31", Some((1, 31))),
            ("v2.0", Some((2, 0))),
            ("v1.9.11", Some((1, 9))),
            ("", None),
            (".", None),
            ("1.", None),
            ("v1", None),
            ("1.x", None),
            ("1.31x", None),
            ("+1.31", None),
            ("1.-31", None),
            ("v1.99999999999999999999", None),
        ] {
            let found = Version::parse(text).map(|version| (version.major, version.minor));
            assert_eq!(found, expected, "{text:?}");
        }
    }

    #[test]
    fn a_cluster_below_1_31_is_refused() {
        for (major, minor, version, is_fine) in [
            ("1", "30", "v1.30.4+k3s1", false),
            ("1", "30+", "v1.30.4-gke.1", false),
            ("1", "31", "v1.31.0", true),
            ("1", "31+", "v1.31.2-eks-7f9249a", true),
            ("1", "36", "v1.36.3", true),
            ("2", "0", "v2.0.0", true),
            ("", "", "v1.29.1", false),
            ("", "", "v1.33.1", true),
            ("1", "28", "", false),
            // Nothing is known of these.
            ("", "", "", true),
            ("", "", "our-own-build", true),
        ] {
            let checked = check(&info(major, minor, version));
            assert_eq!(checked.is_ok(), is_fine, "{major}.{minor} {version}");
        }
    }

    #[tokio::test]
    async fn the_refusal_names_both_versions_and_the_reason() {
        for (code, answer, expected) in [
            (
                200,
                json!(info("1", "30", "v1.30.4+k3s1")),
                Some("v1.30.4+k3s1"),
            ),
            (200, json!(info("1", "31", "v1.31.0")), None),
            // Clusters may keep their version to themselves.
            (
                403,
                json!({"kind": "Status", "code": 403, "message": "no"}),
                None,
            ),
        ] {
            let text = answer.to_string();
            let server = tower::service_fn(move |_: Request<Body>| {
                let answer = Response::builder()
                    .status(code)
                    .body(Body::from(text.clone().into_bytes()));
                async move { Ok::<_, Infallible>(answer.unwrap()) }
            });
            let refused = require(&Client::new(server, "default")).await.err();
            let refused = refused.map(|refused| refused.to_string());
            assert_eq!(refused.is_some(), expected.is_some(), "{refused:?}");
            for part in expected
                .into_iter()
                .flat_map(|found| [found, "1.31", "`spec.registry`"])
            {
                assert!(
                    refused.as_deref().is_some_and(|text| text.contains(part)),
                    "{refused:?}"
                );
            }
        }
    }
}
