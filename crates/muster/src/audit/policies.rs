//! Which policies judge: those of files, bare modules, those among the manifests, or those of a
//! cluster. The first of a name stands. One that cannot be read is told and costs no other. What is a
//! configuration check goes to [`Sources`].

use super::cluster::Cluster;
use super::files;
use super::lookup::place;
use super::manifest::{self, Origin, Read};
use super::sources::Sources;
use super::talk::Talk;
use anyhow::{Context, Result, bail};
use muster_api::policies::GROUP;
use muster_checks::Kind;
use muster_policy::{Policy, Served, Sort};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const DESCRIPTION: &str = "io.kubewarden.policy.description";
/// The server that is Muster itself.
const HERE: &str = "default";

/// A policy as it was found.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) policy: Arc<Policy>,
    pub(super) description: Option<String>,
}

/// A module that is to judge by itself.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Bare {
    /// As a policy names it.
    pub(super) module: String,
    /// What it is called here.
    pub(super) name: String,
}

/// The policies that were found so far.
#[derive(Debug, Default)]
pub(super) struct Policies {
    pub(super) drafts: Vec<Draft>,
    pub(super) bare: Vec<Bare>,
    /// What else stood in files of policies: their servers, and the Secrets of those.
    pub(super) others: Vec<Value>,
    /// Where policies stood: they may name files beside them.
    pub(super) directories: BTreeSet<PathBuf>,
    /// Where configuration checks are written.
    pub(super) checks: Sources,
    taken: BTreeSet<String>,
}

impl Policies {
    /// Reads what `--policy` names; `kinds` are those that there are.
    pub(super) fn read(
        &mut self,
        name: &str,
        namespace: &str,
        kinds: &[Kind],
        talk: &Talk,
    ) -> Result<()> {
        if let Some(bare) = bare(name)? {
            if self.checks.add_file(&bare.module, &bare.name, kinds, talk) {
                return Ok(());
            }
            if let Some(path) = bare.module.strip_prefix("file://") {
                let directory = Path::new(path).parent().unwrap_or(Path::new("/"));
                self.directories.insert(directory.into());
            }
            self.bare.push(bare);
            return Ok(());
        }
        let mut sum = 0;
        for (file, is_named) in files::files(name, talk)? {
            let text = match files::text(&file, &mut sum) {
                Ok(text) => text,
                Err(error) if is_named => return Err(error),
                Err(error) => {
                    talk.trouble(&crate::told(&error));
                    continue;
                }
            };
            for one in manifest::read(&file.to_string_lossy(), &text) {
                match one {
                    Read::Object(one) if Policy::is_one(&one.object) => {
                        self.add(one.object, Some(&one.origin), namespace, talk);
                    }
                    Read::Object(one) if Sources::is_one(&one.object) => {
                        self.checks.add(one.object, namespace, talk);
                    }
                    Read::Object(one) => self.others.push(one.object),
                    // What judges can be written down without a policy around it.
                    Read::Other(one) if one.object["validations"].is_array() => {
                        let name = called(&file.to_string_lossy());
                        let policy = wrapped(&name, "builtin:cel", one.object, &Said::default());
                        self.add(policy, Some(&one.origin), namespace, talk);
                    }
                    Read::Other(one) => talk.note(&format!("{} is no policy", one.origin)),
                    Read::Broken(why) => talk.trouble(&why),
                }
            }
        }
        Ok(())
    }

    /// Adds a policy, unless there is one of its name already.
    pub(super) fn add(
        &mut self,
        mut object: Value,
        origin: Option<&Origin>,
        namespace: &str,
        talk: &Talk,
    ) {
        let kind = object["kind"].as_str().unwrap_or_default();
        let namespaced = Sort::ALL
            .iter()
            .any(|sort| sort.is_namespaced() && sort.kind() == kind);
        place(&mut object, namespaced, namespace);
        if let Some(origin) = origin.filter(|origin| &*origin.file != "-") {
            let directory = Path::new(&*origin.file).parent().unwrap_or(Path::new(""));
            let directory = std::path::absolute(directory.join("."));
            if let Ok(directory) = directory {
                resolve(&mut object, &directory);
                self.directories.insert(directory);
            }
        }
        let description = object.pointer("/metadata/annotations");
        let description = description.and_then(|all| all[DESCRIPTION].as_str());
        let description = description.map(str::to_owned);
        match Policy::read(&object) {
            Ok(policy) => {
                if !self.taken.insert(policy.place()) {
                    talk.note(&format!(
                        "{} is there more than once; the first stands",
                        policy.place()
                    ));
                    return;
                }
                self.drafts.push(Draft {
                    policy: Arc::new(policy),
                    description,
                });
            }
            Err(error) => {
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                let kind = object["kind"].as_str().unwrap_or_default();
                let at = origin.map_or(String::new(), |origin| format!("{origin}: "));
                talk.trouble(&format!("{at}{kind} {name} cannot be used: {error}"));
            }
        }
    }

