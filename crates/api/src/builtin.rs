//! Kubernetes' own kinds, served as plain storage so that manifests can be applied and inspected
//! with no cluster. Their schemas are facts of a real kube-apiserver ([`schemas`]); their names,
//! columns, rules and completions are written here and held against that server. Nothing runs
//! them: no pod is started and no default filled in, beyond what [`prepare`] names.

mod cell;
mod columns;
mod pod_columns;
mod prepare;
pub mod protobuf;
mod schemas;
mod selectable;
mod validate;
mod volume_columns;
mod wire;
mod workload_columns;

pub use prepare::{prepare, quantities_as_text};
pub use selectable::selectable_value;

use cell::{age_column, created_column};
use muster_kind::kind::{NameRule, Validator};
use muster_kind::{Column, Kind, name};
use schemas::Schemas;

/// Builds kinds of one group, with their schemas from the table.
struct Group<'a> {
    schemas: &'a mut Schemas,
    group: &'static str,
    package: &'static str,
}

impl Group<'_> {
    fn namespaced(&mut self, kind: &str) -> Kind {
        self.complete(Kind::namespaced(self.group, "v1", kind))
    }

    fn cluster(&mut self, kind: &str) -> Kind {
        self.complete(Kind::cluster(self.group, "v1", kind))
    }

    fn complete(&mut self, mut kind: Kind) -> Kind {
        kind.schema = self
            .schemas
            .component(&format!("{}.{}", self.package, kind.kind));
        kind.builtin = true;
        kind.generation = false;
        kind
    }
}

/// What kinds of ours never need and these do.
trait Complete {
    fn columns(self, columns: Vec<Column>) -> Kind;
    fn with_generation(self) -> Kind;
    fn name_rule(self, rule: NameRule) -> Kind;
    fn all_selectable(self, paths: &[&str]) -> Kind;
    fn workload(self, short: &str, columns: Vec<Column>, validator: Validator) -> Kind;
}

impl Complete for Kind {
    fn columns(mut self, columns: Vec<Column>) -> Kind {
        self.columns = columns;
        self
    }

    fn with_generation(mut self) -> Kind {
        self.generation = true;
        self
    }

    fn name_rule(mut self, rule: NameRule) -> Kind {
        self.name_rule = rule;
        self
    }

    fn all_selectable(self, paths: &[&str]) -> Kind {
        paths.iter().fold(self, |kind, path| kind.selectable(path))
    }

    fn workload(self, short: &str, columns: Vec<Column>, validator: Validator) -> Kind {
        let kind = if short.is_empty() {
            self
        } else {
            self.short(short)
        };
        kind.category("all")
            .with_status()
            .with_generation()
            .columns(columns)
            .validated_by(validator)
    }
}

/// All of Kubernetes' own kinds that are served.
pub fn builtin() -> Vec<Kind> {
    let mut schemas = Schemas::new();
    let mut kinds = core(&mut schemas);
    kinds.extend(workloads(&mut schemas));
    kinds.extend(network(&mut schemas));
    kinds.extend(access(&mut schemas));
    kinds.extend(rest(&mut schemas));
    for kind in &mut kinds {
        kind.unconditional_update = kind.kind != "Lease";
        kind.create_on_update = kind.kind == "Lease";
        kind.field_reader = Some(selectable_value);
    }
    kinds
}

fn core(schemas: &mut Schemas) -> Vec<Kind> {
    let mut core = Group {
        schemas,
        group: "",
        package: "io.k8s.api.core.v1",
    };
    vec![
        core.cluster("Namespace")
            .describe("A scope for names, with access and limits of its own.")
            .short("ns")
            .with_status()
            .columns(columns::namespace())
            .selectable("status.phase")
            .name_rule(name::label)
            .validated_by(validate::namespace),
        core.cluster("Node")
            .describe("A machine that runs pods.")
            .short("no")
            .with_status()
            .columns(columns::node())
            .selectable("spec.unschedulable"),
        core.namespaced("Pod")
            .describe("Containers that run together on one node.")
            .workload("po", pod_columns::columns(), validate::pod)
            .all_selectable(&[
                "spec.nodeName",
                "spec.restartPolicy",
                "spec.schedulerName",
                "spec.serviceAccountName",
                "spec.hostNetwork",
                "status.phase",
                "status.podIP",
                "status.nominatedNodeName",
            ]),
        core.namespaced("ReplicationController")
            .describe("Keeps a number of pods alive; ReplicaSet is its successor.")
            .workload(
                "rc",
                workload_columns::replication_controller(),
                validate::replication_controller,
            )
            .selectable("status.replicas"),
        core.namespaced("ConfigMap")
            .describe("Settings for pods.")
            .short("cm")
            .columns(columns::config_map())
            .validated_by(validate::config_map),
        core.namespaced("Secret")
            .describe("Confidential data for pods.")
            .columns(columns::secret())
            .selectable("type")
            .validated_by(validate::secret),
        core.namespaced("Service")
            .describe("One address for many pods.")
            .short("svc")
            .category("all")
            .with_status()
            .columns(columns::service())
            .all_selectable(&["spec.clusterIP", "spec.type"])
            .name_rule(name::label)
            .validated_by(validate::service),
        core.cluster("PersistentVolume")
            .describe("Storage that outlives pods.")
            .short("pv")
            .with_status()
            .columns(volume_columns::persistent_volume()),
        core.namespaced("PersistentVolumeClaim")
            .describe("A wish for storage.")
            .short("pvc")
            .with_status()
            .columns(volume_columns::persistent_volume_claim()),
        core.namespaced("LimitRange")
            .describe("Bounds for what single objects of a namespace may use.")
            .short("limits")
            .columns(vec![created_column()]),
        core.namespaced("ResourceQuota")
            .describe("Bounds for what a namespace may use.")
            .short("quota")
            .with_status()
            .columns(columns::resource_quota()),
        core.namespaced("ServiceAccount")
            .describe("The identity of pods.")
            .short("sa")
            .columns(vec![age_column()]),
        core.namespaced("Event")
            .describe("Something that happened to an object.")
            .short("ev")
            .columns(columns::event())
            .all_selectable(&[
                "involvedObject.kind",
                "involvedObject.namespace",
                "involvedObject.name",
                "involvedObject.uid",
                "involvedObject.apiVersion",
                "involvedObject.resourceVersion",
                "involvedObject.fieldPath",
                "reason",
                "reportingComponent",
                "source",
                "type",
            ]),
    ]
}

