//! The stories of the specification, on one process and on a real cluster.

use super::{Audited, BINARY, Site, cel, lines, merge};
use anyhow::{Context, Result};
use muster_testkit::muster::Muster;
use serde_json::{Value, json};

const NO_LATEST: &str = "object.spec.containers.all(c, !c.image.endsWith(':latest'))";

/// What a policy comes to: pass, fail, error, mutated.
fn counts(policy: &Value) -> Value {
    let audit = &policy["status"]["audit"];
    json!([
        audit["pass"],
        audit["fail"],
        audit["error"],
        audit["mutated"]
    ])
}

fn latest() -> Value {
    json!({"spec": {"containers": [{"name": "c", "image": "nginx:latest"}]}})
}

/// "I want to know if some resource in my cluster violates the latest policies", "if a resource that I
/// own violates the cluster's", "how a policy behaves".
fn violations_are_found(site: &Site) -> Result<()> {
    let good = site.pod("default", "good", json!({}))?;
    let bad = site.pod("default", "bad", latest())?;
    let policy = cel("ClusterAdmissionPolicy", "no-latest", NO_LATEST, json!({}));
    site.apply(std::slice::from_ref(&policy))?;
    site.says(&good, &["clusterwide-no-latest=pass"])?;
    let report = site.says(&bad, &["clusterwide-no-latest=fail"])?;
    assert_eq!(report["results"][0]["message"], "not no-latest");
    // What a policy comes to, in its status and in the table.
    let get = ["clusteradmissionpolicy", "no-latest"];
    let found = site.policy_when("the counts", &get, |policy| {
        counts(policy)[1] == 1 && counts(policy)[0].as_u64() >= Some(1)
    })?;
    let condition = ready(&found);
    assert_eq!(condition["status"], "True", "{condition}");
    let table = site.kubectl.succeed(&["get", "clusteradmissionpolicies"])?;
    let (header, row) = table.split_once('\n').context("a table")?;
    for (column, count) in [
        ("PASS", None),
        ("FAIL", Some(1)),
        ("ERROR", Some(0)),
        ("MUTATED", Some(0)),
    ] {
        let at = header.find(column).with_context(|| table.clone())?;
        let shown = row
            .get(at..)
            .and_then(|rest| rest.split_whitespace().next());
        let shown: Option<u64> = shown.and_then(|number| number.parse().ok());
        assert!(shown.is_some(), "{column}: {table}");
        assert!(count.is_none() || count == shown, "{column}: {table}");
    }
    Ok(())
}

fn ready(policy: &Value) -> Value {
    let conditions = policy["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten();
    let mut conditions = conditions.filter(|one| one["type"] == "AuditReady");
    conditions.next().cloned().unwrap_or_default()
}

/// "I can deploy policies in `monitor` mode, and check what decisions they would have taken"; then they
/// are promoted.
fn monitor_and_protect_modes_judge_alike(site: &Site) -> Result<()> {
    let bad = site.pod("default", "watched", latest())?;
    let mut policy = cel(
        "ClusterAdmissionPolicy",
        "no-latest",
        NO_LATEST,
        json!({
            "metadata": {"annotations": {"io.kubewarden.policy.severity": "high"}},
            "spec": {"mode": "monitor"},
        }),
    );
    site.apply(std::slice::from_ref(&policy))?;
    let severity = |expected: &'static str| {
        move |report: &Value| {
            lines(report) == ["clusterwide-no-latest=fail"]
                && report["results"][0]["severity"] == expected
        }
    };
    site.report_when("a finding for information", &bad, severity("info"))?;
    merge(&mut policy, json!({"spec": {"mode": "protect"}}));
    site.apply(std::slice::from_ref(&policy))?;
    site.report_when("a finding that matters", &bad, severity("high"))?;
    Ok(())
}

/// "I can check if a settings change on a policy is impacting the number of rejections or mutations."
fn a_change_of_settings_is_seen_in_the_counts(site: &Site) -> Result<()> {
    for number in 0..3 {
        site.pod("default", &format!("pod-{number}"), json!({}))?;
    }
    let policy = |most: u32| {
        let expression = format!("int(object.metadata.name.split('-')[1]) < {most}");
        cel(
            "AdmissionPolicy",
            "numbers",
            &expression,
            json!({
                "metadata": {"namespace": "default"},
                "spec": {"matchConditions": [{"name": "numbered",
                    "expression": "object.metadata.name.startsWith('pod-')"}]},
            }),
        )
    };
    let get = ["admissionpolicy", "numbers", "-n", "default"];
    site.apply(&[policy(2)])?;
    site.policy_when("two of three", &get, |policy| {
        counts(policy) == json!([2, 1, 0, 0])
    })?;
    site.apply(&[policy(1)])?;
    site.policy_when("one of three", &get, |policy| {
        counts(policy) == json!([1, 2, 0, 0])
    })?;
    Ok(())
}

