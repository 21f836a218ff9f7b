//! What changed between two values: the paths added, modified and removed. Sets are built level
//! by level on the way back, so unchanged parts cost a comparison and no memory.

use crate::MAX_DEPTH;
use crate::element::{PathElement, compare_values};
use crate::set::{Node, Set};
use crate::typed::{Shape, field_schema, item_elements, item_schema};
use muster_kind::Schema;
use muster_kind::schema::ListType;
use serde_json::{Map, Value};

/// The paths in which two values differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Only the new value has these.
    pub added: Set,
    /// Both values have these, and differ.
    pub modified: Set,
    /// Only the old value has these.
    pub removed: Set,
}

impl Comparison {
    /// Whether the values are the same.
    pub fn is_same(&self) -> bool {
        self.added.is_empty() && self.modified.is_empty() && self.removed.is_empty()
    }

    /// Leaves out these paths and all below them.
    pub fn excluding(self, paths: &Set) -> Self {
        Comparison {
            added: self.added.recursive_difference(paths),
            modified: self.modified.recursive_difference(paths),
            removed: self.removed.recursive_difference(paths),
        }
    }

    fn union(self, other: Self) -> Self {
        Comparison {
            added: self.added.union(other.added),
            modified: self.modified.union(other.modified),
            removed: self.removed.union(other.removed),
        }
    }
}

/// Compares two values of one schema.
pub fn compare(old: &Value, new: &Value, schema: &Schema) -> Comparison {
    compare_values_at(old, new, schema, 0).below
}

/// The change of a value itself and of what is below it.
#[derive(Default)]
struct Change {
    added: bool,
    modified: bool,
    removed: bool,
    below: Comparison,
}

impl Change {
    fn of_leaf(old: &Value, new: &Value) -> Self {
        let same = old == new || compare_values(old, new).is_eq();
        Change {
            modified: !same,
            ..Change::default()
        }
    }

    fn is_none(&self) -> bool {
        !self.added && !self.modified && !self.removed && self.below.is_same()
    }

    fn addition(value: &Value, schema: &Schema, depth: usize) -> Self {
        let mut change = Change {
            added: true,
            ..Change::default()
        };
        change.below.added = everything_below(value, schema, depth);
        change
    }

    fn removal(value: &Value, schema: &Schema, depth: usize) -> Self {
        let mut change = Change {
            removed: true,
            ..Change::default()
        };
        change.below.removed = everything_below(value, schema, depth);
        change
    }

    fn union(self, other: Self) -> Self {
        Change {
            added: self.added || other.added,
            modified: self.modified || other.modified,
            removed: self.removed || other.removed,
            below: self.below.union(other.below),
        }
    }
}

/// The changes of the parts of one value.
#[derive(Default)]
struct Level {
    added: Vec<Node>,
    modified: Vec<Node>,
    removed: Vec<Node>,
}

impl Level {
    fn push(&mut self, change: Change, element: impl Fn() -> PathElement) {
        if change.is_none() {
            return;
        }
        let below = change.below;
        for (nodes, member, children) in [
            (&mut self.added, change.added, below.added),
            (&mut self.modified, change.modified, below.modified),
            (&mut self.removed, change.removed, below.removed),
        ] {
            if member || !children.is_empty() {
                nodes.push(Node {
                    element: element(),
                    member,
                    children,
                });
            }
        }
    }

    fn finish(self) -> Change {
        let below = Comparison {
            added: Set::from_nodes(self.added),
            modified: Set::from_nodes(self.modified),
            removed: Set::from_nodes(self.removed),
        };
        Change {
            below,
            ..Change::default()
        }
    }
}

fn compare_values_at(old: &Value, new: &Value, schema: &Schema, depth: usize) -> Change {
    if depth > MAX_DEPTH {
        return Change::of_leaf(old, new);
    }
    let (old_shape, new_shape) = (Shape::of(schema, old), Shape::of(schema, new));
    let change = compare_as(new_shape, old, new, schema, depth);
    if old_shape == new_shape {
        return change;
    }
    change.union(compare_as(old_shape, old, new, schema, depth))
}

fn compare_as(shape: Shape, old: &Value, new: &Value, schema: &Schema, depth: usize) -> Change {
    match shape {
        Shape::Object if !schema.atomic => {
            let none = Map::new();
            let old_fields = old.as_object().unwrap_or(&none);
            let new_fields = new.as_object().unwrap_or(&none);
            if !old_fields.is_empty() || !new_fields.is_empty() {
                return compare_fields(old_fields, new_fields, schema, depth);
            }
        }
        Shape::Array if schema.list != ListType::Atomic => {
            let old_items = old.as_array().map_or(&[][..], Vec::as_slice);
            let new_items = new.as_array().map_or(&[][..], Vec::as_slice);
            let empty = old_items.is_empty() && new_items.is_empty();
            if !empty && let Some(change) = compare_items(old_items, new_items, schema, depth) {
                return change;
            }
        }
        _ => {}
    }
    // Empty and null are told apart, and so are values that are whole by their schema.
    Change::of_leaf(old, new)
}

