//! Sets of field paths: a tree whose nodes are path elements in order, each perhaps a member of
//! the set itself and perhaps the parent of further members. Operations walk two trees side by
//! side, in time proportional to their sizes.

use crate::element::{Path, PathElement};
use muster_kind::Schema;
use muster_kind::schema::{ListType, Type};
use std::cmp::Ordering;
use std::fmt;

/// A set of field paths. A path being in the set says nothing of its parents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Set {
    /// In order of element, each once; none is empty.
    nodes: Vec<Node>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) element: PathElement,
    /// The path up to here is in the set.
    pub(crate) member: bool,
    pub(crate) children: Set,
}

impl Node {
    fn is_empty(&self) -> bool {
        !self.member && self.children.is_empty()
    }
}

impl Set {
    /// The set of these paths, each written as field names separated by dots.
    pub fn of_fields<'a>(paths: impl IntoIterator<Item = &'a str>) -> Self {
        let mut set = Set::default();
        for path in paths {
            set.insert(&Path::of_fields(path.split('.')));
        }
        set
    }

    /// Builds a level from nodes in any order.
    pub(crate) fn from_nodes(mut nodes: Vec<Node>) -> Self {
        nodes.retain(|node| !node.is_empty());
        if !nodes.is_sorted_by(|left, right| left.element < right.element) {
            nodes.sort_by(|left, right| left.element.cmp(&right.element));
            nodes.dedup_by(|later, kept| {
                let same = later.element == kept.element;
                if same {
                    kept.member |= later.member;
                    let children = std::mem::take(&mut kept.children);
                    kept.children = children.union(std::mem::take(&mut later.children));
                }
                same
            });
        }
        Set { nodes }
    }

    pub(crate) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Whether the set has no path.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Adds a path. The empty path, the whole object, is nobody's.
    pub fn insert(&mut self, path: &Path) {
        let mut set = self;
        let mut elements = path.0.iter().peekable();
        while let Some(element) = elements.next() {
            let place = match set.find(element) {
                Ok(place) => place,
                Err(place) => {
                    let children = Set::default();
                    let node = Node {
                        element: element.clone(),
                        member: false,
                        children,
                    };
                    set.nodes.insert(place, node);
                    place
                }
            };
            let node = &mut set.nodes[place];
            node.member |= elements.peek().is_none();
            set = &mut node.children;
        }
    }

    /// Whether the path itself is in the set.
    pub fn contains(&self, path: &Path) -> bool {
        let mut set = self;
        let mut member = false;
        for element in &path.0 {
            let Some(node) = set.get(element) else {
                return false;
            };
            member = node.member;
            set = &node.children;
        }
        member
    }

    fn find(&self, element: &PathElement) -> Result<usize, usize> {
        self.nodes
            .binary_search_by(|node| node.element.cmp(element))
    }

    pub(crate) fn get(&self, element: &PathElement) -> Option<&Node> {
        self.find(element).ok().map(|place| &self.nodes[place])
    }

    /// The node of a field, without making an element of its name.
    pub(crate) fn get_field(&self, name: &str) -> Option<&Node> {
        let place = self.nodes.binary_search_by(|node| match &node.element {
            PathElement::Field(field) => field.as_str().cmp(name),
            _ => Ordering::Greater,
        });
        place.ok().map(|place| &self.nodes[place])
    }

    /// The paths in either set.
    pub fn union(self, other: Set) -> Set {
        if self.is_empty() {
            return other;
        }
        if other.is_empty() {
            return self;
        }
        let mut nodes = Vec::with_capacity(self.nodes.len().max(other.nodes.len()));
        let mut rights = other.nodes.into_iter().peekable();
        for mut left in self.nodes {
            while let Some(right) = rights.next_if(|right| right.element < left.element) {
                nodes.push(right);
            }
            if let Some(right) = rights.next_if(|right| right.element == left.element) {
                left.member |= right.member;
                left.children = left.children.union(right.children);
            }
            nodes.push(left);
        }
        nodes.extend(rights);
        Set { nodes }
    }

    /// The paths in both sets.
    pub fn intersection(&self, other: &Set) -> Set {
        let mut nodes = Vec::new();
        for (left, right) in self.zip(other) {
            let Some(right) = right else { continue };
            let node = Node {
                element: left.element.clone(),
                member: left.member && right.member,
                children: left.children.intersection(&right.children),
            };
            if !node.is_empty() {
                nodes.push(node);
            }
        }
        Set { nodes }
    }

    /// The paths of this set that are not in the other.
    pub fn difference(self, other: &Set) -> Set {
        self.without(other, false)
    }

    /// The paths of this set that neither are in the other nor lie below a path of it.
    pub fn recursive_difference(self, other: &Set) -> Set {
        self.without(other, true)
    }

    fn without(mut self, other: &Set, recursive: bool) -> Set {
        if other.is_empty() {
            return self;
        }
        let mut rights = other.nodes.iter().peekable();
        self.nodes.retain_mut(|left| {
            while rights
                .next_if(|right| right.element < left.element)
                .is_some()
            {}
            if let Some(right) = rights.next_if(|right| right.element == left.element) {
                if right.member && recursive {
                    return false;
                }
                left.member &= !right.member;
                let children = std::mem::take(&mut left.children);
                left.children = children.without(&right.children, recursive);
            }
            !left.is_empty()
        });
        self
    }

    /// Every node of this set with the node of the same element in the other.
    fn zip<'a>(&'a self, other: &'a Set) -> impl Iterator<Item = (&'a Node, Option<&'a Node>)> {
        let mut rights = other.nodes.iter().peekable();
        self.nodes.iter().map(move |left| {
            while rights
                .next_if(|right| right.element < left.element)
                .is_some()
            {}
            (left, rights.next_if(|right| right.element == left.element))
        })
    }

    /// Only the paths that have no path of the set below them.
    pub fn leaves(mut self) -> Set {
        for node in &mut self.nodes {
            if !node.children.is_empty() {
                node.member = false;
                node.children = std::mem::take(&mut node.children).leaves();
            }
        }
        self
    }

    /// Adds the declared fields that lead to paths of the set. Walking a value never adds them,
    /// since owning `.spec.replicas` is not owning `.spec`; removing fields needs them, since an
    /// object nobody owns any part of goes as a whole.
    pub fn with_declared_parents(mut self, schema: &Schema) -> Set {
        for node in &mut self.nodes {
            if node.children.is_empty() {
                continue;
            }
            if let PathElement::Field(name) = &node.element {
                node.member |= schema.properties.contains_key(name);
            }
            if let Some(below) = below(schema, &node.element) {
                let children = std::mem::take(&mut node.children);
                node.children = children.with_declared_parents(below);
            }
        }
        self
    }

    /// Fits a set written under an older schema to this one: who owned a part of what is now
    /// one value owns all of it.
    pub(crate) fn reconciled(mut self, schema: &Schema) -> Set {
        for node in &mut self.nodes {
            if node.children.is_empty() {
                continue;
            }
            let Some(below) = below(schema, &node.element) else {
                continue;
            };
            if is_one_value(below) {
                node.member = true;
                node.children = Set::default();
            } else {
                node.children = std::mem::take(&mut node.children).reconciled(below);
            }
        }
        self
    }

    /// Every path, those of a level before those below it.
    pub fn paths(&self) -> Vec<Path> {
        let mut paths = Vec::new();
        self.collect(&mut Vec::new(), &mut paths);
        paths
    }

    fn collect(&self, prefix: &mut Vec<PathElement>, paths: &mut Vec<Path>) {
        for node in self.nodes.iter().filter(|node| node.member) {
            let mut path = prefix.clone();
            path.push(node.element.clone());
            paths.push(Path(path));
        }
        for node in self.nodes.iter().filter(|node| !node.children.is_empty()) {
            prefix.push(node.element.clone());
            node.children.collect(prefix, paths);
            prefix.pop();
        }
    }
}

