//! Bodies out of SQLite's rows.

use super::fault::during;
pub(super) use crate::body::{BodyRow, expand, expand_all};
use muster_apiserver::store::StoreError;
use muster_kind::Body;
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

impl BodyRow {
    /// Reads `revision_at, form, blobs, text` from a row, starting at column `first`.
    pub(super) fn unpack(row: &SqliteRow, first: usize) -> Result<Body, StoreError> {
        let failed = during("reading a body");
        let revision_at = row.try_get(first).map_err(&failed)?;
        let form = row.try_get(first + 1).map_err(&failed)?;
        let blobs = row.try_get(first + 2).map_err(&failed)?;
        let text = row.try_get(first + 3).map_err(&failed)?;
        BodyRow::assemble(revision_at, form, blobs, text)
    }
}
