//! An image: its layers laid over one another. Upper layers hide, delete and replace what lower
//! ones have; what is left is what is installed. A package belongs to the layer that brought it,
//! even if every later layer writes the whole package database anew.

use crate::digest::Digest;
use crate::dpkg::copyright;
use crate::layer::path::hidden_by;
use crate::layer::wanted::FILES;
use crate::layer::{Found, Incomplete, LayerInventory, PathSet};
use crate::limits::Exceeded;
use crate::os::{self, Build, Os, OsFact};
use crate::package::{Detector, Package};
use crate::third_party;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap, HashSet};

/// How many symbolic links are followed before it is a circle.
const MAX_LINKS: usize = 40;
/// The longest path that links may lead to, in bytes.
const MAX_PATH: usize = 4096;
/// The most bytes of names, links followed, that all layers of an image may have.
const MAX_NAMES: usize = 512 << 20;
/// The memory that a file takes beside its names, in bytes.
const FILE_BYTES: usize = 128;

/// What an image holds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Contents {
    /// The distribution.
    pub os: Option<Os>,
    /// What is installed, in a fixed order.
    pub components: Vec<Component>,
    /// What could not be understood.
    pub incomplete: Vec<Incomplete>,
}

/// A package in an image.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Component {
    /// What found it.
    pub detector: Detector,
    /// The package.
    pub package: Package,
    /// The file that declares it.
    pub path: String,
    /// The layer that brought it, by diff ID.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layer: Option<Digest>,
}

/// A file that is still there, with the layer of each of its packages.
struct Live<'a> {
    found: &'a Found,
    /// The layer of the file itself.
    place: usize,
    origins: Vec<usize>,
    hidden_by: Vec<u64>,
}

impl Live<'_> {
    /// Whether a layer removes it, by the directories that the layer empties and the paths that it
    /// deletes.
    fn is_removed(&self, emptied: &PathSet, deleted: &PathSet) -> bool {
        // The last two are its own path, as a file and as a directory.
        let above = self.hidden_by.len().saturating_sub(2);
        let above = self.hidden_by.get(..above).unwrap_or_default();
        emptied.contains_any(above) || deleted.contains_any(&self.hidden_by)
    }
}

#[derive(Default)]
struct Merge<'a> {
    files: BTreeMap<String, Live<'a>>,
    links: BTreeMap<String, String>,
    /// The paths of every layer so far.
    paths: Vec<&'a PathSet>,
    incomplete: Vec<Incomplete>,
    /// The bytes of names that may still come.
    room: usize,
}

/// Lays layers over one another, the lowest first. The time it takes is proportional to the names
/// in the layers.
pub fn merge<'a>(
    layers: impl IntoIterator<Item = (&'a Digest, &'a LayerInventory)>,
) -> Result<Contents, Exceeded> {
    let mut merge = Merge {
        room: MAX_NAMES,
        ..Merge::default()
    };
    let mut digests = Vec::new();
    for (place, (digest, layer)) in layers.into_iter().enumerate() {
        digests.push(digest.clone());
        merge.lay(place, layer)?;
    }
    Ok(merge.finish(&digests))
}

impl<'a> Merge<'a> {
    fn lay(&mut self, place: usize, layer: &'a LayerInventory) -> Result<(), Exceeded> {
        self.remove(layer)?;
        // What is replaced is set aside: its packages may still know where they came from.
        let mut replaced = BTreeMap::new();
        let hidden: Vec<String> = self
            .files
            .iter()
            .filter(|(_, live)| layer.paths.contains_any(&live.hidden_by))
            .map(|(path, _)| path.clone())
            .collect();
        for path in hidden {
            replaced.extend(self.files.remove_entry(&path));
        }
        self.links
            .retain(|path, _| !layer.paths.contains_any(&hidden_by(path)));
        for (path, target) in &layer.links {
            self.links.insert(path.clone(), target.clone());
        }
        for (path, found) in &layer.files {
            let path = self.resolve(path);
            let hidden_by = hidden_by(&path);
            self.remember(path.len() + size_of_val(hidden_by.as_slice()) + FILE_BYTES)?;
            let before = replaced.remove(&path).or_else(|| self.files.remove(&path));
            let live = Live {
                origins: origins(place, found, before.as_ref()),
                hidden_by,
                place,
                found,
            };
            self.files.insert(path, live);
        }
        self.paths.push(&layer.paths);
        self.incomplete.extend(layer.incomplete.iter().cloned());
        Ok(())
    }

