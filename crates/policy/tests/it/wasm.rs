//! Policies that are WebAssembly modules: what they say becomes a verdict, and so does what they do
//! wrong. Every test is done in both ways that modules are spoken to.

use muster_policy::module::{ModulePolicy, left_out};
use muster_policy::{
    Evaluator, GroupVersionKind, LoadError, Lookup, LookupError, Member, Outcome, Request, Verdict,
};
use muster_testkit::policies::{self, Abi, with_metadata};
use muster_wasm::{Options, Sandbox};
use serde_json::{Value, json};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

static SANDBOX: LazyLock<Sandbox> =
    LazyLock::new(|| Sandbox::new(Options::default()).expect("a sandbox can be made"));

/// A cluster that answers everything with the same, and remembers what it was asked.
#[derive(Debug)]
struct Cluster {
    found: Result<Value, LookupError>,
    asked: Mutex<Vec<String>>,
}

impl Cluster {
    fn answering(found: Result<Value, LookupError>) -> Arc<Self> {
        let asked = Mutex::default();
        Arc::new(Cluster { found, asked })
    }

    fn note(&self, asked: String) {
        self.asked.lock().expect("no panic").push(asked);
    }
}

impl Lookup for Cluster {
    fn get(
        &self,
        kind: &GroupVersionKind,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Value, LookupError> {
        self.note(format!("get {} {namespace:?} {name}", kind.kind));
        self.found.clone()
    }

    fn list(
        &self,
        kind: &GroupVersionKind,
        namespace: Option<&str>,
        labels: Option<&str>,
        fields: Option<&str>,
    ) -> Result<Value, LookupError> {
        let kind = &kind.kind;
        self.note(format!("list {kind} {namespace:?} {labels:?} {fields:?}"));
        let object = self.found.clone()?;
        Ok(json!({"kind": "List", "items": [object]}))
    }
}

fn member(settings: Value) -> Member {
    Member {
        module: "file:///policy.wasm".into(),
        settings,
        // Long, so that a busy machine does not matter.
        time: Duration::from_secs(60),
        context_aware: ["Namespace", "Secret", "Pod"]
            .map(|kind| GroupVersionKind::parse("v1", kind))
            .to_vec(),
    }
}

fn load(module: &[u8], member: &Member) -> Result<ModulePolicy, LoadError> {
    load_in(
        module,
        member,
        Cluster::answering(Err(LookupError::NotFound)),
    )
}

fn load_in(
    module: &[u8],
    member: &Member,
    cluster: Arc<Cluster>,
) -> Result<ModulePolicy, LoadError> {
    let module = SANDBOX.load(module).expect("the module loads");
    ModulePolicy::load(Arc::new(module), member, cluster)
}

fn pod(privileged: bool) -> Request {
    let object = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "p", "namespace": "n", "uid": "u"},
        "spec": {"containers": [{"name": "c", "securityContext": {"privileged": privileged}}]},
    });
    Request::create("pods", object)
}

fn judge(module: &[u8]) -> Verdict {
    load(module, &member(json!({})))
        .expect("the policy loads")
        .judge(&pod(true))
}

