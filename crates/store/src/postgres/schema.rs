//! The schema and its versions. Beside its version a database keeps the least version a build must
//! know to work with it: a migration that only adds leaves it where it is, so that two versions of
//! Muster run side by side, and a later one that takes away raises it. However many processes
//! start at once, one migrates and the others wait for it.

use sqlx::{Connection, PgConnection};

/// A script, and the least version that may still run after it.
struct Migration {
    script: &'static str,
    minimum: i64,
}

/// In order; the version of a database is how many it has seen.
const MIGRATIONS: &[Migration] = &[
    Migration {
        script: include_str!("migrations/0001.sql"),
        minimum: 1,
    },
    // Whoever does not count findings may not write them.
    Migration {
        script: include_str!("migrations/0002.sql"),
        minimum: 2,
    },
    // A build that does not know of portions makes its changes whole.
    Migration {
        script: include_str!("migrations/0003.sql"),
        minimum: 2,
    },
    Migration {
        script: include_str!("migrations/0004.sql"),
        minimum: 2,
    },
    // Triggers see to the origin for a build that does not know of it.
    Migration {
        script: include_str!("migrations/0005.sql"),
        minimum: 2,
    },
];

/// The version this build reads and writes.
pub(super) const KNOWN: i64 = MIGRATIONS.len() as i64;

/// What a database says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Version {
    /// How many migrations it has seen; 0 for an empty one.
    pub(super) found: i64,
    /// The least version a build must know.
    pub(super) minimum: i64,
}

impl Version {
    /// Whether this build may work with it.
    pub(super) fn is_known(self) -> bool {
        self.minimum <= KNOWN
    }
}

// Not to_regclass: inside a transaction it may remember that there was no such table.
const HAS_SCHEMA: &str = "
SELECT EXISTS (
    SELECT 1
    FROM pg_class
    WHERE relname = 'schema_version' AND relnamespace = current_schema()::REGNAMESPACE
)";

const READ: &str = "
SELECT version, minimum
FROM schema_version";

/// What a database says of itself.
pub(super) async fn read(connection: &mut PgConnection) -> Result<Version, sqlx::Error> {
    let (mut found, mut minimum) = (0, 0);
    if sqlx::query_scalar(HAS_SCHEMA)
        .fetch_one(&mut *connection)
        .await?
    {
        (found, minimum) = sqlx::query_as(READ).fetch_one(connection).await?;
    }
    Ok(Version { found, minimum })
}

// A migration may take its time, and others wait for it; but nothing waits for ever.
const PATIENCE: &str = "
SET LOCAL statement_timeout = '10min';
SET LOCAL lock_timeout = '10min'";

// The lock ends with the transaction, also with that of a killed process.
const LOCK: &str = "
SELECT pg_advisory_xact_lock(hashtextextended('muster migrates ' || current_schema(), 0))";

const TABLE: &str = "
CREATE TABLE IF NOT EXISTS schema_version (
    one BOOLEAN PRIMARY KEY DEFAULT TRUE CHECK (one),
    version BIGINT NOT NULL,
    minimum BIGINT NOT NULL
)";

const RAISE: &str = "
INSERT INTO schema_version (version, minimum)
VALUES ($1, $2)
ON CONFLICT (one) DO UPDATE SET version = excluded.version, minimum = excluded.minimum";

/// Brings a database to the version this build knows, if it is older; gives what it then is.
pub(super) async fn migrate(connection: &mut PgConnection) -> Result<Version, sqlx::Error> {
    let version = read(connection).await?;
    if version.found >= KNOWN {
        return Ok(version);
    }
    let mut transaction = connection.begin().await?;
    sqlx::raw_sql(PATIENCE).execute(&mut *transaction).await?;
    sqlx::query(LOCK).execute(&mut *transaction).await?;
    // Another process may have migrated meanwhile, and farther.
    let mut version = read(&mut transaction).await?;
    let seen = usize::try_from(version.found).unwrap_or(0);
    for (at, migration) in MIGRATIONS.iter().enumerate().skip(seen) {
        sqlx::raw_sql(TABLE).execute(&mut *transaction).await?;
        sqlx::raw_sql(migration.script)
            .execute(&mut *transaction)
            .await?;
        version = Version {
            found: at as i64 + 1,
            minimum: migration.minimum,
        };
        sqlx::query(RAISE)
            .bind(version.found)
            .bind(version.minimum)
            .execute(&mut *transaction)
            .await?;
    }
    transaction.commit().await?;
    Ok(version)
}
