//! Twenty policies about pods, Deployments and ConfigMaps, in the four ways that policies are run here.
//! They are about what policies in clusters are about; those in Wasm are made from text, half of them
//! at the cost of one that was written in a language with a runtime.

use anyhow::{Context, Result};
use muster_policy::cel::CelPolicy;
use muster_policy::module::ModulePolicy;
use muster_policy::rego::{Owner, RegoPolicy};
use muster_policy::{Evaluator, GroupVersionKind, Lookup, LookupError, Member};
use muster_testkit::policies::{Abi, forbidding, realistic};
use muster_wasm::Sandbox;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How long one evaluation may take; as long as if the policy did not say.
const TIME: Duration = Duration::from_secs(2);
/// The containers of whatever has some.
const CONTAINERS: &str = "has(object.spec) ? (has(object.spec.containers) ? object.spec.containers : \
     (has(object.spec.template) ? object.spec.template.spec.containers : [])) : []";
/// The same for Rego.
const PREAMBLE: &str = "package bench
import rego.v1
object := input.request.object
containers contains container if { some container in object.spec.containers }
containers contains container if { some container in object.spec.template.spec.containers }
";

/// The policy that a changed resource is told apart by: it says what the label is.
pub(super) const REVISION: &str = "revision";
/// The policy that is changed.
pub(super) const CHANGED: &str = "names";

/// How a policy is run, and what it costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Cel,
    Rego,
    /// A module that looks for a text.
    Plain(Abi),
    /// A module that fills a heap and goes over the request a hundred times.
    Heavy(Abi),
}

impl Way {
    pub(super) const ALL: [Way; 6] = [
        Way::Cel,
        Way::Rego,
        Way::Plain(Abi::Wapc),
        Way::Heavy(Abi::Wapc),
        Way::Plain(Abi::Wasi),
        Way::Heavy(Abi::Wasi),
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Way::Cel => "CEL",
            Way::Rego => "Rego",
            Way::Plain(Abi::Wapc) => "Wasm, waPC, a search",
            Way::Heavy(Abi::Wapc) => "Wasm, waPC, with a runtime's work",
            Way::Plain(Abi::Wasi) => "Wasm, WASI, a search",
            Way::Heavy(Abi::Wasi) => "Wasm, WASI, with a runtime's work",
        }
    }
}

/// What is run.
enum Code {
    Settings(Value),
    Source(String),
    Module(Vec<u8>),
}

/// A policy.
pub(super) struct Sample {
    pub(super) name: String,
    pub(super) way: Way,
    code: Code,
}

/// All of them.
pub(super) fn all() -> Vec<Sample> {
    let mut all = Vec::new();
    let says = "'the revision is ' + object.metadata.labels.revision";
    all.push(cel(
        REVISION,
        "object.metadata.labels.revision == 'none'",
        json!({"messageExpression": says}),
    ));
    for (name, expression) in [
        (CHANGED, "object.metadata.name.matches('^[a-z0-9-]+$')"),
        ("team", "'team' in object.metadata.labels"),
        (
            "latest",
            "variables.containers.all(c, !c.image.endsWith(':latest'))",
        ),
        (
            "registry",
            "variables.containers.all(c, c.image.startsWith('registry.example/'))",
        ),
        (
            "limits",
            "variables.containers.all(c, has(c.resources) && has(c.resources.limits) && \
             'memory' in c.resources.limits)",
        ),
        (
            "probes",
            "variables.containers.all(c, has(c.readinessProbe))",
        ),
    ] {
        all.push(cel(
            name,
            expression,
            json!({"message": format!("not {name}")}),
        ));
    }
    for (name, rule) in [
        (
            "privileged",
            "some c in containers\n c.securityContext.privileged\n m := sprintf(\"%s is privileged\", [c.name])",
        ),
        (
            "root",
            "some c in containers\n not c.securityContext.runAsNonRoot\n m := sprintf(\"%s may be root\", [c.name])",
        ),
        (
            "host-paths",
            "some v in object.spec.volumes\n v.hostPath\n m := sprintf(\"%s is of the host\", [v.name])",
        ),
        (
            "labels",
            "some l in {\"app\", \"team\", \"owner\"}\n not object.metadata.labels[l]\n m := sprintf(\"%s is missing\", [l])",
        ),
        (
            "tags",
            "some c in containers\n not contains(c.image, \":\")\n m := sprintf(\"%s has no tag\", [c.image])",
        ),
    ] {
        let source = format!("{PREAMBLE}deny contains m if {{\n {rule}\n}}\n");
        all.push(Sample {
            name: format!("rego-{name}"),
            way: Way::Rego,
            code: Code::Source(source),
        });
    }
    for (abi, called) in [(Abi::Wapc, "wapc"), (Abi::Wasi, "wasi")] {
        let host = forbidding(abi, "\"hostNetwork\":true", "the host's network is its own");
        let secret = forbidding(abi, "\"password\":", "a password is no configuration");
        for (name, way, module) in [
            ("network", Way::Plain(abi), host),
            ("password", Way::Plain(abi), secret),
            ("heavy-1", Way::Heavy(abi), realistic(abi)),
            ("heavy-2", Way::Heavy(abi), realistic(abi)),
        ] {
            all.push(Sample {
                name: format!("{called}-{name}"),
                way,
                code: Code::Module(module),
            });
        }
    }
    all
}

