//! A policy that stands by itself, with no ConfigMap around it that says which kinds it is about: it says
//! so itself, in its METADATA or by the rules that came before such comments. One that says nothing of
//! the sort is no configuration check.

use crate::kinds::{Kind, Kinds};
use crate::written::{EntryError, Policy};
use muster_rego::{Metadata, Module, Selector, Subtype};

/// Where a policy says which kinds it is about.
const KINDS: &str = "custom.kinds";
/// Where it says what its input is.
const SELECTOR: &str = "custom.input.selector";
/// The rule by which a policy told about itself before there were comments for it.
const RULE: &str = "__rego_metadata__";

/// Reads a policy, if it is a configuration check; `served` are the kinds there are.
pub fn read(text: &str, served: &[Kind]) -> Option<Result<Policy, EntryError>> {
    let module = Module { name: "", text };
    // Whoever loads it tells what is wrong with it.
    let metadata = muster_rego::said(&module).ok().flatten();
    let (key, kinds) = match metadata.unwrap_or_default() {
        Metadata {
            kinds: Some(kinds), ..
        } => (KINDS, kinds),
        Metadata { selectors, .. } if selectors.iter().any(is_kubernetes) => {
            (SELECTOR, selected(&selectors, served))
        }
        _ if has_rule(text) => (KINDS, "*".to_owned()),
        _ => return None,
    };
    let key = key.to_owned();
    let kinds = Kinds::read(&kinds).map_err(|source| EntryError::Kinds { key, source });
    Some(kinds.map(|kinds| Policy {
        text: text.into(),
        kinds,
        is_maybe_library: false,
    }))
}

fn is_kubernetes(selector: &Selector) -> bool {
    selector.kind_of_input.eq_ignore_ascii_case("kubernetes")
}

fn has_rule(text: &str) -> bool {
    let mut lines = text.lines();
    lines.any(|line| line.starts_with(RULE))
}

/// The kinds that selectors mean, as a list; those that are not served are left out, unless none is.
fn selected(selectors: &[Selector], served: &[Kind]) -> String {
    let selectors = selectors.iter().filter(|one| is_kubernetes(one));
    let (mut found, mut unknown) = (Vec::new(), Vec::new());
    for selector in selectors {
        let mut subtypes = selector.subtypes.iter();
        if selector.subtypes.is_empty() || subtypes.any(|one| one.kind.is_none()) {
            return "*".into();
        }
        for subtype in &selector.subtypes {
            let before = found.len();
            let meant = served.iter().filter(|kind| is_meant(subtype, kind));
            found.extend(meant.map(|kind| format!("{}.{}", kind.kind, kind.group)));
            if found.len() == before {
                unknown.extend(subtype.kind.clone());
            }
        }
    }
    match found.is_empty() {
        true => unknown.join(","),
        false => found.join(","),
    }
}

/// Selectors write kinds as they like: `pod` is Pod.
fn is_meant(subtype: &Subtype, kind: &Kind) -> bool {
    let same = |wanted: &Option<String>, is: &str| {
        let wanted = wanted.as_ref();
        wanted.is_none_or(|wanted| wanted.eq_ignore_ascii_case(is))
    };
    same(&subtype.kind, &kind.kind) && same(&subtype.group, &kind.group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_says_itself_what_it_is_about_or_is_no_check() {
        let served = [
            ("v1", "Pod"),
            ("apps/v1", "Deployment"),
            ("example.com/v1", "Pod"),
        ]
        .map(|(api_version, kind)| Kind::parse(api_version, kind));
        let metadata = |custom: &str| format!("# METADATA\n# custom:\n{custom}package a\n");
        let selector = |rest: &str| {
            metadata(&format!(
                "#   input:\n#     selector:\n#     - type: kubernetes\n{rest}"
            ))
        };
        for (text, about) in [
            ("package a\n".to_owned(), None),
            ("# METADATA\n# title: A\npackage a\n".into(), None),
            ("# METADATA\n# title: [\npackage a\n".into(), None),
            (
                metadata("#   input:\n#     selector:\n#     - type: dockerfile\n"),
                None,
            ),
            (metadata("#   kinds: Pod, Job\n"), Some("Pod,Job")),
            (metadata("#   kinds: [Pod, Job]\n"), Some("Pod,Job")),
            (
                metadata("#   kinds: a b\n"),
                Some(
                    "`custom.kinds`: \"a b\" is no kind; write `Pod`, `Deployment.apps`, `apps/v1/Deployment`, `Workload` or `*`",
                ),
            ),
            (selector(""), Some("*")),
            (
                selector(
                    "#       subtypes:\n#       - kind: pod\n#         group: ''\n#       - kind: deployment\n",
                ),
                Some("Pod.,Pod.example.com,Deployment.apps"),
            ),
            (
                selector("#       subtypes:\n#       - kind: deployment\n#       - kind: gadget\n"),
                Some("Deployment.apps"),
            ),
            (
                selector("#       subtypes:\n#       - kind: gadget\n"),
                Some("gadget"),
            ),
            (
                "package a\n\n__rego_metadata__ := {\"id\": \"A\"}\n".into(),
                Some("*"),
            ),
        ] {
            let read = read(&text, &served).map(|read| match read {
                Ok(policy) => policy.kinds.to_string(),
                Err(error) => error.to_string(),
            });
            assert_eq!(read.as_deref(), about, "{text}");
        }
    }
}
