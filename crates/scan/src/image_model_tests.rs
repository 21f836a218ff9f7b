//! Layers laid over one another, compared with a model that walks over all files for every path that a
//! layer removes; and the work of it, which must not grow faster than the layers do.

use super::*;
use crate::embedded::Stated;
use crate::layer::path::LOOKS;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::cell::Cell;
use std::time::{Duration, Instant};

/// An entry of a layer.
#[derive(Clone, Debug)]
enum Entry {
    /// A file that declares a package.
    Package(String),
    /// A file that says which packages there are.
    Statement(String),
    /// A list of files that belong to a package of the distribution.
    Owned(String, Vec<String>),
    /// Any other file.
    File(String),
    Directory(String),
    Link(String, String),
    Whiteout(String),
    Opaque(String),
}

/// Few names, so that paths meet.
fn path(most: usize) -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec!["a", "b", "var", "lib"]);
    prop::collection::vec(name, 1..=most).prop_map(|names| names.join("/"))
}

fn directory() -> impl Strategy<Value = String> {
    prop_oneof![1 => Just(String::new()), 8 => path(3)]
}

fn entry() -> impl Strategy<Value = Entry> {
    let link = prop::sample::select(vec!["var", "var/lib", "lib"]);
    let owned = prop::collection::vec(path(4), 1..4);
    prop_oneof![
        6 => path(4).prop_map(Entry::Package),
        1 => path(4).prop_map(Entry::Statement),
        1 => (path(4), owned).prop_map(|(path, owned)| Entry::Owned(path, owned)),
        1 => path(4).prop_map(Entry::File),
        1 => path(3).prop_map(Entry::Directory),
        1 => (link, directory()).prop_map(|(link, to)| Entry::Link(link.into(), to)),
        2 => path(4).prop_map(Entry::Whiteout),
        2 => directory().prop_map(Entry::Opaque),
    ]
}

fn layers() -> impl Strategy<Value = Vec<Vec<Entry>>> {
    prop::collection::vec(prop::collection::vec(entry(), 0..8), 1..5)
}

fn set(paths: &[String]) -> PathSet {
    let mut set = PathSet::default();
    paths.iter().for_each(|path| set.insert(path));
    set.seal();
    set
}

/// What the walk over a layer makes of its entries.
fn inventory(entries: &[Entry]) -> LayerInventory {
    let mut layer = LayerInventory::default();
    for entry in entries {
        let (path, found) = match entry {
            Entry::Whiteout(path) => {
                layer.whiteouts.insert(path.clone());
                continue;
            }
            Entry::Opaque(path) => {
                layer.opaque.insert(path.clone());
                continue;
            }
            Entry::Directory(path) => {
                layer.paths.insert(&format!("{path}/"));
                layer.files.remove(path);
                layer.links.remove(path);
                continue;
            }
            Entry::Link(path, to) => {
                layer.paths.insert(path);
                layer.files.remove(path);
                layer.links.insert(path.clone(), to.clone());
                continue;
            }
            Entry::Package(path) => {
                let found = Found::Packages {
                    detector: Detector::NodePackage,
                    packages: vec![Package::new("p", "1")],
                    owned: PathSet::default(),
                };
                (path, Some(found))
            }
            Entry::Statement(path) => {
                let stated = Stated {
                    detector: Detector::GoBinary,
                    package: Package::new("s", "1"),
                };
                (path, Some(Found::Stated(vec![stated])))
            }
            Entry::Owned(path, owned) => (path, Some(Found::Owned(set(owned)))),
            Entry::File(path) => (path, None),
        };
        layer.paths.insert(path);
        layer.links.remove(path);
        layer.files.remove(path);
        layer.files.extend(found.map(|found| (path.clone(), found)));
    }
    layer.paths.seal();
    layer
}

/// The model: files and links that are left, with the layer of each file.
#[derive(Default)]
struct Model<'l> {
    files: BTreeMap<String, (usize, &'l Found)>,
    links: BTreeMap<String, String>,
}

impl<'l> Model<'l> {
    fn lay(&mut self, place: usize, layer: &'l LayerInventory) {
        for directory in &layer.opaque {
            let directory = self.resolve(directory);
            self.files.retain(|path, _| !is_below(path, &directory));
            self.links.retain(|path, _| !is_below(path, &directory));
        }
        for deleted in &layer.whiteouts {
            let deleted = self.resolve(deleted);
            let is_left = |path: &str| path != deleted && !is_below(path, &deleted);
            self.files.retain(|path, _| is_left(path));
            self.links.retain(|path, _| is_left(path));
        }
        let is_hidden = |path: &str| {
            let mut above = path.match_indices('/').map(|(end, _)| &path[..end]);
            layer.paths.contains(path)
                || layer.paths.contains(&format!("{path}/"))
                || above.any(|part| layer.paths.contains(part))
        };
        let mut hidden = self.files.clone();
        hidden.retain(|path, _| is_hidden(path));
        self.files.retain(|path, _| !is_hidden(path));
        self.links.retain(|path, _| !is_hidden(path));
        self.links.extend(layer.links.clone());
        for (path, found) in &layer.files {
            let path = self.resolve(path);
            let before = hidden.remove(&path).or_else(|| self.files.remove(&path));
            // A package that was there before belongs to the layer that brought it.
            let place = match (found, before) {
                (Found::Packages { .. }, Some((before, Found::Packages { .. }))) => before,
                _ => place,
            };
            self.files.insert(path, (place, found));
        }
    }