    /// Removes what a layer deletes of those below. Each file is looked up once with the directories
    /// above it; there are only as many links as there are ways to package databases.
    fn remove(&mut self, layer: &LayerInventory) -> Result<(), Exceeded> {
        let (mut emptied, mut deleted) = (PathSet::default(), PathSet::default());
        for directory in &layer.opaque {
            let directory = self.resolve(directory);
            self.remember(directory.len() + size_of::<u64>())?;
            self.links.retain(|path, _| !is_below(path, &directory));
            emptied.insert(&directory);
        }
        for path in &layer.whiteouts {
            let path = self.resolve(path);
            self.remember(path.len() + size_of::<u64>())?;
            self.links
                .retain(|link, _| *link != path && !is_below(link, &path));
            deleted.insert(&path);
        }
        emptied.seal();
        deleted.seal();
        if emptied.contains("") || deleted.contains("") {
            self.files.clear();
        }
        self.files
            .retain(|_, live| !live.is_removed(&emptied, &deleted));
        Ok(())
    }

    fn remember(&mut self, bytes: usize) -> Result<(), Exceeded> {
        let what = "bytes of names to remember from all layers";
        let room = self.room.checked_sub(bytes);
        self.room = room.ok_or_else(|| Exceeded::new(what, MAX_NAMES as u64))?;
        Ok(())
    }

    /// The path that is really meant, once the links on its way are followed.
    fn resolve(&self, path: &str) -> String {
        let mut path = path.to_owned();
        for _ in 0..MAX_LINKS {
            // Links to directories come before those in them.
            let mut links = self.links.iter();
            let link = links.find(|(link, _)| path == **link || is_below(&path, link));
            let Some((link, target)) = link else {
                break;
            };
            let rest = path[link.len()..].trim_start_matches('/');
            let next = match (target.as_str(), rest) {
                (target, "") => target.to_owned(),
                ("", rest) => rest.to_owned(),
                (target, rest) => format!("{target}/{rest}"),
            };
            if next.len() > MAX_PATH {
                break;
            }
            path = next;
        }
        path
    }

