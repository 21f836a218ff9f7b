//! Which distribution an image is. Several files may say so, each in its own way; each yields a
//! fact, and the facts of an image together decide.

mod build;

pub use build::Build;

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// A distribution and its release.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Os {
    /// The distribution.
    pub family: Family,
    /// Its release, as exactly as the image says it: `12.7`, `3.20.3`, `24.04`. Empty for those
    /// that have none.
    pub version: String,
    /// The release that the package repositories are of, where that may be another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    /// The vendor's extended support is switched on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub extended: bool,
    /// How the image was built, where the distribution's maker left word of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<Build>,
}

impl Os {
    /// A distribution of which only the release is known.
    pub fn new(family: Family, version: impl Into<String>) -> Self {
        Os {
            family,
            version: version.into(),
            repository: None,
            extended: false,
            build: None,
        }
    }
}

impl fmt::Display for Os {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.family.name())?;
        match self.version.as_str() {
            "" => Ok(()),
            version => write!(formatter, " {version}"),
        }
    }
}

macro_rules! families {
    ($($variant:ident $name:literal $about:literal,)*) => {
        /// A distribution.
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Family {
            $(#[doc = $about] $variant,)*
            /// One whose packages we can list and whose advisories we do not know.
            Other(String),
        }

        impl Family {
            /// The name in reports and package URLs.
            pub fn name(&self) -> &str {
                match self {
                    $(Family::$variant => $name,)*
                    Family::Other(name) => name,
                }
            }

            /// The family of that name.
            pub fn named(name: &str) -> Self {
                match name {
                    $($name => Family::$variant,)*
                    other => Family::Other(other.into()),
                }
            }
        }
    };
}

families! {
    ActiveState "activestate" "ActiveState's images.",
    Alma "alma" "AlmaLinux.",
    Alpine "alpine" "Alpine Linux.",
    Amazon "amazon" "Amazon Linux.",
    Azure "azurelinux" "Azure Linux.",
    Bottlerocket "bottlerocket" "Bottlerocket.",
    CentOs "centos" "CentOS, and CentOS Stream.",
    Chainguard "chainguard" "Chainguard's images.",
    CoreOs "coreos" "CoreOS.",
    Debian "debian" "Debian.",
    Echo "echo" "Echo.",
    Fedora "fedora" "Fedora.",
    Mariner "cbl-mariner" "CBL-Mariner, the former Azure Linux.",
    MinimOs "minimos" "MinimOS.",
    OpenSuse "opensuse" "openSUSE, of which nothing else is known.",
    OpenSuseLeap "opensuse-leap" "openSUSE Leap.",
    OpenSuseTumbleweed "opensuse-tumbleweed" "openSUSE Tumbleweed.",
    Oracle "oracle" "Oracle Linux.",
    Photon "photon" "Photon OS.",
    RedHat "redhat" "Red Hat Enterprise Linux.",
    Rocky "rocky" "Rocky Linux.",
    SuseEnterprise "suse linux enterprise server" "SUSE Linux Enterprise.",
    SuseMicro "slem" "SUSE Linux Enterprise Micro.",
    Ubuntu "ubuntu" "Ubuntu.",
    Wolfi "wolfi" "Wolfi.",
}

impl Serialize for Family {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Family {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|name| Family::named(&name))
    }
}

/// What one file says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OsFact {
    /// The distribution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub family: Option<Family>,
    /// The release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Extended support is switched on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub extended: bool,
    /// How the image was built.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<Build>,
}

impl OsFact {
    /// About how many bytes it takes to remember it.
    pub(crate) fn weight(&self) -> usize {
        let sets = self.build.iter().flat_map(|build| &build.content_sets);
        size_of::<OsFact>()
            + sets
                .map(|set| size_of::<String>() + set.len())
                .sum::<usize>()
    }
}

/// The files that say something, by what they look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OsFile {
    Release,
    DebianVersion,
    LsbRelease,
    AlpineRelease,
    ApkRepositories,
    RedHatRelease,
    SystemRelease,
    UbuntuAdvantage,
    BuildManifest,
    BuildRecipe,
}

/// The places where `os-release` lies, the one that a user may change first.
const RELEASES: [&str; 4] = [
    "etc/os-release",
    "usr/lib/os-release",
    "aarch64-bottlerocket-linux-gnu/sys-root/usr/lib/os-release",
    "x86_64-bottlerocket-linux-gnu/sys-root/usr/lib/os-release",
];

/// The files whose one line names a distribution like Red Hat's and its release. The file that all
/// of them have comes last.
const RED_HAT_RELEASES: [&str; 7] = [
    "etc/oracle-release",
    "etc/fedora-release",
    "usr/lib/fedora-release",
    "etc/rocky-release",
    "etc/almalinux-release",
    "etc/centos-release",
    "etc/redhat-release",
];

