//! Opening a database: it must be reachable, speak UTF-8 and have a schema this build can work
//! with. Every refusal says what was attempted and what to do.

use super::connections::Connections;
use super::fault::is_unavailable;
use super::options::Options;
use super::{PostgresStore, incarnation, schema};
use sqlx::{Connection, PgConnection};
use std::time::Duration;

/// Why a database could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The URL is none.
    #[error("the database URL is not of the form postgres://user@host:port/database")]
    Url,
    /// It does not answer, or does not let us in.
    #[error("database {place} cannot be reached; check that it runs, and the credentials")]
    Unreachable {
        /// Which database.
        place: String,
        /// What the engine said.
        #[source]
        source: sqlx::Error,
    },
    /// A newer build has changed it in a way this one does not know.
    #[error(
        "database {place} has schema version {found} and needs a muster that knows at least {minimum}; this one knows {known}; run the newer muster"
    )]
    Newer {
        /// Which database.
        place: String,
        /// Its version.
        found: i64,
        /// The least version a build must know.
        minimum: i64,
        /// The newest version this build knows.
        known: i64,
    },
    /// It cannot hold every text.
    #[error(
        "database {place} has the encoding {found}; create it with ENCODING 'UTF8' TEMPLATE template0"
    )]
    Encoding {
        /// Which database.
        place: String,
        /// Its encoding.
        found: String,
    },
    /// The engine refused.
    #[error("{attempt} of database {place}; check that its owner is who connects")]
    Engine {
        /// What was being done.
        attempt: &'static str,
        /// Which database.
        place: String,
        /// Why it did not work.
        #[source]
        source: sqlx::Error,
    },
}

impl OpenError {
    /// Whether opening again later can help.
    pub fn is_temporary(&self) -> bool {
        matches!(self, OpenError::Unreachable { .. })
    }
}

const ENCODING: &str = "SELECT current_setting('server_encoding')";
/// The first pause before a database is tried again; it doubles.
const PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

impl PostgresStore {
    /// Opens the store of a database, making or upgrading it as needed. Fails at once if the
    /// database cannot be reached.
    pub async fn open(options: Options) -> Result<Self, OpenError> {
        let connections = Connections::new(options);
        let place = connections.options.place();
        let failed = |attempt| {
            let place = place.clone();
            move |source: sqlx::Error| match is_unavailable(&source) {
                true => OpenError::Unreachable { place, source },
                false => OpenError::Engine {
                    attempt,
                    place,
                    source,
                },
            }
        };
        let mut connection =
            connections
                .connect()
                .await
                .map_err(|source| OpenError::Unreachable {
                    place: place.clone(),
                    source,
                })?;
        let found: String = sqlx::query_scalar(ENCODING)
            .fetch_one(&mut connection)
            .await
            .map_err(failed("reading the encoding"))?;
        if found != "UTF8" {
            return Err(OpenError::Encoding { place, found });
        }
        let version = schema::migrate(&mut connection)
            .await
            .map_err(failed("preparing the schema"))?;
        if !version.is_known() {
            return Err(OpenError::Newer {
                place,
                found: version.found,
                minimum: version.minimum,
                known: schema::KNOWN,
            });
        }
        let here = settled(&mut connection)
            .await
            .map_err(failed("reading the incarnation"))?;
        connections.settle(here);
        let hints = super::follow::read(&mut connection)
            .await
            .map_err(failed("reading the clocks"))?;
        let _ = connection.close().await;
        Ok(PostgresStore::start(connections, hints))
    }

    /// As [`PostgresStore::open`], but waits, and says so, as long as the database cannot be
    /// reached. What waiting cannot cure is an error at once.
    pub async fn open_when_ready(options: Options) -> Result<Self, OpenError> {
        let mut pause = PAUSE;
        loop {
            match PostgresStore::open(options.clone()).await {
                Err(error) if error.is_temporary() => {
                    let reason = std::error::Error::source(&error).map(ToString::to_string);
                    tracing::warn!(%error, reason, "waiting for the database");
                }
                other => return other,
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

async fn settled(connection: &mut PgConnection) -> Result<String, sqlx::Error> {
    let here = incarnation::place(connection).await?;
    incarnation::settle(connection, &here).await?;
    Ok(here)
}
