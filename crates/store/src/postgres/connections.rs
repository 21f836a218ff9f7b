//! The connections. Each is made with the password as it is then, is told our settings, and is
//! asked whether the database is still the one we knew before anything else is. A connection comes
//! back only when its work has ended well: whatever was cut short, by an error or because the
//! caller went away, ends with its connection, and the server rolls it back.

use super::fault::{during, is_refused_login};
use super::incarnation;
use super::options::Options;
use muster_apiserver::store::StoreError;
use sqlx::{ConnectOptions, Connection, PgConnection};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

const ATTEMPT: &str = "connecting";
/// A connection that lay idle for longer is asked whether it is alive.
const ASK_AFTER: Duration = Duration::from_secs(1);
/// How long that answer may take.
const ALIVE: Duration = Duration::from_secs(2);
/// A connection older than this is not used again: memory it gathered on the server is freed, and
/// a server that took over by name gets its share.
const OLD: Duration = Duration::from_secs(30 * 60);

/// A few connections to one database, made when needed.
#[derive(Debug)]
pub(crate) struct Connections {
    pub(crate) options: Options,
    permits: Semaphore,
    idle: Mutex<Vec<Idle>>,
    /// Where the database was when we last looked; none until it has been opened.
    place: Mutex<Option<String>>,
}

#[derive(Debug)]
struct Idle {
    connection: PgConnection,
    born: Instant,
    since: Instant,
}

/// A connection in use. [`Lease::done`] gives it back; dropping it ends it.
pub(crate) struct Lease<'a> {
    connections: &'a Connections,
    connection: PgConnection,
    born: Instant,
    _permit: SemaphorePermit<'a>,
}

impl Connections {
    pub(super) fn new(options: Options) -> Self {
        Connections {
            permits: Semaphore::new(options.max_connections.max(2) as usize),
            options,
            idle: Mutex::default(),
            place: Mutex::default(),
        }
    }

    /// A connection that works, waiting for one that is free.
    pub(crate) async fn lease(&self) -> Result<Lease<'_>, StoreError> {
        let permit = timeout(self.options.connect_timeout, self.permits.acquire())
            .await
            .map_err(|_| StoreError::Unavailable {
                attempt: ATTEMPT,
                source: "all connections are busy".into(),
            })?
            .map_err(|_| StoreError::Closed)?;
        let (connection, born) = match self.idle().await {
            Some(idle) => (idle.connection, idle.born),
            None => {
                let made = self.connect().await.map_err(during(ATTEMPT))?;
                (made, Instant::now())
            }
        };
        Ok(Lease {
            connections: self,
            connection,
            born,
            _permit: permit,
        })
    }

    /// An idle connection that is alive.
    async fn idle(&self) -> Option<Idle> {
        loop {
            let mut idle = lock(&self.idle).pop()?;
            if idle.born.elapsed() > OLD {
                continue;
            }
            if idle.since.elapsed() < ASK_AFTER {
                return Some(idle);
            }
            if let Ok(Ok(())) = timeout(ALIVE, idle.connection.ping()).await {
                return Some(idle);
            }
            // The server is gone or was restarted; the others have ended with it.
            lock(&self.idle).clear();
        }
    }

    /// A new connection, ready for use.
    pub(super) async fn connect(&self) -> Result<PgConnection, sqlx::Error> {
        let limit = self.options.connect_timeout;
        let mut connection = timeout(limit, self.dial()).await.unwrap_or_else(|_| {
            let text = format!("no answer within {limit:?}");
            Err(std::io::Error::new(std::io::ErrorKind::TimedOut, text).into())
        })?;
        let known = lock(&self.place).clone();
        if let Some(known) = known {
            let place = incarnation::place(&mut connection).await?;
            if place != known {
                incarnation::settle(&mut connection, &place).await?;
                *lock(&self.place) = Some(place);
            }
        }
        Ok(connection)
    }

    async fn dial(&self) -> Result<PgConnection, sqlx::Error> {
        let mut connection = match self.options.target().await?.connect().await {
            // The password may have been rotated between reading the file and using it.
            Err(error) if is_refused_login(&error) && self.options.password_file.is_some() => {
                self.options.target().await?.connect().await?
            }
            other => other?,
        };
        self.introduce(&mut connection).await?;
        Ok(connection)
    }

    /// Tells the server how we work.
    async fn introduce(&self, connection: &mut PgConnection) -> Result<(), sqlx::Error> {
        let millis = |duration: Duration| duration.as_millis().to_string();
        let standby: bool = sqlx::query_scalar(SETTINGS)
            .bind(millis(self.options.statement_timeout))
            .bind(millis(self.options.lock_timeout))
            .fetch_one(connection)
            .await?;
        if standby {
            let text = "the server is a standby and takes no writes";
            return Err(std::io::Error::other(text).into());
        }
        Ok(())
    }

    /// From now on the database is known to be here.
    pub(super) fn settle(&self, place: String) {
        *lock(&self.place) = Some(place);
    }

    /// Gives no connection any more, waits for those in use, and ends them all.
    pub(super) async fn close(&self) {
        let all = self.options.max_connections.max(2);
        // Whoever still waits gets its turn first; then nobody does.
        let _ = timeout(self.options.patience(), self.permits.acquire_many(all)).await;
        self.permits.close();
        let idle = std::mem::take(&mut *lock(&self.idle));
        for idle in idle {
            let _ = timeout(ALIVE, idle.connection.close()).await;
        }
    }
}

// A write looks at what others have committed, statement by statement, which is what READ COMMITTED
// means. An acknowledged write must not be lost, or its revision would be given again. All we ask
// are lookups and walks along indexes: a plan made while a table was small shall not become a scan
// of a large one.
const SETTINGS: &str = "
SELECT pg_is_in_recovery(),
    set_config('default_transaction_isolation', 'read committed', false),
    set_config('default_transaction_read_only', 'off', false),
    set_config('statement_timeout', $1, false),
    set_config('lock_timeout', $2, false),
    set_config('idle_in_transaction_session_timeout', $1, false),
    set_config('enable_seqscan', 'off', false),
    set_config('enable_hashjoin', 'off', false),
    set_config('enable_mergejoin', 'off', false),
    set_config('jit', 'off', false),
    set_config(
        'synchronous_commit',
        CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on'
            ELSE current_setting('synchronous_commit') END,
        false
    )";

impl Lease<'_> {
    /// The connection, to work with.
    pub(crate) fn connection(&mut self) -> &mut PgConnection {
        &mut self.connection
    }

    /// Gives the connection back: its work has ended, and no transaction is open on it.
    pub(crate) fn done(self) {
        lock(&self.connections.idle).push(Idle {
            connection: self.connection,
            born: self.born,
            since: Instant::now(),
        });
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