/// Which of these files a path is.
pub(crate) fn file(path: &str) -> Option<OsFile> {
    if RELEASES.contains(&path) {
        return Some(OsFile::Release);
    }
    if RED_HAT_RELEASES.contains(&path) {
        return Some(OsFile::RedHatRelease);
    }
    match path {
        "etc/debian_version" => Some(OsFile::DebianVersion),
        "etc/lsb-release" => Some(OsFile::LsbRelease),
        "etc/alpine-release" => Some(OsFile::AlpineRelease),
        "etc/apk/repositories" => Some(OsFile::ApkRepositories),
        "etc/system-release" | "usr/lib/system-release" => Some(OsFile::SystemRelease),
        "var/lib/ubuntu-advantage/status.json" => Some(OsFile::UbuntuAdvantage),
        path if build::is_manifest(path) => Some(OsFile::BuildManifest),
        path if build::is_recipe(path) => Some(OsFile::BuildRecipe),
        _ => None,
    }
}

/// What a file says; nothing where it says nothing of use.
pub(crate) fn read(file: OsFile, path: &str, contents: &[u8]) -> Option<OsFact> {
    let text = String::from_utf8_lossy(contents);
    let line = text.lines().next().unwrap_or_default().trim();
    let fact = |family: Option<Family>, version: &str| OsFact {
        family,
        version: (!version.is_empty()).then(|| version.to_owned()),
        ..OsFact::default()
    };
    let built = |build: Build| OsFact {
        build: Some(build),
        ..OsFact::default()
    };
    match file {
        OsFile::Release => release(&text),
        OsFile::DebianVersion => (!line.is_empty()).then(|| fact(Some(Family::Debian), line)),
        OsFile::AlpineRelease => (!line.is_empty()).then(|| fact(Some(Family::Alpine), line)),
        OsFile::LsbRelease => {
            let id = variable(&text, "DISTRIB_ID")?;
            let version = variable(&text, "DISTRIB_RELEASE").unwrap_or_default();
            (id == "Ubuntu").then(|| fact(Some(Family::Ubuntu), &version))
        }
        OsFile::ApkRepositories => repositories(&text).map(|version| fact(None, &version)),
        OsFile::RedHatRelease => red_hat(line),
        OsFile::SystemRelease => amazon(line),
        OsFile::UbuntuAdvantage => advantage(contents).then(|| OsFact {
            extended: true,
            ..OsFact::default()
        }),
        OsFile::BuildManifest => build::manifest(contents).map(built),
        OsFile::BuildRecipe => build::recipe(path, contents).map(built),
    }
}

/// A variable of a file of shell assignments.
fn variable(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (variable, value) = line.trim().split_once('=')?;
        let value = value.trim().trim_matches(['"', '\'']);
        (variable == name).then(|| value.to_owned())
    })
}

fn release(text: &str) -> Option<OsFact> {
    let id = variable(text, "ID").filter(|id| !id.is_empty())?;
    let name = variable(text, "NAME").unwrap_or_default();
    let version = variable(text, "VERSION_ID").filter(|version| !version.is_empty());
    let family = match id.as_str() {
        "alpine" => Family::Alpine,
        "debian" => Family::Debian,
        "ubuntu" => Family::Ubuntu,
        "rhel" => Family::RedHat,
        "centos" => Family::CentOs,
        "rocky" => Family::Rocky,
        "almalinux" => Family::Alma,
        "ol" => Family::Oracle,
        "fedora" => Family::Fedora,
        "amzn" => Family::Amazon,
        // Leap called itself so before it had releases like those of the enterprise edition.
        "opensuse" if is_release(version.as_deref()) => Family::OpenSuseLeap,
        "opensuse" => Family::OpenSuse,
        "opensuse-leap" => Family::OpenSuseLeap,
        "opensuse-tumbleweed" => Family::OpenSuseTumbleweed,
        "sles" | "sled" | "sle_hpc" => Family::SuseEnterprise,
        // Until release 6 it called itself by the long name.
        "sle-micro" | "sl-micro" | "sle-micro-rancher" | "suse-microos" => Family::SuseMicro,
        "photon" => Family::Photon,
        "mariner" => Family::Mariner,
        "azurelinux" => Family::Azure,
        "wolfi" => Family::Wolfi,
        "chainguard" => Family::Chainguard,
        "bottlerocket" => Family::Bottlerocket,
        "echo" => Family::Echo,
        "minimos" => Family::MinimOs,
        "coreos" => Family::CoreOs,
        "activestate" => Family::ActiveState,
        other => Family::Other(other.into()),
    };
    let version = match (&family, version) {
        // Stream has only a major number; the word keeps it apart from the releases.
        (Family::CentOs, Some(version)) if name.contains("Stream") => {
            Some(format!("stream {version}"))
        }
        // Rolling: whatever number stands there says nothing.
        (Family::OpenSuseTumbleweed, _) => None,
        (_, version) => version,
    };
    Some(OsFact {
        family: Some(family),
        version,
        ..OsFact::default()
    })
}

