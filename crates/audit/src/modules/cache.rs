//! Bytes by their digest, in a directory: what was fetched once is there after a restart, and when its
//! registry is not. What is read is checked again, so whoever can write to the directory can at most
//! make us fetch; what is written is there whole or not at all. The longest unused goes first when there
//! is too much.

use muster_registry::Digest;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

/// What begins the name of a file that is still being written.
const UNFINISHED: &str = ".part-";

/// A directory of bytes.
#[derive(Clone, Debug)]
pub(super) struct Cache {
    directory: PathBuf,
    most: u64,
}

impl Cache {
    /// In this directory, of about so many bytes at most.
    pub(super) fn new(directory: &Path, most: u64) -> Cache {
        Cache {
            directory: directory.into(),
            most,
        }
    }

    /// The bytes of a digest, if they are here and are no more than `largest`.
    pub(super) async fn get(&self, digest: &Digest, largest: usize) -> Option<Vec<u8>> {
        let (path, digest) = (self.path(digest), digest.clone());
        let reading = move || read(&path, &digest, largest);
        tokio::task::spawn_blocking(reading).await.ok().flatten()
    }

    /// Keeps bytes. That they cannot be kept is no reason to do without them.
    pub(super) async fn put(&self, digest: &Digest, bytes: &[u8]) {
        let (cache, path, bytes) = (self.clone(), self.path(digest), bytes.to_vec());
        let writing = move || {
            cache.write(&path, &bytes)?;
            cache.make_room(&path)
        };
        match tokio::task::spawn_blocking(writing).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "a module cannot be kept on disk"),
            Err(error) => tracing::warn!(%error, "keeping a module was cut short"),
        }
    }

    fn path(&self, digest: &Digest) -> PathBuf {
        self.directory.join(digest.as_str().replace(':', "-"))
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        fs::create_dir_all(&self.directory)?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{UNFINISHED}{}-{number}", std::process::id());
        let unfinished = self.directory.join(name);
        let written = fs::write(&unfinished, bytes).and_then(|()| fs::rename(&unfinished, path));
        if written.is_err() {
            let _ = fs::remove_file(&unfinished);
        }
        written
    }

    /// Removes what was longest unused, but never what has just been written.
    fn make_room(&self, newest: &Path) -> io::Result<()> {
        let mut kept = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let entry = entry?;
            let name = entry.file_name();
            let ours = name.to_str().and_then(|name| name.split_once('-'));
            let ours = ours.and_then(|(sort, rest)| Digest::parse(&format!("{sort}:{rest}")));
            // One that is being replaced by somebody else is none of ours.
            if let (Some(_), Ok(found)) = (ours, entry.metadata()) {
                let used = found.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                kept.push((used, found.len(), entry.path()));
            }
        }
        let mut sum: u64 = kept.iter().map(|(_, size, _)| size).sum();
        kept.sort();
        for (_, size, path) in kept {
            if sum <= self.most {
                break;
            }
            if path != newest {
                fs::remove_file(&path)?;
                sum = sum.saturating_sub(size);
            }
        }
        Ok(())
    }
}

fn read(path: &Path, digest: &Digest, largest: usize) -> Option<Vec<u8>> {
    let file = File::open(path).ok()?;
    let mut bytes = Vec::new();
    let limit = largest as u64 + 1;
    (&file).take(limit).read_to_end(&mut bytes).ok()?;
    if bytes.len() > largest {
        return None;
    }
    if digest.check(&bytes).is_err() {
        tracing::warn!(%digest, "what was kept on disk is damaged, and is fetched again");
        let _ = fs::remove_file(path);
        return None;
    }
    // Only so that it is not the next to go.
    let _ = file.set_modified(SystemTime::now());
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn age(cache: &Cache, bytes: &[u8], seconds: u64) {
        let path = cache.path(&Digest::of(bytes));
        let file = File::options().append(true).open(path).unwrap();
        let then = SystemTime::now() - Duration::from_secs(seconds);
        file.set_modified(then).unwrap();
    }

    #[tokio::test]
    async fn what_is_kept_is_what_was_put_or_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::new(&directory.path().join("deep/down"), 100);
        let digest = Digest::of(b"code");
        assert_eq!(cache.get(&digest, 100).await, None);
        cache.put(&digest, b"code").await;
        assert_eq!(cache.get(&digest, 4).await.as_deref(), Some(&b"code"[..]));
        assert_eq!(cache.get(&digest, 3).await, None, "too large");
        fs::write(cache.path(&digest), b"evil").unwrap();
        assert_eq!(cache.get(&digest, 100).await, None);
        assert!(!cache.path(&digest).exists());
    }

    #[tokio::test]
    async fn the_longest_unused_goes_first_and_nobody_elses() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::new(directory.path(), 8);
        fs::write(directory.path().join("somebody-elses"), [0; 100]).unwrap();
        for (bytes, seconds) in [(b"old1", 20), (b"old2", 30)] {
            cache.put(&Digest::of(bytes), bytes).await;
            age(&cache, bytes, seconds);
        }
        // Used just now, whatever its age was.
        assert!(cache.get(&Digest::of(b"old2"), 9).await.is_some());
        cache.put(&Digest::of(b"new1"), b"new1").await;
        for (bytes, there) in [(b"old1", false), (b"old2", true), (b"new1", true)] {
            let found = cache.get(&Digest::of(bytes), 9).await.is_some();
            assert_eq!(found, there, "{bytes:?}");
        }
        assert!(directory.path().join("somebody-elses").exists());
        let unfinished = fs::read_dir(directory.path()).unwrap().filter(|entry| {
            let name = entry.as_ref().unwrap().file_name();
            name.to_string_lossy().starts_with(UNFINISHED)
        });
        assert_eq!(unfinished.count(), 0);
    }
}
