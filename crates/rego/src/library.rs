//! Which libraries a policy needs: those that hold what it imports or mentions, and what these need in
//! turn. The others are not even read, so one that is broken harms only those who use it.

use crate::Module;
use crate::error::LoadError;
use crate::read::{self, Read};
use crate::walk::{self, Part, Path, Walk};

/// A policy with the libraries that it needs, itself first. It is asked for the rules `roots` too, so that
/// a library of its own package that has one of them is needed as well.
pub(crate) fn gather<'m>(
    policy: &Module<'m>,
    libraries: &[Module<'m>],
    roots: &[&str],
) -> Result<Vec<Read<'m>>, LoadError> {
    let mut all = vec![read::parse(policy)?];
    let mut left: Vec<(Path, &Module<'m>)> = Vec::new();
    for library in libraries {
        let package = match package(library.text) {
            Some(package) => package,
            None => read::parse(library)?.package(),
        };
        left.push((package, library));
    }
    let mut next = 0;
    while let Some(module) = all.get(next) {
        next += 1;
        let mut needs = Needs::of(module);
        if next == 1 {
            needs.add(roots);
        }
        let mut found = Vec::new();
        let mut rest = Vec::new();
        for (package, library) in left {
            match needs.has(&package, library)? {
                Some(read) => found.push(read),
                None => rest.push((package, library)),
            }
        }
        left = rest;
        all.extend(found);
    }
    Ok(all)
}

/// What a module takes from elsewhere.
struct Needs {
    package: Path,
    /// Within `data`.
    paths: Vec<Path>,
    /// Within its own package.
    own: Vec<Path>,
}

impl Needs {
    fn of(module: &Read<'_>) -> Needs {
        let (package, imports) = (module.package(), walk::imports(&module.tree));
        let mut walk = Walk {
            package: &package,
            imports: &imports,
            part: Part::default(),
            level: 0,
            deepest: 0,
        };
        module.tree.policy.iter().for_each(|rule| walk.rule(rule));
        let Part {
            calls, mentions, ..
        } = walk.part;
        let called = calls.into_keys().map(|call| call.target);
        let (data, own): (Vec<_>, Vec<_>) =
            mentions.into_iter().chain(called).partition(|m| m.is_data);
        let imported = imports.values().filter_map(|path| {
            let inner = path.strip_prefix(&["data".to_owned()][..])?;
            Some(inner.to_vec())
        });
        Needs {
            paths: data.into_iter().map(|m| m.path).chain(imported).collect(),
            own: own.into_iter().map(|m| m.path).collect(),
            package,
        }
    }

    /// Adds rules of its own package.
    fn add(&mut self, rules: &[&str]) {
        let path = |rule: &&str| {
            let package = self.package.iter().cloned();
            package.chain([(*rule).to_owned()]).collect()
        };
        let paths: Vec<Path> = rules.iter().map(path).collect();
        self.own.extend(paths);
    }

    /// Reads a library if it has any of it.
    fn has<'m>(&self, package: &Path, library: &Module<'m>) -> Result<Option<Read<'m>>, LoadError> {
        let related = |path: &Path| path.starts_with(package) || package.starts_with(path);
        if self.paths.iter().any(related) {
            return read::parse(library).map(Some);
        }
        if *package != self.package {
            return Ok(None);
        }
        // Modules of one package know each other's rules by their bare names.
        let read = read::parse(library)?;
        let used = read.rules().any(|(name, _)| {
            let is_name = |path: &Path| path.get(package.len()) == Some(&name);
            self.own.iter().any(is_name)
        });
        Ok(used.then_some(read))
    }
}

/// The package of a module, if it is written as everybody writes it.
fn package(text: &str) -> Option<Path> {
    let mut lines = text.lines().map(str::trim);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with('#'))?;
    let path = first.strip_prefix("package")?;
    let path = path.strip_prefix([' ', '\t'])?.trim();
    let is_plain = |name: &str| {
        let letters = |c: char| c.is_ascii_alphanumeric() || c == '_';
        !name.is_empty() && name.chars().all(letters)
    };
    let names = path.split('.');
    let names: Option<Path> = names
        .map(|name| is_plain(name).then(|| name.to_owned()))
        .collect();
    names
}
