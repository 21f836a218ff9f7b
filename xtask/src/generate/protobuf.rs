//! The protobuf facts: field numbers and types out of the published `generated.proto` files, JSON
//! names out of the Go types beside them. A pointer or a field that Go's JSON never omits keeps
//! its zero value; any other zero is what an absent field looks like on the wire.

use super::PACKAGES;
use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// Requests that are no stored kinds: (`apiVersion`, package, kinds).
const REQUESTS: &[(&str, &str, &[&str])] = &[
    (
        "authorization.k8s.io/v1",
        "io.k8s.api.authorization.v1",
        &[
            "LocalSubjectAccessReview",
            "SelfSubjectAccessReview",
            "SelfSubjectRulesReview",
            "SubjectAccessReview",
        ],
    ),
    (
        "authentication.k8s.io/v1",
        "io.k8s.api.authentication.v1",
        &["SelfSubjectReview", "TokenRequest", "TokenReview"],
    ),
    // Their `apiVersion` is that of the objects they are sent about.
    (
        "*",
        META,
        &[
            "CreateOptions",
            "DeleteOptions",
            "ListOptions",
            "PatchOptions",
            "Status",
            "UpdateOptions",
        ],
    ),
];

/// Read by hand in the decoder, because their JSON is not that of their fields.
const SPECIAL: &[&str] = &[
    "io.k8s.apimachinery.pkg.api.resource.Quantity",
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1",
    "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time",
    "io.k8s.apimachinery.pkg.runtime.RawExtension",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON",
];

/// The table: which message a kind is, and `[number, JSON name, type, how]` of each message's
/// fields, where how is `?` (omitted when zero), `!` (kept), `*` (repeated) or `%` (a map by
/// string). An empty name stands for a message whose fields are in place, or that is its list.
pub(super) fn table() -> Result<Value> {
    let modules = modules()?;
    let mut kinds = Map::new();
    let mut wanted = Vec::new();
    for package in PACKAGES {
        let version = package
            .path
            .split_once('/')
            .map_or("", |(_, version)| version);
        for kind in package.kinds {
            let message = format!("{}.{kind}", package.component);
            kinds.insert(format!("{version}/{kind}"), json!(message));
            wanted.push(message);
        }
    }
    for (version, package, names) in REQUESTS {
        for kind in *names {
            kinds.insert(
                format!("{version}/{kind}"),
                json!(format!("{package}.{kind}")),
            );
            wanted.push(format!("{package}.{kind}"));
        }
    }
    let mut packages: BTreeMap<String, Messages> = BTreeMap::new();
    let mut messages = BTreeMap::new();
    while let Some(name) = wanted.pop() {
        if messages.contains_key(&name) || SPECIAL.contains(&name.as_str()) {
            continue;
        }
        let (package, short) = name
            .rsplit_once('.')
            .context("a message without a package")?;
        if !packages.contains_key(package) {
            packages.insert(package.into(), read_package(package, &modules)?);
        }
        let fields = packages[package]
            .get(short)
            .with_context(|| format!("no message {name}"))?;
        wanted.extend(
            fields
                .iter()
                .map(|field| &field.of)
                .filter(|of| of.contains('.'))
                .cloned(),
        );
        let rows: Vec<Value> = fields
            .iter()
            .map(|f| json!([f.number, f.json, f.of, f.how.to_string()]))
            .collect();
        messages.insert(name, rows);
    }
    Ok(json!({"kinds": kinds, "messages": messages}))
}

struct Field {
    number: u32,
    json: String,
    of: String,
    how: char,
}

type Messages = BTreeMap<String, Vec<Field>>;

/// The directories of the Go modules that hold the types.
fn modules() -> Result<BTreeMap<&'static str, PathBuf>> {
    let names = [
        "k8s.io/api",
        "k8s.io/apimachinery",
        "k8s.io/apiextensions-apiserver",
    ];
    let output = Command::new("go")
        .args(["list", "-mod=readonly", "-m", "-f", "{{.Dir}}"])
        .args(names)
        .current_dir(crate::run::root().join("crates/testkit/kubernetes"))
        .output()
        .context("cannot run go")?;
    ensure!(
        output.status.success(),
        "go list: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let lines = String::from_utf8(output.stdout)?;
    Ok(names
        .into_iter()
        .zip(lines.lines().map(PathBuf::from))
        .collect())
}

