//! What a request asks for, read from its method and path once; nothing behind this looks at a
//! path again.

use http::Method;
use percent_encoding::percent_decode_str;

/// What is done, in the words of authorization.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Read one object.
    Get,
    /// Read a collection.
    List,
    /// Follow a collection.
    Watch,
    /// Add an object.
    Create,
    /// Replace an object.
    Update,
    /// Change an object.
    Patch,
    /// Remove an object.
    Delete,
    /// Remove a collection.
    DeleteCollection,
}

impl Verb {
    /// The verb as roles spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Verb::Get => "get",
            Verb::List => "list",
            Verb::Watch => "watch",
            Verb::Create => "create",
            Verb::Update => "update",
            Verb::Patch => "patch",
            Verb::Delete => "delete",
            Verb::DeleteCollection => "deletecollection",
        }
    }
}

/// A path under `/api` or `/apis` that names a resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourcePath {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The namespace, or empty.
    pub namespace: String,
    /// The plural resource.
    pub resource: String,
    /// The object's name, or empty for the collection.
    pub name: String,
    /// The subresource, or empty.
    pub subresource: String,
    /// The old `/watch/` form of a path.
    pub watch: bool,
}

/// Reads a path such as `/apis/apps/v1/namespaces/x/deployments/web/status`; `None` if it names
/// no resource.
pub fn resource_path(path: &str) -> Option<ResourcePath> {
    let mut parts = path.trim_matches('/').split('/').map(|part| {
        // What is no text names nothing; it must not become an absent name, which names all.
        percent_decode_str(part).decode_utf8_lossy().into_owned()
    });
    let mut found = ResourcePath::default();
    match parts.next()?.as_str() {
        "api" => {}
        "apis" => found.group = parts.next()?,
        _ => return None,
    }
    found.version = parts.next()?;
    let mut rest: Vec<String> = parts.collect();
    if rest.first().is_some_and(|first| first == "watch") {
        found.watch = true;
        rest.remove(0);
    }
    // `/namespaces/x/status` is about the namespace itself; anything else below a namespace
    // is about what lives in it.
    let inside = rest.first().is_some_and(|first| first == "namespaces")
        && rest
            .get(2)
            .is_some_and(|third| !matches!(third.as_str(), "status" | "finalize"));
    if inside {
        found.namespace = rest.remove(1);
        rest.remove(0);
    }
    let mut rest = rest.into_iter();
    found.resource = rest.next().filter(|resource| !resource.is_empty())?;
    found.name = rest.next().unwrap_or_default();
    found.subresource = rest.collect::<Vec<_>>().join("/");
    let nameless = found.name.is_empty() && !found.subresource.is_empty();
    (!nameless).then_some(found)
}

/// The verb of a method on a path; `None` if the method has no meaning there.
pub fn verb(method: &Method, path: &ResourcePath, watch: bool) -> Option<Verb> {
    let one = !path.name.is_empty();
    Some(match *method {
        Method::GET | Method::HEAD if watch || path.watch => Verb::Watch,
        Method::GET | Method::HEAD if one => Verb::Get,
        Method::GET | Method::HEAD => Verb::List,
        Method::POST => Verb::Create,
        Method::PUT if one => Verb::Update,
        Method::PATCH if one => Verb::Patch,
        Method::DELETE if one => Verb::Delete,
        Method::DELETE => Verb::DeleteCollection,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_no_text_or_empty_is_not_the_collection() {
        let found = resource_path("/api/v1/namespaces/x/secrets/%ff").unwrap();
        assert!(!found.name.is_empty());
        assert_eq!(resource_path("/api/v1/namespaces/x/secrets//status"), None);
    }

    #[test]
    fn paths_name_group_namespace_resource_and_subresource() {
        for (path, group, namespace, resource, name, subresource) in [
            ("/api/v1/configmaps", "", "", "configmaps", "", ""),
            ("/api/v1/namespaces", "", "", "namespaces", "", ""),
            ("/api/v1/namespaces/x", "", "", "namespaces", "x", ""),
            (
                "/api/v1/namespaces/x/status",
                "",
                "",
                "namespaces",
                "x",
                "status",
            ),
            (
                "/api/v1/namespaces/x/finalize",
                "",
                "",
                "namespaces",
                "x",
                "finalize",
            ),
            (
                "/api/v1/namespaces/x/secrets/y",
                "",
                "x",
                "secrets",
                "y",
                "",
            ),
            (
                "/apis/apps/v1/namespaces/x/deployments/d/status",
                "apps",
                "x",
                "deployments",
                "d",
                "status",
            ),
            ("/apis/g.io/v1/vexhubs/v", "g.io", "", "vexhubs", "v", ""),
            (
                "/api/v1/namespaces/x/pods/a%3Ab",
                "",
                "x",
                "pods",
                "a:b",
                "",
            ),
        ] {
            let found = resource_path(path).unwrap();
            let seen = (
                found.group.as_str(),
                found.namespace.as_str(),
                found.resource.as_str(),
                found.name.as_str(),
                found.subresource.as_str(),
            );
            assert_eq!(
                seen,
                (group, namespace, resource, name, subresource),
                "{path}"
            );
        }
        for path in [
            "/",
            "/api",
            "/api/v1",
            "/apis/apps",
            "/apis/apps/v1/",
            "/healthz",
        ] {
            assert_eq!(resource_path(path), None, "{path}");
        }
    }

    #[test]
    fn methods_become_verbs() {
        let one = resource_path("/api/v1/namespaces/x/pods/y").unwrap();
        let all = resource_path("/api/v1/pods").unwrap();
        assert_eq!(verb(&Method::GET, &one, false), Some(Verb::Get));
        assert_eq!(verb(&Method::GET, &all, false), Some(Verb::List));
        assert_eq!(verb(&Method::GET, &all, true), Some(Verb::Watch));
        assert_eq!(
            verb(&Method::DELETE, &all, false),
            Some(Verb::DeleteCollection)
        );
        assert_eq!(verb(&Method::PUT, &all, false), None);
    }
}
