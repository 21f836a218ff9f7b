//! Where things are kept between two commands of one person: vulnerability data beside the rest of
//! Muster's data, so that `muster up` finds what `muster db update` fetched, and inventories of
//! layers in the cache, which may be deleted at any time.

use std::path::PathBuf;

/// A directory below one of the user's own.
fn below(variable: &str, home: &[&str], name: &str) -> PathBuf {
    let base = std::env::var_os(variable).filter(|path| !path.is_empty());
    let base = base.map(PathBuf::from).or_else(|| {
        let user = PathBuf::from(std::env::var_os("HOME")?);
        Some(home.iter().fold(user, |path, part| path.join(part)))
    });
    base.unwrap_or_else(|| PathBuf::from(".")).join(name)
}

/// Where Muster keeps its data unless told otherwise.
pub(crate) fn data() -> PathBuf {
    below("XDG_DATA_HOME", &[".local", "share"], "muster")
}

/// Where vulnerability data is kept unless told otherwise.
pub(crate) fn vulnerabilities() -> PathBuf {
    data().join("vulnerabilities")
}

/// Where inventories of layers are kept unless told otherwise.
pub(crate) fn layers() -> PathBuf {
    below("XDG_CACHE_HOME", &[".cache"], "muster").join("layers")
}
