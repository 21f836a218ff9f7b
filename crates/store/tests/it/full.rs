//! PostgreSQL on a file system without room, and with room again.

use crate::postgres::{assert_sound, open};
use crate::suite::*;
use muster_apiserver::store::{Expect, StoreError};
use muster_testkit::etcd::Durability;
use muster_testkit::postgres::Postgres;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// A file system of its own; it goes when dropped.
struct Small(TempDir);

impl Small {
    fn mount(megabytes: u32) -> Self {
        let small = Small(tempfile::tempdir().unwrap());
        let size = format!("size={megabytes}m,mode=0755");
        let mounted = run(
            "mount",
            &["-t", "tmpfs", "-o", &size, "tmpfs"],
            small.0.path(),
        );
        assert!(
            mounted,
            "a small file system cannot be mounted: run this test as root"
        );
        small
    }

    fn grow(&self, megabytes: u32) {
        let options = format!("remount,size={megabytes}m");
        assert!(run("mount", &["-o", &options], self.0.path()));
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        run("umount", &["--lazy"], self.0.path());
    }
}

fn run(program: &str, arguments: &[&str], path: &Path) -> bool {
    let mut command = Command::new(program);
    let status = command.args(arguments).arg(path).status();
    status.is_ok_and(|status| status.success())
}

/// Bytes that compressing does not make fewer.
fn noise(mut seed: u64, size: usize) -> Vec<u8> {
    let mut next = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 56) as u8
    };
    (0..size).map(|_| next()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_refuses_what_does_not_fit_and_the_store_goes_on() {
    let small = Small::mount(32);
    let server = Postgres::start(Durability::Unsynced).unwrap();
    // Only the tables are there: a server without room for its own log ends.
    let place = small.0.path().join("tables");
    std::fs::create_dir(&place).unwrap();
    let owner = format!("--reference={}", server.socket().display());
    assert!(run("chown", &[&owner], &place));
    let (path, database) = (place.display(), "narrow");
    let space = format!("CREATE TABLESPACE narrow LOCATION '{path}'");
    server.sql("postgres", &space).unwrap();
    let create = "CREATE DATABASE narrow TABLESPACE narrow";
    server.sql("postgres", create).unwrap();
    let store = open(&server, database).await;
    let shared: Shared = store.clone();

    let mut kept = vec![Thing::new("a", "first").create(&shared).await];
    // First what is stored before a write, then the write itself.
    for (sort, size) in [("large", 1 << 20), ("small", 2000)] {
        let refused = loop {
            let seed = kept.len() as u64;
            let thing = Thing::new("a", &format!("{sort}-{seed}"));
            let thing = match sort {
                "large" => thing.blob(&noise(seed, size).into()),
                _ => thing.label("noise", &format!("{:?}", noise(seed, size / 5))),
            };
            match shared.write(thing.write(Expect::Absent)).await {
                Ok(revision) => kept.push(revision),
                Err(refused) => break refused,
            }
        };
        assert!(matches!(refused, StoreError::Full), "{refused:?}");
    }
    // What was refused has left nothing, and what was there can be read.
    let page = shared.list(all()).await.unwrap();
    let mut found: Vec<u64> = page.items.iter().map(|item| item.revision).collect();
    found.sort();
    assert_eq!(found, kept);
    assert_eq!(page.revision, kept.len() as u64 + 1);
    let events = shared.events(&things(), 1, usize::MAX >> 1).await.unwrap();
    assert_eq!(events.len(), kept.len());

    small.grow(96);
    let large = Thing::new("a", "at last").blob(&noise(9999, 1 << 20).into());
    assert_eq!(large.create(&shared).await, page.revision + 1);
    store.close().await;
    assert_sound(&server, database);
    drop(server);
}
