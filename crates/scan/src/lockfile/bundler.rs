//! `Gemfile.lock`: sections by where gems come from, and in each a list of gems, four spaces in.

use super::{package, text};
use crate::package::Reading;

pub(super) fn read(contents: &[u8]) -> Reading {
    let mut reading = Reading::default();
    let (mut is_source, mut is_list) = (false, false);
    for line in text(contents).lines() {
        let content = line.trim();
        match line.len() - line.trim_start_matches(' ').len() {
            // What comes from a directory is the project's own.
            0 => (is_source, is_list) = (matches!(content, "GEM" | "GIT"), false),
            2 => is_list = content == "specs:",
            4 if is_source && is_list => {
                let gem = content.split_once(" (").and_then(|(name, rest)| {
                    let version = rest.strip_suffix(')')?;
                    // The platform that a gem was built for stands behind its version.
                    Some((name, version.split('-').next().unwrap_or(version)))
                });
                reading
                    .packages
                    .extend(gem.map(|(name, version)| package(name, version)));
            }
            _ => {}
        }
    }
    reading
}
