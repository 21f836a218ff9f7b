//! Bodies out of PostgreSQL's rows.

use super::fault::during;
use crate::body::BodyRow;
use muster_apiserver::store::StoreError;
use muster_kind::Body;
use sqlx::Row;
use sqlx::postgres::PgRow;

/// Reads `revision_at, form, blobs, text` from a row, starting at column `first`.
pub(super) fn read(row: &PgRow, first: usize) -> Result<Body, StoreError> {
    let failed = during("reading a body");
    let revision_at = row.try_get(first).map_err(&failed)?;
    let form = row.try_get(first + 1).map_err(&failed)?;
    let blobs = row.try_get(first + 2).map_err(&failed)?;
    let text = row.try_get(first + 3).map_err(&failed)?;
    BodyRow::assemble(revision_at, form, blobs, text)
}
