//! Conflicts: fields an applier would change that belong to others.

use crate::managed::{Entry, Operation};
use std::fmt;

/// One field somebody else owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The owner.
    pub manager: String,
    /// How the owner came by it.
    pub operation: Operation,
    /// The subresource the owner writes through; empty for the object itself.
    pub subresource: String,
    /// The version the owner writes in.
    pub api_version: String,
    /// When the owner's fields last changed.
    pub time: Option<String>,
    /// The field, `.data.a`: the field of the status cause.
    pub path: crate::Path,
}

impl Conflict {
    pub(crate) fn new(owner: &Entry, path: crate::Path) -> Self {
        Conflict {
            manager: owner.manager.clone(),
            operation: owner.operation,
            subresource: owner.subresource.clone(),
            api_version: owner.api_version.clone(),
            time: owner.time.clone(),
            path,
        }
    }

    /// The message of the status cause (of type `FieldManagerConflict`).
    pub fn message(&self) -> String {
        format!("conflict with {}", self.owner())
    }

    fn owner(&self) -> String {
        let mut text = format!("{:?}", self.manager);
        if !self.subresource.is_empty() {
            text.push_str(&format!(" with subresource {:?}", self.subresource));
        }
        if self.operation == Operation::Update {
            text.push_str(&format!(" using {}", self.api_version));
        }
        text
    }
}

/// All conflicts of one apply, those with one owner together. Their text is the message of the
/// status a client gets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conflicts(pub Vec<Conflict>);

impl fmt::Display for Conflicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [only] = self.0.as_slice() {
            return write!(
                f,
                "Apply failed with 1 conflict: {}: {}",
                only.message(),
                only.path
            );
        }
        write!(f, "Apply failed with {} conflicts: ", self.0.len())?;
        let same_owner = |left: &Conflict, right: &Conflict| {
            left.owner() == right.owner() && left.operation == right.operation
        };
        for (position, conflicts) in self.0.chunk_by(same_owner).enumerate() {
            let newline = if position > 0 { "\n" } else { "" };
            if let Some(first) = conflicts.first() {
                write!(f, "{newline}conflicts with {}:", first.owner())?;
            }
            conflicts
                .iter()
                .try_for_each(|conflict| write!(f, "\n- {}", conflict.path))?;
        }
        Ok(())
    }
}
