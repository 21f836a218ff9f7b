//! Updates in a process of their own that dies, without a word, at one step after the other.

use crate::support::*;
use anyhow::Result;
use muster_advisories::{DataDirectory, Error, Progress};
use muster_testkit::registry::Registry;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

const DIRECTORY: &str = "MUSTER_TEST_DIRECTORY";
const HOST: &str = "MUSTER_TEST_HOST";
pub const STEPS: &str = "MUSTER_TEST_STEPS";

/// Dies at a step.
pub struct Doomed {
    steps: AtomicUsize,
}

impl Doomed {
    pub fn of_environment() -> Result<Self> {
        Ok(Doomed {
            steps: AtomicUsize::new(std::env::var(STEPS)?.parse()?),
        })
    }

    fn step(&self) {
        if self.steps.fetch_sub(1, Ordering::Relaxed) == 0 {
            // No destructor runs, nothing is flushed.
            let pid = std::process::id().to_string();
            let _ = Command::new("kill").args(["-9", &pid]).status();
            std::process::abort();
        }
    }
}

impl Progress for Doomed {
    fn begins(&self, _: &str, _: Option<u64>) {
        self.step();
    }
    fn advances(&self, _: u64) {
        self.step();
    }
    fn ends(&self) {
        self.step();
    }
}

/// The process that is killed; as a test of its own it has nothing to do.
#[tokio::test(flavor = "multi_thread")]
async fn the_process_that_is_killed() -> Result<()> {
    let Ok(path) = std::env::var(DIRECTORY) else {
        return Ok(());
    };
    let doomed = Doomed::of_environment()?;
    let directory = DataDirectory::new(path.into());
    directory
        .update(&from(&[&std::env::var(HOST)?]), &doomed)
        .await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_update_leaves_what_was_there_and_is_taken_up() -> Result<()> {
    let registry = Registry::start()?;
    push(&registry, "2", &[(LAYER, &archive("1.0"))]).await?;
    let (_place, directory) = directory();
    let mut before = None;
    for round in ["1.0", "2.0"] {
        push(&registry, "2", &[(LAYER, &archive(round))]).await?;
        let mut deaths = 0;
        loop {
            let status = Command::new(std::env::current_exe()?)
                .args(["--exact", "killed::the_process_that_is_killed"])
                .env(DIRECTORY, directory.path())
                .env(HOST, registry.host())
                .env(STEPS, deaths.to_string())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()?;
            if status.success() {
                break;
            }
            deaths += 1;
            assert!(deaths < 200, "it never ends");
            match (directory.open(), before) {
                (Err(Error::Empty(_)), None) => {}
                (opened, _) => {
                    let found = fixed(&*opened?.database);
                    assert!(Some(found.as_str()) == before || found == round, "{found}");
                }
            }
        }
        assert!(deaths >= 4, "{deaths}");
        assert_eq!(fixed_in(&directory), round);
        before = Some(round);
    }
    assert_eq!(files(directory.path()), ["metadata.json", "trivy.db"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn states_between_two_steps_do_no_harm() -> Result<()> {
    let registry = Registry::start()?;
    push(&registry, "2", &[(LAYER, &archive("1.0"))]).await?;
    let (_place, directory) = directory();
    directory.update(&from(&[&registry.host()]), &Deaf).await?;
    let whole = std::fs::read(directory.path().join("trivy.db"))?;
    // Killed while writing the file beside: it is there, half or whole, and nobody minds.
    for length in [0, 1, whole.len() / 2, whole.len()] {
        let name = format!("trivy.db-{length:016x}.unfinished");
        std::fs::write(directory.path().join(name), &whole[..length])?;
    }
    // Killed between the database and the file for others beside it.
    std::fs::write(directory.path().join("metadata.json"), "{}")?;
    assert_eq!(fixed_in(&directory), "1.0");
    push(&registry, "2", &[(LAYER, &archive("2.0"))]).await?;
    directory.update(&from(&[&registry.host()]), &Deaf).await?;
    assert_eq!(fixed_in(&directory), "2.0");
    // What was abandoned long ago is swept away.
    for name in files(directory.path()) {
        if name.ends_with(".unfinished") {
            let file = std::fs::File::open(directory.path().join(name))?;
            file.set_modified(std::time::SystemTime::UNIX_EPOCH)?;
        }
    }
    directory.update(&from(&[&registry.host()]), &Deaf).await?;
    assert_eq!(files(directory.path()), ["metadata.json", "trivy.db"]);
    // A database that is damaged in its place is fetched anew.
    std::fs::write(directory.path().join("trivy.db"), &whole[whole.len() / 2..])?;
    assert!(directory.open().is_err());
    directory.update(&from(&[&registry.host()]), &Deaf).await?;
    assert_eq!(fixed_in(&directory), "2.0");
    Ok(())
}
