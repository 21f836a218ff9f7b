use super::*;

fn read(bytes: &[u8]) -> Result<Value, String> {
    decode(bytes, &Budget::default())
}

fn unpack(text: &str) -> Vec<u8> {
    STANDARD.decode(text).unwrap()
}

#[test]
fn bodies_recorded_from_kubectl_read_as_the_json_it_prints() {
    for (command, body, tree) in [
        (
            "create namespace n1",
            "azhzAAoPCgJ2MRIJTmFtZXNwYWNlEhoKEgoCbjESABoAIgAqADIAOABCABIAGgIKABoAIgA=",
            json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "n1"}}),
        ),
        (
            "create configmap c1 --from-literal=a=b",
            "azhzAAoPCgJ2MRIJQ29uZmlnTWFwEhwKEgoCYzESABoAIgAqADIAOABCABIGCgFhEgFiGgAiAA==",
            json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "c1"}, "data": {"a": "b"}}),
        ),
        (
            "create configmap c2 --from-file=bin=bin",
            "azhzAAoPCgJ2MRIJQ29uZmlnTWFwEh8KEgoCYzISABoAIgAqADIAOABCABoJCgNiaW4SAv/+GgAiAA==",
            json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "c2"}, "binaryData": {"bin": "//4="}}),
        ),
        (
            "create secret generic s1 --from-literal=a=b",
            "azhzAAoMCgJ2MRIGU2VjcmV0Eh4KEgoCczESABoAIgAqADIAOABCABIGCgFhEgFiGgAaACIA",
            json!({"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "s1"}, "data": {"a": "Yg=="}}),
        ),
        (
            "create deployment d1 --image=nginx:1 --port=80 --replicas=2",
            "azhzAAoVCgdhcHBzL3YxEgpEZXBsb3ltZW50ErYBCh0KAmQxEgAaACIAKgAyADgAQgBaCQoDYXBwEgJkMRKGAQgCEgsKCQoDYXBwEgJkMRptChsKABIAGgAiACoAMgA4AEIAWgkKA2FwcBICZDESThIwCgVuZ2lueBIHbmdpbng6MSoAMgoKABAAGFAiACoAQgBqAHIAgAEAiAEAkAEAogEAGgAyAEIASgBSAFgAYABoAIIBAIoBAJoBAMIBACICCgAoADgAGgwIABAAGAAgACgAOAAaACIA",
            json!({"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": "d1", "labels": {"app": "d1"}}, "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "d1"}}, "template": {"metadata": {"labels": {"app": "d1"}}, "spec": {"containers": [{"name": "nginx", "image": "nginx:1", "ports": [{"containerPort": 80}]}]}}}}),
        ),
        (
            "create job j1 --image=busybox -- echo hi",
            "azhzAAoPCghiYXRjaC92MRIDSm9iEoQBChIKAmoxEgAaACIAKgAyADgAQgASZDJiChAKABIAGgAiACoAMgA4AEIAEk4SKwoCajESB2J1c3lib3gaBGVjaG8aAmhpKgBCAGoAcgCAAQCIAQCQAQCiAQAaBU5ldmVyMgBCAEoAUgBYAGAAaACCAQCKAQCaAQDCAQAaCCAAKAAwADoAGgAiAA==",
            json!({"kind": "Job", "apiVersion": "batch/v1", "metadata": {"name": "j1"}, "spec": {"template": {"spec": {"containers": [{"name": "j1", "image": "busybox", "command": ["echo", "hi"]}], "restartPolicy": "Never"}}}}),
        ),
        (
            "create ingress i1 --rule=foo.com/bar*=svc1:8080,tls=my-cert",
            "azhzAAofChRuZXR3b3JraW5nLms4cy5pby92MRIHSW5ncmVzcxJeChIKAmkxEgAaACIAKgAyADgAQgASRBISCgdmb28uY29tEgdteS1jZXJ0Gi4KB2Zvby5jb20SIwohCh8KBC9iYXISDyINCgRzdmMxEgUKABCQPxoGUHJlZml4GgIKABoAIgA=",
            json!({"kind": "Ingress", "apiVersion": "networking.k8s.io/v1", "metadata": {"name": "i1"}, "spec": {"tls": [{"hosts": ["foo.com"], "secretName": "my-cert"}], "rules": [{"host": "foo.com", "http": {"paths": [{"path": "/bar", "pathType": "Prefix", "backend": {"service": {"name": "svc1", "port": {"number": 8080}}}}]}}]}}),
        ),
        (
            "create rolebinding rb1 --role=r1 --user=u --serviceaccount=default:x",
            "azhzAAorChxyYmFjLmF1dGhvcml6YXRpb24uazhzLmlvL3YxEgtSb2xlQmluZGluZxKEAQoTCgNyYjESABoAIgAqADIAOABCABImCgRVc2VyEhlyYmFjLmF1dGhvcml6YXRpb24uazhzLmlvGgF1IgASHgoOU2VydmljZUFjY291bnQSABoBeCIHZGVmYXVsdBolChlyYmFjLmF1dGhvcml6YXRpb24uazhzLmlvEgRSb2xlGgJyMRoAIgA=",
            json!({"kind": "RoleBinding", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "rb1"}, "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "u"}, {"kind": "ServiceAccount", "name": "x", "namespace": "default"}], "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r1"}}),
        ),
        (
            "create quota q1 --hard=cpu=1,memory=1G,pods=2",
            "azhzAAoTCgJ2MRINUmVzb3VyY2VRdW90YRJBChIKAnExEgAaACIAKgAyADgAQgASKQoKCgNjcHUSAwoBMQoOCgZtZW1vcnkSBAoCMUcKCwoEcG9kcxIDCgEyGgAaACIA",
            json!({"kind": "ResourceQuota", "apiVersion": "v1", "metadata": {"name": "q1"}, "spec": {"hard": {"cpu": "1", "memory": "1G", "pods": "2"}}}),
        ),
        (
            "create service clusterip svc1 --tcp=5678:8080",
            "azhzAAoNCgJ2MRIHU2VydmljZRJvCiEKBHN2YzESABoAIgAqADIAOABCAFoLCgNhcHASBHN2YzESRgoeCgk1Njc4LTgwODASA1RDUBiuLCIHCAAQkD8aACgAEgsKA2FwcBIEc3ZjMRoAIglDbHVzdGVySVA6AEIAUgBaAGAAaAAaAgoAGgAiAA==",
            json!({"kind": "Service", "apiVersion": "v1", "metadata": {"name": "svc1", "labels": {"app": "svc1"}}, "spec": {"ports": [{"name": "5678-8080", "protocol": "TCP", "port": 5678, "targetPort": 8080}], "selector": {"app": "svc1"}, "type": "ClusterIP"}}),
        ),
        (
            "create pdb pdb1 --selector=app=x --min-available=50%",
            "azhzAAogCglwb2xpY3kvdjESE1BvZERpc3J1cHRpb25CdWRnZXQSOwoUCgRwZGIxEgAaACIAKgAyADgAQgASFwoJCAEQABoDNTAlEgoKCAoDYXBwEgF4GgoIABgAIAAoADAAGgAiAA==",
            json!({"kind": "PodDisruptionBudget", "apiVersion": "policy/v1", "metadata": {"name": "pdb1"}, "spec": {"minAvailable": "50%", "selector": {"matchLabels": {"app": "x"}}}, "status": {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}}),
        ),
    ] {
        assert_eq!(read(&unpack(body)), Ok(tree), "kubectl {command}");
    }
}

#[test]
fn reviews_recorded_from_kubectl_are_read() {
    for (body, tree) in [
        (
            "azhzAAoyChdhdXRob3JpemF0aW9uLms4cy5pby92MRIXU2VsZlN1YmplY3RBY2Nlc3NSZXZpZXcSPAoQCgASABoAIgAqADIAOABCABIeChwKB2RlZmF1bHQSA2dldBoAIgAqBHBvZHMyADoAGggIABIAGgAgABoAIgA=",
            json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": {"namespace": "default", "resource": "pods", "verb": "get"}}, "status": {"allowed": false}}),
        ),
        (
            "azhzAAoxChdhdXRob3JpemF0aW9uLms4cy5pby92MRIWU2VsZlN1YmplY3RSdWxlc1JldmlldxIjChAKABIAGgAiACoAMgA4AEIAEgkKB2RlZmF1bHQaBBgAIgAaACIA",
            json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": {"namespace": "default"}, "status": {"incomplete": false}}),
        ),
        (
            "azhzAAotChhhdXRoZW50aWNhdGlvbi5rOHMuaW8vdjESEVNlbGZTdWJqZWN0UmV2aWV3EhoKEAoAEgAaACIAKgAyADgAQgASBgoECgASABoAIgA=",
            json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}),
        ),
        (
            "azhzAAooChhhdXRoZW50aWNhdGlvbi5rOHMuaW8vdjESDFRva2VuUmVxdWVzdBIaChAKABIAGgAiACoAMgA4AEIAEgAaBAoAEgAaACIA",
            json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}, "status": {"token": ""}}),
        ),
    ] {
        assert_eq!(read(&unpack(body)), Ok(tree));
    }
}

