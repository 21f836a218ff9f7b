//! The tables that both engines have, column by column, for copying between them. What differs is
//! said here: PostgreSQL keeps the bytes of a blob in its row, and the digest of a text in place of
//! one that it cannot index.

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Number,
    Text,
    /// Text that PostgreSQL may have as its digest.
    Indexed,
    Bytes,
}

use Type::{Bytes, Indexed, Number, Text};

/// Rows to copy.
#[derive(Debug)]
pub(crate) struct Table {
    /// Where they go.
    pub(crate) to: &'static str,
    /// Where they are.
    pub(crate) from: &'static str,
    pub(crate) columns: &'static [(&'static str, Type)],
}

impl Table {
    const fn both(name: &'static str, columns: &'static [(&'static str, Type)]) -> Self {
        Table {
            to: name,
            from: name,
            columns,
        }
    }

    /// The names of the columns, as a statement lists them.
    pub(crate) fn names(&self) -> String {
        let names: Vec<&str> = self.columns.iter().map(|(name, _)| *name).collect();
        names.join(", ")
    }
}

const SELECTED: &[(&str, Type)] = &[
    ("resource", Number),
    ("key", Indexed),
    ("value", Indexed),
    ("namespace", Text),
    ("name", Text),
];

/// What both engines have alike, but for texts that are too long for an index.
pub(crate) const ALIKE: &[Table] = &[
    Table::both(
        "clock",
        &[
            ("id", Number),
            ("resource", Text),
            ("rv", Number),
            ("compacted_rv", Number),
        ],
    ),
    Table::both(
        "body",
        &[
            ("id", Number),
            ("rv", Number),
            ("revision_at", Number),
            ("form", Number),
            ("facts", Text),
            ("blobs", Bytes),
            ("text", Bytes),
        ],
    ),
    Table::both(
        "object",
        &[
            ("resource", Number),
            ("namespace", Text),
            ("name", Text),
            ("uid", Indexed),
            ("rv", Number),
            ("body", Number),
        ],
    ),
    Table::both(
        "event",
        &[
            ("resource", Number),
            ("rv", Number),
            ("type", Number),
            ("namespace", Text),
            ("name", Text),
            ("body", Number),
            ("before", Number),
            ("time", Number),
        ],
    ),
    Table::both("body_blob", &[("body", Number), ("sha256", Bytes)]),
    Table::both(
        "finding",
        &[("namespace", Text), ("name", Text), ("entries", Bytes)],
    ),
    Table::both(
        "tally",
        &[
            ("link", Indexed),
            ("critical", Number),
            ("high", Number),
            ("medium", Number),
            ("low", Number),
            ("unknown", Number),
            ("suppressed", Number),
        ],
    ),
    Table::both(
        "pending",
        &[
            ("id", Number),
            ("link", Indexed),
            ("bound", Number),
            ("namespace", Text),
            ("name", Text),
        ],
    ),
];

/// The blobs of PostgreSQL, as SQLite has them.
pub(crate) const BLOBS_APART: &[Table] = &[
    Table::both(
        "blob",
        &[
            ("id", Number),
            ("sha256", Bytes),
            ("size", Number),
            ("touched", Number),
        ],
    ),
    Table {
        to: "blob_bytes",
        from: "blob",
        columns: &[("id", Number), ("zstd", Bytes)],
    },
];

/// The blobs of SQLite, as PostgreSQL has them. It numbers them by itself.
pub(crate) const BLOBS_WHOLE: Table = Table {
    to: "blob",
    from: "blob NATURAL JOIN blob_bytes",
    columns: &[
        ("sha256", Bytes),
        ("size", Number),
        ("touched", Number),
        ("zstd", Bytes),
    ],
};

/// What can be selected. Only SQLite has it in full; towards SQLite it is made from the facts.
pub(crate) const SELECTABLE: &[Table] = &[
    Table::both("label", SELECTED),
    Table::both("field", SELECTED),
    Table::both(
        "owner",
        &[
            ("uid", Indexed),
            ("resource", Number),
            ("namespace", Text),
            ("name", Text),
        ],
    ),
];