#[test]
fn a_policy_accepts_and_rejects() {
    for abi in Abi::ALL {
        assert_eq!(judge(&policies::accepting(abi)), Verdict::pass());
        let rejected = judge(&policies::rejecting(abi, "never"));
        assert_eq!(rejected, Verdict::fail("never"));
        for module in [
            policies::forbidding(abi, r#""privileged":true"#, "privileged"),
            policies::forbidding(abi, r#""settings":{"a":1}}"#, "privileged"),
        ] {
            let policy = load(&module, &member(json!({"a": 1}))).unwrap();
            assert_eq!(policy.judge(&pod(true)), Verdict::fail("privileged"));
        }
        let module = policies::realistic(abi);
        let policy = load(&module, &member(Value::Null)).unwrap();
        assert_eq!(policy.judge(&pod(false)), Verdict::pass());
        assert_eq!(policy.judge(&pod(true)).outcome, Outcome::Fail);
    }
}

#[test]
fn what_a_policy_would_change_is_a_patch() {
    let original = pod(true).object;
    let mut changed = original.clone();
    changed["metadata"]["labels"] = json!({"a": "b"});
    let mut large = original.clone();
    large["metadata"]["labels"] = json!({"a": "b".repeat(300 << 10)});
    for abi in Abi::ALL {
        for (object, expected) in [
            (&original, None),
            (&Value::Null, None),
            (
                &changed,
                Some(vec![
                    json!({"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}),
                ]),
            ),
            (&large, Some(left_out())),
        ] {
            let verdict = judge(&policies::mutating(abi, object));
            assert_eq!(verdict.outcome, Outcome::Pass, "{abi:?} {verdict:?}");
            assert_eq!(verdict.patch, expected);
        }
        // Who rejects changes nothing.
        let answer = json!({"accepted": false, "message": "no", "mutated_object": changed});
        let verdict = judge(&policies::answering(abi, &answer.to_string()));
        assert_eq!(verdict, Verdict::fail("no"));
    }
}

#[test]
fn warnings_are_told_and_other_remarks_are_not() {
    let answer = json!({"accepted": true, "code": "strange", "audit_annotations": {"a": "b"},
        "warnings": ["old"], "unheard": {}});
    for abi in Abi::ALL {
        let verdict = judge(&policies::answering(abi, &answer.to_string()));
        assert_eq!(verdict, Verdict::pass().with_warnings(["old".to_owned()]));
    }
}

#[test]
fn a_policy_refuses_settings_that_do_not_make_sense() {
    for abi in Abi::ALL {
        let module = policies::particular(abi, "wrong", "it is wrong");
        let refused = load(&module, &member(json!({"a": "wrong"}))).unwrap_err();
        assert_eq!(refused, LoadError::Settings("it is wrong".into()));
        assert!(load(&module, &member(json!({"a": "right"}))).is_ok());
        assert!(load(&module, &member(Value::Null)).is_ok());
    }
}

#[test]
fn a_policy_that_harms_gives_an_error_that_says_how() {
    for abi in Abi::ALL {
        let failed = match abi {
            Abi::Wapc => "the policy failed: no database",
            Abi::Wasi => "the policy failed: it exited with code 1; it wrote: no database",
        };
        for (module, expected) in [
            (
                policies::panicking(abi),
                "the policy crashed: it gave up (an unreachable instruction was executed)",
            ),
            (
                policies::recursing(abi),
                "the policy crashed: its call stack is exhausted",
            ),
            (policies::failing(abi, "no database"), failed),
            (
                policies::spinning(abi),
                "the policy did not finish within 300 ms",
            ),
            (
                policies::hungry(abi),
                "the policy needs more than 256 MiB of memory",
            ),
            (
                policies::verbose(abi),
                "the policy answers with more than 4 MiB",
            ),
            (
                policies::astray(abi),
                "the policy does not keep to its protocol: \
                 it passed a pointer that leads out of its memory",
            ),
            (
                policies::answering(abi, "yes"),
                "the answer of the policy does not make sense: expected value at line 1 column 1",
            ),
            (
                policies::answering(abi, "{}"),
                "the answer of the policy does not make sense: \
                 missing field `accepted` at line 1 column 2",
            ),
        ] {
            let mut member = member(json!({}));
            if expected.ends_with("300 ms") {
                member.time = Duration::from_millis(300);
            }
            let policy = load(&module, &member).unwrap();
            for _ in 0..2 {
                assert_eq!(policy.judge(&pod(true)), Verdict::error(expected));
            }
        }
    }
}

#[test]
fn a_policy_that_is_not_for_us_does_not_load() {
    let other = policies::assemble(
        r#"(module
             (import "wapc" "__guest_response" (func $respond (param i32 i32)))
             (memory (export "memory") 1)
             (data (i32.const 0) "\"v2\"")
             (func (export "__guest_call") (param i32 i32) (result i32)
               (call $respond (i32.const 0) (i32.const 4))
               (i32.const 1)))"#,
    );
    let raw = |abi| with_metadata(policies::accepting(abi), &json!({"policyType": "raw"}));
    let spinning = policies::assemble(
        r#"(module
             (memory (export "memory") 1)
             (func (export "__guest_call") (param i32 i32) (result i32)
               (loop $on (br $on)) (i32.const 1)))"#,
    );
    for (module, expected) in [
        (
            raw(Abi::Wapc),
            "it is a raw policy, which judges no Kubernetes objects",
        ),
        (
            raw(Abi::Wasi),
            "it is a raw policy, which judges no Kubernetes objects",
        ),
        (
            other,
            "it speaks version \"v2\" of the protocol, and only \"v1\" is known",
        ),
        (spinning, "the policy did not finish within 300 ms"),
    ] {
        let mut member = member(json!({}));
        if expected.contains("300 ms") {
            member.time = Duration::from_millis(300);
        }
        let error = load(&module, &member).unwrap_err();
        assert_eq!(error, LoadError::Module(expected.into()));
    }
    for abi in Abi::ALL {
        let kubernetes = json!({"policyType": "kubernetes"});
        let module = with_metadata(policies::accepting(abi), &kubernetes);
        assert!(load(&module, &member(json!({}))).is_ok());
    }
}

#[test]
fn a_policy_reads_of_the_cluster_what_it_names() {
    let applied = "kubectl.kubernetes.io/last-applied-configuration";
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "spec": {"a": "unwanted"},
        "metadata": {"name": "n", "labels": {"team": "secret"}, "managedFields": [{}],
            "annotations": {applied: "{}"}}});
    let all = json!({"api_version": "v1", "kind": "Namespace", "label_selector": "a=b"});
    let own = json!({"api_version": "v1", "kind": "Namespace", "namespace": "n",
        "field_selector": "a=b", "field_masks": ["status.phase"]});
    let one = json!({"api_version": "v1", "kind": "Namespace", "name": "n", "namespace": null,
        "disable_cache": true});
    for abi in Abi::ALL {
        for (operation, question, text, asked, found) in [
            (
                "list_resources_all",
                &all,
                "secret",
                r#"list Namespace None Some("a=b") None"#,
                true,
            ),
            (
                "list_resources_all",
                &all,
                "managedFields",
                r#"list Namespace None Some("a=b") None"#,
                false,
            ),
            (
                "list_resources_all",
                &all,
                "last-applied-configuration",
                r#"list Namespace None Some("a=b") None"#,
                false,
            ),
            (
                "list_resources_by_namespace",
                &own,
                "unwanted",
                r#"list Namespace Some("n") None Some("a=b")"#,
                false,
            ),
            (
                "list_resources_by_namespace",
                &own,
                r#""labels":{"team":"secret"}"#,
                r#"list Namespace Some("n") None Some("a=b")"#,
                true,
            ),
            (
                "get_resource",
                &one,
                "last-applied-configuration",
                "get Namespace None n",
                true,
            ),
            ("get_resource", &one, "secret", "get Namespace None n", true),
        ] {
            let call = ["kubewarden", "kubernetes", operation];
            let module = policies::calling(abi, call, question, text, "found");
            let cluster = Cluster::answering(Ok(namespace.clone()));
            let policy = load_in(&module, &member(json!({})), cluster.clone()).unwrap();
            let expected = match found {
                true => Verdict::fail("found"),
                false => Verdict::pass(),
            };
            assert_eq!(policy.judge(&pod(true)), expected, "{operation} {text}");
            assert_eq!(*cluster.asked.lock().unwrap(), [asked]);
        }
    }
}

