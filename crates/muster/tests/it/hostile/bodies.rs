//! Bodies that are no objects, or not the ones they should be.

use super::{CONFIG_MAPS, JSON, REGISTRIES, Victim, assert_refused};
use anyhow::Result;
use http::Method;
use serde_json::{Value, json};

const YAML: &str = "application/yaml";

fn registry(rest: &str) -> String {
    format!(
        r#"{{"apiVersion":"sbomscanner.kubewarden.io/v1alpha1","kind":"Registry","metadata":{{"name":"a"}}{rest}}}"#
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_that_cannot_be_read_are_bad_requests() -> Result<()> {
    let mut victim = Victim::start()?;
    let deep = format!(
        "{}{}",
        r#"{"a":"#.repeat(5000),
        "1".to_owned() + &"}".repeat(5000)
    );
    let deep_array = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let deep_yaml = format!("a: {}{}", "[".repeat(10_000), "]".repeat(10_000));
    let laughs: String = (1..30)
        .map(|n| {
            format!(
                "a{n}: &a{n} [*a{0}, *a{0}, *a{0}, *a{0}, *a{0}, *a{0}, *a{0}, *a{0}]\n",
                n - 1
            )
        })
        .collect();
    let laughs = format!("a0: &a0 lol\n{laughs}");
    let bodies: [(&str, &str, &[u8]); 13] = [
        ("nothing", JSON, b""),
        ("half an object", JSON, b"{\"metadata\":"),
        ("no JSON", JSON, b"{not json"),
        (
            "a tail",
            JSON,
            br#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}} x"#,
        ),
        (
            "invalid UTF-8",
            JSON,
            b"{\"metadata\":{\"name\":\"\xff\xfe\"}}",
        ),
        (
            "a lone surrogate",
            JSON,
            br#"{"metadata":{"name":"\ud800"}}"#,
        ),
        ("a NUL", JSON, b"\0"),
        ("deep objects", JSON, deep.as_bytes()),
        ("deep arrays", JSON, deep_array.as_bytes()),
        ("no YAML", YAML, b"kind: [unclosed\n"),
        ("YAML in another encoding", YAML, b"a: \xff\xfe\n"),
        ("deep YAML", YAML, deep_yaml.as_bytes()),
        ("a billion laughs", YAML, laughs.as_bytes()),
    ];
    for (what, kind, body) in bodies {
        for collection in [CONFIG_MAPS, REGISTRIES] {
            let answer = victim
                .send(Method::POST, collection, kind, body.to_vec())
                .await?;
            assert_refused(what, &answer, 400, "BadRequest")?;
        }
    }
    victim.still_answers().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_types_and_rules_are_named_by_field() -> Result<()> {
    let mut victim = Victim::start()?;
    for (what, body, code, reason) in [
        (
            "a list of names",
            registry(r#","spec":{"uri":["a"]}"#),
            422,
            "Invalid",
        ),
        (
            "a text for a spec",
            registry(r#","spec":"a""#),
            422,
            "Invalid",
        ),
        ("no spec", registry(""), 422, "Invalid"),
        (
            "a number for a switch",
            registry(r#","spec":{"uri":"a.b","scanOnChange":1}"#),
            422,
            "Invalid",
        ),
    ] {
        let answer = victim.send(Method::POST, REGISTRIES, JSON, body).await?;
        assert_refused(what, &answer, code, reason)?;
        let status = answer.json()?;
        let field = status["details"]["causes"][0]["field"].as_str();
        assert!(
            field.is_some_and(|field| field.starts_with("spec")),
            "{what}: {status}"
        );
    }
    let body = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":5}}"#;
    let answer = victim.send(Method::POST, CONFIG_MAPS, JSON, body).await?;
    assert!(
        matches!(answer.status.as_u16(), 400 | 422),
        "{:?}",
        answer.body
    );
    victim.still_answers().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_and_duplicate_fields_are_errors_to_the_strict_and_warnings_to_others() -> Result<()>
{
    let mut victim = Victim::start()?;
    for (what, body) in [
        ("unknown", registry(r#","spec":{"uri":"a.b","wings":2}"#)),
        (
            "duplicate",
            registry(r#","spec":{"uri":"a.b","uri":"a.b"}"#),
        ),
    ] {
        let strict = format!("{REGISTRIES}?fieldValidation=Strict");
        let answer = victim
            .send(Method::POST, &strict, JSON, body.clone())
            .await?;
        assert_refused(what, &answer, 400, "BadRequest")?;
        let lenient = format!("{REGISTRIES}?dryRun=All");
        let answer = victim
            .send(Method::POST, &lenient, JSON, body.clone())
            .await?;
        assert_eq!(answer.status, 201);
        let warning = answer.headers.get("warning").map(|text| text.to_str());
        assert!(
            warning.is_some_and(|text| text.is_ok_and(|text| text.contains(what))),
            "{what}"
        );
        assert!(answer.json()?["spec"].get("wings").is_none());
    }
    victim.still_answers().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_content_types_are_not_understood() -> Result<()> {
    let mut victim = Victim::start()?;
    let body = r#"{"metadata":{"name":"a"}}"#;
    victim.send(Method::POST, CONFIG_MAPS, JSON, body).await?;
    for kind in [
        "text/plain",
        "application/xml",
        "garbage",
        "application/json-patch+json",
    ] {
        let answer = victim.send(Method::POST, CONFIG_MAPS, kind, body).await?;
        assert_refused(kind, &answer, 415, "UnsupportedMediaType")?;
    }
    for kind in ["application/json", "text/plain", ""] {
        let answer = victim
            .send(Method::PATCH, &format!("{CONFIG_MAPS}/a"), kind, body)
            .await?;
        assert_refused(kind, &answer, 415, "UnsupportedMediaType")?;
    }
    // Protobuf is for Kubernetes' own kinds, and must be protobuf.
    let protobuf = "application/vnd.kubernetes.protobuf";
    let answer = victim
        .send(Method::POST, REGISTRIES, protobuf, "k8s\0")
        .await?;
    assert_refused(protobuf, &answer, 400, "BadRequest")?;
    for body in [
        &b""[..],
        b"k8s",
        b"k8s\0\xff\xff\xff\xff\xff",
        b"k8s\0\x0a\xff\x01",
    ] {
        let answer = victim
            .send(Method::POST, CONFIG_MAPS, protobuf, body)
            .await?;
        assert_refused(protobuf, &answer, 400, "BadRequest")?;
    }
    victim.still_answers().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn patches_have_limits() -> Result<()> {
    let mut victim = Victim::start()?;
    let made = victim
        .send(
            Method::POST,
            CONFIG_MAPS,
            JSON,
            r#"{"metadata":{"name":"a"},"data":{"k":"v"}}"#,
        )
        .await?;
    assert_eq!(made.status, 201);
    let target = format!("{CONFIG_MAPS}/a");
    let operations = |count: usize| {
        let operation = json!({"op": "test", "path": "/data/k", "value": "v"});
        json!(vec![operation; count]).to_string()
    };
    const PATCH: &str = "application/json-patch+json";
    let answer = victim
        .send(Method::PATCH, &target, PATCH, operations(10_000))
        .await?;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    let answer = victim
        .send(Method::PATCH, &target, PATCH, operations(10_001))
        .await?;
    assert_refused("10 001 operations", &answer, 413, "RequestEntityTooLarge")?;

    // Each copy doubles the document.
    let copies: Vec<Value> = (0..60)
        .map(|n| json!({"op": "copy", "from": "/data", "path": format!("/data/{n}")}))
        .collect();
    let copies = json!(copies).to_string();
    let merge = format!("{}1{}", r#"{"a":"#.repeat(3000), "}".repeat(3000));
    for (what, kind, body, code, reason) in [
        ("copies", PATCH, copies.as_str(), 422, "Invalid"),
        (
            "no operation",
            PATCH,
            r#"[{"op":"fly","path":"/a"}]"#,
            422,
            "Invalid",
        ),
        ("no list", PATCH, r#"{"op":"add"}"#, 400, "BadRequest"),
        (
            "a missing path",
            PATCH,
            r#"[{"op":"remove","path":"/no/such"}]"#,
            422,
            "Invalid",
        ),
        (
            "a failed test",
            PATCH,
            r#"[{"op":"test","path":"/data/k","value":"x"}]"#,
            422,
            "Invalid",
        ),
        ("half a patch", PATCH, "[{", 400, "BadRequest"),
        (
            "a deep merge patch",
            "application/merge-patch+json",
            merge.as_str(),
            400,
            "BadRequest",
        ),
        (
            "a deep strategic patch",
            "application/strategic-merge-patch+json",
            merge.as_str(),
            400,
            "BadRequest",
        ),
        (
            "a deep apply",
            "application/apply-patch+yaml",
            merge.as_str(),
            400,
            "BadRequest",
        ),
    ] {
        let target = format!("{target}?fieldManager=test");
        let answer = victim
            .send(Method::PATCH, &target, kind, body.to_owned())
            .await?;
        assert_refused(what, &answer, code, reason)?;
    }
    let apply = r#"{"apiVersion":"v1","kind":"ConfigMap"}"#;
    let answer = victim
        .send(
            Method::PATCH,
            &target,
            "application/apply-patch+yaml",
            apply,
        )
        .await?;
    assert_refused("an apply by nobody", &answer, 422, "Invalid")?;
    victim.still_answers().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_has_no_more_than_a_thousand_managers() -> Result<()> {
    let mut victim = Victim::start()?;
    let object = |count: usize| {
        let entries: Vec<Value> = (0..count)
            .map(|number| {
                json!({
                    "manager": format!("m{number}"), "operation": "Apply", "apiVersion": "v1",
                    "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {format!("f:{number}"): {}}},
                })
            })
            .collect();
        json!({"metadata": {"name": "a", "managedFields": entries}}).to_string()
    };
    let target = format!("{CONFIG_MAPS}/a");
    for (method, target, count, code) in [
        (Method::POST, CONFIG_MAPS, 1_001, 422),
        (Method::POST, CONFIG_MAPS, 1_000, 201),
        (Method::PUT, target.as_str(), 1_001, 422),
        (Method::PUT, target.as_str(), 1_000, 200),
    ] {
        let answer = victim.send(method, target, JSON, object(count)).await?;
        if code != 422 {
            assert_eq!(answer.status, code);
            continue;
        }
        assert_refused("managers", &answer, code, "Invalid")?;
        let cause = answer.json()?["details"]["causes"][0].clone();
        assert_eq!(cause["field"], "metadata.managedFields");
        let message = "Too many: 1001: must have at most 1000 items";
        assert_eq!(cause["message"], message);
    }
    victim.still_answers().await
}
