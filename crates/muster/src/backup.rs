//! `muster backup` and `muster restore`: a running store into a file, and a file into an empty
//! store, on either engine.

use crate::database::Proof;
use crate::role::{self, told_to_stop};
use anyhow::{Result, bail};
use clap::Args;
use muster_store::{Content, Place};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

#[derive(Args)]
pub(crate) struct Backup {
    #[command(flatten)]
    store: Where,
    /// The file to make; it must not be there yet.
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
}

#[derive(Args)]
pub(crate) struct Restore {
    /// The backup.
    #[arg(long, value_name = "FILE")]
    from: PathBuf,
    #[command(flatten)]
    store: Where,
}

/// Where the store is.
#[derive(Args)]
struct Where {
    /// The data directory of `muster up`.
    #[arg(
        long,
        value_name = "DIR",
        required_unless_present = "postgres",
        conflicts_with = "postgres"
    )]
    data: Option<PathBuf>,
    /// The database of `muster storage`: postgres://USER@HOST:PORT/DATABASE.
    #[arg(long, value_name = "URL")]
    postgres: Option<String>,
    #[command(flatten)]
    proof: Proof,
}

impl Where {
    fn place(self) -> Result<Place> {
        let url = match (self.data, self.postgres) {
            (Some(directory), _) => return Ok(Place::Directory(directory)),
            (None, Some(url)) => url,
            (None, None) => bail!("say where the store is: --data DIR or --postgres URL"),
        };
        let options = self.proof.options(&url)?;
        Ok(Place::Database(Box::new(options)))
    }
}

/// Takes a backup.
pub(crate) fn backup(command: Backup) -> Result<()> {
    let place = command.store.place()?;
    say("copying and checking; this takes a while for a large store");
    let content = run(muster_store::backup(&place, &command.to))?;
    done("backup", &command.to, content);
    Ok(())
}

/// Makes a store from a backup.
pub(crate) fn restore(command: Restore) -> Result<()> {
    let place = command.store.place()?;
    say("checking and restoring; this takes a while for a large store");
    let content = run(muster_store::restore(&command.from, &place))?;
    done("restored", &command.from, content);
    Ok(())
}

fn done(what: &str, file: &Path, content: Content) {
    eprintln!(
        "{what} {}: {} objects, {} changes, {} bytes",
        file.display(),
        content.objects,
        content.events,
        content.bytes
    );
}

/// Tells a person who is watching what goes on.
fn say(what: &str) {
    if std::io::stderr().is_terminal() {
        eprintln!("{what}");
    }
}

/// Works until it is done or told to stop.
fn run<T>(work: impl Future<Output = Result<T, muster_store::BackupError>>) -> Result<T> {
    role::run(async {
        tokio::select! {
            result = work => Ok(result?),
            stop = told_to_stop() => {
                stop?;
                bail!("stopped before it was known to be done; run it again, and if it then says that something is there already, it was done")
            }
        }
    })
}