#[test]
fn a_policy_reads_the_findings_of_a_report_through_a_mask() {
    let kind = GroupVersionKind::parse(
        "storage.sbomscanner.kubewarden.io/v1alpha1",
        "VulnerabilityReport",
    );
    let report = json!({"apiVersion": kind.api_version(), "kind": kind.kind,
        "metadata": {"name": "r", "namespace": "n", "uid": "u"}, "imageMetadata": {"tag": "1"},
        "report": {"results": [{"vulnerabilities": [
            {"cve": "CVE-1", "severity": "CRITICAL", "title": "t"}]}]}});
    let question = json!({"api_version": kind.api_version(), "kind": kind.kind, "namespace": "n",
        "field_masks": ["report.results.vulnerabilities.cve",
            "report.results.vulnerabilities.severity"]});
    let call = ["kubewarden", "kubernetes", "list_resources_by_namespace"];
    // An SDK reads an object by its type and metadata.
    let read = r#"{"apiVersion":"storage.sbomscanner.kubewarden.io/v1alpha1","kind":"VulnerabilityReport","metadata":{"name":"r","namespace":"n","uid":"u"},"report":{"results":[{"vulnerabilities":[{"cve":"CVE-1","severity":"CRITICAL"}]}]}}"#;
    for abi in Abi::ALL {
        let module = policies::calling(abi, call, &question, read, "CVE-1 is critical");
        let member = Member {
            context_aware: vec![kind.clone()],
            ..member(json!({}))
        };
        let cluster = Cluster::answering(Ok(report.clone()));
        let verdict = load_in(&module, &member, cluster)
            .unwrap()
            .judge(&pod(true));
        assert_eq!(verdict, Verdict::fail("CVE-1 is critical"), "{abi:?}");
    }
}

