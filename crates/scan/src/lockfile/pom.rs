//! `pom.xml`: a project of Maven states what it needs, not what it gets. What the file, and the
//! parents that lie beside it, state with a version is read; what only a repository could answer is
//! said to be missing, and so is what the dependencies themselves depend on.

use super::{LeftOut, Nearby, Read, package, text};
use crate::package::Reading;
use roxmltree::{Document, Node, ParsingOptions};
use std::collections::BTreeMap;

/// Parents of parents.
const MAX_PARENTS: usize = 16;
/// Properties within properties, and bytes of one once expanded.
const MAX_EXPANSIONS: usize = 32;
const MAX_EXPANDED: usize = 4096;
/// Elements and texts of one file.
const MAX_NODES: u32 = 1_000_000;
/// A scope that a program has when it runs.
const SCOPES: [&str; 3] = ["", "compile", "runtime"];

#[derive(Clone, Default)]
struct Dependency {
    name: String,
    version: String,
    scope: String,
    optional: bool,
}

#[derive(Default)]
struct Project {
    properties: BTreeMap<String, String>,
    dependencies: Vec<Dependency>,
    /// Versions and scopes for dependencies that state none.
    managed: Vec<Dependency>,
    /// Whether a parent is not at hand.
    lacks_parent: bool,
}

pub(super) fn read(contents: &[u8], near: &mut Nearby) -> Read {
    let mut project = Project::default();
    project.add(&text(contents), near)?;
    let mut reading = Reading::default();
    let mut open = LeftOut::default();
    let managed: BTreeMap<String, &Dependency> = (project.managed.iter().rev())
        .map(|one| (project.expand(&one.name), one))
        .collect();
    for one in &project.dependencies {
        let name = project.expand(&one.name);
        let manager = managed.get(&name).copied().cloned().unwrap_or_default();
        let or =
            |text: &str, other: &str| project.expand(if text.is_empty() { other } else { text });
        if !SCOPES.contains(&or(&one.scope, &manager.scope).as_str()) || one.optional {
            continue;
        }
        let version = or(&one.version, &manager.version);
        // `[1.0]` demands exactly that.
        let version = version.trim_start_matches('[').trim_end_matches(']');
        let is_plain = !version.is_empty() && !version.contains(['$', '[', '(', ',', ')']);
        match is_plain && !name.contains('$') {
            true => reading.packages.push(package(&name, version)),
            false => open.push(&name),
        }
    }
    open.tell(
        &mut reading,
        "dependencies whose version only a repository knows",
    );
    if project.lacks_parent && reading.problems.is_empty() {
        let problem = "the parent project is not at hand; it may state dependencies";
        reading.problems.push(problem.into());
    }
    Ok(reading)
}

impl Project {
    /// Adds what a file says, and then its parents, whose word counts less.
    fn add(&mut self, text: &str, near: &mut Nearby) -> Result<(), String> {
        let mut next = self.layer(text, "project")?;
        let mut directory = String::new();
        for _ in 0..MAX_PARENTS {
            let Some(path) = next else {
                return Ok(());
            };
            let mut path = format!("{directory}{path}");
            let mut file = near(&path);
            if file.is_none() || !path.ends_with(".xml") {
                // A parent may be named by its directory.
                path = format!("{}/pom.xml", path.trim_end_matches('/'));
                file = file.or_else(|| near(&path));
            }
            let Some(file) = file else {
                break;
            };
            directory = path
                .rsplit_once('/')
                .map_or(String::new(), |(parent, _)| format!("{parent}/"));
            next = self.layer(&super::text(&file), "project.parent")?;
        }
        self.lacks_parent = true;
        Ok(())
    }

    /// Adds one file; yields where its parent is, if it has one.
    fn layer(&mut self, text: &str, prefix: &str) -> Result<Option<String>, String> {
        let options = ParsingOptions {
            // No entities: they could grow without end, or lead elsewhere.
            allow_dtd: false,
            nodes_limit: MAX_NODES,
            ..ParsingOptions::default()
        };
        let document = Document::parse_with_options(text, options)
            .map_err(|error| format!("no project of Maven: {error}"))?;
        let root = document.root_element();
        if root.tag_name().name() != "project" {
            return Err("no project of Maven".into());
        }
        let parent = child(root, "parent");
        for key in ["groupId", "artifactId", "version"] {
            let inherited = parent.map_or("", |parent| value(parent, key));
            let own = match value(root, key) {
                "" if key != "artifactId" => inherited,
                own => own,
            };
            self.define(&format!("{prefix}.{key}"), own);
            if prefix == "project" {
                self.define(&format!("pom.{key}"), own);
                self.define(&format!("project.parent.{key}"), inherited);
            }
        }
        let properties = child(root, "properties");
        for property in properties
            .iter()
            .flat_map(Node::children)
            .filter(Node::is_element)
        {
            self.define(
                property.tag_name().name(),
                property.text().unwrap_or_default().trim(),
            );
        }
        self.dependencies.extend(dependencies(root));
        let management = child(root, "dependencyManagement");
        self.managed
            .extend(management.into_iter().flat_map(dependencies));
        Ok(parent.map(|parent| match child(parent, "relativePath") {
            Some(path) => path.text().unwrap_or_default().trim().to_owned(),
            None => "../pom.xml".to_owned(),
        }))
    }

    /// The first to define a property is the nearest.
    fn define(&mut self, name: &str, value: &str) {
        if !value.is_empty() {
            self.properties
                .entry(name.into())
                .or_insert_with(|| value.into());
        }
    }

    /// The text with its properties in place, as far as they are known.
    fn expand(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for _ in 0..MAX_EXPANSIONS {
            let Some(start) = text.find("${") else {
                break;
            };
            let Some(end) = text[start..].find('}').map(|end| start + end) else {
                break;
            };
            let Some(value) = self.properties.get(&text[start + 2..end]) else {
                break;
            };
            if text.len() + value.len() > MAX_EXPANDED {
                break;
            }
            text.replace_range(start..=end, value);
        }
        text
    }
}

fn child<'a, 'input>(node: Node<'a, 'input>, name: &str) -> Option<Node<'a, 'input>> {
    node.children()
        .find(|child| child.tag_name().name() == name)
}

fn value<'a>(node: Node<'a, '_>, name: &str) -> &'a str {
    child(node, name)
        .and_then(|child| child.text())
        .unwrap_or_default()
        .trim()
}

fn dependencies<'a>(node: Node<'a, '_>) -> impl Iterator<Item = Dependency> + use<'a> {
    let list = child(node, "dependencies");
    let list: Vec<Dependency> = list
        .iter()
        .flat_map(Node::children)
        .filter(|one| one.tag_name().name() == "dependency")
        .map(|one| Dependency {
            name: format!("{}:{}", value(one, "groupId"), value(one, "artifactId")),
            version: value(one, "version").into(),
            scope: value(one, "scope").into(),
            optional: value(one, "optional") == "true",
        })
        .collect();
    list.into_iter()
}
