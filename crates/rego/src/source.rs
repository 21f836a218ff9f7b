//! What modules may be. The interpreter calls itself for every function, rule and part of an
//! expression, and nothing stops a function that calls itself; so such modules are refused, and of all
//! others it is known beforehand how deep they can go together.

use crate::error::{LoadError, Names, Place};
use crate::functions::{self, Absence};
use crate::walk::{self, Call, Mention, Part, Path, Walk};
use regorus::Engine;
use regorus::unstable::{Module, Rule, RuleHead};
use std::collections::{BTreeMap, BTreeSet};

/// The most parts that may be nested in an evaluation.
const DEEPEST: usize = 8 * 1024;
/// How deep one expression may be: a row of operators is nested too.
const LEVELS: usize = 100;
/// How many functions or rules may be between one and another.
const MOST_CALLS: usize = 256;

/// Whether there are all the modules that there will be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whole {
    /// These are all.
    Yes,
    /// What they import is not there yet.
    No,
}

/// What is known of modules.
#[derive(Debug, Default)]
pub(crate) struct Source {
    packages: BTreeSet<Path>,
    /// What each rule or function is made of, by its whole path.
    parts: BTreeMap<Path, Part>,
    /// What the first module imports and nobody has.
    missing: BTreeSet<String>,
    depth: usize,
}

impl Source {
    /// Checks the modules of an engine.
    pub(crate) fn check(
        engine: &mut Engine,
        names: &Names,
        prefix: &str,
        whole: Whole,
    ) -> Result<Source, LoadError> {
        let mut source = Source::default();
        let modules = engine.get_modules().clone();
        let mut owners = BTreeMap::new();
        for (number, module) in modules.iter().enumerate() {
            let deepest = source.read(module, number, &mut owners);
            if deepest > LEVELS {
                let why = "an expression is nested too deeply";
                return Err(wrong(names, number, why.into()));
            }
        }
        if whole == Whole::Yes {
            for (number, module) in modules.iter().enumerate() {
                source.imports(module, number, names)?;
            }
        }
        source.calls(names, prefix, whole, &owners)?;
        source.depth = source.measure(names)?;
        Ok(source)
    }

    /// What the first module imports and nobody has; it does not use it.
    pub(crate) fn missing(&self) -> &BTreeSet<String> {
        &self.missing
    }

    /// The functions that are called, as they are written; nothing, if one may be put in the place of
    /// another.
    pub(crate) fn called(&self) -> Option<BTreeSet<&str>> {
        let mut parts = self.parts.values();
        if parts.any(|part| !part.replacements.is_empty()) {
            return None;
        }
        let calls = self.parts.values().flat_map(|part| part.calls.keys());
        Some(calls.map(|call| call.name.as_str()).collect())
    }

    /// How many parts may be nested in an evaluation.
    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    /// Reads a module, and tells how deep its deepest expression is.
    fn read(
        &mut self,
        module: &Module,
        number: usize,
        owners: &mut BTreeMap<Path, usize>,
    ) -> usize {
        let package = walk::path(&module.package.refr).unwrap_or_default();
        let imports = walk::imports(module);
        let mut deepest = 0;
        for rule in &module.policy {
            let (refr, is_function) = match rule.as_ref() {
                Rule::Spec { head, .. } => match head {
                    RuleHead::Compr { refr, .. } | RuleHead::Set { refr, .. } => (refr, false),
                    RuleHead::Func { refr, .. } => (refr, true),
                },
                Rule::Default { refr, args, .. } => (refr, !args.is_empty()),
            };
            // A rule may have variables in its name: it is known by what is before them.
            let name = walk::path(refr).or_else(|| Some(vec![walk::root(refr)?.to_owned()]));
            let mut name = name.unwrap_or_default();
            if !is_function {
                name.truncate(1);
            }
            let mut walk = Walk {
                package: &package,
                imports: &imports,
                part: Part::default(),
                level: 0,
                deepest: 0,
            };
            walk.rule(rule);
            deepest = deepest.max(walk.deepest);
            let found = walk.part;
            let path: Path = package.iter().cloned().chain(name).collect();
            owners.entry(path.clone()).or_insert(number);
            let part = self.parts.entry(path).or_default();
            part.is_function |= is_function;
            part.size = part.size.max(found.size);
            part.calls.extend(found.calls);
            part.mentions.extend(found.mentions);
            part.replacements.extend(found.replacements);
        }
        self.packages.insert(package);
        deepest
    }

    /// Whether all that a module imports and uses is there.
    fn imports(&mut self, module: &Module, number: usize, names: &Names) -> Result<(), LoadError> {
        let imports = walk::imports(module);
        let package = Vec::new();
        let mut walk = Walk {
            package: &package,
            imports: &imports,
            part: Part::default(),
            level: 0,
            deepest: 0,
        };
        module.policy.iter().for_each(|rule| walk.rule(rule));
        for (name, path) in &imports {
            let Some(inner) = path.strip_prefix(&["data".to_owned()][..]) else {
                continue;
            };
            let has = |known: &Path| known.starts_with(inner);
            if self.part(inner).is_some() || self.is_above(inner) || self.packages.iter().any(has) {
                continue;
            }
            if walk.part.imports.contains(name) {
                return Err(LoadError::Import {
                    module: names.name(number).to_owned(),
                    path: path.join("."),
                    why: "no library has it",
                });
            }
            if number == 0 {
                self.missing.insert(path.join("."));
            }
        }
        Ok(())
    }

