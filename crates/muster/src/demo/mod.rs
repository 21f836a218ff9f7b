//! `muster demo`: everything to look at, in one command and with nothing but this machine. It is `muster
//! up` on a directory of its own, with a registry beside it, data that come along, and the objects of a small
//! company. Nothing outside of this machine is asked, and nothing is left behind.

mod apply;
mod ready;
mod seed;
mod show;

use crate::role;
use crate::up::{self, Serving, Up};
use anyhow::{Context, Result, ensure};
use clap::Args;
use muster_demo::images;
use muster_demo::site::Site;
use ready::Expected;
use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Instant;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

#[derive(Args)]
pub(crate) struct Demo {
    /// Where everything is kept. If not given, in a temporary directory that is removed at the end.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// The address to serve on; port 0 chooses a free one.
    #[arg(long, env = "MUSTER_LISTEN", default_value = "127.0.0.1:7443")]
    listen: SocketAddr,
    /// End as soon as everything is scanned and audited: with 0, or with 1 if that does not come about.
    #[arg(long)]
    until_ready: bool,
}

/// Where everything is kept.
enum Place {
    Given(PathBuf),
    Temporary(TempDir),
}

impl Place {
    fn of(given: Option<PathBuf>) -> Result<Place> {
        if let Some(path) = given {
            // The registry of the last time is gone, and what was scanned there with it.
            let is_used = std::fs::read_dir(&path).is_ok_and(|mut found| found.next().is_some());
            ensure!(
                !is_used,
                "{path} is not empty, and a demonstration begins anew; name another directory with \
                 `--data DIR`, or go on with what is there by `muster up --data {path}`",
                path = path.display()
            );
            return Ok(Place::Given(path));
        }
        let made = tempfile::Builder::new().prefix("muster-demo-").tempdir();
        Ok(Place::Temporary(made.context("making a directory")?))
    }

    fn path(&self) -> &Path {
        match self {
            Place::Given(path) => path,
            Place::Temporary(directory) => directory.path(),
        }
    }

    /// Leaves nothing behind that was only for the time being.
    fn leave(self) -> Result<()> {
        match self {
            Place::Given(_) => Ok(()),
            Place::Temporary(directory) => {
                let path = directory.path().to_owned();
                let removed = directory.close();
                removed.with_context(|| format!("removing {}", path.display()))
            }
        }
    }
}

pub(crate) fn run(command: Demo) -> Result<()> {
    let begun = Instant::now();
    let demonstrated = role::run(async {
        // Whoever stops it while it is about to begin leaves nothing behind either.
        let end = role::end()?;
        let place = Place::of(command.data.clone())?;
        let outcome = demonstrate(&command, place.path(), begun, end).await;
        Ok((place, outcome))
    });
    // Only now does nobody work on it any more.
    let (place, outcome) = demonstrated?;
    let left = place.leave();
    outcome.and(left)
}

async fn demonstrate(
    command: &Demo,
    data: &Path,
    begun: Instant,
    end: impl Future<Output = ()>,
) -> Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
    let listener = listener.context("listening for those who ask the registry")?;
    let address = listener.local_addr().context("asking for the port")?;
    let site = Site::new(images::all()?, address)?;
    let stop = CancellationToken::new();
    let asked = tokio::spawn(site.clone().serve(listener, stop.clone()));
    let show = show::Show::begin(begun);
    let outcome = async {
        show.says("preparing vulnerability data");
        seed::seed(&data.join("vulnerabilities"), &site).await?;
        let up = Up::told(offline(data, command.listen))?;
        up::serve(up, |serving| accompany(serving, &site, &show, command, end)).await
    }
    .await;
    stop.cancel();
    asked.await.context("serving the registry")?;
    outcome
}

/// How `up` is told to ask nobody.
fn offline(data: &Path, listen: SocketAddr) -> Vec<OsString> {
    let listen = listen.to_string();
    let rest = ["--listen", &listen, "--db-update", "off"];
    let mut arguments = vec!["--data".into(), data.into()];
    arguments.extend(rest.map(OsString::from));
    arguments
}

/// Fills the server, waits until it has seen everything, says where to look, and stays.
async fn accompany(
    serving: Serving,
    site: &Site,
    show: &show::Show,
    command: &Demo,
    end: impl Future<Output = ()>,
) -> Result<()> {
    let work = async {
        show.says("applying what there is to look at");
        let objects = apply::all(&serving.client, site).await?;
        let expected = Expected::of(&objects, site);
        let missing = ready::wait(&serving.client, &expected, |seen| show.advances(seen)).await?;
        show.done(&serving, &expected, &missing, command.data.is_none())?;
        if !command.until_ready {
            return std::future::pending().await;
        }
        ensure!(
            missing.is_empty(),
            "not everything is there: {}",
            missing.join(", ")
        );
        Ok(())
    };
    tokio::select! {
        () = end => Ok(()),
        outcome = work => outcome,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn up_is_told_to_ask_nobody_whatever_the_environment_says() {
        let arguments = offline(Path::new("/d"), "127.0.0.1:0".parse().expect("an address"));
        assert!(Up::told(arguments).is_ok_and(|up| !up.fetches()));
        assert!(Up::told(Vec::new()).is_ok_and(|up| up.fetches()));
    }

    #[test]
    fn a_directory_that_is_used_is_left_alone() {
        let directory = tempfile::tempdir().expect("a directory");
        let given = || Some(directory.path().to_owned());
        assert!(Place::of(given()).is_ok());
        std::fs::write(directory.path().join("state.db"), "x").expect("a file");
        let refused = Place::of(given()).err().map(|error| error.to_string());
        assert!(refused.is_some_and(|why| why.contains("muster up --data")));
        let new = directory.path().join("new");
        assert!(Place::of(Some(new)).is_ok());
    }
}
