//! A policy, ready to be asked. All that can be done once is done when it is loaded; asking takes a
//! copy of the engine, which is cheap, and so needs no lock. Nothing of the host can be asked: there is
//! no clock, no chance, no network and no environment. An error of a function is an undefined value, as
//! everywhere in Rego; what a policy may take is not. An evaluation that does not end in time, and cannot
//! be stopped, is [left running](crate::watch); the same modules of the same owner are not evaluated again,
//! for as long as the process lives.

use crate::error::{AskError, LoadError, Names};
use crate::metadata::{self, Metadata};
use crate::source::{Source, Whole};
use crate::{Limits, Module, Owner, functions, library, read, rewrite, text, watch};
use regorus::utils::limits::ExecutionTimerConfig;
use regorus::{Engine, LimitError, Value};
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How many steps of the interpreter there are between two looks at the clock.
const GLANCE: u32 = 16;
/// How much longer than it may take an evaluation is waited for.
const GRACE: Duration = Duration::from_secs(5);
/// The stack that is set aside for one part of a module, in bytes.
const STACK_EACH: usize = 8 * 1024;
/// How many modules are remembered that are not evaluated again.
const MOST_ENDLESS: usize = 1024;

/// What had to be left running, by the hash of its modules and its owner.
static ENDLESS: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());

/// One policy with its libraries, ready to be asked.
#[derive(Debug)]
pub struct Program {
    asked: Arc<Asked>,
    package: String,
    /// The first names of the policy's own rules that are no functions.
    rules: BTreeSet<String>,
    missing: BTreeSet<String>,
    metadata: Metadata,
    stack: usize,
    /// The hash of its modules and its owner, and whether it is known that they do not end.
    hash: u64,
    is_endless: AtomicBool,
}

/// What an evaluation needs. It may outlive the program.
#[derive(Debug)]
struct Asked {
    engine: Engine,
    names: Names,
    path: Vec<String>,
    /// The first names of all rules in the package that are no functions.
    known: BTreeSet<String>,
    limits: Limits,
}