fn compare_fields(
    old: &Map<String, Value>,
    new: &Map<String, Value>,
    schema: &Schema,
    depth: usize,
) -> Change {
    let mut level = Level::default();
    let mut olds = old.iter().peekable();
    let mut visit = |name: &str, old: Option<&Value>, new: Option<&Value>| {
        let field = field_schema(schema, name);
        let change = match (old, new) {
            (Some(old), Some(new)) => compare_values_at(old, new, field, depth + 1),
            (Some(old), None) => Change::removal(old, field, depth + 1),
            (None, Some(new)) => Change::addition(new, field, depth + 1),
            (None, None) => return,
        };
        level.push(change, || PathElement::field(name));
    };
    for (name, value) in new {
        while let Some((gone, old)) = olds.next_if(|(old_name, _)| *old_name < name) {
            visit(gone, Some(old), None);
        }
        let same = olds.next_if(|(old_name, _)| *old_name == name);
        visit(name, same.map(|(_, old)| old), Some(value));
    }
    for (gone, old) in olds {
        visit(gone, Some(old), None);
    }
    level.finish()
}

/// `None` where one of the arrays is one value.
fn compare_items(old: &[Value], new: &[Value], schema: &Schema, depth: usize) -> Option<Change> {
    if old == new {
        return Some(Change::default());
    }
    let items = item_schema(schema);
    let mut all: Vec<(PathElement, bool, &Value)> = Vec::with_capacity(old.len() + new.len());
    for (is_new, values) in [(false, old), (true, new)] {
        let elements = item_elements(schema, values)?;
        all.extend(
            elements
                .into_iter()
                .zip(values)
                .map(|(element, item)| (element, is_new, item)),
        );
    }
    all.sort_by(|left, right| left.0.cmp(&right.0).then(left.1.cmp(&right.1)));

    let mut level = Level::default();
    for same in all.chunk_by(|left, right| left.0 == right.0) {
        let (olds, news) = same.split_at(same.partition_point(|(_, is_new, _)| !is_new));
        // Items that share an element with others of their array are compared as one value, and
        // ownership of the fields of a lone item does not survive it getting a double.
        let change = match (olds, news) {
            ([(_, _, old)], [(_, _, new)]) => compare_values_at(old, new, items, depth + 1),
            ([(_, _, old)], []) => Change::removal(old, items, depth + 1),
            ([], [(_, _, new)]) => Change::addition(new, items, depth + 1),
            ([_, _, ..], [_, _, ..]) => {
                let same = olds
                    .iter()
                    .map(|item| item.2)
                    .eq(news.iter().map(|item| item.2));
                Change {
                    modified: !same,
                    ..Change::default()
                }
            }
            ([_, _, ..], lone) => {
                let gone = Change {
                    removed: true,
                    ..Change::default()
                };
                match lone {
                    [(_, _, new)] => gone.union(Change::addition(new, items, depth + 1)),
                    _ => gone,
                }
            }
            (lone, _) => {
                let come = Change {
                    added: true,
                    ..Change::default()
                };
                match lone {
                    [(_, _, old)] => come.union(Change::removal(old, items, depth + 1)),
                    _ => come,
                }
            }
        };
        if let Some((element, _, _)) = same.first() {
            level.push(change, || element.clone());
        }
    }
    Some(level.finish())
}

/// All paths below a value that came or went as a whole.
fn everything_below(value: &Value, schema: &Schema, depth: usize) -> Set {
    if depth > MAX_DEPTH {
        return Set::default();
    }
    let nodes: Vec<Node> = match (Shape::of(schema, value), value) {
        (Shape::Object, Value::Object(fields)) if !schema.atomic => fields
            .iter()
            .map(|(name, field)| {
                let children = everything_below(field, field_schema(schema, name), depth + 1);
                Node {
                    element: PathElement::field(name.as_str()),
                    member: true,
                    children,
                }
            })
            .collect(),
        (Shape::Array, Value::Array(items)) => {
            let Some(elements) = item_elements(schema, items) else {
                return Set::default();
            };
            let mut all: Vec<_> = elements.into_iter().zip(items).collect();
            all.sort_by(|left, right| left.0.cmp(&right.0));
            all.chunk_by(|left, right| left.0 == right.0)
                .filter_map(|same| {
                    let (element, item) = same.first()?;
                    let children = match same.len() {
                        1 => everything_below(item, item_schema(schema), depth + 1),
                        _ => Set::default(),
                    };
                    Some(Node {
                        element: element.clone(),
                        member: true,
                        children,
                    })
                })
                .collect()
        }
        _ => Vec::new(),
    };
    Set::from_nodes(nodes)
}
