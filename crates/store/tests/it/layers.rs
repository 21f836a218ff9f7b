//! Inventories of layers: one suite over the file and over the database, and what is each one's own.

use crate::postgres::{open, server};
use bytes::Bytes;
use muster_apiserver::store::StoreError;
use muster_kind::Digest;
use muster_store::{
    LARGEST_LAYER, LayerKey, LayerLimits, LayerPut, Layers, PostgresLayers, PostgresStore,
    SqliteLayers,
};
use sqlx::{Connection, SqliteConnection};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

const DAY: i64 = 24 * 3600 * 1000;
const KEEP_ALL: LayerLimits = LayerLimits {
    unused: Duration::from_secs(30 * 24 * 3600),
    bytes: u64::MAX,
};

/// Somewhere to keep layers, and a way to change what is kept behind its back.
struct Place {
    layers: Arc<dyn Layers>,
    inner: Inner,
}

enum Inner {
    Postgres(String, Arc<PostgresStore>),
    Sqlite(PathBuf, Arc<SqliteLayers>, tempfile::TempDir),
}

impl Place {
    async fn postgres() -> Place {
        let database = server().database().unwrap();
        let store = open(server(), &database).await;
        Place {
            layers: Arc::new(PostgresLayers::new(store.clone())),
            inner: Inner::Postgres(database, store),
        }
    }

    async fn sqlite() -> Place {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("layers.db");
        let layers = Arc::new(SqliteLayers::open(&path).await.unwrap());
        Place {
            layers: layers.clone(),
            inner: Inner::Sqlite(path, layers, directory),
        }
    }

    /// A statement, or the one number it gives.
    async fn sql(&self, statement: &str) -> Option<i64> {
        match &self.inner {
            Inner::Postgres(database, _) => {
                let text = server().sql(database, statement).unwrap();
                text.trim().parse().ok()
            }
            Inner::Sqlite(path, ..) => {
                let url = format!("sqlite://{}", path.display());
                let mut connection = SqliteConnection::connect(&url).await.unwrap();
                let statement = sqlx::AssertSqlSafe(statement.to_owned());
                let found = sqlx::query_scalar(statement)
                    .fetch_optional(&mut connection)
                    .await;
                connection.close().await.unwrap();
                found.unwrap()
            }
        }
    }

    /// Makes an entry look as if it had last been used earlier.
    async fn age(&self, key: &Named, milliseconds: i64) {
        let statement = format!(
            "UPDATE layer SET used = used - {milliseconds} WHERE analyzers = '{}'",
            key.1
        );
        self.sql(&statement).await;
    }

    /// When an entry was last used.
    async fn used(&self, key: &Named) -> i64 {
        let statement = format!("SELECT used FROM layer WHERE analyzers = '{}'", key.1);
        self.sql(&statement).await.unwrap()
    }

    async fn end(self) {
        match self.inner {
            Inner::Postgres(_, store) => store.close().await,
            Inner::Sqlite(_, layers, directory) => {
                layers.close().await.unwrap();
                directory.close().unwrap();
            }
        }
    }
}

/// A key, and the version in it, by which a statement finds it.
struct Named(LayerKey, String);

fn named(name: &str) -> Named {
    Named(key("a layer", name), name.into())
}

fn key(layer: &str, analyzers: &str) -> LayerKey {
    let diff_id = Digest::of(layer.as_bytes()).to_string();
    LayerKey::parse(&diff_id, analyzers).unwrap()
}

/// Bytes that hardly compress.
fn noise(size: usize, seed: u64) -> Bytes {
    // Zero would stay zero.
    let mut state = 2 * seed + 1;
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..size).map(next).collect()
}

async fn read(layers: &Arc<dyn Layers>, key: &LayerKey) -> Option<Bytes> {
    let found = layers.get(key).await.unwrap();
    let about = layers.about(key).await.unwrap();
    assert_eq!(found.as_ref().map(|(about, _)| *about), about);
    let (about, bytes) = found?;
    assert_eq!(about.digest, Digest::of(&bytes));
    assert_eq!(about.size, bytes.len() as u64);
    Some(bytes)
}

macro_rules! over_both {
    ($($case:ident)*) => {
        mod on_postgres {$(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                let place = super::Place::postgres().await;
                super::$case(&place).await;
                place.end().await;
            }
        )*}
        mod on_sqlite {$(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                let place = super::Place::sqlite().await;
                super::$case(&place).await;
                place.end().await;
            }
        )*}
    };
}

over_both! {
    what_is_kept_comes_back_to_the_byte
    the_first_content_of_a_key_stays
    many_writers_of_one_key_agree_on_one_content
    what_is_damaged_is_forgotten_and_can_be_kept_anew
    what_nobody_used_for_long_is_forgotten
    reading_notes_the_use_once_a_day
    too_much_goes_longest_unused_first
    what_is_too_large_is_not_kept
}

