//! Where a policy says that its code is: in a registry, on a web server, or in a file. A name that
//! says what it must be (a digest) means the same for ever; any other is looked up again.

use muster_policy::load::LoadError;
use muster_registry::{Digest, Reference};
use reqwest::Url;
use std::path::PathBuf;

/// Where code is.
#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    /// An artifact in an OCI registry: `registry://`, or nothing before the reference.
    Registry(Reference),
    /// A file on a web server: `https://` or `http://`, and perhaps `#sha256=…` after it, which is
    /// what `@sha256:…` is for a registry.
    Web(Url, Option<Digest>),
    /// A file of this machine: `file://` and an absolute path.
    File(PathBuf),
}

impl Place {
    /// Reads what a policy has in its `module`.
    pub fn parse(module: &str) -> Result<Place, LoadError> {
        let wrong = |why: String| LoadError::Module(format!("{module:?}: {why}"));
        match module.split_once("://") {
            None => reference(module).map_err(wrong),
            Some(("registry", rest)) => reference(rest).map_err(wrong),
            Some(("https" | "http", _)) => web(module).map_err(wrong),
            Some(("file", path)) if path.starts_with('/') => Ok(Place::File(path.into())),
            Some(("file", _)) => Err(wrong("a file is named by its absolute path".into())),
            Some((scheme, _)) => Err(wrong(format!(
                "nothing is fetched by {scheme}://; there are registry://, https://, http:// and \
                 file://"
            ))),
        }
    }

    /// Whether the name says what the code must be.
    pub fn is_fixed(&self) -> bool {
        match self {
            Place::Registry(reference) => reference.digest().is_some(),
            Place::Web(_, digest) => digest.is_some(),
            Place::File(_) => false,
        }
    }
}

fn reference(text: &str) -> Result<Place, String> {
    Reference::parse(text)
        .map(Place::Registry)
        .map_err(|error| error.reason)
}

fn web(text: &str) -> Result<Place, String> {
    let mut url = Url::parse(text).map_err(|error| error.to_string())?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err("whoever reads the policy would read the password".into());
    }
    let digest = match url.fragment() {
        None => None,
        Some(fragment) => {
            let digits = fragment.strip_prefix("sha256=");
            let digest = digits.and_then(|digits| Digest::parse(&format!("sha256:{digits}")));
            Some(digest.ok_or("only #sha256= and 64 digits may come after an address")?)
        }
    };
    url.set_fragment(None);
    Ok(Place::Web(url, digest))
}

/// The host of an address as references spell it: with its port, unless it is the usual one.
pub(super) fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_is_in_a_registry_on_the_web_or_in_a_file() {
        let digits = "a".repeat(64);
        for (module, expected) in [
            (
                "registry://h.example/a/b:v1".to_owned(),
                Some(("registry", false)),
            ),
            (
                "h.example:5000/a/b:v1".to_owned(),
                Some(("registry", false)),
            ),
            (
                format!("registry://h.example/a@sha256:{digits}"),
                Some(("registry", true)),
            ),
            ("https://h.example/a.wasm".to_owned(), Some(("web", false))),
            (
                format!("https://h.example/a.wasm#sha256={digits}"),
                Some(("web", true)),
            ),
            ("http://h.example/a.wasm".to_owned(), Some(("web", false))),
            ("file:///a/b.wasm".to_owned(), Some(("file", false))),
            ("file://a/b.wasm".to_owned(), None),
            ("https://h.example/a.wasm#sha256=1".to_owned(), None),
            ("https://h.example/a.wasm#part".to_owned(), None),
            ("https://me:secret@h.example/a.wasm".to_owned(), None),
            ("https://".to_owned(), None),
            ("ftp://h.example/a".to_owned(), None),
            ("registry://".to_owned(), None),
            ("registry://A b".to_owned(), None),
            (String::new(), None),
        ] {
            let found = Place::parse(&module).ok();
            let found = found.map(|place| {
                let sort = match &place {
                    Place::Registry(_) => "registry",
                    Place::Web(..) => "web",
                    Place::File(_) => "file",
                };
                (sort, place.is_fixed())
            });
            assert_eq!(found, expected, "{module}");
        }
    }

    #[test]
    fn a_host_has_its_port_unless_it_is_the_usual_one() {
        for (url, expected) in [
            ("https://h.example/a", "h.example"),
            ("https://h.example:443/a", "h.example"),
            ("http://h.example:443/a", "h.example:443"),
            ("http://[::1]:80/a", "[::1]"),
        ] {
            assert_eq!(host(&Url::parse(url).unwrap()), expected, "{url}");
        }
    }
}
