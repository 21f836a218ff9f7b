//! Where the real Kubernetes binaries and Helm are, and how they come to be: found in
//! `KUBEBUILDER_ASSETS`, in our cache, or in `PATH`, else built once with Go from their published
//! modules.

use anyhow::{Context, Result, bail, ensure};
use std::env;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The Kubernetes release that answers are compared with; `kubernetes/go.mod` names the same.
pub const VERSION: &str = "v1.36.3";

/// The release of Helm that the chart is rendered with; `helm/go.mod` names the same.
pub const HELM_VERSION: &str = "v3.21.4";

/// Programs that Go builds together, from a module of this crate that pins everything they are made
/// of.
struct Release {
    /// The module's directory, and that of the programs in the cache.
    name: &'static str,
    version: &'static str,
    /// Each program and its package.
    programs: &'static [(&'static str, &'static str)],
    /// How long it takes.
    time: &'static str,
    /// What the linker tells the programs of their version.
    link_flags: fn() -> String,
}

const KUBERNETES: Release = Release {
    name: "kubernetes",
    version: VERSION,
    programs: &[
        ("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"),
        (
            "kube-controller-manager",
            "k8s.io/kubernetes/cmd/kube-controller-manager",
        ),
        ("kubectl", "k8s.io/kubernetes/cmd/kubectl"),
    ],
    time: "some 15 minutes on two cores",
    link_flags: kubernetes_link_flags,
};

const HELM: Release = Release {
    name: "helm",
    version: HELM_VERSION,
    programs: &[("helm", "helm.sh/helm/v3/cmd/helm")],
    time: "a minute or two",
    link_flags: helm_link_flags,
};

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
        .chain(cache().map(|cache| KUBERNETES.place(&cache)))
        .chain(cache().map(|cache| HELM.place(&cache)));
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
    KUBERNETES.ensure()?;
    find()
}

/// Finds Helm, or builds it. It shares much with kubectl, so it is built after that.
pub fn ensure_helm() -> Result<PathBuf> {
    HELM.ensure()?;
    find_one("helm")
}

/// Where things that are costly to make are kept between runs.
pub fn cache() -> Option<PathBuf> {
    match env::var_os("MUSTER_CACHE") {
        Some(cache) => Some(cache.into()),
        None => env::var_os("HOME").map(|home| Path::new(&home).join(".cache/muster")),
    }
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

impl Release {
    /// Where its programs are once they are built.
    fn place(&self, cache: &Path) -> PathBuf {
        cache.join(self.name).join(self.version)
    }

    fn ensure(&self) -> Result<()> {
        if self.programs.iter().all(|(name, _)| find_one(name).is_ok()) {
            return Ok(());
        }
        self.build(&cache().context("neither MUSTER_CACHE nor HOME is set")?)
    }

    /// Builds into a directory beside the final one and renames it into place, so that a half-built
    /// set is never found. The lock makes a second builder wait for the first.
    fn build(&self, cache: &Path) -> Result<()> {
        let (place, version) = (self.place(cache), self.version);
        let parent = cache.join(self.name);
        fs::create_dir_all(&parent).with_context(|| format!("cannot make {}", parent.display()))?;
        let lock = File::create(parent.join(format!("{version}.lock")))?;
        lock.lock().context("cannot take the build lock")?;
        if (self.programs.iter()).all(|(name, _)| place.join(name).is_file()) {
            return Ok(());
        }
        let module = Path::new(env!("CARGO_MANIFEST_DIR")).join(self.name);
        let output = tempfile::Builder::new()
            .prefix(&format!("{version}."))
            .tempdir_in(&parent)?;
        let names: Vec<&str> = self.programs.iter().map(|(name, _)| *name).collect();
        eprintln!("building {} {version} with Go;", names.join(", "));
        eprintln!("this is done once and takes {}", self.time);
        for (name, package) in self.programs {
            let status = Command::new("nice")
                .args(["-n", "10", "go", "build", "-trimpath", "-ldflags"])
                .arg((self.link_flags)())
                .arg("-o")
                .arg(output.path().join(name))
                .arg(package)
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
}

/// Without these the binaries would call themselves v0.0.0, and clients would warn about it.
fn kubernetes_link_flags() -> String {
    let (major, minor) = numbers();
    let base = "k8s.io/component-base/version";
    format!(
        "-s -w -X {base}.gitVersion={VERSION} -X {base}.gitMajor={major} \
         -X {base}.gitMinor={minor} -X k8s.io/client-go/pkg/version.gitVersion={VERSION}"
    )
}

/// Without these Helm would render charts as for Kubernetes 1.20.
fn helm_link_flags() -> String {
    let (major, minor) = numbers();
    let base = "helm.sh/helm/v3";
    let kubernetes = ["pkg/chartutil", "pkg/lint/rules"].map(|package| {
        format!(
            "-X {base}/{package}.k8sVersionMajor={major} -X {base}/{package}.k8sVersionMinor={minor}"
        )
    });
    let own = format!("-s -w -X {base}/internal/version.version={HELM_VERSION}");
    format!("{own} {}", kubernetes.join(" "))
}

/// The first two numbers of the Kubernetes release.
fn numbers() -> (&'static str, &'static str) {
    let mut numbers = VERSION.trim_start_matches('v').split('.');
    (numbers.next().unwrap_or("0"), numbers.next().unwrap_or("0"))
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
    fn the_versions_are_those_of_the_go_modules() -> Result<()> {
        for (release, module) in [(KUBERNETES, "k8s.io/kubernetes"), (HELM, "helm.sh/helm/v3")] {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(release.name);
            let text = fs::read_to_string(path.join("go.mod"))?;
            let required = format!("require {module} {}\n", release.version);
            assert!(text.contains(&required), "{required}");
        }
        Ok(())
    }

    /// What both are made of is compiled once only if it is the same.
    #[test]
    fn helm_is_made_of_the_same_kubernetes() -> Result<()> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("helm/go.mod");
        let text = fs::read_to_string(path)?;
        let staging = format!("v0.{}", VERSION.trim_start_matches("v1."));
        let replaced = text.lines().filter(|line| line.contains("=> k8s.io/"));
        assert!(replaced.clone().count() > 5);
        for line in replaced {
            assert!(line.ends_with(&staging), "{line}");
        }
        Ok(())
    }
}