fn cel(name: &str, expression: &str, message: Value) -> Sample {
    let mut validation = json!({"expression": expression});
    for (field, value) in message.as_object().into_iter().flatten() {
        validation[field] = value.clone();
    }
    let settings = json!({
        "variables": [{"name": "containers", "expression": CONTAINERS}],
        "validations": [validation],
    });
    Sample {
        name: name.into(),
        way: Way::Cel,
        code: Code::Settings(settings),
    }
}

/// The settings of the changed policy: nothing keeps it any more.
pub(super) fn changed() -> Value {
    json!({"validations": [{"expression": "false", "message": "it is another policy now"}]})
}

impl Sample {
    /// The policy as an object; modules are written into a directory, where it names them.
    pub(super) fn object(&self, directory: &Path) -> Result<Value> {
        let (module, settings) = match &self.code {
            Code::Settings(settings) => ("builtin:cel".into(), settings.clone()),
            Code::Source(source) => ("builtin:rego".into(), json!({"rego": source})),
            Code::Module(module) => {
                let path = directory.join(format!("{}.wasm", self.name));
                std::fs::write(&path, module).context("writing a module")?;
                (format!("file://{}", path.display()), json!({}))
            }
        };
        let rule = |group: &str, resources: &[&str]| {
            json!({"apiGroups": [group], "apiVersions": ["v1"], "resources": resources,
                "operations": ["CREATE", "UPDATE"]})
        };
        Ok(json!({
            "apiVersion": "policies.kubewarden.io/v1", "kind": "ClusterAdmissionPolicy",
            "metadata": {"name": self.name, "annotations": {
                "io.kubewarden.policy.severity": "medium",
                "io.kubewarden.policy.category": "Best practices",
            }},
            "spec": {
                "module": module, "mutating": false, "settings": settings,
                "rules": [rule("", &["pods", "configmaps"]), rule("apps", &["deployments"])],
            },
        }))
    }

    /// The policy, ready to be asked.
    pub(super) fn evaluator(&self, sandbox: &Sandbox) -> Result<Arc<dyn Evaluator>> {
        Ok(match &self.code {
            Code::Settings(settings) => Arc::new(CelPolicy::load(settings, TIME)?),
            Code::Source(source) => Arc::new(RegoPolicy::load(
                source,
                &json!({}),
                TIME,
                Owner::default(),
            )?),
            Code::Module(module) => {
                let member = Member {
                    module: self.name.clone(),
                    settings: json!({}),
                    time: TIME,
                    context_aware: Vec::new(),
                };
                let module = Arc::new(sandbox.load(module)?);
                Arc::new(ModulePolicy::load(module, &member, Arc::new(Nothing))?)
            }
        })
    }
}

/// A cluster of which nothing can be seen; these policies do not ask.
#[derive(Debug)]
struct Nothing;

impl Lookup for Nothing {
    fn get(&self, _: &GroupVersionKind, _: Option<&str>, _: &str) -> Result<Value, LookupError> {
        Err(LookupError::NotFound)
    }

    fn list(
        &self,
        _: &GroupVersionKind,
        _: Option<&str>,
        _: Option<&str>,
        _: Option<&str>,
    ) -> Result<Value, LookupError> {
        Err(LookupError::permanent("there is nothing"))
    }
}