#[test]
fn a_policy_reads_the_words_of_a_negative_answer_and_decides() {
    let get = ["kubewarden", "kubernetes", "get_resource"];
    let list = ["kubewarden", "kubernetes", "list_resources_by_namespace"];
    let namespace = json!({"api_version": "v1", "kind": "Namespace", "name": "n"});
    let one = json!({"api_version": "v1", "kind": "Pod", "name": "p", "namespace": "n"});
    let own = json!({"api_version": "v1", "kind": "Namespace", "namespace": "n"});
    for (call, question, error, text) in [
        (
            get,
            &namespace,
            LookupError::NotFound,
            "Cannot find v1/Namespace named 'n' inside of namespace 'None'",
        ),
        (
            get,
            &one,
            LookupError::NotFound,
            "Cannot find v1/Pod named 'p' inside of namespace 'Some(\"n\")'",
        ),
        (
            get,
            &one,
            LookupError::NoNamespace,
            "Resource v1/Pod is namespaced, but no namespace was provided",
        ),
        (
            list,
            &own,
            LookupError::ClusterWide,
            "resource v1/Namespace is cluster wide. Cannot search for it inside of a namespace",
        ),
    ] {
        let text = format!("Callback evaluation failure: {text}");
        for abi in Abi::ALL {
            let cluster = Cluster::answering(Err(error.clone()));
            let module = policies::reading_errors(abi, call, question, &text, "absent");
            let policy = load_in(&module, &member(json!({})), cluster.clone()).unwrap();
            assert_eq!(policy.judge(&pod(true)), Verdict::fail("absent"), "{text}");
            let module = policies::careless(abi, call, question);
            let policy = load_in(&module, &member(json!({})), cluster).unwrap();
            assert_eq!(policy.judge(&pod(true)), Verdict::pass(), "{text}");
        }
    }
}

#[test]
fn a_policy_that_could_not_look_has_no_verdict() {
    let get = ["kubewarden", "kubernetes", "get_resource"];
    let list = ["kubewarden", "kubernetes", "list_resources_all"];
    let own = ["kubewarden", "kubernetes", "list_resources_by_namespace"];
    let secret = json!({"api_version": "v1", "kind": "Secret", "name": "s", "namespace": "n"});
    let map = json!({"api_version": "v1", "kind": "ConfigMap", "name": "c", "namespace": "n"});
    let namespace = json!({"api_version": "v1", "kind": "Namespace", "name": "n"});
    let elsewhere = "a PolicyServer with `spec.address` can evaluate this policy";
    let malformed = "missing field `api_version` at line 1 column 14";
    for (call, question, reason) in [
        (
            get,
            &map,
            "kubernetes/get_resource is not permitted: the policy may not read v1 ConfigMap; \
             name it in `contextAwareResources` of a ClusterAdmissionPolicy or \
             ClusterAdmissionPolicyGroup"
                .to_owned(),
        ),
        // Not even if the policy names them.
        (
            get,
            &secret,
            format!(
                "kubernetes/get_resource is not permitted: policies may not read Secrets; \
                 {elsewhere}"
            ),
        ),
        (
            list,
            &secret,
            format!(
                "kubernetes/list_resources_all is not permitted: policies may not read Secrets; \
                 {elsewhere}"
            ),
        ),
        (
            own,
            &namespace,
            "kubernetes/list_resources_by_namespace is malformed: it names no namespace".into(),
        ),
        (
            get,
            &json!({"kind": "Pod"}),
            format!("kubernetes/get_resource is malformed: {malformed}"),
        ),
        (
            list,
            &namespace,
            "kubernetes/list_resources_all failed: the server is away".into(),
        ),
        (
            ["kubewarden", "kubernetes", "can_i"],
            &json!({}),
            format!("kubernetes/can_i is not supported; {elsewhere}"),
        ),
        (
            ["kubewarden", "oci", "v2/verify"],
            &json!({}),
            format!("oci/v2/verify is not supported; {elsewhere}"),
        ),
        (
            ["kubewarden", "net", "v1/dns_lookup_host"],
            &json!("example.org"),
            format!("net/v1/dns_lookup_host is not supported; {elsewhere}"),
        ),
        (
            ["kubewarden", "crypto", "v1/is_certificate_trusted"],
            &json!({}),
            format!("crypto/v1/is_certificate_trusted is not supported; {elsewhere}"),
        ),
        (
            ["kubewarden", "kubernetes", "delete"],
            &json!({}),
            format!("kubernetes/delete is not known; {elsewhere}"),
        ),
        (
            ["kubewarden", "cache", "get"],
            &json!({}),
            format!("cache/get is not known; {elsewhere}"),
        ),
        (
            ["other", "kubernetes", "get_resource"],
            &namespace,
            format!("other/kubernetes/get_resource is not known; {elsewhere}"),
        ),
    ] {
        let is_transient = reason.contains("failed");
        let expected = Verdict {
            is_transient,
            ..Verdict::error(format!("the host call {reason}"))
        };
        let accepted = r#"{"accepted":true,"warnings":["w"]}"#;
        let rejected = r#"{"accepted":false,"message":"no"}"#;
        let valid = json!({"valid": true});
        let invalid = json!({"valid": false, "message": "wrong"});
        for abi in Abi::ALL {
            let away = || Cluster::answering(Err(LookupError::transient("the server is away")));
            let judge = |module: &[u8]| {
                let policy = load_in(module, &member(json!({})), away()).unwrap();
                policy.judge(&pod(true))
            };
            for module in [
                // It accepts, it rejects, it fails, it reads the words and rejects.
                policies::asking(abi, &[(call, question)], accepted),
                policies::asking(abi, &[(call, question)], rejected),
                policies::calling(abi, call, question, "a", "b"),
                policies::reading_errors(abi, call, question, "e", "refused"),
            ] {
                assert_eq!(judge(&module), expected, "{abi:?}");
            }
            for answer in [&valid, &invalid] {
                let module = policies::asking_for_settings(abi, call, question, answer);
                let error = load_in(&module, &member(json!({})), away()).unwrap_err();
                let why = format!("while its settings are validated, the host call {reason}");
                let expected = match is_transient {
                    true => LoadError::Unreachable(why),
                    false => LoadError::HostCall(why),
                };
                assert_eq!(error, expected, "{abi:?}");
            }
        }
    }
}