/// "I can understand if a policy is targeting a wider number of requests than it should", by what it is
/// excluded from and what it errs about too.
fn excluded_policies_are_counted_and_broken_ones_told(site: &Site) -> Result<()> {
    let pod = site.pod("default", "plain", json!({}))?;
    let excluded = cel(
        "ClusterAdmissionPolicy",
        "excluded",
        "false",
        json!({"spec": {"backgroundAudit": false}}),
    );
    let older = cel(
        "ClusterAdmissionPolicy",
        "older",
        "false",
        json!({"spec": {"background": false}}),
    );
    let elsewhere = cel(
        "ClusterAdmissionPolicy",
        "elsewhere",
        "false",
        json!({"spec": {"backgroundAudit": false,
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "other"}}}}),
    );
    let broken = cel(
        "ClusterAdmissionPolicy",
        "broken",
        "object.spec.(",
        json!({}),
    );
    let fine = cel("ClusterAdmissionPolicy", "fine", "true", json!({}));
    site.apply(&[excluded, older, elsewhere, broken, fine])?;
    let report = site.report_when("what can be said", &pod, |report| {
        lines(report) == ["clusterwide-broken=error", "clusterwide-fine=pass"]
            && report["summary"]["skip"] == 2
    })?;
    let summary = json!({"pass": 1, "fail": 0, "warn": 0, "error": 1, "skip": 2});
    assert_eq!(report["summary"], summary);
    let message = report["results"][0]["message"].as_str().unwrap_or_default();
    assert!(message.contains("does not load"), "{message}");
    let get = ["clusteradmissionpolicy", "broken"];
    let found = site.policy_when("the reason", &get, |policy| {
        ready(policy)["status"] == "False"
    })?;
    assert_eq!(ready(&found)["reason"], "SourceInvalid");
    Ok(())
}

/// An invalid severity costs nothing, and what is outside of namespaces has reports of its own.
fn odd_annotations_cost_no_report(site: &Site) -> Result<()> {
    let annotations = json!({"metadata": {"annotations": {
        "io.kubewarden.policy.severity": "catastrophic",
        "io.kubewarden.policy.category": "\u{7}odd"}}});
    let mut policy = cel("ClusterAdmissionPolicy", "odd", "false", annotations);
    policy["spec"]["rules"] = json!([{"apiGroups": [""], "apiVersions": ["*"],
        "resources": ["namespaces"], "operations": ["CREATE"]}]);
    site.apply(std::slice::from_ref(&policy))?;
    let namespace = site.get(&["namespace", "default"])?;
    let report = site.says(&namespace, &["clusterwide-odd=fail"])?;
    assert_eq!(report["kind"], "ClusterPolicyReport");
    assert_eq!(report["results"][0]["severity"], Value::Null);
    assert_eq!(report["results"][0]["category"], "odd");
    Ok(())
}

/// A group is one verdict, with its causes.
fn groups_make_one_verdict_of_several(site: &Site) -> Result<()> {
    let pod = site.pod("default", "grouped", latest())?;
    let member = |expression: &str| {
        json!({"module": "builtin:cel", "settings": {"validations": [
            {"expression": expression, "message": "because"}]}})
    };
    let mut group = cel("ClusterAdmissionPolicyGroup", "group", "true", json!({}));
    let rules = group["spec"]["rules"].take();
    group["spec"] = json!({
        "rules": rules, "expression": "pinned() || trusted()", "message": "neither",
        "policies": {"pinned": member(NO_LATEST), "trusted": member("false")},
    });
    site.apply(std::slice::from_ref(&group))?;
    let report = site.says(&pod, &["clusterwide-group-group=fail"])?;
    let line = &report["results"][0];
    assert_eq!(line["message"], "neither");
    assert_eq!(
        line["properties"]["causes"],
        "pinned: because; trusted: because"
    );
    Ok(())
}

/// "An AdmissionPolicy audits only its own namespace."
fn policies_of_a_namespace_stay_there(site: &Site) -> Result<()> {
    site.kubectl.succeed(&["create", "namespace", "other"])?;
    let here = site.pod("default", "here", json!({}))?;
    let there = site.pod("other", "there", json!({}))?;
    let own = cel(
        "AdmissionPolicy",
        "own",
        "true",
        json!({"metadata": {"namespace": "other"}}),
    );
    let all = cel("ClusterAdmissionPolicy", "all", "true", json!({}));
    site.apply(&[own, all])?;
    site.says(
        &there,
        &["clusterwide-all=pass", "namespaced-other-own=pass"],
    )?;
    site.says(&here, &["clusterwide-all=pass"])?;
    Ok(())
}

