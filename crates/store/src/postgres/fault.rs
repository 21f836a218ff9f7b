//! The engine's errors as the store's, by SQLSTATE: a full disk, and a database that cannot be
//! reached or is too busy, are told apart from what is wrong; the rest keeps its source.

use muster_apiserver::store::StoreError;

/// `disk_full`.
const FULL: &str = "53100";
/// `serialization_failure` and `deadlock_detected`: the same again may work.
const COLLISION: [&str; 2] = ["40001", "40P01"];
/// Codes, and classes of codes, of a database that cannot serve now but may do so soon.
const UNAVAILABLE: [&str; 11] = [
    "08",    // connection exceptions
    "28",    // invalid authorization: credentials are being rotated
    "40",    // transaction rollback, after all attempts
    "53",    // insufficient resources
    "57P",   // operator intervention: shutting down, starting up
    "57014", // query_canceled: the statement timeout
    "55P03", // lock_not_available: the lock timeout
    "25006", // read_only_sql_transaction: a standby
    "25P03", // idle_in_transaction_session_timeout
    "3D000", // invalid_catalog_name: the database is being restored
    "58",    // system errors
];

fn code(error: &sqlx::Error) -> Option<String> {
    Some(error.as_database_error()?.code()?.into_owned())
}

/// Whether two transactions got into each other's way.
pub(super) fn is_collision(error: &sqlx::Error) -> bool {
    code(error).is_some_and(|code| COLLISION.contains(&code.as_str()))
}

/// Whether the database refused the credentials.
pub(super) fn is_refused_login(error: &sqlx::Error) -> bool {
    code(error).is_some_and(|code| code.starts_with("28"))
}

/// Whether a function of the server may not be called, or not here.
pub(super) fn is_forbidden(error: &sqlx::Error) -> bool {
    const FORBIDDEN: [&str; 4] = ["42501", "0A000", "55000", "42883"];
    code(error).is_some_and(|code| FORBIDDEN.contains(&code.as_str()))
}

fn is_full(error: &sqlx::Error, code: &str) -> bool {
    let says = |error: &dyn sqlx::error::DatabaseError| error.message().contains("No space left");
    code == FULL || code == "58030" && error.as_database_error().is_some_and(says)
}

/// Whether trying again later can help.
pub(super) fn is_unavailable(error: &sqlx::Error) -> bool {
    match code(error) {
        Some(code) => UNAVAILABLE.iter().any(|known| code.starts_with(known)),
        None => matches!(
            error,
            sqlx::Error::Io(_)
                | sqlx::Error::Tls(_)
                | sqlx::Error::Protocol(_)
                | sqlx::Error::PoolTimedOut
                | sqlx::Error::WorkerCrashed
        ),
    }
}

/// Says what was being done when the engine failed.
pub(crate) fn during(attempt: &'static str) -> impl Fn(sqlx::Error) -> StoreError {
    move |error| match code(&error) {
        Some(code) if is_full(&error, &code) => StoreError::Full,
        _ if is_unavailable(&error) => StoreError::Unavailable {
            attempt,
            source: error.into(),
        },
        _ => StoreError::Engine {
            attempt,
            source: error.into(),
        },
    }
}
