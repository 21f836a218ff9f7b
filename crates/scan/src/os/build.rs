//! What Red Hat's build system leaves in an image: which content sets its packages came from, and
//! which build made it. Red Hat's advisories are about products, and these two say which products
//! an image is made of.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Content sets that one image may name; it has a dozen.
const MAX_CONTENT_SETS: usize = 1000;
/// Variables of a build recipe that are remembered, and the length of one once expanded.
const MAX_VARIABLES: usize = 1000;
const MAX_VALUE: usize = 4096;

/// How an image was built.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Build {
    /// The repositories that its packages came from, by Red Hat's names, in order and each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub content_sets: Vec<String>,
    /// Name, version and release of the build: `ubi9-container-9.3-1610`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nvr: Option<String>,
    /// What it was built for, as Red Hat names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub architecture: Option<String>,
}

impl Build {
    /// Adds what another file says. Content sets add up; of two builds the later one counts.
    pub(crate) fn add(&mut self, other: &Build) {
        self.content_sets.extend(other.content_sets.iter().cloned());
        self.content_sets.sort();
        self.content_sets.dedup();
        self.content_sets.truncate(MAX_CONTENT_SETS);
        if other.nvr.is_some() {
            self.nvr.clone_from(&other.nvr);
            self.architecture.clone_from(&other.architecture);
        }
    }
}

/// Whether a file lists content sets.
pub(super) fn is_manifest(path: &str) -> bool {
    let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
    matches!(
        parent,
        "root/buildinfo/content_manifests" | "usr/share/buildinfo"
    ) && name.ends_with(".json")
}

/// Whether a file is the recipe of a build.
pub(super) fn is_recipe(path: &str) -> bool {
    path.strip_prefix("root/buildinfo/")
        .is_some_and(|name| name.starts_with("Dockerfile-") && !name.contains('/'))
}

/// Reads a list of content sets.
pub(super) fn manifest(contents: &[u8]) -> Option<Build> {
    #[derive(Deserialize)]
    struct Manifest {
        #[serde(default)]
        content_sets: Vec<String>,
    }
    let manifest: Manifest = serde_json::from_slice(contents).ok()?;
    let mut build = Build::default();
    build.add(&Build {
        content_sets: manifest.content_sets,
        ..Build::default()
    });
    (!build.content_sets.is_empty()).then_some(build)
}

/// Reads the recipe of a build: its labels say component and architecture, its own name ends with
/// version and release.
pub(super) fn recipe(path: &str, contents: &[u8]) -> Option<Build> {
    let text = String::from_utf8_lossy(contents).replace("\\\r\n", " ");
    let text = text.replace("\\\n", " ");
    let mut variables = BTreeMap::new();
    let (mut component, mut architecture) = (None, None);
    for line in text.lines().map(str::trim) {
        let Some((instruction, rest)) = line.split_once([' ', '\t']) else {
            continue;
        };
        let is_label = instruction.eq_ignore_ascii_case("LABEL");
        if !is_label && !["ENV", "ARG"].contains(&instruction.to_uppercase().as_str()) {
            continue;
        }
        for (key, value) in pairs(rest, &variables) {
            match key.to_lowercase().as_str() {
                "com.redhat.component" | "bzcomponent" if is_label => component = Some(value),
                "architecture" if is_label => architecture = Some(value),
                _ if !is_label && variables.len() < MAX_VARIABLES => {
                    variables.insert(key, value);
                }
                _ => {}
            }
        }
    }
    let component = component.filter(|name| !name.is_empty())?;
    let mut parts = path.rsplitn(3, '-');
    let (release, version) = (parts.next()?, parts.next()?);
    Some(Build {
        nvr: Some(format!("{component}-{version}-{release}")),
        architecture,
        ..Build::default()
    })
}

/// `key=value` pairs, or the one of the old form `key value`.
fn pairs(text: &str, variables: &BTreeMap<String, String>) -> Vec<(String, String)> {
    let words = words(text, variables);
    let old = words.first().is_some_and(|word| !word.contains('='));
    match words.split_first() {
        Some((key, rest)) if old => vec![(key.clone(), rest.join(" "))],
        _ => words
            .iter()
            .filter_map(|word| word.split_once('='))
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect(),
    }
}

/// Words as a shell sees them: quotes hold them together, and variables stand for their values.
fn words(text: &str, variables: &BTreeMap<String, String>) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        match character {
            '\'' | '"' if quote.is_none() => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            _ if quote == Some(character) => quote = None,
            '\\' if quote != Some('\'') => {
                word.get_or_insert_default().extend(rest.next());
            }
            '$' if quote != Some('\'') => {
                let braced = rest.next_if_eq(&'{').is_some();
                let mut name = String::new();
                let is_part = |one: &char| one.is_ascii_alphanumeric() || *one == '_';
                while let Some(one) = rest.next_if(is_part) {
                    name.push(one);
                }
                if braced {
                    // What else stands in braces says what to do without a value.
                    let _ = rest.by_ref().find(|one| *one == '}');
                }
                let value = variables.get(&name).map_or("", String::as_str);
                let word = word.get_or_insert_default();
                if word.len() + value.len() <= MAX_VALUE {
                    word.push_str(value);
                }
            }
            space if space.is_whitespace() && quote.is_none() => words.extend(word.take()),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_names_content_sets_once() {
        let build = manifest(br#"{"content_sets": ["b", "a", "b"], "image_contents": []}"#);
        assert_eq!(build.unwrap().content_sets, ["a", "b"]);
        for text in ["", "{}", "[]", r#"{"content_sets": []}"#] {
            assert_eq!(manifest(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn a_recipe_names_the_build_by_labels_and_by_its_own_name() {
        let path = "root/buildinfo/Dockerfile-ubi9-9.3-1610";
        for (text, nvr, architecture) in [
            (
                "FROM scratch\nLABEL \"com.redhat.component\"=\"ubi9-container\" \\\n  name=ubi9 \\\n  \"architecture\"=\"x86_64\"\n",
                Some("ubi9-container-9.3-1610"),
                Some("x86_64"),
            ),
            (
                "ENV COMPONENT=node ARCH=s390x\nLABEL com.redhat.component=${COMPONENT}-container\nLABEL architecture $ARCH\n",
                Some("node-container-9.3-1610"),
                Some("s390x"),
            ),
            ("LABEL bzcomponent='x'", Some("x-9.3-1610"), None),
            ("LABEL name=x\n", None, None),
            ("LABEL", None, None),
            ("LABEL a=\"", None, None),
        ] {
            let build = recipe(path, text.as_bytes()).unwrap_or_default();
            assert_eq!(build.nvr.as_deref(), nvr, "{text}");
            assert_eq!(build.architecture.as_deref(), architecture, "{text}");
        }
        assert_eq!(recipe("Dockerfile", b"LABEL bzcomponent=x"), None);
    }

    #[test]
    fn variables_cannot_grow_without_end() {
        let mut text = "ENV A0=xxxxxxxxxxxxxxxx\n".to_owned();
        for number in 1..40 {
            let before = number - 1;
            text.push_str(&format!("ENV A{number}=$A{before}$A{before}\n"));
        }
        text.push_str("LABEL bzcomponent=$A39\n");
        let build = recipe("Dockerfile-a-1-2", text.as_bytes()).unwrap();
        assert!(build.nvr.unwrap().len() <= MAX_VALUE + 100);
    }
}