impl Program {
    /// Loads a policy. Libraries may be imported as `data.<package>`; only those that it needs are
    /// loaded with it. The `roots` are rules that will be asked for though the policy may have none of the
    /// name: a library of the same package that has one is needed.
    pub fn load(
        policy: Module<'_>,
        libraries: &[Module<'_>],
        roots: &[&str],
        limits: Limits,
    ) -> Result<Program, LoadError> {
        read::apart(|| Program::read(&policy, libraries, roots, limits))
    }

    /// Reads a policy, on a stack that is large enough.
    fn read(
        policy: &Module<'_>,
        libraries: &[Module<'_>],
        roots: &[&str],
        limits: Limits,
    ) -> Result<Program, LoadError> {
        let about = metadata::block(policy)?;
        let modules = library::gather(policy, libraries, roots)?;
        let texts: Vec<&str> = modules.iter().map(|read| read.module.text).collect();
        let prefix = text::fresh(&texts);
        let (mut engine, mut names) = (read::engine(), Names::default());
        for module in &modules {
            let package = module.package();
            let shared = modules.iter().filter(|other| other.package() == package);
            let mut globals = module.globals();
            globals.extend(shared.flat_map(|other| other.rules().map(|(name, _)| name)));
            rewrite::add(&mut engine, &mut names, module, &globals, &prefix)?;
        }
        let source = Source::check(&mut engine, &names, &prefix, Whole::Yes)?;
        engine.set_strict_builtin_errors(false);
        // It would be written to the log of the process, line by line.
        engine.set_gather_prints(true);
        let replaced = functions::replace(&mut engine, &prefix, source.called().as_ref());
        replaced.map_err(|error| names.wrong(&error))?;
        let Some(own) = modules.first() else {
            return Err(names.wrong(&"there is no module"));
        };
        let path = own.package();
        let values = |rules: &mut dyn Iterator<Item = (String, bool)>| -> BTreeSet<String> {
            let names = rules.filter(|(_, is_function)| !is_function);
            names.map(|(name, _)| name).collect()
        };
        let shared = modules.iter().filter(|other| other.package() == path);
        let known = values(&mut shared.flat_map(|other| other.rules()));
        // All that can be done once is done here.
        for rule in &known {
            let compiled = engine.compile_with_entrypoint(&rule_path(&path, rule).into());
            match compiled {
                Err(error) if is_above(&error) => {}
                Err(error) => return Err(names.wrong(&error)),
                Ok(_) => break,
            }
        }
        let hash = hash(&limits.owner, &texts);
        let mut program = Program {
            package: path.join("."),
            rules: values(&mut own.rules()),
            missing: source.missing().clone(),
            metadata: Metadata::default(),
            stack: source.depth().saturating_mul(STACK_EACH),
            hash,
            is_endless: AtomicBool::new(is_endless(hash)),
            asked: Arc::new(Asked {
                engine,
                names,
                known,
                limits,
                path,
            }),
        };
        program.metadata = match about {
            Some(about) => about,
            None => metadata::rules(&program)?,
        };
        Ok(program)
    }

    /// The package of the policy, with dots and without `data`.
    pub fn package(&self) -> &str {
        &self.package
    }

    /// The first names of the policy's own rules that are no functions.
    pub fn rules(&self) -> impl Iterator<Item = &str> {
        self.rules.iter().map(String::as_str)
    }

    /// Whether its package has a rule of that name that is no function.
    pub(crate) fn has(&self, rule: &str) -> bool {
        self.asked.known.contains(rule)
    }

    /// What the policy says of itself.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// What the policy imports from `data` although no library has it. It does not use it.
    pub fn missing(&self) -> impl Iterator<Item = &str> {
        self.missing.iter().map(String::as_str)
    }

    /// The values of these rules of the policy's package, in their order; undefined where there is no
    /// such rule. There is one allowance of time for all of them.
    pub fn ask(&self, input: Value, rules: &[&str]) -> Result<Vec<Value>, AskError> {
        let Limits { time, owner } = &self.asked.limits;
        let time = *time;
        if self.is_endless.load(Ordering::Relaxed) {
            return Err(AskError::Time(time));
        }
        let asked = self.asked.clone();
        let rules: Vec<String> = rules.iter().map(|rule| (*rule).to_owned()).collect();
        let job = move || asked.answer(input, &rules);
        let answer = watch::evaluate(owner, self.stack, time.saturating_add(GRACE), job);
        answer.unwrap_or_else(|| {
            self.give_up();
            Err(AskError::Time(time))
        })
    }

    /// Sees to it that these modules are not evaluated again.
    fn give_up(&self) {
        self.is_endless.store(true, Ordering::Relaxed);
        let mut endless = ENDLESS.lock().unwrap_or_else(PoisonError::into_inner);
        if endless.len() >= MOST_ENDLESS {
            endless.pop_first();
        }
        endless.insert(self.hash);
    }
}

impl Asked {
    /// Asks the rules, on this thread's stack.
    fn answer(&self, input: Value, rules: &[String]) -> Result<Vec<Value>, AskError> {
        let start = Instant::now();
        let mut engine = self.engine.clone();
        engine.set_input(input);
        functions::begin();
        let mut values = Vec::with_capacity(rules.len());
        for rule in rules {
            if !self.known.contains(rule) {
                values.push(Value::Undefined);
                continue;
            }
            let late = || AskError::Time(self.limits.time);
            let left = self.limits.time.checked_sub(start.elapsed());
            engine.set_execution_timer_config(ExecutionTimerConfig {
                limit: left.ok_or_else(late)?,
                check_interval: NonZeroU32::new(GLANCE).unwrap_or(NonZeroU32::MIN),
            });
            let path = rule_path(&self.path, rule);
            let mut value = engine.eval_rule(path.clone());
            if value.as_ref().is_err_and(is_above) {
                let found = engine.eval_query(path, false);
                value = found.map(|found| {
                    let first = found.result.into_iter().next();
                    let first = first.and_then(|first| first.expressions.into_iter().next());
                    first.map_or(Value::Undefined, |first| first.value)
                });
            }
            // An error in one branch of a function may have been taken for "undefined".
            functions::end()?;
            values.push(
                value.map_err(|error| match error.downcast_ref::<LimitError>() {
                    Some(LimitError::TimeLimitExceeded { .. }) => late(),
                    _ if start.elapsed() > self.limits.time => late(),
                    _ => {
                        let (place, why) = self.names.cause(&error.to_string());
                        AskError::Failed { place, why }
                    }
                })?,
            );
        }
        Ok(values)
    }
}

/// The whole path of a rule.
fn rule_path(package: &[String], name: &str) -> String {
    let mut path = String::from("data");
    for part in package.iter().map(String::as_str).chain([name]) {
        match is_plain(part) {
            true => path.push_str(&format!(".{part}")),
            false => path.push_str(&format!("[{}]", serde_json::Value::from(part))),
        }
    }
    path
}

/// What modules are remembered by. Parameters are not part of it, so a tenant who uses the modules of
/// others must not stop theirs.
fn hash(owner: &Owner, texts: &[&str]) -> u64 {
    let mut hasher = DefaultHasher::new();
    (owner, texts).hash(&mut hasher);
    hasher.finish()
}

fn is_endless(hash: u64) -> bool {
    let endless = ENDLESS.lock().unwrap_or_else(PoisonError::into_inner);
    endless.contains(&hash)
}

/// Whether a name is no rule's, but only that of what rules are in: `a` where there is `a.b`.
fn is_above(error: &impl std::fmt::Display) -> bool {
    error.to_string().contains("not a valid rule path")
}

fn is_plain(name: &str) -> bool {
    let mut letters = name.chars();
    let begins = letters
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    begins && letters.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_not_loaded_without_the_rules_that_describe_it() {
        let load = |owner: &Owner, text: &str| {
            let policy = Module { name: "", text };
            let limits = Limits {
                owner: owner.clone(),
                ..Limits::default()
            };
            Program::load(policy, &[], &[], limits)
        };
        let described = "package p\n__rego_metadata__ := {\"severity\": \"LOW\"}\ndeny := true";
        let owner = Owner::Tenant("described".into());
        let occupied = crate::occupy(&owner);
        let refused = load(&owner, described);
        assert!(
            matches!(refused, Err(LoadError::Unavailable(_))),
            "{refused:?}"
        );
        // One without such rules needs no evaluation.
        assert!(load(&owner, "package p\ndeny := true").is_ok());
        drop(occupied);
        let loaded = load(&owner, described).unwrap();
        assert_eq!(loaded.metadata().severity.as_deref(), Some("LOW"));
    }

    #[test]
    fn what_had_to_be_left_running_is_not_evaluated_again() {
        let load_for = |owner: &str, text: &str| {
            let policy = Module { name: "", text };
            let limits = Limits {
                owner: Owner::Tenant(owner.into()),
                ..Limits::default()
            };
            Program::load(policy, &[], &[], limits).unwrap()
        };
        let load = |text: &str| load_for("one", text);
        let ask = |program: &Program| program.ask(Value::Null, &["r"]);
        let (endless, other) = ("package p\nr := 1 # endless", "package p\nr := 1");
        let (first, second) = (load(endless), load(endless));
        assert_eq!(ask(&first), Ok(vec![1_u64.into()]));
        first.give_up();
        let late = Err(AskError::Time(Limits::default().time));
        assert_eq!(ask(&first), late);
        assert_eq!(ask(&second), Ok(vec![1_u64.into()]));
        assert_eq!(ask(&load(endless)), late);
        assert_eq!(ask(&load(other)), Ok(vec![1_u64.into()]));
        let of_another = load_for("other", endless);
        assert_eq!(ask(&of_another), Ok(vec![1_u64.into()]));
    }
}