impl FromIterator<Path> for Set {
    fn from_iter<I: IntoIterator<Item = Path>>(paths: I) -> Self {
        let mut set = Set::default();
        paths.into_iter().for_each(|path| set.insert(&path));
        set
    }
}

impl fmt::Display for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, path) in self.paths().iter().enumerate() {
            let newline = if position > 0 { "\n" } else { "" };
            write!(f, "{newline}{path}")?;
        }
        Ok(())
    }
}

fn below<'s>(schema: &'s Schema, element: &PathElement) -> Option<&'s Schema> {
    match element {
        PathElement::Field(name) => schema.property(name).map(|field| &**field),
        PathElement::Key(_) => schema.items.as_deref(),
        _ => None,
    }
}

fn is_one_value(schema: &Schema) -> bool {
    match schema.of {
        Type::Object => schema.atomic,
        Type::Array => schema.list == ListType::Atomic,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_kind::schema;

    fn set(paths: &[&str]) -> Set {
        Set::of_fields(paths.iter().copied())
    }

    #[test]
    fn sets_combine_as_sets_do() {
        let (left, right) = (set(&["a", "a.b", "c.d"]), set(&["a.b", "c", "e"]));
        assert_eq!(
            left.clone().union(right.clone()),
            set(&["a", "a.b", "c", "c.d", "e"])
        );
        assert_eq!(left.intersection(&right), set(&["a.b"]));
        assert_eq!(left.clone().difference(&right), set(&["a", "c.d"]));
        assert_eq!(left.recursive_difference(&right), set(&["a"]));
    }

    #[test]
    fn a_member_is_not_its_parents_nor_its_children() {
        let set = set(&["a.b"]);
        for (path, expected) in [("a", false), ("a.b", true), ("a.b.c", false)] {
            assert_eq!(
                set.contains(&Path::of_fields(path.split('.'))),
                expected,
                "{path}"
            );
        }
        assert!(!set.contains(&Path::default()));
    }

    #[test]
    fn leaves_are_the_ends_of_paths() {
        assert_eq!(set(&["a", "a.b", "c"]).leaves(), set(&["a.b", "c"]));
    }

    #[test]
    fn declared_parents_join_but_free_keys_do_not() {
        let schema = schema::object().field("a", schema::map(schema::map(schema::string())));
        let expected = set(&["a", "a.b.c"]);
        assert_eq!(set(&["a.b.c"]).with_declared_parents(&schema), expected);
    }

    #[test]
    fn parts_of_what_became_one_value_become_the_whole() {
        let schema = schema::object().field("a", schema::map(schema::string()).atomic());
        assert_eq!(
            set(&["a.b", "a.c", "d.e"]).reconciled(&schema),
            set(&["a", "d.e"])
        );
    }

    #[test]
    fn paths_of_a_level_come_before_those_below() {
        assert_eq!(set(&["a.b", "c"]).to_string(), ".c\n.a.b");
    }
}