async fn what_is_kept_comes_back_to_the_byte(place: &Place) {
    let layers = &place.layers;
    let contents = [
        Bytes::new(),
        Bytes::from_static(b"{}"),
        Bytes::from(vec![0; LARGEST_LAYER]),
        noise(3_000_000, 7),
    ];
    for (number, bytes) in contents.iter().enumerate() {
        let key = key(&number.to_string(), "1");
        assert_eq!(read(layers, &key).await, None);
        let put = layers.put(&key, bytes.clone()).await.unwrap();
        assert_eq!(put, LayerPut::New);
    }
    for (number, bytes) in contents.iter().enumerate() {
        let key = key(&number.to_string(), "1");
        assert_eq!(read(layers, &key).await.as_ref(), Some(bytes));
        assert!(layers.forget(&key).await.unwrap());
        assert!(!layers.forget(&key).await.unwrap());
        assert_eq!(read(layers, &key).await, None);
    }
}

async fn the_first_content_of_a_key_stays(place: &Place) {
    let layers = &place.layers;
    let (one, two) = (Bytes::from_static(b"one"), Bytes::from_static(b"two"));
    for (analyzers, bytes, put) in [
        ("1", &one, LayerPut::New),
        ("1", &one, LayerPut::Same),
        ("1", &two, LayerPut::Different),
        ("2", &two, LayerPut::New),
        ("1", &one, LayerPut::Same),
    ] {
        let done = layers.put(&key("x", analyzers), bytes.clone()).await;
        assert_eq!(done.unwrap(), put);
    }
    assert_eq!(read(layers, &key("x", "1")).await, Some(one));
    assert_eq!(read(layers, &key("x", "2")).await, Some(two));
    assert_eq!(read(layers, &key("y", "1")).await, None);
}

async fn many_writers_of_one_key_agree_on_one_content(place: &Place) {
    let tasks: Vec<_> = (0..16u64)
        .map(|number| {
            let layers = place.layers.clone();
            tokio::spawn(async move {
                let bytes = noise(200_000, number / 2);
                let put = layers.put(&key("x", "1"), bytes.clone()).await.unwrap();
                let found = read(&layers, &key("x", "1")).await.unwrap();
                assert_eq!(found == bytes, put != LayerPut::Different, "{put:?}");
                (put, found)
            })
        })
        .collect();
    let mut outcomes = Vec::new();
    for task in tasks {
        outcomes.push(task.await.unwrap());
    }
    let count = |put| outcomes.iter().filter(|(p, _)| *p == put).count();
    assert_eq!((count(LayerPut::New), count(LayerPut::Same)), (1, 1));
    assert!(outcomes.iter().all(|(_, found)| *found == outcomes[0].1));
}

async fn what_is_damaged_is_forgotten_and_can_be_kept_anew(place: &Place) {
    let (layers, bytes) = (&place.layers, noise(100_000, 3));
    // A frame of zstd that claims a terabyte, other bytes, fewer bytes, a wrong size.
    let bomb = "28b52ffdc000000000000100000000";
    let hex = |hex: &str| match &place.inner {
        Inner::Postgres(..) => format!("decode('{hex}', 'hex')"),
        Inner::Sqlite(..) => format!("x'{hex}'"),
    };
    for damage in [
        format!("zstd = {}", hex(bomb)),
        format!("zstd = {}, size = 1099511627776", hex(bomb)),
        format!("zstd = {}", hex("00")),
        "zstd = substr(zstd, 1, 5000)".into(),
        "size = 7".into(),
        "size = -1".into(),
        format!("sha256 = {}", hex(&"ab".repeat(32))),
        format!("sha256 = {}", hex("ab")),
    ] {
        let key = key("x", "1");
        let put = layers.put(&key, bytes.clone()).await.unwrap();
        assert_eq!(put, LayerPut::New, "before {damage}");
        place.sql(&format!("UPDATE layer SET {damage}")).await;
        assert_eq!(layers.get(&key).await.unwrap(), None, "{damage}");
        assert_eq!(layers.about(&key).await.unwrap(), None, "{damage}");
    }
}

async fn what_nobody_used_for_long_is_forgotten(place: &Place) {
    let layers = &place.layers;
    let names: Vec<Named> = (0..250)
        .map(|number| named(&format!("v{number}")))
        .collect();
    for name in &names {
        let bytes = Bytes::from(name.1.clone());
        layers.put(&name.0, bytes).await.unwrap();
    }
    assert_eq!(layers.upkeep(KEEP_ALL).await.unwrap(), 0);
    place
        .sql(&format!("UPDATE layer SET used = used - {}", 31 * DAY))
        .await;
    for kept in [5, 77] {
        place.age(&names[kept], -2 * DAY).await;
    }
    assert_eq!(layers.upkeep(KEEP_ALL).await.unwrap(), 248);
    for (number, name) in names.iter().enumerate() {
        let found = read(layers, &name.0).await;
        assert_eq!(found.is_some(), [5, 77].contains(&number), "{number}");
    }
}

