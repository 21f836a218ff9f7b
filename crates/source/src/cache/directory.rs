//! Inventories in a directory, for any number of processes at once and with no lock: a file is
//! written under a name of its own and then renamed, so it is there as a whole or not at all. What
//! a file says is held to what reading a layer could have yielded, and one that is damaged is as
//! good as none.

use super::LayerCache;
use crate::DiffId;
use async_trait::async_trait;
use muster_scan::layer::{ANALYZER_VERSION, LayerInventory};
use muster_scan::limits::Limits;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// A larger inventory is not kept, and none is read that claims to be larger.
const LARGEST: u64 = 256 << 20;
/// Inventories are small, and reading them matters more than keeping them.
const LEVEL: i32 = 3;
/// What a process that was killed left behind is taken away once it is this old.
const STALE: Duration = Duration::from_secs(3600);
const UNFINISHED: &str = "unfinished";

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A directory of inventories.
#[derive(Clone, Debug)]
pub struct Directory {
    root: PathBuf,
}

impl Directory {
    /// Keeps inventories below this directory, which is made when first needed.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        let root = root.into().join(ANALYZER_VERSION.to_string());
        sweep(&root.join(UNFINISHED));
        Directory { root }
    }

    /// The file of a layer; the digits of a digest that was parsed are digits and nothing else.
    fn file(&self, layer: &DiffId) -> PathBuf {
        let digits = layer.digits();
        let shelf = digits.get(..2).unwrap_or_default();
        self.root.join(shelf).join(format!("{digits}.json.zst"))
    }

    fn write(&self, layer: &DiffId, found: &LayerInventory) -> Result<(), Failure> {
        let bytes = found.to_bytes()?;
        if bytes.len() as u64 > LARGEST {
            return Err(format!("{} bytes are too many", bytes.len()).into());
        }
        let mut encoder = zstd::bulk::Compressor::new(LEVEL)?;
        encoder.include_checksum(true)?;
        let bytes = encoder.compress(&bytes)?;
        let unfinished = self.root.join(UNFINISHED);
        make(&unfinished)?;
        let written = unfinished.join(uuid::Uuid::new_v4().to_string());
        let file = self.file(layer);
        let done = fs::write(&written, bytes)
            .and_then(|()| file.parent().map_or(Ok(()), make))
            .and_then(|()| fs::rename(&written, &file));
        if done.is_err() {
            let _ = fs::remove_file(&written);
        }
        Ok(done?)
    }
}

#[async_trait]
impl LayerCache for Directory {
    async fn recall(&self, layer: &DiffId) -> Option<LayerInventory> {
        let file = self.file(layer);
        let read = tokio::task::spawn_blocking(move || (read(&file), file));
        match read.await.ok()? {
            (Ok(found), _) => found,
            (Err(error), file) => {
                let file = file.display();
                tracing::warn!(%file, error, "what was kept of a layer is not used");
                None
            }
        }
    }

    async fn keep(&self, layer: &DiffId, found: &LayerInventory) {
        let (directory, kept, found) = (self.clone(), layer.clone(), found.clone());
        let written = tokio::task::spawn_blocking(move || directory.write(&kept, &found));
        if let Err(error) = written.await.unwrap_or_else(|error| Err(error.into())) {
            let directory = self.root.display();
            tracing::warn!(%layer, %directory, error, "what was found in a layer is not kept");
        }
    }
}

fn read(file: &Path) -> Result<Option<LayerInventory>, Failure> {
    let file = match File::open(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    let mut bytes = Vec::new();
    let decoder = zstd::stream::read::Decoder::new(file)?;
    decoder.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        return Err(format!("more than {LARGEST} bytes").into());
    }
    Ok(Some(LayerInventory::from_bytes(&bytes, &Limits::DEFAULT)?))
}

/// Makes a directory that others need not look into.
fn make(directory: &Path) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
}

/// Takes away what was never finished. If it cannot be, it stays.
fn sweep(unfinished: &Path) {
    let Ok(files) = fs::read_dir(unfinished) else {
        return;
    };
    for file in files.flatten() {
        let written = file.metadata().and_then(|about| about.modified());
        let age = written.map(|written| SystemTime::now().duration_since(written));
        if matches!(age, Ok(Ok(age)) if age > STALE) {
            let _ = fs::remove_file(file.path());
        }
    }
}
