//! The engine's errors as the store's: what a caller must act on is told apart, the rest keeps
//! its source and says what was being done.

pub(super) use crate::fault::damaged;
use muster_apiserver::store::StoreError;

/// SQLITE_FULL.
const FULL: i64 = 13;

/// The engine's result code without its extension.
pub(super) fn primary_code(error: &sqlx::Error) -> Option<i64> {
    let code = error.as_database_error()?.code()?;
    code.parse::<i64>().ok().map(|code| code & 0xff)
}

/// Whether a file is no database or a damaged one.
pub(crate) fn is_damaged(error: &sqlx::Error) -> bool {
    /// SQLITE_CORRUPT and SQLITE_NOTADB.
    const DAMAGED: [i64; 2] = [11, 26];
    primary_code(error).is_some_and(|code| DAMAGED.contains(&code))
}

/// Says what was being done when the engine failed.
pub(crate) fn during(attempt: &'static str) -> impl Fn(sqlx::Error) -> StoreError {
    move |error| match &error {
        sqlx::Error::PoolClosed => StoreError::Closed,
        error if primary_code(error) == Some(FULL) => StoreError::Full,
        _ => StoreError::Engine {
            attempt,
            source: Box::new(error),
        },
    }
}
