//! Policies of every sort, made ready and asked.

use crate::modules::modules;
use anyhow::Result;
use muster_audit::lookup::Nowhere;
use muster_audit::modules::Options;
use muster_audit::prepare::{PrepareError, Preparer};
use muster_audit::servers::{Objects, Servers};
use muster_policy::{Judge, LoadError, Outcome, Policy, Request};
use muster_testkit::policies::{self, Abi};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use tokio::runtime::Handle;

fn preparer(files: &Path) -> Result<Preparer> {
    let options = Options {
        files: vec![files.into()],
        ..Options::default()
    };
    let objects = Objects::Written(Arc::default());
    let servers = Servers::new(objects, &["muster"], None);
    Ok(Preparer::new(
        modules(options)?,
        servers,
        Arc::new(Nowhere),
        Handle::current(),
    ))
}

fn policy(kind: &str, spec: Value) -> Result<Policy> {
    Ok(Policy::read(&json!({
        "apiVersion": "policies.kubewarden.io/v1", "kind": kind,
        "metadata": {"name": "a", "namespace": "n"}, "spec": spec,
    }))?)
}

async fn ask(judge: &Judge) -> Result<(Outcome, String)> {
    let evaluator = judge.evaluator.clone();
    let metadata = json!({"name": "p", "namespace": "n", "uid": "u"});
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata});
    let asking = move || evaluator.judge(&Request::create("pods", pod));
    let verdict = tokio::task::spawn_blocking(asking).await?;
    Ok((verdict.outcome, verdict.message))
}