    /// Reads all policies of a cluster, in so far as they are about what is in `namespace`, if one is
    /// given. That some of them cannot be read is told.
    pub(super) async fn of_cluster(
        &mut self,
        cluster: &Cluster,
        served: &[Served],
        namespace: Option<&str>,
        talk: &Talk,
    ) {
        for sort in Sort::ALL {
            let mut served = served.iter();
            let is_it = |one: &&Served| one.group == GROUP && one.resource == sort.plural();
            let Some(served) = served.find(is_it) else {
                continue;
            };
            let version = served.versions.first().map_or("v1", String::as_str);
            match cluster.all(served, version, namespace).await {
                Ok(objects) => {
                    for object in objects {
                        self.add(object, None, HERE, talk);
                    }
                }
                Err(error) => talk.trouble(&crate::told(&error)),
            }
        }
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.drafts.is_empty() && self.bare.is_empty()
    }

    /// Has policies judged here whose server is not among what was read: without a cluster there is
    /// nobody else to judge.
    pub(super) fn judge_here<'a>(
        &mut self,
        manifests: impl Iterator<Item = &'a Value>,
        talk: &Talk,
    ) {
        let servers = |one: &Value| {
            let is_one = one["kind"] == "PolicyServer";
            let name = one["metadata"]["name"].as_str().filter(|_| is_one);
            name.map(str::to_owned)
        };
        let mut there: BTreeSet<String> = manifests.filter_map(servers).collect();
        there.extend(self.others.iter().filter_map(servers));
        for draft in &mut self.drafts {
            let server = &draft.policy.server;
            if server != HERE && !there.contains(server) {
                talk.note(&format!(
                    "the PolicyServer {server} is in no file; what it would judge is judged here"
                ));
                Arc::make_mut(&mut draft.policy).server = HERE.into();
            }
        }
    }
}

/// The module that a name means; none if it means files of policies.
fn bare(name: &str) -> Result<Option<Bare>> {
    let called = called(name);
    if let Some(path) = name.strip_prefix("file://") {
        let module = file(Path::new(path))?;
        return Ok(Some(Bare {
            module,
            name: called,
        }));
    }
    if name.contains("://") {
        let module = name.to_owned();
        return Ok(Some(Bare {
            module,
            name: called,
        }));
    }
    let path = Path::new(name);
    let extension = path.extension().unwrap_or_default();
    if path.exists() {
        let is_module = !path.is_dir() && (extension == "wasm" || extension == "rego");
        let module = is_module.then(|| file(path)).transpose()?;
        return Ok(module.map(|module| Bare {
            module,
            name: called,
        }));
    }
    let is_path = name == "-" || name.starts_with(['.', '/']) || !name.contains('/');
    let is_file = ["wasm", "rego", "yaml", "yml", "json"]
        .iter()
        .any(|one| extension == *one);
    if is_path || is_file {
        if name == "-" {
            return Ok(None);
        }
        bail!("--policy {name}: there is no such file or directory");
    }
    let module = format!("registry://{name}");
    Ok(Some(Bare {
        module,
        name: called,
    }))
}

/// A file of this machine as a policy names it.
fn file(path: &Path) -> Result<String> {
    let path = std::path::absolute(path);
    let path = path.with_context(|| "finding the working directory")?;
    Ok(format!("file://{}", path.display()))
}

/// What a module is called, after the last part of where it is.
fn called(name: &str) -> String {
    let name = name.split(['#', '?']).next().unwrap_or_default();
    let name = name.split('@').next().unwrap_or_default();
    let last = name
        .trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or_default();
    let last = last.split(':').next().unwrap_or_default();
    let ends = [".wasm", ".rego", ".yaml", ".yml", ".json"];
    let stem = ends
        .iter()
        .find_map(|end| last.strip_suffix(end))
        .unwrap_or(last);
    let sound: String = stem
        .chars()
        .map(|one| match one.to_ascii_lowercase() {
            one if one.is_ascii_alphanumeric() => one,
            _ => '-',
        })
        .collect();
    match sound.trim_matches('-') {
        "" => "policy".into(),
        sound => sound.into(),
    }
}

