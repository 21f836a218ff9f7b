//! No path leads from a host call that could not be answered to `pass` or `fail`: not through what a
//! module answers, not through its settings, and not through a group. The modules are real ones, with
//! random host calls and random answers.

use muster_api::expression::GroupExpression;
use muster_policy::module::ModulePolicy;
use muster_policy::{
    Evaluator, GroupPolicy, GroupVersionKind, LoadError, Lookup, LookupError, Member, Outcome,
    Request, Verdict,
};
use muster_testkit::policies::{self, Abi};
use muster_wasm::{Options, Sandbox};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

static SANDBOX: LazyLock<Sandbox> =
    LazyLock::new(|| Sandbox::new(Options::default()).expect("a sandbox can be made"));

/// Answers by the name of the object.
#[derive(Debug)]
struct Cluster;

fn look(name: &str) -> Result<Value, LookupError> {
    match name {
        "there" => Ok(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}})),
        "absent" => Err(LookupError::NotFound),
        "nowhere" => Err(LookupError::NoNamespace),
        "away" => Err(LookupError::transient("the server is away")),
        name => Err(LookupError::permanent(format!("{name} cannot be read"))),
    }
}

impl Lookup for Cluster {
    fn get(&self, _: &GroupVersionKind, _: Option<&str>, name: &str) -> Result<Value, LookupError> {
        look(name)
    }

    fn list(
        &self,
        _: &GroupVersionKind,
        _: Option<&str>,
        labels: Option<&str>,
        _: Option<&str>,
    ) -> Result<Value, LookupError> {
        match labels {
            Some("cluster") => Err(LookupError::ClusterWide),
            labels => Ok(json!({"kind": "PodList", "items": [look(labels.unwrap_or("there"))?]})),
        }
    }
}

/// How a host call ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Answer,
    Negative,
    Unavailable,
}

/// A host call, and how it ends.
type HostCall = ([&'static str; 3], Value, Ending);

fn host_call() -> impl Strategy<Value = HostCall> {
    use Ending::{Answer, Negative, Unavailable};
    let of = |operation: &'static str, kind: &str, name: &str, ending: Ending| {
        let question = json!({"api_version": "v1", "kind": kind, "name": name, "namespace": "n",
            "label_selector": name});
        (["kubewarden", "kubernetes", operation], question, ending)
    };
    let other = |path: [&'static str; 3]| (path, json!({}), Unavailable);
    prop::sample::select(vec![
        of("get_resource", "Pod", "there", Answer),
        of("list_resources_all", "Pod", "there", Answer),
        of("list_resources_by_namespace", "Pod", "there", Answer),
        (["kubewarden", "tracing", "log"], json!("hello"), Answer),
        of("get_resource", "Pod", "absent", Negative),
        of("get_resource", "Pod", "nowhere", Negative),
        of("list_resources_by_namespace", "Pod", "cluster", Negative),
        of("get_resource", "Pod", "away", Unavailable),
        of("get_resource", "Pod", "too large", Unavailable),
        of("list_resources_all", "Pod", "away", Unavailable),
        of(
            "list_resources_by_namespace",
            "Pod",
            "too large",
            Unavailable,
        ),
        of("get_resource", "Secret", "there", Unavailable),
        of("list_resources_all", "Node", "there", Unavailable),
        of("delete", "Pod", "there", Unavailable),
        other(["kubewarden", "kubernetes", "get_resource"]),
        other(["kubewarden", "kubernetes", "can_i"]),
        other(["kubewarden", "oci", "v2/verify"]),
        other(["kubewarden", "net", "v1/dns_lookup_host"]),
        other(["kubewarden", "crypto", "v1/is_certificate_trusted"]),
        other(["kubewarden", "cache", "get"]),
        other(["another", "kubernetes", "get_resource"]),
    ])
}

/// An answer of a module, and what it means if all calls were answered.
fn answer() -> impl Strategy<Value = (String, Outcome)> {
    prop::sample::select(vec![
        (json!({"accepted": true}).to_string(), Outcome::Pass),
        (
            json!({"accepted": true, "mutated_object": {}}).to_string(),
            Outcome::Pass,
        ),
        (
            json!({"accepted": false, "message": "no"}).to_string(),
            Outcome::Fail,
        ),
        (
            json!({"accepted": false, "code": 500, "message": "no"}).to_string(),
            Outcome::Error,
        ),
        ("nonsense".into(), Outcome::Error),
    ])
}

/// A module: its calls, and its answer with what that means.
type Behaviour = (Vec<HostCall>, (String, Outcome));

fn behaviour() -> impl Strategy<Value = Behaviour> {
    (vec(host_call(), 0..4), answer())
}

fn could_look(calls: &[HostCall]) -> bool {
    calls.iter().all(|call| call.2 != Ending::Unavailable)
}

fn load(module: &[u8]) -> Result<ModulePolicy, LoadError> {
    let member = Member {
        module: "m".into(),
        settings: json!({}),
        // Long, so that a busy machine does not matter.
        time: Duration::from_secs(60),
        context_aware: vec![GroupVersionKind::parse("v1", "Pod")],
    };
    let module = SANDBOX.load(module).expect("the module loads");
    ModulePolicy::load(Arc::new(module), &member, Arc::new(Cluster))
}

fn module(abi: Abi, (calls, (answer, _)): &Behaviour) -> ModulePolicy {
    let calls: Vec<_> = calls.iter().map(|(path, what, _)| (*path, what)).collect();
    load(&policies::asking(abi, &calls, answer)).expect("the policy loads")
}

fn pod() -> Request {
    let object = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}});
    Request::create("pods", object)
}

