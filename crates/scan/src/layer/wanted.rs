//! Which files are worth reading, told by their path and their permissions alone.

use crate::dpkg::copyright;
use crate::embedded;
use crate::java;
use crate::limits::Limits;
use crate::os::{self, OsFile};

/// What is to be done with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// It may say which distribution this is.
    Os(OsFile),
    /// Debian's package database.
    DpkgStatus,
    /// One package of an image without a package manager.
    DpkgStatusOfOne,
    /// The files of one Debian package.
    DpkgFiles,
    /// The licences of one Debian package.
    DpkgCopyright,
    /// Alpine's package database.
    ApkInstalled,
    /// A package database of rpm, in any of its formats.
    RpmDatabase,
    /// An npm package.
    NodePackage,
    /// A Python distribution.
    PythonPackage,
    /// A Python distribution in an archive.
    PythonEgg,
    /// A Java archive.
    JavaArchive,
    /// An installed gem.
    GemSpecification,
    /// What Composer installed.
    ComposerInstalled,
    /// What a .NET program depends on.
    DotnetDependencies,
    /// The packages of an image of rpm packages that has no database.
    RpmManifest,
    /// A bill of materials that somebody left.
    Bill,
    /// A program, which may say what it was built from.
    Executable,
}

/// The databases whose place may be reached through a symbolic link.
const DATABASES: &[&str] = &[
    "etc/os-release",
    "usr/lib/os-release",
    "var/lib/dpkg/status",
    "var/lib/dpkg/status.d/",
    "var/lib/dpkg/info/",
    "lib/apk/db/installed",
    "usr/lib/apk/db/installed",
    "var/lib/rpm/",
    "usr/lib/sysimage/rpm/",
    "usr/share/rpm/",
    "var/lib/rpmmanifest/",
];

/// The databases themselves, of which an image without one of their packages is incomplete.
pub(crate) const FILES: [&str; 9] = [
    "var/lib/dpkg/status",
    "lib/apk/db/installed",
    "usr/lib/apk/db/installed",
    "var/lib/rpm/Packages",
    "var/lib/rpm/Packages.db",
    "var/lib/rpm/rpmdb.sqlite",
    "usr/lib/sysimage/rpm/Packages.db",
    "usr/lib/sysimage/rpm/rpmdb.sqlite",
    "usr/share/rpm/rpmdb.sqlite",
];

/// What a regular file is wanted for.
pub(crate) fn wanted(path: &str, mode: u32) -> Option<Wanted> {
    if let Some(file) = os::file(path) {
        return Some(Wanted::Os(file));
    }
    if let Some(rest) = path.strip_prefix("var/lib/dpkg/") {
        return dpkg(rest);
    }
    if matches!(path, "lib/apk/db/installed" | "usr/lib/apk/db/installed") {
        return Some(Wanted::ApkInstalled);
    }
    if copyright::package_of(path).is_some() {
        return Some(Wanted::DpkgCopyright);
    }
    let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
    let is_rpm = matches!(
        parent,
        "var/lib/rpm" | "usr/lib/sysimage/rpm" | "usr/share/rpm"
    );
    if is_rpm && matches!(name, "Packages" | "Packages.db" | "rpmdb.sqlite") {
        return Some(Wanted::RpmDatabase);
    }
    if matches!(path, "var/lib/rpmmanifest/container-manifest-2") {
        return Some(Wanted::RpmManifest);
    }
    match name {
        "package.json" => return Some(Wanted::NodePackage),
        "METADATA" if parent.ends_with(".dist-info") || parent.ends_with(".egg-info") => {
            return Some(Wanted::PythonPackage);
        }
        "PKG-INFO" if parent.ends_with(".egg-info") || parent.ends_with("EGG-INFO") => {
            return Some(Wanted::PythonPackage);
        }
        "installed.json" => return Some(Wanted::ComposerInstalled),
        name if name.ends_with(".deps.json") => return Some(Wanted::DotnetDependencies),
        name if name.ends_with(".gemspec") && parent.ends_with("specifications") => {
            return Some(Wanted::GemSpecification);
        }
        name if java::is_archive(name) => return Some(Wanted::JavaArchive),
        name if name.ends_with(".egg") => return Some(Wanted::PythonEgg),
        name if name.ends_with(".egg-info") => return Some(Wanted::PythonPackage),
        _ if embedded::is_one(path) => return Some(Wanted::Bill),
        _ => {}
    }
    (mode & 0o111 != 0 || name.ends_with(".exe")).then_some(Wanted::Executable)
}

