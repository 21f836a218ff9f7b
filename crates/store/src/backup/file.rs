//! A file that gets its name when it is whole. Until then it lies beside under another name, and
//! goes if the work fails; a killed process leaves that other name, which nobody takes for more.

use super::BackupError;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// A file that is being written.
pub(super) struct Partial {
    path: PathBuf,
    to: PathBuf,
}

impl Partial {
    /// Makes the file, empty, unless there is one of the final name.
    pub(super) fn create(to: &Path) -> Result<Self, BackupError> {
        let to = std::path::absolute(to).map_err(BackupError::io("looking for", to))?;
        if fs::symlink_metadata(&to).is_ok() {
            return Err(BackupError::Exists { path: to });
        }
        let mut path = OsString::from(&to);
        path.push(format!(".partial-{}", std::process::id()));
        let path = PathBuf::from(path);
        create(&path).map_err(BackupError::io("making", &path))?;
        Ok(Partial { path, to })
    }

    /// Where to write.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the file its name, durably, and never in place of another.
    pub(super) fn publish(self) -> Result<(), BackupError> {
        let Partial { path, to } = &self;
        sync(path).map_err(BackupError::io("syncing", path))?;
        match fs::hard_link(path, to) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(BackupError::Exists { path: to.clone() });
            }
            // Not every file system has links.
            Err(_) if fs::symlink_metadata(to).is_ok() => {
                return Err(BackupError::Exists { path: to.clone() });
            }
            Err(_) => fs::rename(path, to).map_err(BackupError::io("naming", to))?,
        }
        sync_directory(to).map_err(BackupError::io("syncing", to))
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // Whatever else the engine put beside it goes too; most of it was never there.
        for suffix in ["", "-journal", "-wal", "-shm"] {
            let mut path = OsString::from(&self.path);
            path.push(suffix);
            let _ = fs::remove_file(path);
        }
    }
}

/// Makes an empty file that only its owner can read; there must be none.
pub(crate) fn create(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.create_new(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop)
}

/// Makes the content of a file durable.
pub(crate) fn sync(path: &Path) -> io::Result<()> {
    OpenOptions::new().write(true).open(path)?.sync_all()
}

/// Makes the name of a file durable.
pub(crate) fn sync_directory(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(directory) if cfg!(unix) => File::open(directory)?.sync_all(),
        _ => Ok(()),
    }
}
