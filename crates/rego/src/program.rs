//! A policy, ready to be asked. All that can be done once is done when it is loaded; asking takes a
//! copy of the engine, which is cheap, and so needs no lock. Nothing of the host can be asked: there is
//! no clock, no chance, no network and no environment. An error of a function is an undefined value, as
//! everywhere in Rego; what a policy may take is not.

use crate::error::{AskError, LoadError, Names};
use crate::metadata::{self, Metadata};
use crate::source::{Source, Whole};
use crate::{Limits, Module, functions, library, read, rewrite, text};
use regorus::utils::limits::ExecutionTimerConfig;
use regorus::{Engine, LimitError, Value};
use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::time::Instant;

/// How many steps of the interpreter there are between two looks at the clock.
const GLANCE: u32 = 64;
/// The stack that is set aside for one part of a module, in bytes.
const STACK_EACH: usize = 8 * 1024;
/// The stack that is there anyway.
const STACK_THERE: usize = 1024 * 1024;

/// One policy with its libraries, ready to be asked.
#[derive(Debug)]
pub struct Program {
    engine: Engine,
    names: Names,
    package: String,
    path: Vec<String>,
    /// The first names of the rules in the package that are no functions: the policy's own, and all.
    rules: BTreeSet<String>,
    known: BTreeSet<String>,
    missing: BTreeSet<String>,
    metadata: Metadata,
    limits: Limits,
    stack: usize,
}

impl Program {
    /// Loads a policy. Libraries may be imported as `data.<package>`; only those that it needs are
    /// loaded with it.
    pub fn load(
        policy: Module<'_>,
        libraries: &[Module<'_>],
        limits: Limits,
    ) -> Result<Program, LoadError> {
        read::apart(|| Program::read(&policy, libraries, limits))
    }

    /// Reads a policy, on a stack that is large enough.
    fn read(
        policy: &Module<'_>,
        libraries: &[Module<'_>],
        limits: Limits,
    ) -> Result<Program, LoadError> {
        let about = metadata::block(policy)?;
        let modules = library::gather(policy, libraries)?;
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
        functions::replace(&mut engine, &prefix).map_err(|error| names.wrong(&error))?;
        let Some(own) = modules.first() else {
            return Err(names.wrong(&"there is no module"));
        };
        let path = own.package();
        let values = |rules: &mut dyn Iterator<Item = (String, bool)>| -> BTreeSet<String> {
            let names = rules.filter(|(_, is_function)| !is_function);
            names.map(|(name, _)| name).collect()
        };
        let shared = modules.iter().filter(|other| other.package() == path);
        let mut program = Program {
            engine,
            names,
            package: path.join("."),
            rules: values(&mut own.rules()),
            known: values(&mut shared.flat_map(|other| other.rules())),
            missing: source.missing().clone(),
            metadata: Metadata::default(),
            limits,
            stack: source.depth().saturating_mul(STACK_EACH),
            path,
        };
        // All that can be done once is done here.
        for rule in &program.known {
            let path = program.rule(rule);
            let compiled = program
                .engine
                .compile_with_entrypoint(&path.as_str().into());
            match compiled {
                Err(error) if is_above(&error) => {}
                Err(error) => return Err(program.names.wrong(&error)),
                Ok(_) => break,
            }
        }
        program.metadata = match about {
            Some(about) => about,
            None => metadata::rules(&program),
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
        if self.stack <= STACK_THERE {
            return self.answer(input, rules);
        }
        let unable = |why: String| AskError::Unable(why);
        std::thread::scope(|scope| {
            let builder = std::thread::Builder::new().stack_size(self.stack);
            match builder.spawn_scoped(scope, || self.answer(input, rules)) {
                Ok(thread) => thread.join().unwrap_or_else(|_| Err(unable(String::new()))),
                Err(error) => Err(unable(format!(" now: {error}"))),
            }
        })
    }

    /// Asks the rules, on this thread's stack.
    fn answer(&self, input: Value, rules: &[&str]) -> Result<Vec<Value>, AskError> {
        let start = Instant::now();
        let mut engine = self.engine.clone();
        engine.set_input(input);
        functions::begin();
        let mut values = Vec::with_capacity(rules.len());
        for rule in rules {
            if !self.known.contains(*rule) {
                values.push(Value::Undefined);
                continue;
            }
            let late = || AskError::Time(self.limits.time);
            let left = self.limits.time.checked_sub(start.elapsed());
            engine.set_execution_timer_config(ExecutionTimerConfig {
                limit: left.ok_or_else(late)?,
                check_interval: NonZeroU32::new(GLANCE).unwrap_or(NonZeroU32::MIN),
            });
            let path = self.rule(rule);
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

    /// The whole path of a rule.
    fn rule(&self, name: &str) -> String {
        let mut path = String::from("data");
        for part in self.path.iter().map(String::as_str).chain([name]) {
            match is_plain(part) {
                true => path.push_str(&format!(".{part}")),
                false => path.push_str(&format!("[{}]", serde_json::Value::from(part))),
            }
        }
        path
    }
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
