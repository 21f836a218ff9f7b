//! What may be wrong, on one line each. A message names the module and the place in it, and is the
//! same wherever it happens: reports are compared by such texts.

use std::fmt;
use std::time::Duration;

/// Why a policy cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// A module is too long, or too deep, to be read at all.
    #[error("{}{why}", Prefix(module))]
    Unreadable {
        /// The module.
        module: String,
        /// What is too much about it.
        why: String,
    },
    /// Something in a module is wrong.
    #[error("{place}{why}")]
    Wrong {
        /// Where.
        place: Place,
        /// What.
        why: String,
    },
    /// The policy was not read, or a rule that describes it was not evaluated, for a reason that is not the
    /// policy's: it may load when it is tried again.
    #[error("cannot be loaded now: {0}")]
    Unavailable(String),
    /// No library has what a module imports and uses.
    #[error("{}`{path}` cannot be imported: {why}", Prefix(module))]
    Import {
        /// The module.
        module: String,
        /// What it imports, from `data` on.
        path: String,
        /// Why there is none.
        why: &'static str,
    },
}

/// Why a policy did not answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// The time is over.
    #[error("took longer than {0:?}")]
    Time(Duration),
    /// It would have made more than it may.
    #[error("needs more than {0} MiB")]
    Memory(usize),
    /// Something went wrong in a module.
    #[error("{place}{why}")]
    Failed {
        /// Where.
        place: Place,
        /// What.
        why: String,
    },
    /// It was not evaluated, for a reason that is not the policy's: it may answer when it is asked again.
    #[error("cannot be evaluated now: {0}")]
    Unavailable(String),
}

/// A place in a module; all of it may be unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The name of the module, or nothing if it has none.
    pub module: String,
    /// The line and the column, both from 1.
    pub position: Option<(u32, u32)>,
}

impl Place {
    /// A whole module.
    pub(crate) fn module(name: &str) -> Place {
        Place {
            module: name.to_owned(),
            position: None,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}", Prefix(&self.module))?;
        match self.position {
            Some((line, column)) => write!(to, "line {line}, column {column}: "),
            None => Ok(()),
        }
    }
}

/// The name of a module before what is said of it, if it has one.
struct Prefix<'p>(&'p str);

impl fmt::Display for Prefix<'_> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            "" => Ok(()),
            name => write!(to, "{name}: "),
        }
    }
}

/// The names of the modules of an engine, by the files that the engine knows them as. Names come from
/// outside and may look like anything; these files do not.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names(Vec<String>);

impl Names {
    /// Adds a module and tells the file that it is.
    pub(crate) fn add(&mut self, name: &str) -> String {
        self.0.push(name.replace(char::is_control, " "));
        format!("module-{}.rego", self.0.len() - 1)
    }

    /// What a module is called, by its number.
    pub(crate) fn name(&self, number: usize) -> &str {
        self.0.get(number).map(String::as_str).unwrap_or_default()
    }

    /// What is wrong, by what the engine said of it. It shows the place on several lines, and says
    /// what is wrong on the last.
    pub(crate) fn cause(&self, told: &str) -> (Place, String) {
        let lines: Vec<&str> = told.lines().map(str::trim).collect();
        let place = lines.iter().find_map(|line| self.place(line));
        let last = lines.iter().rev().find(|line| !line.is_empty());
        let last = last.copied().unwrap_or_default();
        let last = match last.split_once("error: ") {
            Some((before, last)) if before.is_empty() || before.contains(".rego:") => last,
            _ => last,
        };
        (place.unwrap_or_default(), last.to_owned())
    }

    /// What is wrong with a module.
    pub(crate) fn wrong(&self, error: &impl fmt::Display) -> LoadError {
        let (mut place, why) = self.cause(&error.to_string());
        if let (true, [only]) = (place.module.is_empty(), self.0.as_slice()) {
            place.module = only.clone();
        }
        LoadError::Wrong { place, why }
    }

    fn place(&self, line: &str) -> Option<Place> {
        let (_, rest) = line.split_once("module-")?;
        let (number, rest) = rest.split_once(".rego")?;
        let module = self.0.get(number.parse::<usize>().ok()?)?;
        let mut parts = rest.split(':').skip(1);
        let mut next = || {
            let digits = parts.next()?.trim();
            let end = digits.find(|c: char| !c.is_ascii_digit());
            digits.get(..end.unwrap_or(digits.len()))?.parse().ok()
        };
        Some(Place {
            module: module.clone(),
            position: Some((next()?, next()?)),
        })
    }
}
