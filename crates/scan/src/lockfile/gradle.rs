//! `gradle.lockfile`: `GROUP:NAME:VERSION=CONFIGURATIONS` on each line.

use super::{package, text};
use crate::package::Reading;

pub(super) fn read(contents: &[u8]) -> Reading {
    let mut reading = Reading::default();
    for line in text(contents).lines().map(str::trim) {
        if line.starts_with('#') {
            continue;
        }
        let (coordinates, configurations) = line.split_once('=').unwrap_or((line, ""));
        let parts: Vec<&str> = coordinates.split(':').collect();
        // The last line lists the configurations that are empty.
        let [group, name, version] = parts.as_slice() else {
            continue;
        };
        let mut configurations = configurations.split(',');
        if !configurations.all(|one| one.starts_with("test")) {
            reading
                .packages
                .push(package(&format!("{group}:{name}"), version));
        }
    }
    reading
}