    fn resolve(&self, path: &str) -> String {
        let mut path = path.to_owned();
        for _ in 0..MAX_LINKS {
            let parts: Vec<&str> = path.split('/').collect();
            let mut starts = (1..=parts.len()).map(|count| parts[..count].join("/"));
            let Some(link) = starts.find(|start| self.links.contains_key(start)) else {
                break;
            };
            let rest = path[link.len()..].trim_start_matches('/').to_owned();
            let parts = [self.links[&link].clone(), rest];
            let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            let next = parts.join("/");
            if next.len() > MAX_PATH {
                break;
            }
            path = next;
        }
        path
    }

    /// Packages by name, path and layer.
    fn packages(&self) -> Vec<(String, String, usize)> {
        let owners: Vec<&PathSet> = (self.files.values())
            .filter_map(|(_, found)| match found {
                Found::Owned(paths) => Some(paths),
                _ => None,
            })
            .collect();
        let left = self.files.iter().filter_map(|(path, (place, found))| {
            let name = match found {
                Found::Packages { .. } => "p",
                Found::Stated(_) => "s",
                _ => return None,
            };
            let is_owned = owners.iter().any(|paths| paths.contains(path));
            (!is_owned).then(|| (name.to_owned(), path.clone(), *place))
        });
        left.collect()
    }
}

fn digests(count: usize) -> Vec<Digest> {
    let places = 0..u32::try_from(count).unwrap();
    places
        .map(|place| Digest::of(&place.to_be_bytes()))
        .collect()
}

fn packages(layers: &[LayerInventory]) -> Vec<(String, String, usize)> {
    let digests = digests(layers.len());
    let contents = merge(digests.iter().zip(layers)).unwrap();
    let found = contents.components.into_iter().map(|one| {
        let place = digests
            .iter()
            .position(|digest| Some(digest) == one.layer.as_ref());
        (one.package.name, one.path, place.unwrap())
    });
    found.collect()
}

#[test]
fn layers_have_what_the_model_has() {
    let count = Cell::new(0);
    for seed in 0..8 {
        let config = Config {
            cases: 500,
            failure_persistence: None,
            ..Config::default()
        };
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]);
        let check = |layers: Vec<Vec<Entry>>| {
            let layers: Vec<LayerInventory> = layers.iter().map(|one| inventory(one)).collect();
            let mut model = Model::default();
            for (place, layer) in layers.iter().enumerate() {
                model.lay(place, layer);
            }
            let mut expected = model.packages();
            expected.sort();
            let mut found = packages(&layers);
            found.sort();
            count.set(count.get() + expected.len());
            prop_assert_eq!(found, expected);
            Ok(())
        };
        let mut runner = TestRunner::new_with_rng(config, rng);
        runner.run(&layers(), check).unwrap();
    }
    assert!(count.get() > 4_000, "{} packages", count.get());
}

/// A layer of so many packages, of as many lists of files of the distribution, and of as many others;
/// and one that deletes as many files and empties as many directories, none of which are there.
fn crowded(count: usize) -> [LayerInventory; 2] {
    let (mut lower, mut upper) = (LayerInventory::default(), LayerInventory::default());
    for number in 0..count {
        let entries = [
            Entry::Package(format!("app/{number}/package.json")),
            Entry::Owned(
                format!("var/lib/dpkg/info/{number}.md5sums"),
                vec![format!("usr/{number}")],
            ),
        ];
        lower.files.extend(inventory(&entries).files);
        upper.whiteouts.insert(format!("app/{number}/gone"));
        upper.opaque.insert(format!("app/{number}/empty"));
    }
    [lower, upper]
}

#[test]
fn twice_the_files_and_whiteouts_are_twice_the_work() {
    let work = |count: usize| {
        let layers = crowded(count);
        LOOKS.set(0);
        assert_eq!(packages(&layers).len(), count);
        LOOKS.get()
    };
    let (one, two) = (work(2_000), work(4_000));
    assert!(one > 2_000 && two <= 2 * one, "{one} {two}");
}

#[test]
fn a_hundred_thousand_whiteouts_over_as_many_files_end() {
    let layers = crowded(100_000);
    let start = Instant::now();
    assert_eq!(packages(&layers).len(), 100_000);
    // Without a set to look them up in it takes minutes.
    assert!(start.elapsed() < Duration::from_secs(30));
}

#[test]
fn names_are_counted_as_they_are_once_links_are_followed() {
    let long = &*vec!["d"; 1_000].join("/");
    let link = |to: &str| inventory(&[Entry::Link("var".into(), to.into())]);
    let package = inventory(&[Entry::Package("var/package.json".into())]);
    let whiteout = inventory(&[Entry::Whiteout("var/package.json".into())]);
    let opaque = inventory(&[Entry::Opaque("var/package.json".into())]);
    for (to, upper, room, fits) in [
        // The file itself, its number and those of its directories.
        ("data", &package, 200, true),
        (long, &package, 9_000, false),
        (long, &package, 11_000, true),
        ("data", &whiteout, 100, true),
        (long, &whiteout, 1_000, false),
        (long, &opaque, 1_000, false),
        (long, &opaque, 3_000, true),
    ] {
        let lower = link(to);
        let mut merge = Merge {
            room,
            ..Merge::default()
        };
        merge.lay(0, &lower).unwrap();
        let laid = merge.lay(1, upper);
        assert_eq!(laid.is_ok(), fits, "{room} {upper:?}");
    }
}

#[test]
fn a_link_that_makes_a_path_too_long_is_not_followed() {
    let long = format!("var/{}", vec!["d"; 1_500].join("/"));
    let layer = inventory(&[
        Entry::Link("var".into(), long.clone()),
        Entry::Package("var/a".into()),
    ]);
    let found = packages(&[layer]);
    assert_eq!(found, [("p".to_owned(), format!("{long}/a"), 0)]);
}
