//! A policy as its object says it: what it judges, with what, and how the result is to be labelled.
//! All four kinds are read into one type. What is there has been checked when it was written, or not
//! (a manifest, another's CustomResourceDefinition), so whatever does not make sense is told and harms
//! this policy alone.

use crate::request::{GroupVersionKind, hash};
use crate::rules::{MatchPolicy, Rule};
use muster_api::expression::GroupExpression;
use muster_api::policies::GROUP;
use muster_kind::selector::{LabelSelector, Requirement};
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How long an evaluation may take, if the policy does not say.
pub const TIME: Duration = Duration::from_secs(2);
/// The longest category that is kept.
const LONGEST_CATEGORY: usize = 253;
const SEVERITIES: [&str; 5] = ["critical", "high", "medium", "low", "info"];

/// Which of the four kinds a policy is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sort {
    /// ClusterAdmissionPolicy
    Cluster,
    /// AdmissionPolicy
    Namespaced,
    /// ClusterAdmissionPolicyGroup
    ClusterGroup,
    /// AdmissionPolicyGroup
    NamespacedGroup,
}

impl Sort {
    /// All of them.
    pub const ALL: [Sort; 4] = [
        Sort::Cluster,
        Sort::Namespaced,
        Sort::ClusterGroup,
        Sort::NamespacedGroup,
    ];

    /// The kind as objects write it.
    pub fn kind(self) -> &'static str {
        match self {
            Sort::Cluster => "ClusterAdmissionPolicy",
            Sort::Namespaced => "AdmissionPolicy",
            Sort::ClusterGroup => "ClusterAdmissionPolicyGroup",
            Sort::NamespacedGroup => "AdmissionPolicyGroup",
        }
    }

    /// The resource under which they are served.
    pub fn plural(self) -> &'static str {
        match self {
            Sort::Cluster => "clusteradmissionpolicies",
            Sort::Namespaced => "admissionpolicies",
            Sort::ClusterGroup => "clusteradmissionpolicygroups",
            Sort::NamespacedGroup => "admissionpolicygroups",
        }
    }

    /// Whether such a policy is about its own namespace only.
    pub fn is_namespaced(self) -> bool {
        matches!(self, Sort::Namespaced | Sort::NamespacedGroup)
    }

    fn of(kind: &str) -> Option<Sort> {
        Sort::ALL.into_iter().find(|sort| sort.kind() == kind)
    }
}

/// Code, and what it is told.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// Where the code is.
    pub module: String,
    /// What it is told.
    pub settings: Value,
    /// How long one evaluation may take.
    pub time: Duration,
    /// What it may read of the cluster.
    pub context_aware: Vec<GroupVersionKind>,
}

/// What judges.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// One module.
    Single {
        /// The module.
        member: Member,
        /// Whether it may change what it judges.
        mutating: bool,
    },
    /// Several, and an expression that makes one verdict of theirs.
    Group {
        /// The modules, by the name they are called by.
        members: BTreeMap<String, Member>,
        /// The expression.
        expression: GroupExpression,
        /// What is said when it does not hold.
        message: String,
    },
}

/// A policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// Which kind of policy it is.
    pub sort: Sort,
    /// Its name.
    pub name: String,
    /// Its namespace, if it is one of a namespace.
    pub namespace: Option<String>,
    /// Its identity.
    pub uid: String,
    /// The revision that was read.
    pub resource_version: String,
    /// The generation that was read.
    pub generation: i64,
    /// Whether violations are only recorded.
    pub monitor: bool,
    /// The evaluator.
    pub server: String,
    /// What it judges: any of these.
    pub rules: Vec<Rule>,
    /// Whether other versions of a resource are meant too.
    pub match_policy: MatchPolicy,
    /// Which objects, by their labels.
    pub object_selector: LabelSelector,
    /// Which namespaces, by their labels.
    pub namespace_selector: LabelSelector,
    /// Further conditions, by name, in CEL.
    pub match_conditions: Vec<(String, String)>,
    /// Whether what cannot be found out counts as an error; otherwise as no match.
    pub fail_on_trouble: bool,
    /// Whether it judges the admission controller's own namespace.
    pub everywhere: bool,
    /// Whether objects that are there are judged.
    pub background: bool,
    /// What judges.
    pub body: Body,
    category: Option<String>,
    severity: Option<&'static str>,
    title: Option<String>,
    hash: u64,
}