#[test]
fn a_policy_that_crashes_after_it_could_not_look_is_understood() {
    let module = policies::assemble(
        r#"(module
             (import "wapc" "__guest_response" (func $respond (param i32 i32)))
             (import "wapc" "__host_call" (func $call (param i32 i32 i32 i32 i32 i32 i32 i32) (result i32)))
             (memory (export "memory") 1)
             (data (i32.const 0) "\"v1\"")
             (data (i32.const 16) "{\"valid\":true}")
             (data (i32.const 64) "kubewardenociv1/verify")
             (func (export "__guest_call") (param $operation i32) (param i32) (result i32)
               (if (i32.eq (local.get $operation) (i32.const 8)) (then
                 (drop (call $call (i32.const 64) (i32.const 10) (i32.const 74) (i32.const 3)
                   (i32.const 77) (i32.const 9) (i32.const 0) (i32.const 0)))
                 unreachable))
               (if (i32.eq (local.get $operation) (i32.const 16))
                 (then (call $respond (i32.const 0) (i32.const 4)))
                 (else (call $respond (i32.const 16) (i32.const 14))))
               (i32.const 1)))"#,
    );
    assert_eq!(
        judge(&module),
        Verdict::error(
            "the host call oci/v1/verify is not supported; \
             a PolicyServer with `spec.address` can evaluate this policy"
        )
    );
}

#[test]
fn a_policy_that_answers_with_code_500_has_no_verdict() {
    let silent = "the policy answers with code 500, without a message";
    for (answer, expected) in [
        (
            json!({"accepted": false, "code": 500, "message": "no database"}),
            Verdict::error("no database"),
        ),
        (
            json!({"accepted": true, "code": 500, "message": "no database"}),
            Verdict::error("no database"),
        ),
        (
            json!({"accepted": false, "code": 500}),
            Verdict::error(silent),
        ),
        (
            json!({"accepted": false, "code": 400, "message": "no"}),
            Verdict::fail("no"),
        ),
        (json!({"accepted": true, "code": null}), Verdict::pass()),
    ] {
        for abi in Abi::ALL {
            let verdict = judge(&policies::answering(abi, &answer.to_string()));
            assert_eq!(verdict, expected, "{answer}");
        }
    }
}

#[test]
fn logging_is_never_refused() {
    for abi in Abi::ALL {
        let call = ["kubewarden", "tracing", "log"];
        let module = policies::calling(abi, call, &json!({"message": "hello"}), "a", "b");
        assert_eq!(judge(&module), Verdict::pass());
    }
}
