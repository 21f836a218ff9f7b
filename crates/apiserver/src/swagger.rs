//! OpenAPI v2, as far as clients still need it: kubectl asks it, and not v3, whether a list of
//! objects (`kind: List`) may be sent with `fieldValidation`, and will not apply one without an
//! answer. So it tells which parameters a patch of each kind takes, and leaves schemas to v3.

use crate::catalog::Catalog;
use crate::discovery;
use serde_json::{Map, Value, json};

/// The encoding that clients prefer. They ask for it with an `@`, which is no letter of a media type.
pub(crate) const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
/// What a patch takes.
const PARAMETERS: [&str; 4] = ["dryRun", "fieldManager", "fieldValidation", "force"];

/// A kind, and where one object of it is.
struct Patched {
    path: String,
    group: String,
    version: String,
    kind: String,
}

fn patched(catalog: &Catalog) -> Vec<Patched> {
    let mut found = Vec::new();
    for (group, versions) in discovery::groups(catalog) {
        for version in versions {
            for served in catalog.of(&group, &version) {
                let kind = &served.kind;
                let base = match group.as_str() {
                    "" => format!("/api/{version}"),
                    group => format!("/apis/{group}/{version}"),
                };
                let place = match kind.is_namespaced() {
                    true => format!("{base}/namespaces/{{namespace}}"),
                    false => base,
                };
                found.push(Patched {
                    path: format!("{place}/{}/{{name}}", kind.plural),
                    group: group.clone(),
                    version: version.clone(),
                    kind: kind.kind.clone(),
                });
            }
        }
    }
    found
}

/// The document for people.
pub(crate) fn document(catalog: &Catalog) -> Value {
    let parameters: Vec<Value> = PARAMETERS
        .iter()
        .map(|name| json!({"name": name, "in": "query", "type": "string", "uniqueItems": true}))
        .collect();
    let mut paths = Map::new();
    for Patched {
        path,
        group,
        version,
        kind,
    } in patched(catalog)
    {
        let patch = json!({
            "x-kubernetes-action": "patch",
            "x-kubernetes-group-version-kind": {"group": group, "version": version, "kind": kind},
            "parameters": parameters, "responses": {"200": {"description": "OK"}},
        });
        paths.insert(path, json!({ "patch": patch }));
    }
    json!({
        "swagger": "2.0", "info": {"title": "Muster", "version": env!("CARGO_PKG_VERSION")},
        "paths": paths,
    })
}

/// The document for clients.
pub(crate) fn encoded(catalog: &Catalog) -> Vec<u8> {
    let parameters: Vec<Vec<u8>> = PARAMETERS.iter().map(|name| parameter(name)).collect();
    let mut paths = Vec::new();
    for Patched {
        path,
        group,
        version,
        kind,
    } in patched(catalog)
    {
        let gvk = format!("group: {group:?}\nkind: {kind}\nversion: {version}\n");
        let mut operation = Vec::new();
        for parameter in &parameters {
            put(&mut operation, 8, parameter);
        }
        put(
            &mut operation,
            13,
            &extension("x-kubernetes-group-version-kind", &gvk),
        );
        let mut item = Vec::new();
        put(&mut item, 8, &operation);
        put(&mut paths, 2, &pair(path.as_bytes(), &item));
    }
    let info = pair(b"Muster", env!("CARGO_PKG_VERSION").as_bytes());
    let mut document = pair(b"2.0", &info);
    put(&mut document, 8, &paths);
    document
}

/// `ParametersItem { Parameter { NonBodyParameter { QueryParameterSubSchema { in, name, type } } } }`
fn parameter(name: &str) -> Vec<u8> {
    let mut query = Vec::new();
    put(&mut query, 2, b"query");
    put(&mut query, 4, name.as_bytes());
    put(&mut query, 6, b"string");
    [3, 2, 1].into_iter().fold(query, |inner, number| {
        let mut outer = Vec::new();
        put(&mut outer, number, &inner);
        outer
    })
}

/// `NamedAny { name, value: Any { yaml } }`
fn extension(name: &str, yaml: &str) -> Vec<u8> {
    let mut any = Vec::new();
    put(&mut any, 2, yaml.as_bytes());
    pair(name.as_bytes(), &any)
}

/// A message whose fields 1 and 2 are these.
fn pair(first: &[u8], second: &[u8]) -> Vec<u8> {
    let mut message = Vec::new();
    put(&mut message, 1, first);
    put(&mut message, 2, second);
    message
}

/// Appends a field of bytes, a text or a message.
fn put(message: &mut Vec<u8>, number: u8, bytes: &[u8]) {
    message.push(number << 3 | 2);
    let mut length = bytes.len();
    while length >= 0x80 {
        message.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    message.push(length as u8);
    message.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_its_number_its_length_and_its_bytes() {
        for (bytes, start) in [
            (vec![7; 3], vec![0x42, 3, 7]),
            (vec![7; 127], vec![0x42, 127, 7]),
            (vec![7; 300], vec![0x42, 0xac, 0x02, 7]),
        ] {
            let mut message = Vec::new();
            put(&mut message, 8, &bytes);
            assert_eq!(message[..start.len()], start);
            assert!(message.ends_with(&bytes));
        }
        assert_eq!(pair(b"a", b""), [0x0a, 1, b'a', 0x12, 0]);
    }
}