/// Why an object is no policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unreadable(pub String);

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    policy_server: Option<String>,
    mode: Option<String>,
    module: Option<String>,
    settings: Option<Value>,
    rules: Vec<Rule>,
    failure_policy: Option<String>,
    mutating: bool,
    background_audit: Option<bool>,
    background: Option<bool>,
    match_policy: MatchPolicy,
    match_conditions: Vec<WrittenCondition>,
    object_selector: Option<WrittenSelector>,
    namespace_selector: Option<WrittenSelector>,
    timeout_eval_seconds: Option<u32>,
    context_aware_resources: Vec<WrittenKind>,
    allow_inside_admission_controller_namespace: bool,
    expression: Option<String>,
    message: Option<String>,
    policies: BTreeMap<String, WrittenMember>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WrittenMember {
    module: String,
    settings: Option<Value>,
    timeout_eval_seconds: Option<u32>,
    context_aware_resources: Vec<WrittenKind>,
}

#[derive(Deserialize)]
struct WrittenCondition {
    name: String,
    expression: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WrittenKind {
    api_version: String,
    kind: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WrittenSelector {
    match_labels: BTreeMap<String, String>,
    match_expressions: Vec<WrittenRequirement>,
}

#[derive(Deserialize)]
struct WrittenRequirement {
    key: String,
    operator: String,
    #[serde(default)]
    values: BTreeSet<String>,
}

impl Policy {
    /// Whether an object is a policy of any sort.
    pub fn is_one(object: &Value) -> bool {
        let version = object["apiVersion"].as_str().unwrap_or_default();
        let group = version.split('/').next();
        group == Some(GROUP) && Sort::of(object["kind"].as_str().unwrap_or_default()).is_some()
    }

    /// Reads a policy.
    pub fn read(object: &Value) -> Result<Policy, Unreadable> {
        let kind = object["kind"].as_str().unwrap_or_default();
        let sort = Sort::of(kind).ok_or_else(|| Unreadable(format!("{kind:?} is no policy")))?;
        let spec = Spec::deserialize(&object["spec"])
            .map_err(|error| Unreadable(format!("the spec does not make sense: {error}")))?;
        let text = |at: &str| object.pointer(at).and_then(Value::as_str);
        let own = |at: &str| text(at).unwrap_or_default().to_owned();
        let annotation = |name: &str| {
            let annotations = object.pointer("/metadata/annotations");
            let said = annotations
                .and_then(|all| all.get(name))
                .and_then(Value::as_str);
            said.map(str::trim).filter(|said| !said.is_empty())
        };
        let written = annotation("io.kubewarden.policy.severity").map(str::to_lowercase);
        let severity = SEVERITIES
            .into_iter()
            .find(|severity| written.as_deref() == Some(*severity));
        let category = annotation("io.kubewarden.policy.category").map(|category| {
            let shown = category.chars().filter(|c| !c.is_control());
            shown.take(LONGEST_CATEGORY).collect()
        });
        let background = spec.background_audit != Some(false) && spec.background != Some(false);
        let monitor = spec.mode.as_deref() == Some("monitor");
        // Everything that an answer, or how it is told, depends on.
        let covered = serde_json::json!([object["spec"], written, category, kind]);
        Ok(Policy {
            sort,
            name: own("/metadata/name"),
            namespace: Some(own("/metadata/namespace"))
                .filter(|namespace| sort.is_namespaced() && !namespace.is_empty()),
            uid: own("/metadata/uid"),
            resource_version: own("/metadata/resourceVersion"),
            generation: object
                .pointer("/metadata/generation")
                .and_then(Value::as_i64)
                .unwrap_or_default(),
            monitor,
            server: spec
                .policy_server
                .clone()
                .unwrap_or_else(|| "default".into()),
            match_policy: spec.match_policy,
            object_selector: selector(spec.object_selector.as_ref())?,
            namespace_selector: selector(spec.namespace_selector.as_ref())?,
            match_conditions: spec
                .match_conditions
                .iter()
                .map(|condition| (condition.name.clone(), condition.expression.clone()))
                .collect(),
            fail_on_trouble: spec.failure_policy.as_deref() != Some("Ignore"),
            everywhere: spec.allow_inside_admission_controller_namespace,
            background,
            category,
            severity,
            title: annotation("io.artifacthub.displayName")
                .or_else(|| annotation("io.kubewarden.policy.title"))
                .map(str::to_owned),
            hash: hash(covered.to_string().as_bytes()),
            body: body(sort, &spec)?,
            rules: spec.rules,
        })
    }

    /// The name of the policy in reports.
    pub fn unique_name(&self) -> String {
        let namespace = self.namespace.as_deref().unwrap_or_default();
        match self.sort {
            Sort::Cluster => format!("clusterwide-{}", self.name),
            Sort::ClusterGroup => format!("clusterwide-group-{}", self.name),
            Sort::Namespaced => format!("namespaced-{namespace}-{}", self.name),
            Sort::NamespacedGroup => format!("namespaced-group-{namespace}-{}", self.name),
        }
    }

    /// Where the policy is, for people: `ClusterAdmissionPolicy name`.
    pub fn place(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("{} {namespace}/{}", self.sort.kind(), self.name),
            None => format!("{} {}", self.sort.kind(), self.name),
        }
    }

    /// What sort of concern it is about.
    pub fn category(&self) -> Option<&str> {
        self.category.as_deref()
    }

    /// How bad a violation is. What is only monitored is for information.
    pub fn severity(&self) -> Option<&'static str> {
        if self.monitor {
            return Some("info");
        }
        self.severity
    }

