//! What is kept of layers: the same for every cache, and safe for many at once.

use crate::support::{Image, Told, bill, file, names, options, status, tar};
use anyhow::Result;
use http::Method;
use muster_scan::layer::LayerInventory;
use muster_scan::limits::Limits;
use muster_source::cache::{Directory, LayerCache, Nothing, Shared};
use muster_source::{DiffId, Options};
use muster_testkit::proxy::{Fault, Proxy};
use muster_testkit::push::{Pusher, digest};
use muster_testkit::registry::Registry;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn layer(packages: &[&str]) -> (DiffId, LayerInventory) {
    let archive = tar(&[file("var/lib/dpkg/status", &status(packages))]);
    let layer = muster_scan::layer::read(archive.as_slice(), &Limits::DEFAULT).unwrap();
    (layer.diff_id, layer.inventory)
}

/// Every file below a directory.
fn files(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        match entry.path().is_dir() {
            true => found.extend(files(&entry.path())),
            false => found.push(entry.path()),
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_kept_is_recalled() -> Result<()> {
    let home = tempfile::tempdir()?;
    let directory = || Directory::new(home.path().join("a/b"));
    let shared = Shared::new(Arc::new(Directory::new(home.path().join("c"))));
    let caches: [Arc<dyn LayerCache>; 2] = [Arc::new(directory()), Arc::new(shared)];
    for cache in caches {
        let ((one, found), (other, empty)) = (layer(&["a"]), layer(&[]));
        assert_eq!(cache.recall(&one).await, None);
        cache.keep(&one, &found).await;
        cache.keep(&one, &found).await;
        assert_eq!(cache.recall(&one).await, Some(found));
        assert_eq!(cache.recall(&other).await, None);
        cache.keep(&other, &empty).await;
        assert_eq!(cache.recall(&other).await, Some(empty));
        // The right to read comes back when it is dropped.
        for _ in 0..2 {
            drop(cache.turn(&one).await);
        }
    }
    // Another process finds the same.
    let (one, found) = layer(&["a"]);
    assert_eq!(directory().recall(&one).await, Some(found));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_file_is_as_good_as_none_and_is_replaced() -> Result<()> {
    let home = tempfile::tempdir()?;
    let cache = Directory::new(home.path());
    let (diff_id, found) = layer(&["a", "b"]);
    cache.keep(&diff_id, &found).await;
    let file = files(home.path()).remove(0);
    let whole = fs::read(&file)?;
    for length in 0..whole.len() {
        fs::write(&file, &whole[..length])?;
        assert_eq!(cache.recall(&diff_id).await, None, "{length} bytes");
    }
    for place in 0..whole.len() {
        let mut changed = whole.clone();
        changed[place] ^= 1;
        fs::write(&file, changed)?;
        let recalled = cache.recall(&diff_id).await;
        assert!(
            recalled.is_none_or(|recalled| recalled == found),
            "byte {place}"
        );
    }
    // What another version wrote, and what nobody did.
    let mut other = found.clone();
    other.version += 1;
    for bytes in [
        serde_json::to_vec(&other)?,
        vec![b'x'; 100],
        vec![b'['; 1 << 20],
    ] {
        fs::write(&file, zstd::encode_all(bytes.as_slice(), 1)?)?;
        assert_eq!(cache.recall(&diff_id).await, None);
    }
    cache.keep(&diff_id, &found).await;
    assert_eq!(cache.recall(&diff_id).await, Some(found));
    // A directory that cannot be written to only means that nothing is kept.
    let file = home.path().join("file");
    fs::write(&file, "")?;
    let cache = Directory::new(file);
    cache.keep(&diff_id, &layer(&[]).1).await;
    assert_eq!(cache.recall(&diff_id).await, None);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn many_writers_leave_whole_files_and_nothing_else() -> Result<()> {
    let home = tempfile::tempdir()?;
    let (diff_id, found) = layer(&["a"]);
    let writers = (0..40).map(|_| {
        let (cache, diff_id, found) = (Directory::new(home.path()), diff_id.clone(), found.clone());
        tokio::spawn(async move {
            cache.keep(&diff_id, &found).await;
            // From the first of them on there is something, and it is whole.
            assert_eq!(cache.recall(&diff_id).await, Some(found));
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await?;
    }
    assert_eq!(files(home.path()).len(), 1);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_writer_left_is_not_taken_for_anything() -> Result<()> {
    let home = tempfile::tempdir()?;
    let (diff_id, found) = layer(&["a"]);
    let cache = Directory::new(home.path());
    cache.keep(&diff_id, &found).await;
    let kept = files(home.path()).remove(0);
    let version = kept.parent().and_then(Path::parent).unwrap();
    let left = version.join("unfinished/left");
    fs::rename(&kept, &left)?;
    assert_eq!(cache.recall(&diff_id).await, None);
    // It may still be somebody's, until it is old.
    Directory::new(home.path());
    assert!(left.exists());
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(7200);
    fs::File::options()
        .write(true)
        .open(&left)?
        .set_modified(old)?;
    Directory::new(home.path());
    assert!(!left.exists());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_scans_at_once_read_each_layer_once() -> Result<()> {
    let registry = Registry::start()?;
    let image = Image::usual();
    let pusher = Pusher::new(&registry)?;
    for place in 0..10 {
        // Ten images that share their layers but for the uppermost.
        let own = format!("own-{place}");
        let mut layers = image.plain.clone();
        layers.push(tar(&[file(
            "var/lib/dpkg/status",
            &status(&["base", &own]),
        )]));
        let image = Image::new("amd64", layers);
        let tag = place.to_string();
        pusher
            .image("team/app", Some(&tag), &image.blobs(), &image.config)
            .await?;
    }
    let proxy = Proxy::start(&registry.host(), |_, _| Fault::Pass).await?;
    let home = tempfile::tempdir()?;
    let told = Arc::new(Told::default());
    let options = || Options {
        progress: told.clone(),
        ..options()
    };
    let cache: Arc<dyn LayerCache> = Arc::new(Shared::new(Arc::new(Directory::new(home.path()))));
    let scan = |place: usize| {
        let options = Options {
            cache: cache.clone(),
            ..options()
        };
        let typed = format!("{}/team/app:{place}", proxy.host());
        tokio::spawn(async move {
            let found = bill(&typed, &options).await?;
            assert_eq!(names(&found), ["base".to_owned(), format!("own-{place}")]);
            anyhow::Ok(())
        })
    };
    for scanning in (0..10).map(scan).collect::<Vec<_>>() {
        scanning.await??;
    }
    for layer in &image.layers {
        let requests = proxy.count(Method::GET, &digest(layer));
        assert_eq!(requests, 1);
    }
    assert_eq!((told.count("read"), told.count("recalled")), (13, 27));
    // Another process reads none.
    let again = Options {
        cache: Arc::new(Directory::new(home.path())),
        ..options()
    };
    bill(&format!("{}/team/app:3", proxy.host()), &again).await?;
    assert_eq!(told.count("recalled"), 31);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_for_a_layer_gets_it_even_if_nothing_is_kept() -> Result<()> {
    let cache = Arc::new(Shared::new(Arc::new(Nothing)));
    let (diff_id, found) = layer(&["a"]);
    let turn = cache.turn(&diff_id).await;
    let waiting = {
        let (cache, diff_id) = (cache.clone(), diff_id.clone());
        tokio::spawn(async move {
            let turn = cache.turn(&diff_id).await;
            let found = cache.recall(&diff_id).await;
            drop(turn);
            found
        })
    };
    // Until the other waits too.
    tokio::task::yield_now().await;
    cache.keep(&diff_id, &found).await;
    assert_eq!(cache.recall(&diff_id).await, Some(found.clone()));
    // The second has its place from here on, or comes too late for it.
    drop(turn);
    let recalled = waiting.await?;
    assert!(recalled.is_none_or(|recalled| recalled == found));
    assert_eq!(cache.recall(&diff_id).await, None);
    Ok(())
}
