//! What one layer says: the files that a detector understood, what they declare, and what of lower
//! layers is hidden. It is a value that depends only on the layer's contents and on our own
//! version, so that it can be kept for as long as both stand.

use super::PathSet;
use crate::embedded::Stated;
use crate::os::OsFact;
use crate::package::{Detector, Package};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Changes whenever the same layer would yield another inventory.
pub const ANALYZER_VERSION: u32 = 4;

/// What was found in a layer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LayerInventory {
    /// The [`ANALYZER_VERSION`] that made it; one of another version must not be used.
    pub version: u32,
    /// The files that a detector understood, by their path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, Found>,
    /// Paths that this layer deletes from those below.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub whiteouts: BTreeSet<String>,
    /// Directories of which this layer shows nothing from below.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub opaque: BTreeSet<String>,
    /// Symbolic links on the way to package databases, and where they lead.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub links: BTreeMap<String, String>,
    /// Every path of the layer, directories with a slash at the end: what lower layers have there
    /// is hidden.
    #[serde(default, skip_serializing_if = "PathSet::is_empty")]
    pub paths: PathSet,
    /// Files that should have been understood and were not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub incomplete: Vec<Incomplete>,
}

/// What a file says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Found {
    /// Which distribution this is.
    Os(OsFact),
    /// Which packages are installed.
    Packages {
        /// What understood the file.
        detector: Detector,
        /// The packages, in the order of the file.
        packages: Vec<Package>,
        /// Files that belong to these packages, where the same file says so.
        #[serde(default, skip_serializing_if = "PathSet::is_empty")]
        owned: PathSet,
    },
    /// Which packages a bill of materials names that somebody left.
    Stated(Vec<Stated>),
    /// Which files belong to packages of the distribution.
    Owned(PathSet),
    /// Under which licences the package of that name is.
    Licence(String),
    /// Nothing, but it hides a file of the same name that did.
    Nothing,
}

impl Found {
    /// How many packages it names.
    pub(super) fn count(&self) -> usize {
        match self {
            Found::Packages { packages, .. } => packages.len(),
            Found::Stated(stated) => stated.len(),
            _ => 0,
        }
    }

    /// About how many bytes it takes to remember it.
    pub(super) fn weight(&self) -> usize {
        match self {
            Found::Packages {
                packages, owned, ..
            } => {
                let packages = packages.iter().map(Package::weight);
                packages.sum::<usize>() + owned.len() * size_of::<u64>()
            }
            Found::Stated(stated) => stated.iter().map(|one| one.package.weight()).sum(),
            Found::Owned(paths) => paths.len() * size_of::<u64>(),
            Found::Os(fact) => fact.weight(),
            Found::Licence(licence) => licence.len(),
            Found::Nothing => 0,
        }
    }
}

/// A file that should have been understood.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Incomplete {
    /// The file.
    pub path: String,
    /// Why it was not.
    pub reason: String,
}
