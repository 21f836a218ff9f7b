//! Copies of stores in use, from each engine into each: that they are whole, what is refused, what
//! a killed process leaves, and that a restored store is never taken for the one that was lost.

mod killed;
mod lives;
mod moves;
mod refused;

use crate::suite::computed::{everything, sample};
use crate::suite::*;
use crate::{postgres, sqlite};
use muster_kind::Digest;
use muster_store::{Options, Place, PostgresStore, SqliteStore, backup};
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;

/// An engine with a place of its own.
enum Engine {
    Sqlite(TempDir),
    Postgres(String),
}

impl Engine {
    fn sqlite() -> Self {
        Engine::Sqlite(tempfile::tempdir().unwrap())
    }

    fn postgres() -> Self {
        Engine::Postgres(postgres::server().database().unwrap())
    }

    fn both() -> [Engine; 2] {
        [Engine::sqlite(), Engine::postgres()]
    }

    fn place(&self) -> Place {
        match self {
            Engine::Sqlite(directory) => Place::Directory(directory.path().into()),
            Engine::Postgres(database) => {
                Place::Database(Box::new(postgres::options(postgres::server(), database)))
            }
        }
    }

    async fn open(&self) -> Open {
        match self {
            Engine::Sqlite(directory) => {
                let store = SqliteStore::open(Options::new(directory.path())).await;
                Open::Sqlite(Arc::new(store.unwrap()))
            }
            Engine::Postgres(database) => {
                Open::Postgres(postgres::open(postgres::server(), database).await)
            }
        }
    }

    async fn assert_sound(&self) {
        match self {
            Engine::Sqlite(directory) => sqlite::assert_sound(directory.path()).await,
            Engine::Postgres(database) => postgres::assert_sound(postgres::server(), database),
        }
    }
}

enum Open {
    Sqlite(Arc<SqliteStore>),
    Postgres(Arc<PostgresStore>),
}

impl Open {
    fn store(&self) -> Shared {
        match self {
            Open::Sqlite(store) => store.clone(),
            Open::Postgres(store) => store.clone(),
        }
    }

    async fn renew(&self) -> u64 {
        let renewed = match self {
            Open::Sqlite(store) => store.renew_incarnation().await,
            Open::Postgres(store) => store.renew_incarnation().await,
        };
        renewed.unwrap()
    }

    async fn close(self) {
        match self {
            Open::Sqlite(store) => store.close().await.unwrap(),
            Open::Postgres(store) => store.close().await,
        }
    }
}

fn odd_values() -> [String; 3] {
    ["long ".repeat(300), "a\0b".into(), "sha256:plain".into()]
}

/// Objects of all sorts.
async fn furnish(store: &Shared) {
    for (number, value) in odd_values().iter().enumerate() {
        let thing = Thing::new("odd", &format!("x{number}")).field("spec.x", value);
        let bytes = format!("{{\"blob\": {number}}}").into();
        thing
            .owner(value)
            .label("k", "v")
            .blob(&bytes)
            .create(store)
            .await;
    }
    let gone = Thing::new("odd", "gone");
    let revision = gone.create(store).await;
    gone.delete(store, revision).await;
    for number in 0..12 {
        sample(store, number).await;
    }
    everything(store, 1).await;
}

async fn assert_furnished(store: &Shared) {
    for (number, value) in odd_values().iter().enumerate() {
        let name = format!("odd/x{number}");
        let mut query = fielded("spec.x=v");
        query.fields.0[0].value = value.clone();
        assert_eq!(names(store, query).await, name, "{value:?}");
        assert_eq!(store.owned(value, 9).await.unwrap().len(), 1);
        let bytes = format!("{{\"blob\": {number}}}");
        let blob = store.blob(&Digest::of(bytes.as_bytes())).await.unwrap();
        assert_eq!(blob.unwrap(), bytes);
    }
    assert_eq!(names(store, labelled("k=v")).await, "odd/x0 odd/x1 odd/x2");
    everything(store, 2).await;
    sample(store, 12).await;
}

/// A small backup.
async fn small(directory: &TempDir) -> PathBuf {
    let engine = Engine::sqlite();
    let open = engine.open().await;
    furnish(&open.store()).await;
    open.close().await;
    let file = directory.path().join("backup");
    backup(&engine.place(), &file).await.unwrap();
    file
}
