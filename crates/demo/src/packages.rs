//! What package managers leave in an image, as files: enough for whoever reads them to see what is
//! installed.

use crate::archive::File;
use serde_json::json;

/// A Debian package: its name, the source that it is built from, and its version.
pub(crate) type Debian = (&'static str, &'static str, &'static str);
/// An Alpine package: its name, the package that it is built with, its version and its licence.
pub(crate) type Alpine = (&'static str, &'static str, &'static str, &'static str);
/// A package of npm: its name, its version and its licence.
pub(crate) type Npm = (&'static str, &'static str, &'static str);

/// Debian 12's word about itself.
pub(crate) fn debian_release(version: &str) -> [File; 2] {
    [
        File::new(
            "etc/os-release",
            "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nNAME=\"Debian GNU/Linux\"\nVERSION_ID=\"12\"\n\
             VERSION=\"12 (bookworm)\"\nVERSION_CODENAME=bookworm\nID=debian\n",
        ),
        File::new("etc/debian_version", format!("{version}\n")),
    ]
}

/// The database of dpkg.
pub(crate) fn dpkg(architecture: &str, packages: &[Debian]) -> File {
    let stanza = |(name, source, version): &Debian| {
        format!(
            "Package: {name}\nStatus: install ok installed\nArchitecture: {architecture}\nSource: {source}\n\
             Version: {version}\nMaintainer: Debian\n\n"
        )
    };
    let status: String = packages.iter().map(stanza).collect();
    File::new("var/lib/dpkg/status", status)
}

/// Alpine's word about itself.
pub(crate) fn alpine_release(version: &str) -> [File; 2] {
    [
        File::new(
            "etc/os-release",
            format!(
                "NAME=\"Alpine Linux\"\nID=alpine\nVERSION_ID={version}\nPRETTY_NAME=\"Alpine Linux v3.20\"\n"
            ),
        ),
        File::new("etc/alpine-release", format!("{version}\n")),
    ]
}

/// The database of apk.
pub(crate) fn apk(packages: &[Alpine]) -> File {
    let paragraph = |(name, origin, version, licence): &Alpine| {
        format!("P:{name}\nV:{version}\nA:x86_64\nL:{licence}\no:{origin}\n\n")
    };
    let installed: String = packages.iter().map(paragraph).collect();
    File::new("lib/apk/db/installed", installed)
}

/// Packages of npm, installed below a directory.
pub(crate) fn npm(directory: &str, packages: &[Npm]) -> Vec<File> {
    let file = |(name, version, licence): &Npm| {
        let text = json!({"name": name, "version": version, "license": licence});
        File::new(
            format!("{directory}/node_modules/{name}/package.json"),
            text.to_string(),
        )
    };
    packages.iter().map(file).collect()
}
