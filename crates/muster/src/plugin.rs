//! `kubectl muster`: kubectl runs the program `kubectl-muster` of the PATH as its command `muster`, and
//! asks `kubectl_complete-muster` how a line may go on. Links with these names to this binary are all
//! that is needed: what it is depends on what it is called. As a plugin it asks the server that kubectl
//! asks, never one that happens to run on this machine.

use clap::builder::{PossibleValue, Resettable};
use clap::{Arg, Command};
use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;

/// Commands that are processes of a cluster; the plugin has them, and does not praise them.
const ROLES: [&str; 6] = ["up", "storage", "operator", "worker", "backup", "restore"];
/// How kubectl is told that files may be named here too, and that none may.
const FILES: &str = ":0";
const NO_FILES: &str = ":4";

/// What this process was started as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Called {
    Muster,
    Plugin,
    Completion,
}

impl Called {
    /// What a program of that name is.
    fn by(program: &OsStr) -> Self {
        let name = Path::new(program).file_name().unwrap_or_default();
        let name = name.to_string_lossy();
        match name.strip_suffix(".exe").unwrap_or(&name) {
            "kubectl-muster" => Called::Plugin,
            "kubectl_complete-muster" => Called::Completion,
            _ => Called::Muster,
        }
    }

    /// What this process is.
    pub(crate) fn now() -> Self {
        let program = std::env::args_os().next().unwrap_or_default();
        Called::by(&program)
    }

    /// The command line, as it is spoken of under this name.
    pub(crate) fn name(self, command: Command) -> Command {
        match self {
            Called::Muster => command,
            Called::Plugin | Called::Completion => {
                let command = command
                    .bin_name("kubectl muster")
                    .display_name("kubectl-muster")
                    // It speaks of a binary of another name.
                    .after_help(Resettable::Reset);
                let hide = |command: Command, role: &&str| {
                    command.mut_subcommand(role, |role| role.hide(true))
                };
                ROLES.iter().fold(command, hide)
            }
        }
    }
}

/// Answers kubectl, which asks how a line may go on. The last word is the one that is being written.
pub(crate) fn complete(
    command: Command,
    words: &[String],
    out: &mut dyn Write,
) -> std::io::Result<()> {
    let (choices, directive) = choices(command, words);
    for choice in choices {
        writeln!(out, "{choice}")?;
    }
    writeln!(out, "{directive}")
}

/// The words that may come next, each with what it is about, and whether a file may be meant.
fn choices(mut command: Command, words: &[String]) -> (Vec<String>, &'static str) {
    // Only a built command knows its global flags and `help`.
    command.build();
    let (last, before) = match words.split_last() {
        Some((last, before)) => (last.as_str(), before),
        None => ("", &[][..]),
    };
    let mut at = &command;
    let mut value_of: Option<&Arg> = None;
    for word in before {
        if value_of.take().is_some() {
            continue;
        }
        match at.find_subcommand(word) {
            Some(below) => at = below,
            None => value_of = flag(at, word),
        }
    }
    if let Some(argument) = value_of {
        return values(argument, last);
    }
    if last.starts_with('-') {
        let flags = at
            .get_arguments()
            .filter(|argument| !argument.is_hide_set());
        let flags = flags.filter_map(|argument| {
            let long = format!("--{}", argument.get_long()?);
            let about = argument
                .get_help()
                .map(ToString::to_string)
                .unwrap_or_default();
            long.starts_with(last).then(|| described(&long, &about))
        });
        return (flags.collect(), NO_FILES);
    }
    let below = at.get_subcommands().filter(|below| !below.is_hide_set());
    let below = below.filter(|below| below.get_name().starts_with(last));
    let below: Vec<String> = below
        .map(|below| {
            let about = below
                .get_about()
                .map(ToString::to_string)
                .unwrap_or_default();
            described(below.get_name(), &about)
        })
        .collect();
    let directive = if at.has_subcommands() {
        NO_FILES
    } else {
        FILES
    };
    (below, directive)
}

/// The flag of that word, if it wants a value.
fn flag<'a>(command: &'a Command, word: &str) -> Option<&'a Arg> {
    let named = |argument: &&Arg| {
        let long = argument
            .get_long()
            .is_some_and(|long| word.strip_prefix("--") == Some(long));
        let short = argument
            .get_short()
            .is_some_and(|short| word == format!("-{short}"));
        long || short
    };
    let found = command.get_arguments().find(named)?;
    found.get_action().takes_values().then_some(found)
}

fn values(argument: &Arg, last: &str) -> (Vec<String>, &'static str) {
    let possible = argument.get_possible_values();
    let directive = if possible.is_empty() { FILES } else { NO_FILES };
    let shown = |value: &PossibleValue| {
        let about = value
            .get_help()
            .map(ToString::to_string)
            .unwrap_or_default();
        let fits = value.get_name().starts_with(last) && !value.is_hide_set();
        fits.then(|| described(value.get_name(), &about))
    };
    (possible.iter().filter_map(shown).collect(), directive)
}

/// A choice, and its first line of explanation, as kubectl takes it.
fn described(choice: &str, about: &str) -> String {
    match about.lines().next().map(str::trim) {
        Some(about) if !about.is_empty() => format!("{choice}\t{about}"),
        _ => choice.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_name_decides_what_it_is() {
        for (program, called) in [
            ("/usr/local/bin/muster", Called::Muster),
            ("kubectl-muster", Called::Plugin),
            ("C:/bin/kubectl-muster.exe", Called::Plugin),
            ("/home/me/bin/kubectl_complete-muster", Called::Completion),
            ("kubectl", Called::Muster),
            ("", Called::Muster),
        ] {
            assert_eq!(Called::by(OsStr::new(program)), called, "{program}");
        }
    }

    #[test]
    fn a_plugin_speaks_of_itself_as_kubectl_does() {
        let mut command = Called::Plugin.name(crate::Arguments::command());
        let help = command.render_long_help().to_string();
        assert!(help.contains("kubectl muster"), "{help}");
        assert!(
            help.contains("\n  why ") && !help.contains("\n  storage "),
            "{help}"
        );
    }

    #[test]
    fn a_line_may_go_on_with_what_is_there() {
        for (line, expected, directive) in [
            ("wh", &["why"][..], NO_FILES),
            ("", &["scan", "sbom", "why", "audit"], NO_FILES),
            ("audit --fail", &["--fail-on"], NO_FILES),
            ("scan --lo", &["--log"], NO_FILES),
            ("audit -o ", &["table", "json", "yaml", "sarif"], NO_FILES),
            ("audit --output js", &["json"], NO_FILES),
            ("audit -f ", &[], FILES),
            ("db im", &["import"], NO_FILES),
            ("no-such --thing ", &["scan"], NO_FILES),
        ] {
            let words: Vec<String> = line.split(' ').map(Into::into).collect();
            let command = Called::Completion.name(crate::Arguments::command());
            let (choices, told) = choices(command, &words);
            assert_eq!(told, directive, "{line:?}");
            let names: Vec<&str> = choices
                .iter()
                .filter_map(|choice| choice.split('\t').next())
                .collect();
            for name in expected {
                assert!(names.contains(name), "{line:?}: {names:?}");
            }
            if expected.is_empty() {
                assert!(names.is_empty(), "{line:?}: {names:?}");
            }
        }
        let hidden = choices(
            Called::Completion.name(crate::Arguments::command()),
            &["st".into()],
        );
        assert!(hidden.0.is_empty(), "{hidden:?}");
    }
}
