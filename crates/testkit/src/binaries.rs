//! Where the real Kubernetes binaries are, and how they come to be: found in `KUBEBUILDER_ASSETS`,
//! in our cache, or in `PATH`, else built once with Go from their published modules.

use anyhow::{Context, Result, bail, ensure};
use std::env;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The Kubernetes release that answers are compared with; `kubernetes/go.mod` names the same.
pub const VERSION: &str = "v1.36.3";

/// What Go builds.
const BUILT: [&str; 3] = ["kube-apiserver", "kube-controller-manager", "kubectl"];

/// The paths of the binaries.
#[derive(Clone, Debug, PartialEq)]
pub struct Binaries {
    /// The API server.
    pub kube_apiserver: PathBuf,
    /// The controllers, of which the garbage collector and the namespace controller matter here.
    pub kube_controller_manager: PathBuf,
    /// The client.
    pub kubectl: PathBuf,
    /// The API server's store.
    pub etcd: PathBuf,
}

/// Finds every binary, or says how to get what is missing.
pub fn find() -> Result<Binaries> {
    Ok(Binaries {
        kube_apiserver: find_one("kube-apiserver")?,
        kube_controller_manager: find_one("kube-controller-manager")?,
        kubectl: find_one("kubectl")?,
        etcd: find_one("etcd")?,
    })
}

/// Finds one binary by its name. The cache comes before `PATH`, because a distribution's `kubectl`
/// may be years older than the servers it is to speak with.
pub fn find_one(name: &str) -> Result<PathBuf> {
    let assets = env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from);
    let candidates = assets
        .into_iter()
        .chain(cache().map(|cache| versioned(&cache)));
    if let Some(found) = locate(name, candidates, env::var_os("PATH").as_deref()) {
        return Ok(found);
    }
    if name == "etcd" {
        bail!("etcd is not installed: install the package etcd-server or set KUBEBUILDER_ASSETS");
    }
    bail!("{name} not found: run `cargo xtask test`, which builds it, or set KUBEBUILDER_ASSETS")
}

/// Finds a program of a Debian package, in `PATH` or where servers are installed.
pub(crate) fn find_program(name: &str, package: &str) -> Result<PathBuf> {
    let places = ["/usr/bin", "/usr/sbin"].map(PathBuf::from);
    locate(name, places.into_iter(), env::var_os("PATH").as_deref())
        .with_context(|| format!("{name} is not installed: apt-get install {package}"))
}

/// Finds the Kubernetes binaries, or builds them with Go (some 15 minutes on two cores, once).
pub fn ensure_kubernetes() -> Result<Binaries> {
    if BUILT.iter().any(|name| find_one(name).is_err()) {
        let cache = cache().context("neither MUSTER_CACHE nor HOME is set")?;
        build(&cache)?;
    }
    find()
}

/// Where things that are costly to make are kept between runs.
pub fn cache() -> Option<PathBuf> {
    match env::var_os("MUSTER_CACHE") {
        Some(cache) => Some(cache.into()),
        None => env::var_os("HOME").map(|home| Path::new(&home).join(".cache/muster")),
    }
}

fn versioned(cache: &Path) -> PathBuf {
    cache.join("kubernetes").join(VERSION)
}

/// The first directory that holds an executable of that name; `path` is looked through last.
fn locate(
    name: &str,
    directories: impl Iterator<Item = PathBuf>,
    path: Option<&OsStr>,
) -> Option<PathBuf> {
    let path = path
        .map(|path| env::split_paths(path).collect::<Vec<_>>())
        .unwrap_or_default();
    directories
        .chain(path)
        .map(|directory| directory.join(name))
        .find(|file| file.is_file())
}

/// Builds into a directory beside the final one and renames it into place, so that a half-built
/// set is never found. The lock makes a second builder wait for the first.
fn build(cache: &Path) -> Result<()> {
    let place = versioned(cache);
    let parent = cache.join("kubernetes");
    fs::create_dir_all(&parent).with_context(|| format!("cannot make {}", parent.display()))?;
    let lock = File::create(parent.join(format!("{VERSION}.lock")))?;
    lock.lock().context("cannot take the build lock")?;
    if BUILT.iter().all(|name| place.join(name).is_file()) {
        return Ok(());
    }
    let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("kubernetes");
    let output = tempfile::Builder::new()
        .prefix(&format!("{VERSION}."))
        .tempdir_in(&parent)?;
    eprintln!("building kube-apiserver, kube-controller-manager and kubectl {VERSION} with Go;");
    eprintln!("this is done once and takes some 15 minutes on two cores");
    for name in BUILT {
        let status = Command::new("nice")
            .args([
                "-n",
                "10",
                "go",
                "build",
                "-trimpath",
                "-ldflags",
                &link_flags(),
                "-o",
            ])
            .arg(output.path().join(name))
            .arg(format!("k8s.io/kubernetes/cmd/{name}"))
            .current_dir(&module)
            .env("CGO_ENABLED", "0")
            .status()
            .context("cannot run Go: install it, or set KUBEBUILDER_ASSETS")?;
        ensure!(status.success(), "building {name} failed: {status}");
    }
    if place.exists() {
        fs::remove_dir_all(&place)?;
    }
    fs::rename(output.keep(), &place)
        .with_context(|| format!("cannot move the binaries to {}", place.display()))
}

/// Without these the binaries would call themselves v0.0.0, and clients would warn about it.
fn link_flags() -> String {
    let mut numbers = VERSION.trim_start_matches('v').split('.');
    let (major, minor) = (numbers.next().unwrap_or("0"), numbers.next().unwrap_or("0"));
    let base = "k8s.io/component-base/version";
    format!(
        "-s -w -X {base}.gitVersion={VERSION} -X {base}.gitMajor={major} \
         -X {base}.gitMinor={minor} -X k8s.io/client-go/pkg/version.gitVersion={VERSION}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_given_first_wins_over_path() -> Result<()> {
        let first = tempfile::tempdir()?;
        let second = tempfile::tempdir()?;
        fs::write(first.path().join("kubectl"), "")?;
        fs::write(second.path().join("kubectl"), "")?;
        fs::write(second.path().join("etcd"), "")?;
        let directories = || std::iter::once(first.path().to_path_buf());
        let path = Some(second.path().as_os_str());
        assert_eq!(
            locate("kubectl", directories(), path),
            Some(first.path().join("kubectl"))
        );
        assert_eq!(
            locate("etcd", directories(), path),
            Some(second.path().join("etcd"))
        );
        assert_eq!(locate("nothing", directories(), path), None);
        Ok(())
    }

    #[test]
    fn the_version_is_the_one_of_the_go_module() -> Result<()> {
        let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("kubernetes/go.mod");
        let text = fs::read_to_string(module)?;
        assert!(text.contains(&format!("require k8s.io/kubernetes {VERSION}\n")));
        Ok(())
    }
}
