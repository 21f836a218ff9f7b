//! Reading a module. The parser goes as deep as the text does, and tries what it is unsure of; so what
//! would never end is told apart first, and everything is read on a stack that the longest text cannot
//! use up.

use crate::error::{LoadError, Names};
use crate::token::Tokens;
use crate::{Module, head, nesting, old, walk};
use regorus::unstable::{Module as Tree, Ref, Rule, RuleHead};
use regorus::{Engine, PolicyLengthConfig};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::num::{NonZeroU32, NonZeroUsize};

/// The longest module, in bytes.
pub(crate) const LENGTH: usize = 64 * 1024;
/// The longest that it may become by being rewritten.
pub(crate) const REWRITTEN: usize = 4 * LENGTH;
/// The most lines.
const LINES: usize = 10_000;
/// The stack of whoever reads a module, in bytes: 4 KiB for each byte of the longest one, as a single
/// one may be another level. Only what is used of it is ever there.
const STACK: usize = LENGTH * 4096;

/// A module that was read.
pub(crate) struct Read<'m> {
    pub(crate) module: Module<'m>,
    /// What the parser read: the module with [values](head) for its bare function heads.
    pub(crate) text: Cow<'m, str>,
    pub(crate) tree: Ref<Tree>,
    /// Whether it is in the old syntax.
    pub(crate) is_old: bool,
}

impl Read<'_> {
    /// The names that the package is made of, without `data`.
    pub(crate) fn package(&self) -> Vec<String> {
        walk::path(&self.tree.package.refr).unwrap_or_default()
    }

    /// The first names of its rules, with whether that is a function.
    pub(crate) fn rules(&self) -> impl Iterator<Item = (String, bool)> {
        self.tree.policy.iter().filter_map(|rule| {
            let (refr, is_function) = match rule.as_ref() {
                Rule::Spec { head, .. } => match head {
                    RuleHead::Compr { refr, .. } | RuleHead::Set { refr, .. } => (refr, false),
                    RuleHead::Func { refr, .. } => (refr, true),
                },
                Rule::Default { refr, args, .. } => (refr, !args.is_empty()),
            };
            Some((walk::root(refr)?.to_owned(), is_function))
        })
    }

    /// The names that mean something outside of the rule that they are in.
    pub(crate) fn globals(&self) -> BTreeSet<String> {
        let rules = self.rules().map(|(name, _)| name);
        rules.chain(walk::imports(&self.tree).into_keys()).collect()
    }
}

/// Reads a module as v1, or as v0 if it is none. One that imports `rego.v1`, or that v0 would
/// [take for something else](old), is never v0: the error is that of v1.
pub(crate) fn parse<'m>(module: &Module<'m>) -> Result<Read<'m>, LoadError> {
    let unreadable = |why: String| LoadError::Unreadable {
        module: module.name.to_owned(),
        why,
    };
    if module.text.len() > LENGTH {
        let why = format!("the module is longer than {LENGTH} bytes");
        return Err(unreadable(why));
    }
    if !nesting::is_readable(module.text) {
        let why = "the brackets of the module are nested too deeply";
        return Err(unreadable(why.into()));
    }
    let tokens = Tokens::read(module.text);
    let text = head::complete(module.text, &tokens);
    let read = |is_old: bool| {
        let (mut engine, mut names) = (engine(), Names::default());
        engine.set_rego_v0(is_old);
        let added = engine.add_policy(names.add(module.name), text.to_string());
        added.map_err(|error| names.wrong(&error))?;
        let tree = engine.get_modules().first().cloned();
        let tree = tree.ok_or_else(|| unreadable("there is no module".into()))?;
        Ok(Read {
            module: *module,
            text: text.clone(),
            tree,
            is_old,
        })
    };
    let modern = |line: &str| line.trim_start().starts_with("import rego.v1");
    match read(false) {
        Ok(read) => Ok(read),
        Err(error) if module.text.lines().any(modern) => Err(error),
        Err(error) if old::uses_keywords(&tokens) => Err(error),
        Err(error) => match read(true) {
            Ok(read) if !old::is_refused(&read.tree) => Ok(read),
            _ => Err(error),
        },
    }
}

/// An engine without modules.
pub(crate) fn engine() -> Engine {
    let mut engine = Engine::new();
    engine.set_policy_length_config(PolicyLengthConfig {
        max_col: NonZeroU32::MAX,
        max_file_bytes: NonZeroUsize::new(REWRITTEN).unwrap_or(NonZeroUsize::MIN),
        max_lines: NonZeroUsize::new(LINES).unwrap_or(NonZeroUsize::MIN),
    });
    engine
}

/// Reads on a stack that is large enough.
pub(crate) fn apart<T: Send>(
    read: impl FnOnce() -> Result<T, LoadError> + Send,
) -> Result<T, LoadError> {
    let panicked = |_| {
        Err(LoadError::Unreadable {
            module: String::new(),
            why: "the module cannot be read".into(),
        })
    };
    std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().stack_size(STACK);
        let reading = builder.spawn_scoped(scope, read);
        let reading = reading.map_err(|error| {
            let why = format!("cannot start a thread: {error}");
            LoadError::Unavailable(why)
        })?;
        reading.join().unwrap_or_else(panicked)
    })
}
