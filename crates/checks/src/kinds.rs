//! Which kinds a policy is about, as `.kinds` says it: a list, separated by commas, of kinds, with or
//! without their group (`Deployment.apps`, `apps/v1/Deployment`), of `Workload` and of `*`. A name
//! without a group means Kubernetes' own kind where there is one, and else whoever has that name.

use std::fmt;

/// A kind that is served.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind {
    /// The API group; empty for the core group.
    pub group: String,
    /// The name of the kind.
    pub kind: String,
    /// The versions it is served in.
    pub versions: Vec<String>,
}

impl Kind {
    /// A kind that is served in one version, from an `apiVersion`.
    pub fn parse(api_version: &str, kind: &str) -> Kind {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Kind {
            group: group.into(),
            kind: kind.into(),
            versions: vec![version.into()],
        }
    }

    /// Whether it is one of Kubernetes' own.
    pub fn is_native(&self) -> bool {
        is_native(&self.group)
    }

    /// Whether it runs containers.
    pub fn is_workload(&self) -> bool {
        let group = match self.kind.as_str() {
            "Pod" | "ReplicationController" => "",
            "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet" => "apps",
            "Job" | "CronJob" => "batch",
            _ => return false,
        };
        self.group == group
    }
}

/// Whether a group is one of Kubernetes' own: those have no domain, or Kubernetes'.
pub fn is_native(group: &str) -> bool {
    !group.contains('.') || group.ends_with(".k8s.io")
}

/// The kinds that a policy is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kinds(Vec<Pattern>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Pattern {
    Any,
    Workload,
    Named {
        kind: String,
        group: Option<String>,
        version: Option<String>,
    },
}

/// Why a list of kinds cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KindsError {
    /// Nothing is written there.
    #[error("names no kind; write `Pod`, `Deployment.apps`, `Workload` or `*`")]
    Empty,
    /// A part of it is no kind.
    #[error(
        "{0:?} is no kind; write `Pod`, `Deployment.apps`, `apps/v1/Deployment`, `Workload` or `*`"
    )]
    NoKind(String),
    /// Nobody serves it.
    #[error("no kind `{name}` is served{}", hint.as_ref().map(|hint| format!("; did you mean `{hint}`?")).unwrap_or_default())]
    Unknown {
        /// As it is written.
        name: String,
        /// What may have been meant.
        hint: Option<String>,
    },
}

impl Kinds {
    /// Every kind.
    pub fn any() -> Kinds {
        Kinds(vec![Pattern::Any])
    }

    /// Reads a list.
    pub fn read(text: &str) -> Result<Kinds, KindsError> {
        let names = text.split(',').map(str::trim);
        let patterns: Vec<Pattern> = names
            .filter(|name| !name.is_empty())
            .map(Pattern::read)
            .collect::<Result<_, _>>()?;
        match patterns.is_empty() {
            true => Err(KindsError::Empty),
            false => Ok(Kinds(patterns)),
        }
    }

    /// Whether a kind is among them; `served` is everything there is.
    pub fn include(&self, kind: &Kind, served: &[Kind]) -> bool {
        self.0.iter().any(|pattern| pattern.includes(kind, served))
    }

    /// Whether everything that is named is served.
    pub fn check(&self, served: &[Kind]) -> Result<(), KindsError> {
        let unserved = |pattern: &&Pattern| {
            matches!(pattern, Pattern::Named { .. })
                && !served.iter().any(|kind| pattern.includes(kind, served))
        };
        let Some(pattern) = self.0.iter().find(unserved) else {
            return Ok(());
        };
        let name = pattern.to_string();
        let alike = |kind: &&Kind| kind.kind.eq_ignore_ascii_case(pattern.kind());
        let hint = served.iter().find(alike).map(|kind| match &*kind.group {
            group if !kind.is_native() => format!("{}.{group}", kind.kind),
            _ => kind.kind.clone(),
        });
        let hint = hint.filter(|hint| *hint != name);
        Err(KindsError::Unknown { name, hint })
    }
}