/// What a module says of itself, as far as a policy repeats it.
#[derive(Debug, Default)]
pub(super) struct Said {
    pub(super) mutating: bool,
    /// API versions and kinds.
    pub(super) reads: Vec<(String, String)>,
    pub(super) annotations: Vec<(String, String)>,
}

/// A policy around a module, about everything.
pub(super) fn wrapped(name: &str, module: &str, settings: Value, said: &Said) -> Value {
    let reads = said.reads.iter();
    let reads = reads.map(|(version, kind)| json!({"apiVersion": version, "kind": kind}));
    let annotations = said.annotations.iter().cloned();
    json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": Sort::Cluster.kind(),
        "metadata": {
            "name": name,
            "annotations": annotations.collect::<std::collections::BTreeMap<_, _>>(),
        },
        "spec": {
            "module": module, "settings": settings, "mutating": said.mutating,
            "contextAwareResources": reads.collect::<Vec<_>>(),
            "rules": [{
                "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"],
                "operations": ["CREATE"],
            }],
        },
    })
}

/// Makes the names of files in a policy mean files beside it.
fn resolve(policy: &mut Value, directory: &Path) {
    let resolve = |module: &mut Value| {
        let Some(text) = module.as_str() else {
            return;
        };
        let path = match text.split_once("://") {
            Some(("file", path)) => path,
            None if text.starts_with("./") || text.starts_with("../") => text,
            _ => return,
        };
        if let Ok(path) = std::path::absolute(directory.join(path)) {
            *module = format!("file://{}", path.display()).into();
        }
    };
    if let Some(module) = policy.pointer_mut("/spec/module") {
        resolve(module);
    }
    let members = policy
        .pointer_mut("/spec/policies")
        .and_then(Value::as_object_mut);
    for (_, member) in members.into_iter().flatten() {
        if let Some(module) = member.get_mut("module") {
            resolve(module);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_may_be_a_module_or_a_file_of_policies() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name).to_string_lossy().into_owned();
        for name in ["a.wasm", "b.rego", "c.yaml"] {
            std::fs::write(path(name), "").unwrap();
        }
        let local = |name: &str| {
            Ok(Some((
                format!("file://{}", path(name)),
                name[..1].to_owned(),
            )))
        };
        let remote = |module: &str, name: &str| Ok(Some((module.to_owned(), name.to_owned())));
        for (name, expected) in [
            (path("a.wasm"), local("a.wasm")),
            (format!("file://{}", path("a.wasm")), local("a.wasm")),
            (path("b.rego"), local("b.rego")),
            (path("c.yaml"), Ok(None)),
            (path(""), Ok(None)),
            (path("missing.wasm"), Err(())),
            ("missing".into(), Err(())),
            ("missing/file.yaml".into(), Err(())),
            (
                "registry://h.example:5000/p/Pod_Privileged:v1".into(),
                remote(
                    "registry://h.example:5000/p/Pod_Privileged:v1",
                    "pod-privileged",
                ),
            ),
            (
                "h.example/p/pods@sha256:0123".into(),
                remote("registry://h.example/p/pods@sha256:0123", "pods"),
            ),
            (
                "https://h.example/pods.wasm#sha256=0123".into(),
                remote("https://h.example/pods.wasm#sha256=0123", "pods"),
            ),
        ] {
            let found = bare(&name).map_err(|_| ());
            let found = found.map(|bare| bare.map(|bare| (bare.module, bare.name)));
            assert_eq!(found, expected, "{name}");
        }
    }

    #[test]
    fn files_are_beside_the_policy_that_names_them() {
        for (module, expected) in [
            ("file://a.wasm", "file:///policies/a.wasm"),
            ("file://./sub/a.wasm", "file:///policies/sub/a.wasm"),
            ("./a.wasm", "file:///policies/a.wasm"),
            ("file:///a.wasm", "file:///a.wasm"),
            ("registry://h/a", "registry://h/a"),
            ("builtin:cel", "builtin:cel"),
        ] {
            let mut policy =
                json!({"spec": {"module": module, "policies": {"a": {"module": module}}}});
            resolve(&mut policy, Path::new("/policies"));
            assert_eq!(policy["spec"]["module"], expected);
            assert_eq!(policy["spec"]["policies"]["a"]["module"], expected);
        }
    }
}