    /// The Debian packages that others than the distribution made.
    fn foreign(&self) -> HashSet<&'a str> {
        let packages = self.files.values().filter_map(|live| match live.found {
            Found::Packages {
                detector: Detector::Dpkg,
                packages,
                ..
            } => Some(packages),
            _ => None,
        });
        packages
            .flatten()
            .filter(|package| third_party::is_one(package.vendor.as_deref()))
            .map(|package| package.name.as_str())
            .collect()
    }

    /// The files with packages that belong to packages of the distribution, which speak for them.
    fn owned(&self) -> PathSet {
        let foreign = self.foreign();
        let sets = self
            .files
            .iter()
            .filter_map(|(path, live)| match live.found {
                Found::Owned(paths) => (!foreign.contains(package_of(path))).then_some(paths),
                Found::Packages { owned, .. } if !owned.is_empty() => Some(owned),
                _ => None,
            });
        let asked = self
            .files
            .iter()
            .filter_map(|(path, live)| match live.found {
                Found::Packages { detector, .. } => (!detector.is_os()).then_some(path.as_str()),
                Found::Stated(_) => Some(path.as_str()),
                _ => None,
            });
        PathSet::in_any(asked, &sets.collect::<Vec<_>>())
    }

    /// The licences of a Debian package, which its database does not name.
    fn licence(&self, package: &str) -> Option<String> {
        match self.files.get(&copyright::path_of(package))?.found {
            Found::Licence(licence) => Some(licence.clone()),
            _ => None,
        }
    }

    /// A database that lies where nobody looks for it, and is reached through a symbolic link.
    fn unread(&self) -> impl Iterator<Item = Incomplete> {
        let unread = FILES.into_iter().filter(|file| {
            let place = self.resolve(file);
            let is_there = || self.paths.iter().any(|paths| paths.contains(&place));
            place != *file && !self.files.contains_key(&place) && is_there()
        });
        unread.map(|file| Incomplete {
            path: file.into(),
            reason: "a symbolic link leads to a file that was not read".into(),
        })
    }

    /// What bills in the image name beyond what was found. Of the distribution's packages its own
    /// database knows all, so a bill counts for them only where there is none.
    fn stated(&self, found: &[Component], owned: &PathSet, digests: &[Digest]) -> Vec<Component> {
        let has_database = found.iter().any(|one| one.detector.is_os());
        let known: HashSet<_> = found
            .iter()
            .map(|one| {
                (
                    one.detector.ecosystem(),
                    &one.package.name,
                    &one.package.version,
                )
            })
            .collect();
        let mut stated = Vec::new();
        for (path, live) in &self.files {
            let Found::Stated(packages) = live.found else {
                continue;
            };
            if owned.contains(path) {
                continue;
            }
            for one in packages {
                let package = &one.package;
                let key = (one.detector.ecosystem(), &package.name, &package.version);
                if one.detector.is_os() && has_database || known.contains(&key) {
                    continue;
                }
                stated.push(Component {
                    detector: one.detector,
                    package: package.clone(),
                    path: path.clone(),
                    layer: digests.get(live.place).cloned(),
                });
            }
        }
        stated
    }

    /// How the image was built: every layer of a build adds its own files, and the uppermost names
    /// the build.
    fn build(&self) -> Option<Build> {
        let mut builds: Vec<_> = (self.files.values())
            .filter_map(|live| match live.found {
                Found::Os(OsFact { build, .. }) => Some((live.place, build.as_ref()?)),
                _ => None,
            })
            .collect();
        builds.sort_by_key(|(place, _)| *place);
        let mut all = Build::default();
        for (_, build) in &builds {
            all.add(build);
        }
        (!builds.is_empty()).then_some(all)
    }

    fn finish(mut self, digests: &[Digest]) -> Contents {
        let facts: BTreeMap<String, OsFact> = self
            .files
            .iter()
            .filter_map(|(path, live)| match live.found {
                Found::Os(fact) => Some((path.clone(), fact.clone())),
                _ => None,
            })
            .collect();
        let owned = self.owned();
        let mut components = Vec::new();
        for (path, live) in &self.files {
            let Found::Packages {
                detector, packages, ..
            } = live.found
            else {
                continue;
            };
            if !detector.is_os() && owned.contains(path) {
                continue;
            }
            for (package, origin) in packages.iter().zip(&live.origins) {
                let mut package = package.clone();
                if *detector == Detector::Dpkg && package.licence.is_none() {
                    package.licence = self.licence(&package.name);
                }
                components.push(Component {
                    detector: *detector,
                    package,
                    path: path.clone(),
                    layer: digests.get(*origin).cloned(),
                });
            }
        }
        components.extend(self.stated(&components, &owned, digests));
        components.sort();
        once(&mut components);
        let unread: Vec<_> = self.unread().collect();
        self.incomplete.extend(unread);
        // A file that a later layer replaced or deleted is no loss.
        self.incomplete.sort();
        self.incomplete.dedup();
        let build = self.build();
        Contents {
            os: os::decide(&facts).map(|os| Os { build, ..os }),
            components,
            incomplete: self.incomplete,
        }
    }
}

/// The layer of each package: the one of the same package in the file that is replaced, else this.
fn origins(place: usize, found: &Found, before: Option<&Live>) -> Vec<usize> {
    let Found::Packages { packages, .. } = found else {
        return Vec::new();
    };
    let mut known = HashMap::new();
    if let Some(Live {
        found: Found::Packages { packages, .. },
        origins,
        ..
    }) = before
    {
        for (package, origin) in packages.iter().zip(origins) {
            known.insert(identity(package), *origin);
        }
    }
    packages
        .iter()
        .map(|package| known.get(&identity(package)).copied().unwrap_or(place))
        .collect()
}

fn identity(package: &Package) -> (&str, &str, Option<&str>) {
    (
        &package.name,
        &package.version,
        package.architecture.as_deref(),
    )
}

/// A distribution's package counts once, in whichever of its databases it stands; a language's
/// package once for each file.
fn once(components: &mut Vec<Component>) {
    let mut seen = HashSet::new();
    components.retain(|component| {
        let path = if component.detector.is_os() {
            ""
        } else {
            &component.path
        };
        let package = &component.package;
        seen.insert((
            component.detector,
            path.to_owned(),
            package.name.clone(),
            package.version.clone(),
            package.architecture.clone(),
        ))
    });
}

/// The package whose list of files this is: `info/NAME.md5sums` or `info/NAME:ARCHITECTURE.md5sums`.
fn package_of(path: &str) -> &str {
    let (_, name) = path.rsplit_once('/').unwrap_or(("", path));
    let name = name.strip_suffix(".md5sums").unwrap_or(name);
    name.split(':').next().unwrap_or(name)
}

fn is_below(path: &str, directory: &str) -> bool {
    directory.is_empty()
        || path
            .strip_prefix(directory)
            .is_some_and(|rest| rest.starts_with('/'))
}

#[cfg(test)]
#[path = "image_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "image_model_tests.rs"]
mod model_tests;