impl Pattern {
    fn read(name: &str) -> Result<Pattern, KindsError> {
        match name {
            "*" => return Ok(Pattern::Any),
            "Workload" => return Ok(Pattern::Workload),
            _ => {}
        }
        let parts: Vec<&str> = name.split('/').collect();
        let (group, version, kind) = match parts[..] {
            [kind] => match kind.split_once('.') {
                Some((kind, group)) => (Some(group), None, kind),
                None => (None, None, kind),
            },
            // `v1/Pod` is the core group's, `apps/Deployment` that group's in any version.
            [version, kind] if is_version(version) => (Some(""), Some(version), kind),
            [group, kind] => (Some(group), None, kind),
            [group, version, kind] => (Some(group), Some(version), kind),
            _ => return Err(KindsError::NoKind(name.into())),
        };
        let is_name =
            |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric());
        let is_group = |text: &str| {
            text.chars()
                .all(|c| c.is_ascii_alphanumeric() || "-.".contains(c))
        };
        if !is_name(kind) || !group.is_none_or(is_group) || !version.is_none_or(is_name) {
            return Err(KindsError::NoKind(name.into()));
        }
        Ok(Pattern::Named {
            kind: kind.into(),
            group: group.map(Into::into),
            version: version.map(Into::into),
        })
    }

    fn kind(&self) -> &str {
        match self {
            Pattern::Any => "*",
            Pattern::Workload => "Workload",
            Pattern::Named { kind, .. } => kind,
        }
    }

    fn includes(&self, one: &Kind, served: &[Kind]) -> bool {
        match self {
            Pattern::Any => true,
            Pattern::Workload => one.is_workload(),
            Pattern::Named {
                kind,
                group,
                version,
            } => {
                let is_meant = match group {
                    Some(group) => *group == one.group,
                    None => {
                        one.is_native()
                            || !served
                                .iter()
                                .any(|other| other.is_native() && other.kind == *kind)
                    }
                };
                *kind == one.kind
                    && is_meant
                    && version
                        .as_ref()
                        .is_none_or(|version| one.versions.contains(version))
            }
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Pattern::Named {
                kind,
                group: Some(group),
                version: Some(version),
            } if group.is_empty() => write!(formatter, "{version}/{kind}"),
            Pattern::Named {
                kind,
                group: Some(group),
                version: Some(version),
            } => write!(formatter, "{group}/{version}/{kind}"),
            Pattern::Named {
                kind,
                group: Some(group),
                ..
            } => write!(formatter, "{kind}.{group}"),
            other => formatter.write_str(other.kind()),
        }
    }
}

impl fmt::Display for Kinds {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        for (index, pattern) in self.0.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(formatter, "{comma}{pattern}")?;
        }
        Ok(())
    }
}

fn is_version(text: &str) -> bool {
    let rest = text.strip_prefix('v').unwrap_or_default();
    rest.starts_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served() -> Vec<Kind> {
        [
            ("v1", "Pod"),
            ("v1", "Service"),
            ("v1", "ConfigMap"),
            ("apps/v1", "Deployment"),
            ("batch/v1", "Job"),
            ("batch/v1", "CronJob"),
            ("rbac.authorization.k8s.io/v1", "ClusterRole"),
            ("serving.knative.dev/v1", "Service"),
            ("example.com/v1beta1", "Widget"),
        ]
        .map(|(api_version, kind)| Kind::parse(api_version, kind))
        .into()
    }

    #[test]
    fn kinds_are_named_with_or_without_their_group() {
        let names = |text: &str| -> Vec<String> {
            let kinds = Kinds::read(text).unwrap();
            assert_eq!(kinds.check(&served()), Ok(()), "{text}");
            let served = served();
            let meant = served.iter().filter(|kind| kinds.include(kind, &served));
            meant
                .map(|kind| format!("{}.{}", kind.kind, kind.group))
                .collect()
        };
        for (text, meant) in [
            ("Pod", &["Pod."][..]),
            ("Pod, Service", &["Pod.", "Service."]),
            (" ConfigMap ,", &["ConfigMap."]),
            ("v1/Pod", &["Pod."]),
            ("Deployment.apps", &["Deployment.apps"]),
            ("apps/v1/Deployment", &["Deployment.apps"]),
            ("apps/Deployment", &["Deployment.apps"]),
            (
                "Service.serving.knative.dev",
                &["Service.serving.knative.dev"],
            ),
            ("Widget", &["Widget.example.com"]),
            ("ClusterRole", &["ClusterRole.rbac.authorization.k8s.io"]),
            (
                "Workload",
                &["Pod.", "Deployment.apps", "Job.batch", "CronJob.batch"],
            ),
        ] {
            assert_eq!(names(text), meant, "{text}");
        }
        assert_eq!(names("*").len(), served().len());
    }

    #[test]
    fn what_is_no_kind_is_refused_with_a_hint() {
        for (text, complaint) in [
            (
                "",
                "names no kind; write `Pod`, `Deployment.apps`, `Workload` or `*`",
            ),
            (
                " , ",
                "names no kind; write `Pod`, `Deployment.apps`, `Workload` or `*`",
            ),
            ("pod", "no kind `pod` is served; did you mean `Pod`?"),
            ("Gadget", "no kind `Gadget` is served"),
            (
                "widget",
                "no kind `widget` is served; did you mean `Widget.example.com`?",
            ),
            (
                "apps/v2/Deployment",
                "no kind `apps/v2/Deployment` is served; did you mean `Deployment`?",
            ),
            (
                "Pod Service",
                "\"Pod Service\" is no kind; write `Pod`, `Deployment.apps`, `apps/v1/Deployment`, `Workload` or `*`",
            ),
        ] {
            let told = Kinds::read(text).and_then(|kinds| kinds.check(&served()));
            assert_eq!(told.unwrap_err().to_string(), complaint, "{text}");
        }
    }
}