fn abi() -> impl Strategy<Value = Abi> {
    prop::sample::select(Abi::ALL.to_vec())
}

/// Expressions over three members.
fn expression() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec!["a()", "b()", "c()", "true", "false"]);
    leaf.prop_map(String::from)
        .prop_recursive(4, 16, 2, |inner| {
            let operator = prop::sample::select(vec!["&&", "||", "==", "!="]);
            prop_oneof![
                inner.clone().prop_map(|one| format!("!({one})")),
                (inner.clone(), operator, inner)
                    .prop_map(|(left, operator, right)| format!("({left}) {operator} ({right})")),
            ]
        })
}

/// A member that remembers whether it was evaluated.
#[derive(Debug)]
struct Watched {
    policy: ModulePolicy,
    was_evaluated: AtomicBool,
}

impl Evaluator for Watched {
    fn judge(&self, request: &Request) -> Verdict {
        self.was_evaluated.store(true, Ordering::SeqCst);
        self.policy.judge(request)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_module_that_could_not_look_neither_passes_nor_fails(
        abi in abi(), behaviour in behaviour()
    ) {
        let verdict = module(abi, &behaviour).judge(&pod());
        let (calls, (_, meant)) = &behaviour;
        let expected = if could_look(calls) { *meant } else { Outcome::Error };
        prop_assert_eq!(verdict.outcome, expected, "{:?}", verdict);
        // Only the first call without an answer says whether another evaluation may help.
        let first = calls.iter().find(|call| call.2 == Ending::Unavailable);
        let is_away = first.is_some_and(|(_, what, _)| what["name"] == "away");
        prop_assert_eq!(verdict.is_transient, is_away, "{:?}", verdict);
    }

    #[test]
    fn settings_that_could_not_be_validated_are_neither_accepted_nor_refused(
        abi in abi(), call in host_call(), is_valid: bool
    ) {
        let (path, what, ending) = &call;
        let said = json!({"valid": is_valid, "message": "wrong"});
        let loaded = load(&policies::asking_for_settings(abi, *path, what, &said));
        match (*ending, loaded) {
            (Ending::Unavailable, Err(LoadError::HostCall(_) | LoadError::Unreachable(_))) => {}
            (Ending::Answer | Ending::Negative, Ok(_)) if is_valid => {}
            (Ending::Answer | Ending::Negative, Err(LoadError::Settings(_))) if !is_valid => {}
            (ending, loaded) => prop_assert!(false, "{ending:?}: {loaded:?}"),
        }
    }

    #[test]
    fn a_group_with_a_member_that_could_not_look_neither_passes_nor_fails(
        abi in abi(), behaviours in vec(behaviour(), 3), written in expression()
    ) {
        let names = ["a", "b", "c"];
        let members: BTreeMap<&str, Arc<Watched>> = names
            .into_iter()
            .zip(&behaviours)
            .map(|(name, behaviour)| {
                let (policy, was_evaluated) = (module(abi, behaviour), AtomicBool::new(false));
                (name, Arc::new(Watched { policy, was_evaluated }))
            })
            .collect();
        let evaluators = members
            .iter()
            .map(|(name, member)| ((*name).to_owned(), member.clone() as Arc<dyn Evaluator>))
            .collect();
        let expression = GroupExpression::parse(&written).unwrap();
        let group = GroupPolicy::new(evaluators, expression, "no".into());
        let verdict = group.judge(&pod());
        let mut evaluated = names.into_iter().zip(&behaviours).filter(|(name, _)| {
            members[name].was_evaluated.load(Ordering::SeqCst)
        });
        // An error is one of a member that was evaluated, and the other way round.
        let is_error = evaluated.any(|(_, (calls, (_, meant)))| {
            !could_look(calls) || *meant == Outcome::Error
        });
        prop_assert_eq!(verdict.outcome == Outcome::Error, is_error, "{}: {:?}", written, verdict);
    }
}