    /// Whether all functions are there that are called.
    fn calls(
        &self,
        names: &Names,
        prefix: &str,
        whole: Whole,
        owners: &BTreeMap<Path, usize>,
    ) -> Result<(), LoadError> {
        for (path, part) in &self.parts {
            for (call, position) in &part.calls {
                let Call { name, target } = call;
                let known = self.function(target).is_some();
                let later = whole == Whole::No && target.is_data;
                let own = name.strip_prefix(prefix).is_some_and(functions::is_own);
                if known || later || own {
                    continue;
                }
                let why = match functions::absence(name) {
                    None => continue,
                    Some(Absence::Unknown) => format!("there is no function `{name}`"),
                    Some(Absence::Refused(why)) => format!("`{name}` cannot be used: {why}"),
                };
                let number = owners.get(path).copied().unwrap_or_default();
                return Err(LoadError::Wrong {
                    place: Place {
                        module: names.name(number).to_owned(),
                        position: Some(*position),
                    },
                    why,
                });
            }
        }
        Ok(())
    }

    fn function(&self, target: &Mention) -> Option<&Path> {
        let (path, part) = self.parts.get_key_value(&target.path)?;
        part.is_function.then_some(path)
    }

    /// The functions that a part may call.
    fn callees<'s>(&'s self, part: &'s Part) -> impl Iterator<Item = &'s Path> {
        let calls = part.calls.keys().map(|call| &call.target);
        let all = calls.chain(&part.replacements);
        all.filter_map(|target| self.function(target))
    }

    /// The rule or function that a path is within.
    fn part(&self, path: &[String]) -> Option<&Path> {
        (1..=path.len()).rev().find_map(|length| {
            let (path, _) = self.parts.get_key_value(path.get(..length)?)?;
            Some(path)
        })
    }

    /// Whether there are rules below a path.
    fn is_above(&self, path: &[String]) -> bool {
        let next = self.parts.range(path.to_vec()..).next();
        next.is_some_and(|(next, _)| next.starts_with(path))
    }

    /// How deep the modules go. A function that comes to itself is refused. Rules that do so are not:
    /// that may be only so by name, and the interpreter finds out in time. Each is active once, then.
    fn measure(&self, names: &Names) -> Result<usize, LoadError> {
        let mut known = BTreeMap::new();
        let mut functions = 0;
        for path in self.parts.keys() {
            let longest = self.longest(path, &mut known, 0);
            functions = longest.map_err(|why| wrong(names, 0, why))?.max(functions);
        }
        let rules = self.parts.values().filter(|part| !part.is_function);
        let (count, sizes) = rules.fold((1, 0), |(count, sizes): (usize, usize), part| {
            (count + 1, sizes + part.size)
        });
        // The longest way through functions may be taken from each rule.
        let all = sizes.saturating_add(count.saturating_mul(functions));
        let depth = match self.chain() {
            Some(chain) => chain.min(all),
            None => all,
        };
        // A function that was put in the place of another is called from where that was, and what it
        // calls is as it was before; so there is one more way for each that does so.
        let replacing = |part: &&Part| part.replacements.iter().any(|m| self.function(m).is_some());
        let ways = self.parts.values().filter(replacing).count() + 1;
        let depth = depth.saturating_mul(ways);
        match depth > DEEPEST {
            true => Err(wrong(names, 0, "the module is nested too deeply".into())),
            false => Ok(depth),
        }
    }

    /// The longest way through functions from here.
    fn longest<'s>(
        &'s self,
        path: &'s Path,
        known: &mut BTreeMap<&'s Path, Option<usize>>,
        depth: usize,
    ) -> Result<usize, String> {
        match known.get(path) {
            Some(Some(length)) => return Ok(*length),
            Some(None) => {
                let name = path.last().map(String::as_str).unwrap_or_default();
                return Err(format!("the function `{name}` calls itself"));
            }
            None => {}
        }
        let Some(part) = self.parts.get(path).filter(|part| part.is_function) else {
            return Ok(0);
        };
        if depth > MOST_CALLS {
            return Err("the module is nested too deeply".into());
        }
        known.insert(path, None);
        let mut longest = 0;
        for next in self.callees(part) {
            longest = self.longest(next, known, depth + 1)?.max(longest);
        }
        let length = longest + part.size;
        known.insert(path, Some(length));
        Ok(length)
    }

    /// The longest way through everything, if nothing comes to itself.
    fn chain(&self) -> Option<usize> {
        let mut known = BTreeMap::new();
        let mut lengths = self.parts.keys().map(|path| self.way(path, &mut known, 0));
        lengths.try_fold(0, |longest, length| Some(length?.max(longest)))
    }

    fn way<'s>(
        &'s self,
        path: &'s Path,
        known: &mut BTreeMap<&'s Path, Option<usize>>,
        depth: usize,
    ) -> Option<usize> {
        if let Some(length) = known.get(path) {
            return *length;
        }
        let Some(part) = self.parts.get(path) else {
            return Some(0);
        };
        if depth > MOST_CALLS {
            return None;
        }
        known.insert(path, None);
        let mut longest = 0;
        for next in self.callees(part) {
            longest = self.way(next, known, depth + 1)?.max(longest);
        }
        for mention in &part.mentions {
            match self.part(&mention.path) {
                Some(next) => longest = self.way(next, known, depth + 1)?.max(longest),
                // A path that is not known to its end may be any rule's.
                None if mention.is_data && self.is_above(&mention.path) => return None,
                None => {}
            }
        }
        let length = longest + part.size;
        known.insert(path, Some(length));
        Some(length)
    }
}

fn wrong(names: &Names, number: usize, why: String) -> LoadError {
    let place = Place::module(names.name(number));
    LoadError::Wrong { place, why }
}
