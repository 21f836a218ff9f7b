use super::*;
use crate::builtin::volume_columns::persistent_volume_claim;
use serde_json::json;

fn cells(columns: &[Column], object: &Value) -> Vec<Value> {
    columns
        .iter()
        .filter(|c| c.name != "Age")
        .map(|column| column.value(object))
        .collect()
}

#[test]
fn services_show_how_they_are_reached() {
    for (spec, status, shown) in [
        (
            json!({"ports": [{"port": 80}]}),
            json!({}),
            json!(["ClusterIP", "<none>", "<none>", "80/TCP", "<none>"]),
        ),
        (
            json!({"type": "NodePort", "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"],
                "ports": [{"port": 80, "nodePort": 30080}, {"port": 53, "protocol": "UDP"}],
                "selector": {"b": "c", "a": "b"}}),
            json!({}),
            json!([
                "NodePort",
                "10.0.0.1",
                "<none>",
                "80:30080/TCP,53/UDP",
                "a=b,b=c"
            ]),
        ),
        (
            json!({"type": "LoadBalancer"}),
            json!({}),
            json!(["LoadBalancer", "<none>", "<pending>", "<none>", "<none>"]),
        ),
        (
            json!({"type": "LoadBalancer", "externalIPs": ["9.9.9.9"]}),
            json!({"loadBalancer": {"ingress": [{"hostname": "z.io"}, {"ip": "1.2.3.4"}]}}),
            json!([
                "LoadBalancer",
                "<none>",
                "1.2.3.4,z.io,9.9.9.9",
                "<none>",
                "<none>"
            ]),
        ),
        (
            json!({"type": "ExternalName", "externalName": "a.io"}),
            json!({}),
            json!(["ExternalName", "<none>", "a.io", "<none>", "<none>"]),
        ),
    ] {
        let object = json!({"spec": spec, "status": status});
        assert_eq!(json!(cells(&service(), &object)), shown);
    }
}

#[test]
fn nodes_show_whether_they_are_ready() {
    for (node, status, roles) in [
        (json!({}), "Unknown", "<none>"),
        (
            json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]},
                "metadata": {"labels": {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "a"}}}),
            "Ready",
            "a,worker",
        ),
        (
            json!({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]},
                "spec": {"unschedulable": true}}),
            "NotReady,SchedulingDisabled",
            "<none>",
        ),
    ] {
        assert_eq!(
            (node_status(&node), node_roles(&node)),
            (status.into(), roles.into())
        );
    }
}

#[test]
fn ingresses_show_three_hosts() {
    let rules = |hosts: &[&str]| {
        let rules: Vec<Value> = hosts.iter().map(|host| json!({"host": host})).collect();
        json!({"spec": {"rules": rules}})
    };
    for (names, shown) in [
        (&[][..], "*"),
        (&["", "a"][..], "a"),
        (&["a", "b", "c"][..], "a,b,c"),
        (&["a", "b", "c", "d", "e"][..], "a,b,c + 2 more..."),
    ] {
        assert_eq!(hosts(&rules(names)), shown);
    }
}

#[test]
fn events_show_their_source_and_count() {
    let object = json!({
        "metadata": {"name": "e"}, "type": "Normal", "reason": "Pulled", "message": " done\n",
        "involvedObject": {"kind": "Pod", "name": "p", "fieldPath": "spec"},
        "source": {"component": "kubelet", "host": "n"},
    });
    let shown = json!([
        "<unknown>",
        "Normal",
        "Pulled",
        "pod/p",
        "spec",
        "kubelet, n",
        "done",
        "<unknown>",
        1,
        "e",
    ]);
    assert_eq!(json!(cells(&event(), &object)), shown);
}

#[test]
fn quotas_part_requests_from_limits() {
    let object = json!({"status": {
        "hard": {"pods": 2, "limits.cpu": "4", "cpu": "1"},
        "used": {"pods": "1"},
    }});
    assert_eq!(
        json!(cells(&resource_quota(), &object)),
        json!(["cpu: 0/1, pods: 1/2", "limits.cpu: 0/4"])
    );
}

#[test]
fn claims_show_a_capacity_once_bound() {
    let mut object = json!({
        "metadata": {"annotations": {"volume.beta.kubernetes.io/storage-class": "old"}},
        "spec": {}, "status": {"phase": "Bound", "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOncePod", "ReadWriteOnce"]},
    });
    let show = |object: &Value| json!(cells(&persistent_volume_claim(), object));
    assert_eq!(
        show(&object),
        json!(["Bound", "", "", "", "old", "<unset>", "Filesystem"])
    );
    object["spec"]["volumeName"] = "v".into();
    assert_eq!(
        show(&object),
        json!([
            "Bound",
            "v",
            "1Gi",
            "RWO,RWOP",
            "old",
            "<unset>",
            "Filesystem"
        ])
    );
}
