//! Tables that are made, not written: the facts about Kubernetes' own kinds that `muster-api`
//! carries as data. They come from a real kube-apiserver and from the published Go modules it is
//! built from, so that a new Kubernetes version is one run of this and a look at the difference.

mod protobuf;
mod schemas;

use anyhow::{Context, Result, bail};
use muster_testkit::kubectl::Kubectl;
use muster_testkit::kubernetes::{Kubernetes, Options};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// A group and version: its path under `/openapi/v3`, its package, and the kinds served of it.
struct Package {
    path: &'static str,
    component: &'static str,
    kinds: &'static [&'static str],
}

const PACKAGES: &[Package] = &[
    Package {
        path: "api/v1",
        component: "io.k8s.api.core.v1",
        kinds: &[
            "ConfigMap",
            "Event",
            "LimitRange",
            "Namespace",
            "Node",
            "PersistentVolume",
            "PersistentVolumeClaim",
            "Pod",
            "ReplicationController",
            "ResourceQuota",
            "Secret",
            "Service",
            "ServiceAccount",
        ],
    },
    Package {
        path: "apis/apps/v1",
        component: "io.k8s.api.apps.v1",
        kinds: &["DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"],
    },
    Package {
        path: "apis/batch/v1",
        component: "io.k8s.api.batch.v1",
        kinds: &["CronJob", "Job"],
    },
    Package {
        path: "apis/networking.k8s.io/v1",
        component: "io.k8s.api.networking.v1",
        kinds: &["Ingress", "NetworkPolicy"],
    },
    Package {
        path: "apis/rbac.authorization.k8s.io/v1",
        component: "io.k8s.api.rbac.v1",
        kinds: &["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"],
    },
    Package {
        path: "apis/coordination.k8s.io/v1",
        component: "io.k8s.api.coordination.v1",
        kinds: &["Lease"],
    },
    Package {
        path: "apis/policy/v1",
        component: "io.k8s.api.policy.v1",
        kinds: &["PodDisruptionBudget"],
    },
    Package {
        path: "apis/apiextensions.k8s.io/v1",
        component: "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1",
        kinds: &["CustomResourceDefinition"],
    },
];

/// Makes the tables of Kubernetes' own kinds anew; with `check`, only says whether they are fresh.
pub fn builtin_tables(check: bool) -> Result<()> {
    let kubernetes = Kubernetes::start(&Options::default())?;
    let kubectl = Kubectl::new(&kubernetes.kubeconfig_path())?;
    let schemas = schemas::table(|path| {
        Ok(serde_json::from_str(
            &kubectl.succeed(&["get", "--raw", path])?,
        )?)
    })?;
    for (name, table) in [
        ("builtin-schemas.json", schemas),
        ("protobuf.json", protobuf::table()?),
    ] {
        settle(&data().join(name), &table, check)?;
    }
    Ok(())
}

fn data() -> PathBuf {
    crate::run::root().join("crates/api/data")
}

fn settle(path: &Path, table: &Value, check: bool) -> Result<()> {
    let text = format!("{table}\n");
    if !check {
        return fs::write(path, text).with_context(|| format!("cannot write {}", path.display()));
    }
    if fs::read_to_string(path).ok().as_deref() != Some(&text) {
        bail!(
            "{} is not fresh: run `cargo xtask generate`",
            path.display()
        );
    }
    Ok(())
}