fn read_package(package: &str, modules: &BTreeMap<&str, PathBuf>) -> Result<Messages> {
    let parts: Vec<&str> = package.trim_start_matches("io.k8s.").split('.').collect();
    let module = format!("k8s.io/{}", parts[0]);
    let root = modules
        .get(module.as_str())
        .with_context(|| format!("no module {module}"))?;
    let directory = parts[1..]
        .iter()
        .fold(root.clone(), |path, part| path.join(part));
    let mut tags = BTreeMap::new();
    for entry in fs::read_dir(&directory)? {
        let path = entry?.path();
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        if name.starts_with("types") && name.ends_with(".go") {
            read_tags(&fs::read_to_string(&path)?, &mut tags);
        }
    }
    read_messages(
        &fs::read_to_string(directory.join("generated.proto"))?,
        package,
        &tags,
    )
}

/// JSON names of a Go struct's fields by protobuf number, and whether zero values are kept.
type Tags = BTreeMap<String, BTreeMap<u32, (String, bool)>>;

fn read_tags(source: &str, tags: &mut Tags) {
    let mut current = None;
    for line in source.lines() {
        if let Some(name) = line
            .strip_prefix("type ")
            .and_then(|l| l.strip_suffix(" struct {"))
        {
            current = Some(name.to_owned());
        }
        let quoted = |key: &str| line.split_once(key)?.1.split('"').next();
        let (Some(name), Some(protobuf)) = (&current, quoted("protobuf:\"")) else {
            continue;
        };
        let Some(number) = protobuf.split(',').nth(1).and_then(|n| n.parse().ok()) else {
            continue;
        };
        let mut json = quoted("json:\"").unwrap_or_default().split(',');
        let json_name = json.next().unwrap_or_default().to_owned();
        let pointer = line
            .split_whitespace()
            .nth(1)
            .is_some_and(|of| of.starts_with('*'));
        let kept = pointer || !json.any(|option| matches!(option, "omitempty" | "omitzero"));
        tags.entry(name.clone())
            .or_default()
            .insert(number, (json_name, kept));
    }
}

fn read_messages(source: &str, package: &str, tags: &Tags) -> Result<Messages> {
    let mut messages = Messages::new();
    let mut current = String::new();
    let names: BTreeSet<&str> = source.lines().filter_map(message_name).collect();
    for line in source.lines() {
        if let Some(name) = message_name(line) {
            name.clone_into(&mut current);
            messages.entry(current.clone()).or_default();
        }
        let Some((declaration, number)) = line.trim().trim_end_matches(';').split_once(" = ")
        else {
            continue;
        };
        let Ok(number) = number.parse::<u32>() else {
            continue;
        };
        let declaration = declaration.replace(", ", ",");
        let words: Vec<&str> = declaration.split_whitespace().collect();
        let (how, of, name) = match words[..] {
            ["optional", of, name] => ('?', of, name),
            ["repeated", of, name] => ('*', of, name),
            [map, name] if map.starts_with("map<string,") => (
                '%',
                map.trim_start_matches("map<string,").trim_end_matches('>'),
                name,
            ),
            _ => continue,
        };
        let of = match of.strip_prefix(".k8s.io.") {
            Some(path) => format!(
                "io.k8s.{}",
                path.replace("apiextensions_apiserver", "apiextensions-apiserver")
            ),
            None if names.contains(of) => format!("{package}.{of}"),
            None => of.to_owned(),
        };
        let tag = tags.get(&current).and_then(|fields| fields.get(&number));
        let (json, kept) = match tag {
            Some((json, kept)) => (json.clone(), *kept),
            // A Go slice with a name of its own: the message is its list.
            None if name == "items" && how == '*' => (String::new(), true),
            // Unions that marshal themselves; the decoder knows them by their fields' names.
            None => (name.to_owned(), true),
        };
        let how = if how == '?' && kept { '!' } else { how };
        messages.entry(current.clone()).or_default().push(Field {
            number,
            json,
            of,
            how,
        });
    }
    Ok(messages)
}

fn message_name(line: &str) -> Option<&str> {
    line.strip_prefix("message ")?.strip_suffix(" {")
}