fn dpkg(path: &str) -> Option<Wanted> {
    match path.split_once('/') {
        None if path == "status" => Some(Wanted::DpkgStatus),
        Some(("info" | "status.d", name)) if name.contains('/') => None,
        Some(("info" | "status.d", name)) if name.ends_with(".md5sums") => Some(Wanted::DpkgFiles),
        Some(("status.d", _)) => Some(Wanted::DpkgStatusOfOne),
        _ => None,
    }
}

/// Whether a symbolic link lies on the way to a package database.
pub(crate) fn leads_to_a_database(path: &str) -> bool {
    DATABASES.iter().any(|database| {
        let rest = database.strip_prefix(path);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

impl Wanted {
    /// The largest file that is read for it.
    pub fn limit(self, limits: &Limits) -> u64 {
        match self {
            Wanted::Os(_) | Wanted::DpkgCopyright => limits.header_bytes,
            Wanted::JavaArchive | Wanted::PythonEgg => limits.archive_bytes,
            Wanted::RpmDatabase => limits.database_bytes,
            Wanted::Executable => u64::MAX,
            _ => limits.file_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_wanted_by_their_path() {
        for (path, expected) in [
            ("var/lib/dpkg/status", Some(Wanted::DpkgStatus)),
            ("var/lib/dpkg/status-old", None),
            ("var/lib/dpkg/status.d/libc6", Some(Wanted::DpkgStatusOfOne)),
            (
                "var/lib/dpkg/status.d/libc6.md5sums",
                Some(Wanted::DpkgFiles),
            ),
            (
                "var/lib/dpkg/info/libc6:amd64.md5sums",
                Some(Wanted::DpkgFiles),
            ),
            ("var/lib/dpkg/info/libc6.list", None),
            ("usr/share/doc/status", None),
            ("usr/share/doc/a/copyright", Some(Wanted::DpkgCopyright)),
            ("usr/lib/python3/a.egg", Some(Wanted::PythonEgg)),
            ("lib/apk/db/installed", Some(Wanted::ApkInstalled)),
            ("var/lib/rpm/rpmdb.sqlite", Some(Wanted::RpmDatabase)),
            (
                "usr/lib/sysimage/rpm/Packages.db",
                Some(Wanted::RpmDatabase),
            ),
            ("var/lib/rpm/Name", None),
            ("app/node_modules/a/package.json", Some(Wanted::NodePackage)),
            (
                "usr/lib/python3/a-1.dist-info/METADATA",
                Some(Wanted::PythonPackage),
            ),
            ("usr/lib/python3/a.egg-info", Some(Wanted::PythonPackage)),
            (
                "usr/lib/python3/a.egg-info/PKG-INFO",
                Some(Wanted::PythonPackage),
            ),
            ("METADATA", None),
            ("app/lib/a.jar", Some(Wanted::JavaArchive)),
            ("app/b.WAR", Some(Wanted::JavaArchive)),
            ("jar", None),
            (
                "usr/lib/ruby/specifications/a-1.gemspec",
                Some(Wanted::GemSpecification),
            ),
            ("src/a.gemspec", None),
            (
                "app/vendor/composer/installed.json",
                Some(Wanted::ComposerInstalled),
            ),
            ("app/App.deps.json", Some(Wanted::DotnetDependencies)),
            ("opt/bitnami/a/.spdx-a.spdx", Some(Wanted::Bill)),
            ("app/program.exe", Some(Wanted::Executable)),
            (
                "var/lib/rpmmanifest/container-manifest-2",
                Some(Wanted::RpmManifest),
            ),
            // Lockfiles say what will be installed, and here it is installed already.
            ("app/package-lock.json", None),
            ("app/Cargo.lock", None),
            ("app/requirements.txt", None),
        ] {
            assert_eq!(wanted(path, 0), expected, "{path}");
        }
    }

    #[test]
    fn what_can_be_run_is_wanted() {
        assert_eq!(wanted("usr/bin/a", 0o755), Some(Wanted::Executable));
        assert_eq!(wanted("usr/bin/a", 0o644), None);
    }

    #[test]
    fn links_matter_only_on_the_way_to_a_database() {
        for path in [
            "lib",
            "usr/lib",
            "var/lib/rpm",
            "var/lib/dpkg",
            "etc/os-release",
        ] {
            assert!(leads_to_a_database(path), "{path}");
        }
        for path in ["bin", "li", "usr/lib/x", "var/lib/rpmx"] {
            assert!(!leads_to_a_database(path), "{path}");
        }
    }
}