#[tokio::test(flavor = "multi_thread")]
async fn policies_of_every_sort_are_made_ready() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let at = |name: &str| format!("file://{}", directory.path().join(name).display());
    let rego = "package policy\n\ndeny contains \"never\" if { input.request }\n";
    for (name, code) in [
        ("accepts", policies::accepting(Abi::Wapc)),
        ("rejects", policies::rejecting(Abi::Wasi, "not you")),
        (
            "particular",
            policies::particular(Abi::Wapc, "bad", "bad settings"),
        ),
        (
            "cel",
            b"validations:\n- expression: 'false'\n  message: no cel\n".to_vec(),
        ),
        ("nonsense", b"hello".to_vec()),
    ] {
        std::fs::write(directory.path().join(name), code)?;
    }
    let preparer = preparer(directory.path())?;
    let cel = json!({"validations": [{"expression": "false", "message": "no cel"}]});
    let group = |expression: &str| {
        json!({"expression": expression, "message": "together", "policies": {
            "accepts": {"module": at("accepts")}, "rejects": {"module": at("rejects")}}})
    };
    let (one, several) = ("ClusterAdmissionPolicy", "AdmissionPolicyGroup");
    for (kind, spec, expected) in [
        (
            one,
            json!({"module": at("accepts")}),
            Ok((Outcome::Pass, "")),
        ),
        (
            one,
            json!({"module": at("rejects")}),
            Ok((Outcome::Fail, "not you")),
        ),
        (
            one,
            json!({"module": at("particular")}),
            Ok((Outcome::Pass, "")),
        ),
        (
            one,
            json!({"module": at("particular"), "settings": {"a": "bad"}}),
            Err("the settings are refused: bad settings"),
        ),
        (
            one,
            json!({"module": at("cel")}),
            Ok((Outcome::Fail, "no cel")),
        ),
        (
            one,
            json!({"module": "builtin:cel", "settings": cel}),
            Ok((Outcome::Fail, "no cel")),
        ),
        (
            one,
            json!({"module": "builtin:rego", "settings": {"rego": rego}}),
            Ok((Outcome::Fail, "never")),
        ),
        (
            one,
            json!({"module": "builtin:rego"}),
            Err("rego is missing"),
        ),
        (
            one,
            json!({"module": at("nonsense")}),
            Err("the module cannot be used"),
        ),
        (
            one,
            json!({"module": "file:///etc/passwd"}),
            Err("in no directory"),
        ),
        (
            one,
            json!({"module": at("accepts"), "policyServer": "other"}),
            Err("the PolicyServer \"other\" does not exist"),
        ),
        (
            one,
            json!({"module": at("accepts"),
                "matchConditions": [{"name": "broken", "expression": "1 +"}]}),
            Err("broken"),
        ),
        (
            several,
            group("accepts() && !rejects()"),
            Ok((Outcome::Pass, "")),
        ),
        (
            several,
            group("accepts() && rejects()"),
            Ok((Outcome::Fail, "together")),
        ),
        (
            several,
            json!({"expression": "a()", "policies": {"a": {"module": at("nonsense")}}}),
            Err("the policy \"a\": the module cannot be used"),
        ),
    ] {
        let policy = policy(kind, spec.clone())?;
        match (preparer.prepare(&policy).await, expected) {
            (Ok(judge), Ok((outcome, message))) => {
                assert_eq!(ask(&judge).await?, (outcome, message.to_owned()), "{spec}");
                let again = preparer.prepare(&policy).await?;
                assert_eq!(judge.code, again.code, "{spec}");
            }
            (Err(error), Err(expected)) => {
                assert!(error.to_string().contains(expected), "{error}");
                assert!(matches!(error, PrepareError::Load(_)), "{error}");
            }
            (found, expected) => panic!("{spec}: {found:?} and {expected:?}"),
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_number_of_the_code_changes_with_the_code_alone() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("policy.wasm");
    std::fs::write(&path, policies::accepting(Abi::Wapc))?;
    let preparer = preparer(directory.path())?;
    let module = format!("file://{}", path.display());
    let code = async |settings: Value| -> Result<u64> {
        let spec = json!({"module": module, "settings": settings});
        let policy = policy("ClusterAdmissionPolicy", spec)?;
        Ok(preparer.prepare(&policy).await?.code)
    };
    let before = code(json!({})).await?;
    assert_eq!(code(json!({"a": 1})).await?, before);
    std::fs::write(&path, policies::rejecting(Abi::Wapc, "no"))?;
    preparer.modules().refresh();
    assert_ne!(code(json!({})).await?, before);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn only_policies_for_the_whole_cluster_may_look_at_it() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let call = ["kubewarden", "kubernetes", "list_resources_all"];
    let payload = json!({"api_version": "v1", "kind": "Pod"});
    let module = policies::calling(Abi::Wapc, call, &payload, "text", "no");
    std::fs::write(directory.path().join("looks"), module)?;
    let preparer = preparer(directory.path())?;
    let at = format!("file://{}", directory.path().join("looks").display());
    let kinds = json!([{"apiVersion": "v1", "kind": "Pod"}]);
    let spec = json!({"module": at, "contextAwareResources": kinds});
    for (kind, reaches) in [("ClusterAdmissionPolicy", true), ("AdmissionPolicy", false)] {
        let judge = preparer.prepare(&policy(kind, spec.clone())?).await?;
        let (outcome, message) = ask(&judge).await?;
        assert_eq!(outcome, Outcome::Error, "{message}");
        let reached = message.contains("there is no cluster to look at");
        assert_eq!(reached, reaches, "{kind}: {message}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_with_a_member_that_could_not_look_is_an_error() -> Result<()> {
    let directory = tempfile::tempdir()?;
    // It rejects, since it could not ask whether a user may do something.
    let call = ["kubewarden", "kubernetes", "can_i"];
    let rejected = r#"{"accepted":false,"message":"risky"}"#;
    let risky = policies::asking(Abi::Wapc, &[(call, &json!({}))], rejected);
    std::fs::write(directory.path().join("risky"), risky)?;
    let accepting = policies::accepting(Abi::Wapc);
    std::fs::write(directory.path().join("priv"), accepting)?;
    let preparer = preparer(directory.path())?;
    let at = |name: &str| format!("file://{}", directory.path().join(name).display());
    let unavailable = "the policy \"risky\": the host call kubernetes/can_i is not supported";
    for (expression, expected) in [
        ("priv() && !risky()", Err(unavailable)),
        ("priv() && risky()", Err(unavailable)),
        ("risky() != priv()", Err(unavailable)),
        // It is not evaluated.
        ("priv() || risky()", Ok(Outcome::Pass)),
    ] {
        let spec = json!({"expression": expression, "message": "together", "policies": {
            "priv": {"module": at("priv")}, "risky": {"module": at("risky")}}});
        let judge = preparer
            .prepare(&policy("ClusterAdmissionPolicyGroup", spec)?)
            .await?;
        let (outcome, message) = ask(&judge).await?;
        match expected {
            Ok(expected) => assert_eq!(outcome, expected, "{expression}: {message}"),
            Err(why) => {
                assert_eq!(outcome, Outcome::Error, "{expression}: {message}");
                assert!(message.starts_with(why), "{expression}: {message}");
            }
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_that_could_not_be_validated_are_not_refused() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let call = ["kubewarden", "crypto", "v1/is_certificate_trusted"];
    let invalid = json!({"valid": false, "message": "the certificate is not trusted"});
    let module = policies::asking_for_settings(Abi::Wapc, call, &json!({}), &invalid);
    std::fs::write(directory.path().join("verifies"), module)?;
    let preparer = preparer(directory.path())?;
    let at = format!("file://{}", directory.path().join("verifies").display());
    let alone = json!({"module": at});
    let member = json!({"expression": "a()", "policies": {"a": alone}});
    for (kind, spec) in [
        ("ClusterAdmissionPolicy", alone),
        ("ClusterAdmissionPolicyGroup", member),
    ] {
        let Err(error) = preparer.prepare(&policy(kind, spec)?).await else {
            anyhow::bail!("{kind} is ready");
        };
        let why = "the host call crypto/v1/is_certificate_trusted is not supported";
        assert!(error.to_string().contains(why), "{kind}: {error}");
        let is_ours = matches!(error, PrepareError::Load(LoadError::HostCall(_)));
        assert!(is_ours, "{kind}: {error:?}");
    }
    Ok(())
}

#[test]
fn a_policy_that_could_not_look_while_it_was_loaded_is_prepared_again() {
    for (error, expected) in [
        (LoadError::Unreachable("away".into()), true),
        (LoadError::HostCall("not permitted".into()), false),
        (LoadError::Settings("wrong".into()), false),
    ] {
        let error = PrepareError::from(error);
        assert_eq!(error.is_worth_a_retry(), expected, "{error}");
    }
}