async fn reading_notes_the_use_once_a_day(place: &Place) {
    let (layers, name) = (&place.layers, named("v1"));
    layers.put(&name.0, Bytes::from_static(b"x")).await.unwrap();
    let first = place.used(&name).await;
    place.age(&name, DAY / 2).await;
    read(layers, &name.0).await.unwrap();
    assert_eq!(place.used(&name).await, first - DAY / 2, "not noted again");
    for old in [2 * DAY, 29 * DAY] {
        place.age(&name, old).await;
        layers.get(&name.0).await.unwrap().unwrap();
        assert!(place.used(&name).await >= first, "noted by reading");
        place.age(&name, old).await;
        layers.about(&name.0).await.unwrap().unwrap();
        assert!(place.used(&name).await >= first, "noted by asking");
        place.age(&name, old).await;
        layers.put(&name.0, Bytes::from_static(b"x")).await.unwrap();
        assert!(place.used(&name).await >= first, "noted by keeping");
    }
}

async fn too_much_goes_longest_unused_first(place: &Place) {
    let layers = &place.layers;
    let names: Vec<Named> = (0..8).map(|number| named(&format!("v{number}"))).collect();
    for (number, name) in names.iter().enumerate() {
        let bytes = noise(100_000, number as u64 + 1);
        layers.put(&name.0, bytes).await.unwrap();
        place.age(name, (8 - number as i64) * 1000).await;
    }
    let limits = LayerLimits {
        bytes: 350_000,
        ..KEEP_ALL
    };
    assert_eq!(layers.upkeep(limits).await.unwrap(), 5);
    assert_eq!(layers.upkeep(limits).await.unwrap(), 0);
    for (number, name) in names.iter().enumerate() {
        assert_eq!(read(layers, &name.0).await.is_some(), number >= 5);
    }
}

async fn what_is_too_large_is_not_kept(place: &Place) {
    let bytes = Bytes::from(vec![0; LARGEST_LAYER + 1]);
    let refused = place.layers.put(&key("x", "1"), bytes).await;
    assert!(matches!(refused, Err(StoreError::Engine { .. })));
    assert_eq!(read(&place.layers, &key("x", "1")).await, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_kept_in_a_file_survives_and_a_file_that_is_damaged_is_made_anew() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("layers.db");
    let bytes = noise(50_000, 9);
    let layers = SqliteLayers::open(&path).await.unwrap();
    layers.put(&key("x", "1"), bytes.clone()).await.unwrap();
    layers.close().await.unwrap();
    let refused = layers.put(&key("y", "1"), bytes.clone()).await;
    assert!(matches!(refused, Err(StoreError::Closed)));

    let damage: [fn(&Path); 3] = [
        |_| {},
        |path| std::fs::write(path, b"this is no database at all").unwrap(),
        |path| {
            // The version of a file of SQLite stands in its head.
            let mut file = std::fs::read(path).unwrap();
            file[60..64].copy_from_slice(&99u32.to_be_bytes());
            std::fs::write(path, file).unwrap();
        },
    ];
    for (round, damage) in damage.into_iter().enumerate() {
        damage(&path);
        let layers = SqliteLayers::open(&path).await.unwrap();
        let found = layers.get(&key("x", "1")).await.unwrap();
        assert_eq!(found.is_some(), round == 0, "round {round}");
        layers.put(&key("x", "1"), bytes.clone()).await.unwrap();
        layers.close().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_share_layers_and_forget_together() {
    let database = server().database().unwrap();
    let mut replicas = Vec::new();
    for _ in 0..2 {
        let store = open(server(), &database).await;
        replicas.push((Arc::new(PostgresLayers::new(store.clone())), store));
    }
    for number in 0..6u64 {
        let (layers, _) = &replicas[number as usize % 2];
        let key = key(&number.to_string(), "1");
        layers.put(&key, noise(100_000, number + 1)).await.unwrap();
    }
    for (layers, _) in &replicas {
        let found = layers.get(&key("3", "1")).await.unwrap();
        assert!(found.is_some());
    }
    let limits = LayerLimits {
        bytes: 450_000,
        ..KEEP_ALL
    };
    let (one, two) = tokio::join!(replicas[0].0.upkeep(limits), replicas[1].0.upkeep(limits));
    // Whoever comes second while the first works does nothing, and finds nothing afterwards.
    assert_eq!(one.unwrap() + two.unwrap(), 2);
    for (_, store) in replicas {
        store.close().await;
    }
}