fn is_release(version: Option<&str>) -> bool {
    version.is_some_and(|version| version.starts_with("42."))
}

/// `NAME release 8.10 (CODENAME)`, with `Linux` or `Stream` in between.
fn red_hat(line: &str) -> Option<OsFact> {
    let lower = line.to_lowercase();
    let (name, rest) = lower.split_once("release")?;
    let version = rest.split_ascii_whitespace().next()?;
    let family = match name.trim() {
        name if name.starts_with("centos") => Family::CentOs,
        name if name.starts_with("rocky") => Family::Rocky,
        name if name.starts_with("almalinux") => Family::Alma,
        name if name.starts_with("oracle") => Family::Oracle,
        name if name.starts_with("fedora") => Family::Fedora,
        name if name.starts_with("red hat") => Family::RedHat,
        _ => return None,
    };
    let version = if name.contains("stream") {
        format!("stream {version}")
    } else {
        version.to_owned()
    };
    Some(OsFact {
        family: Some(family),
        version: Some(version),
        ..OsFact::default()
    })
}

/// `Amazon Linux AMI release 2018.03`, `Amazon Linux release 2 (Karoo)`, `Amazon Linux release
/// 2023.5.20240805 (Amazon Linux)`.
fn amazon(line: &str) -> Option<OsFact> {
    let rest = line.strip_prefix("Amazon Linux")?;
    let version = rest
        .split_ascii_whitespace()
        .find(|word| word.starts_with(|first: char| first.is_ascii_digit()))?;
    Some(OsFact {
        family: Some(Family::Amazon),
        version: Some(version.into()),
        ..OsFact::default()
    })
}

/// The newest release among Alpine's package repositories, for packages come from there whatever
/// the release file says.
fn repositories(text: &str) -> Option<String> {
    let mut newest: Option<(u32, u32)> = None;
    for line in text.lines().map(str::trim) {
        if line.starts_with('#') || !line.contains("/alpine/") && !line.contains("alpine") {
            continue;
        }
        for part in line.split('/') {
            if part == "edge" {
                return Some("edge".into());
            }
            let release = part.strip_prefix('v').and_then(|release| {
                let (major, minor) = release.split_once('.')?;
                Some((major.parse().ok()?, minor.parse().ok()?))
            });
            newest = newest.max(release);
        }
    }
    newest.map(|(major, minor)| format!("{major}.{minor}"))
}

/// Whether Ubuntu's extended maintenance of the base is switched on.
fn advantage(contents: &[u8]) -> bool {
    let Ok(status) = serde_json::from_slice::<serde_json::Value>(contents) else {
        return false;
    };
    let services = status["services"].as_array();
    services
        .into_iter()
        .flatten()
        .any(|service| service["name"] == "esm-infra" && service["status"] == "enabled")
}

/// The distribution that the facts of an image's files make out, by path.
pub fn decide(facts: &BTreeMap<String, OsFact>) -> Option<Os> {
    let released = RELEASES.iter().find_map(|path| facts.get(*path));
    let specific = || {
        let lsb = facts.get("etc/lsb-release");
        let amazon = ["etc/system-release", "usr/lib/system-release"];
        lsb.into_iter()
            .chain(amazon.into_iter().filter_map(|path| facts.get(path)))
            .chain(RED_HAT_RELEASES.iter().filter_map(|path| facts.get(*path)))
            .chain(facts.get("etc/alpine-release"))
            .chain(facts.get("etc/debian_version"))
    };
    // A derivative that we do not know has the files of what it derives from.
    let known = |fact: &&OsFact| !matches!(fact.family, None | Some(Family::Other(_)));
    let fact = released
        .filter(known)
        .or_else(|| specific().find(known))
        .or(released)?;
    let family = fact.family.clone()?;
    let version_of = |path: &str| {
        let fact = facts.get(path)?;
        fact.version.clone()
    };
    let exact = match family {
        // `12.7` where the release file says `12`; `trixie/sid` says less than that.
        Family::Debian => version_of("etc/debian_version").filter(|version| {
            let first = version.chars().next();
            first.is_some_and(|first| first.is_ascii_digit()) || fact.version.is_none()
        }),
        Family::Alpine => version_of("etc/alpine-release"),
        Family::Amazon => specific()
            .find(|fact| fact.family == Some(Family::Amazon))
            .and_then(|fact| fact.version.clone()),
        _ => None,
    };
    let repository = version_of("etc/apk/repositories");
    Some(Os {
        repository: repository.filter(|_| family == Family::Alpine),
        extended: family == Family::Ubuntu && facts.values().any(|fact| fact.extended),
        version: exact.or_else(|| fact.version.clone()).unwrap_or_default(),
        build: None,
        family,
    })
}

#[cfg(test)]
mod tests;