    /// What people call it, if it says so.
    pub fn title(&self) -> Option<&str> {
        self.title.as_deref()
    }

    /// Whether it may change what it judges.
    pub fn is_mutating(&self) -> bool {
        matches!(self.body, Body::Single { mutating: true, .. })
    }

    /// Everything it runs, by the name within a group; one without a name otherwise.
    pub fn members(&self) -> Vec<(Option<&str>, &Member)> {
        match &self.body {
            Body::Single { member, .. } => vec![(None, member)],
            Body::Group { members, .. } => members
                .iter()
                .map(|(name, member)| (Some(name.as_str()), member))
                .collect(),
        }
    }

    /// What it may read of the cluster.
    pub fn context_aware(&self) -> Vec<GroupVersionKind> {
        let members = self.members().into_iter();
        let mut all: Vec<_> = members
            .flat_map(|(_, member)| member.context_aware.iter().cloned())
            .collect();
        all.sort();
        all.dedup();
        all
    }

    /// Covers everything that is written in the policy and matters.
    pub fn hash(&self) -> u64 {
        self.hash
    }
}

fn body(sort: Sort, spec: &Spec) -> Result<Body, Unreadable> {
    let member =
        |module: &str, settings: &Option<Value>, seconds: Option<u32>, kinds: &[WrittenKind]| {
            if module.is_empty() {
                return Err(Unreadable("no module is named".into()));
            }
            let settings = settings.clone().filter(|settings| !settings.is_null());
            Ok(Member {
                module: module.into(),
                settings: settings.unwrap_or_else(|| serde_json::json!({})),
                time: seconds.map_or(TIME, |seconds| {
                    Duration::from_secs(seconds.clamp(1, 30).into())
                }),
                context_aware: kinds
                    .iter()
                    .map(|kind| GroupVersionKind::parse(&kind.api_version, &kind.kind))
                    .collect(),
            })
        };
    if !matches!(sort, Sort::ClusterGroup | Sort::NamespacedGroup) {
        let module = spec.module.as_deref().unwrap_or_default();
        let kinds = &spec.context_aware_resources;
        let member = member(module, &spec.settings, spec.timeout_eval_seconds, kinds)?;
        let mutating = spec.mutating;
        return Ok(Body::Single { member, mutating });
    }
    let written = spec.expression.as_deref().unwrap_or_default();
    let expression = GroupExpression::parse(written)
        .map_err(|error| Unreadable(format!("the expression {written:?}: {error}")))?;
    let mut members = BTreeMap::new();
    for (name, one) in &spec.policies {
        let (seconds, kinds) = (one.timeout_eval_seconds, &one.context_aware_resources);
        let read = member(&one.module, &one.settings, seconds, kinds)
            .map_err(|error| Unreadable(format!("the policy {name:?}: {error}")))?;
        members.insert(name.clone(), read);
    }
    if let Some(unknown) = expression
        .calls()
        .iter()
        .find(|name| !members.contains_key(**name))
    {
        return Err(Unreadable(format!(
            "the expression asks {unknown:?}, which is not in the group"
        )));
    }
    let message = spec.message.clone().unwrap_or_default();
    Ok(Body::Group {
        members,
        expression,
        message,
    })
}

fn selector(written: Option<&WrittenSelector>) -> Result<LabelSelector, Unreadable> {
    let Some(written) = written else {
        return Ok(LabelSelector::default());
    };
    let labels = written.match_labels.iter();
    let mut all: Vec<Requirement> = labels
        .map(|(key, value)| Requirement::In(key.clone(), BTreeSet::from([value.clone()])))
        .collect();
    for one in &written.match_expressions {
        let (key, values) = (one.key.clone(), one.values.clone());
        all.push(match one.operator.as_str() {
            "In" => Requirement::In(key, values),
            "NotIn" => Requirement::NotIn(key, values),
            "Exists" => Requirement::Exists(key),
            "DoesNotExist" => Requirement::Absent(key),
            other => {
                return Err(Unreadable(format!(
                    "{other:?} is no operator of a selector"
                )));
            }
        });
    }
    Ok(LabelSelector(all))
}

#[cfg(test)]
mod tests;
