//! What a store's failure is to a client: never more than it may know, and whether to come again.

use crate::store::StoreError;
use muster_kind::Status;

/// The status for a store that failed whatever the object.
pub(crate) fn store_failure(error: StoreError) -> Status {
    match error {
        StoreError::Future { asked, current } => Status::future_revision(asked, current),
        StoreError::Compacted { .. } => {
            Status::expired("The resourceVersion for the provided list is too old.")
        }
        StoreError::Full => Status::unavailable(
            "the disk is full: nothing was written; free some space and try again",
        ),
        StoreError::Closed => Status::unavailable("the server is shutting down"),
        unavailable @ StoreError::Unavailable { .. } => {
            tracing::warn!(error = %explained(&unavailable), "store");
            // Clients need not learn where the database is.
            let mut status = Status::unavailable(unavailable.to_string());
            status.retry_after = Some(1);
            status
        }
        other => {
            let text = explained(&other);
            tracing::error!(error = %text, "store");
            Status::internal(text)
        }
    }
}

/// An error with everything that led to it.
fn explained(error: &StoreError) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unavailable_database_is_503_to_be_tried_again_and_tells_no_secrets() {
        let status = store_failure(StoreError::Unavailable {
            attempt: "reading an object",
            source: "no answer from db.internal".into(),
        });
        assert_eq!((status.code, status.retry_after), (503, Some(1)));
        assert!(status.message.contains("reading an object"));
        assert!(!status.message.contains("db.internal"));
    }

    #[test]
    fn a_full_disk_is_503_that_says_so() {
        let status = store_failure(StoreError::Full);
        assert_eq!(status.code, 503);
        assert!(
            status.message.contains("disk is full"),
            "{}",
            status.message
        );
    }
}