fn varint(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number > 0x7f {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

/// A field with a length.
fn field(number: usize, contents: &[u8]) -> Vec<u8> {
    [
        varint(number << 3 | 2),
        varint(contents.len()),
        contents.to_vec(),
    ]
    .concat()
}

fn body(version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let names = [field(1, version.as_bytes()), field(2, kind.as_bytes())].concat();
    [MAGIC.to_vec(), field(1, &names), field(2, raw)].concat()
}

#[test]
fn a_body_that_would_be_a_large_tree_is_refused() {
    let entry = |number: usize| field(2, &field(1, number.to_string().as_bytes()));
    let data: Vec<u8> = (0..100_000).flat_map(entry).collect();
    let messages = field(2, &field(2, b"").repeat(1_000_000));
    let texts = field(1, &field(14, b"a").repeat(1_000_000));
    for (kind, raw) in [("Pod", messages), ("Pod", texts), ("ConfigMap", data)] {
        let budget = Budget::new(1_000_000);
        assert!(decode(&body("v1", kind, &raw), &budget).is_err(), "{kind}");
        assert!(budget.exceeded().is_some(), "{kind}");
        assert!(budget.spent() < 1_100_000, "{kind}");
    }
}

#[test]
fn times_keep_their_precision() {
    let time = |nanos: u8| [vec![0x08, 0x80, 0xf2, 0xd6, 0xca, 0x06], vec![0x10, nanos]].concat();
    let spec = field(2, &[field(3, &time(0)), field(4, &time(0))].concat());
    let tree = read(&body("coordination.k8s.io/v1", "Lease", &spec)).unwrap();
    assert_eq!(tree["spec"]["acquireTime"], "2026-01-01T00:00:00.000000Z");
    let metadata = field(1, &[field(1, b"x"), field(8, &time(0))].concat());
    let tree = read(&body("v1", "ConfigMap", &metadata)).unwrap();
    assert_eq!(
        tree["metadata"],
        json!({"name": "x", "creationTimestamp": "2026-01-01T00:00:00Z"})
    );
}

#[test]
fn pointers_keep_their_zeros_and_plain_fields_do_not() {
    // DeploymentSpec.replicas is a pointer, minReadySeconds is not.
    let spec = field(2, &[0x08, 0, 0x28, 0]);
    let tree = read(&body("apps/v1", "Deployment", &spec)).unwrap();
    assert_eq!(tree["spec"], json!({"replicas": 0}));
}

#[test]
fn options_are_read_whatever_their_version() {
    let options = [vec![0x08, 30], field(4, b"Foreground")].concat();
    for version in ["v1", "apps/v1", "meta.k8s.io/v1"] {
        let tree = read(&body(version, "DeleteOptions", &options)).unwrap();
        let expected = json!({
            "apiVersion": version, "kind": "DeleteOptions",
            "gracePeriodSeconds": 30, "propagationPolicy": "Foreground",
        });
        assert_eq!(tree, expected);
    }
}

#[test]
fn hostile_bytes_are_refused() {
    let good = body("v1", "ConfigMap", &field(1, &field(1, b"x")));
    assert!(read(&good).is_ok());
    for cut in 0..good.len() {
        // No panic; a cut between fields is a shorter message.
        let _ = read(&good[..cut]);
    }
    for position in 0..good.len() {
        for value in [0, 0x7f, 0x80, 0xff] {
            let mut bytes = good.clone();
            bytes[position] = value;
            let _ = read(&bytes);
        }
    }
    assert!(
        read(b"{}")
            .unwrap_err()
            .contains("does not appear to be a protobuf message")
    );
    let unknown = read(&body("v1", "Nothing", b"")).unwrap_err();
    assert_eq!(
        unknown,
        "no kind \"Nothing\" is registered for version \"v1\""
    );
    assert!(read(&body("v1", "ConfigMap", &field(1, &field(1, b"\xff")))).is_err());
}

#[test]
fn nesting_is_bounded() {
    let package = "apiextensions.k8s.io/v1";
    // `not` of a schema is a schema.
    let mut schema = Vec::new();
    for _ in 0..200 {
        schema = field(28, &schema);
    }
    let version = field(7, &field(4, &field(1, &schema)));
    let bytes = body(package, "CustomResourceDefinition", &field(2, &version));
    assert_eq!(read(&bytes), Err("message is nested too deeply".into()));
}

#[test]
fn every_field_of_a_message_is_in_its_schema() {
    let schemas: BTreeMap<String, Value> =
        serde_json::from_str(include_str!("../../../data/builtin-schemas.json")).unwrap();
    let mut compared = 0;
    for (message, fields) in &TABLE.messages {
        let Some(properties) = schemas
            .get(*message)
            .and_then(|s| s["properties"].as_object())
        else {
            continue;
        };
        let mut fields: Vec<&Field> = fields.iter().collect();
        while let Some((_, name, of, _)) = fields.pop() {
            match *name {
                "" => fields.extend(&TABLE.messages[of]),
                name => assert!(properties.contains_key(name), "{message} has no {name}"),
            }
            compared += 1;
        }
    }
    assert!(compared > 1000, "{compared}");
}
