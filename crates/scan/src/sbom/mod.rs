//! The bill of materials: what an image holds, in a form that outlives the scan. Everything that
//! matching needs is in it, so that new vulnerability data needs no image. The same image yields
//! the same bytes.

pub mod cyclonedx;
mod licence;
pub mod spdx;

use crate::image::{Component, Contents};
use crate::layer::Incomplete;
use crate::matching::MAX_NAMED;
use crate::os::{Build, Os};
use std::collections::BTreeMap;

/// A bill, whichever format it is written in.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bill {
    /// What it is about.
    pub subject: Subject,
    /// The distribution.
    pub os: Option<Os>,
    /// The packages, in a fixed order.
    pub components: Vec<Component>,
    /// What could not be understood.
    pub incomplete: Vec<Incomplete>,
    /// Packages of a document of another tool whose package URL type we do not support, by that
    /// type; under the empty type those without a package URL. They are never written.
    pub unsupported: BTreeMap<String, Unsupported>,
}

/// Packages of one type that is not supported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unsupported {
    /// Number of packages.
    pub count: u64,
    /// Names and versions of some of them.
    pub packages: Vec<(String, String)>,
}

/// The most types that are told apart, and the longest that is.
const MAX_TYPES: usize = 32;
const MAX_TYPE: usize = 64;
/// What further types are counted under.
const OTHER: &str = "other";
/// Package URL types of images, which hold packages and are none.
const IMAGES: [&str; 2] = ["oci", "docker"];

/// What a bill is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// The image's reference.
    pub name: String,
    /// The digest of its manifest; empty for what is no image.
    pub digest: String,
    /// When it was built, in RFC 3339. No other time goes into a bill.
    pub created: Option<String>,
}

impl Bill {
    /// The bill of an image's contents.
    pub fn new(subject: Subject, contents: Contents) -> Self {
        Bill {
            subject,
            os: contents.os,
            components: contents.components,
            incomplete: contents.incomplete,
            unsupported: BTreeMap::new(),
        }
    }

    /// Counts a package whose type is not supported.
    pub(crate) fn leave_out(&mut self, kind: &str, name: &str, version: &str) {
        if IMAGES.contains(&kind) {
            return;
        }
        let is_known = self.unsupported.contains_key(kind);
        let is_full = self.unsupported.len() >= MAX_TYPES || kind.len() > MAX_TYPE;
        let kind = if is_full && !is_known { OTHER } else { kind };
        let one = self.unsupported.entry(kind.to_owned()).or_default();
        one.count = one.count.saturating_add(1);
        if one.packages.len() < MAX_NAMED {
            one.packages.push((name.to_owned(), version.to_owned()));
        }
    }

    /// Number of packages, also of those whose type is not supported.
    pub fn package_count(&self) -> usize {
        let unsupported = self.unsupported.values().map(|one| one.count);
        let unsupported = usize::try_from(unsupported.sum::<u64>()).unwrap_or(usize::MAX);
        self.components.len().saturating_add(unsupported)
    }

    /// When the image was built, to the second; the epoch where nobody knows.
    pub(crate) fn created(&self) -> String {
        let created = self.subject.created.as_deref();
        created
            .and_then(|text| text.parse::<jiff::Timestamp>().ok())
            .unwrap_or(jiff::Timestamp::UNIX_EPOCH)
            .strftime("%Y-%m-%dT%H:%M:%SZ")
            .to_string()
    }
}

const CONTENT_SET: &str = "ContentSet";
const BUILD: &str = "Build";
const BUILD_ARCHITECTURE: &str = "BuildArchitecture";

/// A build as keys and values, the form that both formats have room for.
fn build_facts(build: &Build) -> impl Iterator<Item = (&'static str, &str)> {
    let sets = build.content_sets.iter().map(|set| (CONTENT_SET, set));
    let nvr = build.nvr.iter().map(|nvr| (BUILD, nvr));
    let architecture = build.architecture.iter();
    sets.chain(nvr)
        .chain(architecture.map(|name| (BUILD_ARCHITECTURE, name)))
        .map(|(key, value)| (key, value.as_str()))
}

/// The build that such keys and values tell of.
fn build_of(values: impl Fn(&'static str) -> Vec<String>) -> Option<Build> {
    let build = Build {
        content_sets: values(CONTENT_SET),
        nvr: values(BUILD).pop(),
        architecture: values(BUILD_ARCHITECTURE).pop(),
    };
    (build != Build::default()).then_some(build)
}

/// Why a bill could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum BillError {
    /// The text is not JSON of the right shape.
    #[error("reading the bill of materials: {0}")]
    Json(#[from] serde_json::Error),
    /// It is a document of another sort or version.
    #[error("reading the bill of materials: {0}")]
    Unknown(String),
}