fn workloads(schemas: &mut Schemas) -> Vec<Kind> {
    let mut apps = Group {
        schemas,
        group: "apps",
        package: "io.k8s.api.apps.v1",
    };
    let mut kinds = vec![
        apps.namespaced("Deployment")
            .describe("Keeps pods alive and replaces them step by step.")
            .workload(
                "deploy",
                workload_columns::deployment(),
                validate::deployment,
            ),
        apps.namespaced("ReplicaSet")
            .describe("Keeps a number of pods alive.")
            .workload("rs", workload_columns::replica_set(), validate::replica_set),
        apps.namespaced("StatefulSet")
            .describe("Keeps pods alive that have names and storage of their own.")
            .workload(
                "sts",
                workload_columns::stateful_set(),
                validate::stateful_set,
            ),
        apps.namespaced("DaemonSet")
            .describe("Keeps a pod alive on every node.")
            .workload("ds", workload_columns::daemon_set(), validate::daemon_set),
    ];
    let mut batch = Group {
        schemas,
        group: "batch",
        package: "io.k8s.api.batch.v1",
    };
    kinds.extend([
        batch
            .namespaced("Job")
            .describe("Runs pods until enough of them succeed.")
            .workload("", workload_columns::job(), validate::job)
            .selectable("status.successful"),
        batch
            .namespaced("CronJob")
            .describe("Starts jobs by a schedule.")
            .workload("cj", workload_columns::cron_job(), validate::cron_job),
    ]);
    kinds
}

fn network(schemas: &mut Schemas) -> Vec<Kind> {
    let group = "networking.k8s.io";
    let mut network = Group {
        schemas,
        group,
        package: "io.k8s.api.networking.v1",
    };
    vec![
        network
            .namespaced("Ingress")
            .describe("Leads requests from outside to services.")
            .plural("ingresses")
            .short("ing")
            .with_status()
            .with_generation()
            .columns(columns::ingress()),
        network
            .namespaced("NetworkPolicy")
            .describe("Which pods may talk to which.")
            .plural("networkpolicies")
            .short("netpol")
            .with_generation()
            .columns(columns::network_policy()),
    ]
}

fn access(schemas: &mut Schemas) -> Vec<Kind> {
    let group = "rbac.authorization.k8s.io";
    let mut access = Group {
        schemas,
        group,
        package: "io.k8s.api.rbac.v1",
    };
    vec![
        access
            .namespaced("Role")
            .describe("What may be done in a namespace.")
            .name_rule(name::segment)
            .columns(vec![created_column()])
            .validated_by(validate::role),
        access
            .namespaced("RoleBinding")
            .describe("Gives a role to someone in a namespace.")
            .name_rule(name::segment)
            .columns(columns::binding())
            .validated_by(validate::role_binding),
        access
            .cluster("ClusterRole")
            .describe("What may be done everywhere.")
            .name_rule(name::segment)
            .columns(vec![created_column()])
            .validated_by(validate::cluster_role),
        access
            .cluster("ClusterRoleBinding")
            .describe("Gives a role to someone everywhere.")
            .name_rule(name::segment)
            .columns(columns::binding())
            .validated_by(validate::cluster_role_binding),
    ]
}

fn rest(schemas: &mut Schemas) -> Vec<Kind> {
    let package = "io.k8s.api.coordination.v1";
    let lease = Group {
        schemas,
        group: "coordination.k8s.io",
        package,
    }
    .namespaced("Lease")
    .describe("Who holds something, and until when.")
    .columns(columns::lease())
    .validated_by(validate::lease);
    let budget = Group {
        schemas,
        group: "policy",
        package: "io.k8s.api.policy.v1",
    }
    .namespaced("PodDisruptionBudget")
    .describe("How many pods may be taken away at once.")
    .short("pdb")
    .with_status()
    .with_generation()
    .columns(columns::pod_disruption_budget());
    let package = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1";
    let definition = Group {
        schemas,
        group: "apiextensions.k8s.io",
        package,
    }
    .cluster("CustomResourceDefinition")
    .describe("A kind of one's own.")
    .short("crd")
    .short("crds")
    .category("api-extensions")
    .with_status()
    .with_generation()
    .columns(vec![created_column()]);
    vec![lease, budget, definition]
}

#[cfg(test)]
mod tests;