type Story = fn(&Site) -> Result<()>;
const STORIES: [(&str, Story); 7] = [
    ("violations", violations_are_found),
    ("modes", monitor_and_protect_modes_judge_alike),
    ("settings", a_change_of_settings_is_seen_in_the_counts),
    (
        "exclusions",
        excluded_policies_are_counted_and_broken_ones_told,
    ),
    ("annotations", odd_annotations_cost_no_report),
    ("groups", groups_make_one_verdict_of_several),
    ("namespaces", policies_of_a_namespace_stay_there),
];

/// Takes away what a story made, so that the next one finds nothing of it.
fn clear(site: &Site) -> Result<()> {
    let kinds = "clusteradmissionpolicies,clusteradmissionpolicygroups";
    let delete = ["delete", kinds, "--all", "--ignore-not-found"];
    site.kubectl.succeed(&delete)?;
    let kinds = "admissionpolicies,admissionpolicygroups";
    site.kubectl.succeed(&["delete", kinds, "-A", "--all"])?;
    let pods = [
        "delete",
        "pods",
        "-n",
        "default",
        "--all",
        "--force",
        "--grace-period=0",
    ];
    site.kubectl.succeed(&pods)?;
    Ok(())
}

fn tell(site: &Site) -> Result<()> {
    for (name, story) in STORIES {
        story(site).with_context(|| format!("the story about {name}"))?;
        clear(site)?;
    }
    // With the policies gone nobody says anything any more.
    muster_testkit::wait::until("the end of all reports", super::SOON, || {
        let left = site.get(&["policyreports,clusterpolicyreports", "-A"])?;
        Ok(left["items"]
            .as_array()
            .is_none_or(Vec::is_empty)
            .then_some(()))
    })
}

#[test]
fn the_stories_of_the_specification_hold_in_one_process() -> Result<()> {
    let muster = Muster::start(BINARY)?;
    tell(&Site::of(&muster)?).context(muster.process().log_tail())
}

#[test]
fn the_stories_hold_in_a_cluster_and_reports_are_nobody_elses_to_read_or_write() -> Result<()> {
    let audited = Audited::start(&[])?;
    let site = audited.site()?;
    tell(&site).context(audited.log())?;
    audited.lacks_no_right()?;
    secrecy(&audited, &site)
}

/// Reports are sensitive: no role that users have by default reads them, and none writes them.
fn secrecy(audited: &Audited, site: &Site) -> Result<()> {
    site.apply(&[cel("ClusterAdmissionPolicy", "all", "true", json!({}))])?;
    let pod = site.pod("default", "secret", json!({}))?;
    site.says(&pod, &["clusterwide-all=pass"])?;
    let bind = |user: &str, role: &str| {
        let (name, user) = (format!("{user}-{role}"), format!("--user={user}"));
        let role = format!("--clusterrole={role}");
        site.kubectl.succeed(&[
            "create",
            "rolebinding",
            &name,
            &role,
            &user,
            "-n",
            "default",
        ])
    };
    for role in ["view", "edit", "admin"] {
        bind(role, role)?;
    }
    bind("auditor", "muster-reports-reader")?;
    let can = |user: &str, verb: &str| -> Result<bool> {
        let kubectl = audited.kubectl_of(user, &[])?;
        let resource = "policyreports.wgpolicyk8s.io";
        let said = kubectl.run(&["auth", "can-i", verb, resource, "-n", "default"], "")?;
        Ok(said.stdout.trim() == "yes")
    };
    for (user, reads) in [
        ("view", false),
        ("edit", false),
        ("admin", false),
        ("auditor", true),
    ] {
        if reads {
            let resource = "policyreports.wgpolicyk8s.io";
            site.kubectl
                .wait_allowed(user, "get", resource, "default")?;
        }
        assert_eq!(can(user, "get")?, reads, "{user}");
        for verb in ["create", "update", "patch", "delete", "deletecollection"] {
            assert!(!can(user, verb)?, "{user} {verb}");
        }
    }
    // Nor what else tells what is wrong.
    for user in ["view", "edit", "admin"] {
        let kubectl = audited.kubectl_of(user, &[])?;
        for resource in [
            "clusterpolicyreports.wgpolicyk8s.io",
            "reports.openreports.io",
            "clusterreports.openreports.io",
            "configauditreports.aquasecurity.github.io",
            "clusterconfigauditreports.aquasecurity.github.io",
        ] {
            for verb in ["get", "update"] {
                let ask = ["auth", "can-i", verb, resource, "-n", "default"];
                let said = kubectl.run(&ask, "")?.stdout;
                assert_eq!(said.trim(), "no", "{user} {verb} {resource}");
            }
        }
    }
    let reader = audited.kubectl_of("auditor", &[])?;
    reader.succeed(&["get", "policyreports", "-n", "default"])?;
    reader.fail(&["get", "policyreports", "-A"], "")?;
    audited
        .kubectl_of("edit", &[])?
        .fail(&["get", "policyreports", "-n", "default"], "")?;
    Ok(())
}
