//! `muster completions`: the script with which a shell completes what is typed.

use anyhow::Result;
use clap::{Args, Command};
use clap_complete::Shell;
use std::io::Write;

#[derive(Args)]
pub(crate) struct Completions {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(command: &Completions, mut line: Command) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(command.shell, &mut line, "muster", &mut script);
    std::io::stdout().write_all(&script)?;
    Ok(())
}
