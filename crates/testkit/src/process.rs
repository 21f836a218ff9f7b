//! A server as a child process: its output goes to a file, it ends with the value that holds it,
//! and it ends with the test process however that one dies.

use anyhow::{Context, Result, ensure};
use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// How much of a log an error message shows.
const TAIL_LINES: usize = 40;

/// A running child process.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    /// Kills the child when this process is gone. Its standard input is a pipe that only we hold,
    /// so it reads the end of it even if we are killed with -9 and no destructor runs.
    guardian: Child,
    log: PathBuf,
}

/// What the guardian does when we are gone: a signal, and, once the process has ended (or a few
/// seconds later), the removal of a directory that no destructor of ours removes any more.
pub(crate) struct Farewell<'a> {
    pub(crate) signal: &'static str,
    pub(crate) remove: Option<&'a Path>,
}

impl Farewell<'_> {
    const KILL: Farewell<'static> = Farewell {
        signal: "KILL",
        remove: None,
    };
}

const GUARDIAN: &str = r#"read -r _
kill -s "$2" "$1" 2>/dev/null
[ -n "$3" ] || exit 0
for _ in 1 2 3 4 5 6 7 8 9 10; do
    kill -0 "$1" 2>/dev/null || break
    sleep 0.5
done
rm -rf -- "$3""#;

/// Where a role of Muster says how it is.
const HEALTH: &str = "MUSTER_HEALTH_LISTEN";

impl Process {
    /// Starts `command` with its output appended to `log`.
    pub fn start(name: &str, command: &mut Command, log: &Path) -> Result<Process> {
        Process::guarded(name, command, log, &Farewell::KILL)
    }

    /// As [`Process::start`], with another end should this process be gone.
    pub(crate) fn guarded(
        name: &str,
        command: &mut Command,
        log: &Path,
        farewell: &Farewell<'_>,
    ) -> Result<Process> {
        let output = open_log(log)?;
        // Roles of Muster beside one another each take a port of their own.
        let is_said = |name: &str| command.get_envs().any(|(known, _)| known == name);
        if !is_said(HEALTH) {
            command.env(HEALTH, "127.0.0.1:0");
        }
        let child = command
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .with_context(|| format!("cannot start {name} ({:?})", command.get_program()))?;
        let guardian = Command::new("sh")
            .args(["-c", GUARDIAN, "guardian"])
            .arg(child.id().to_string())
            .arg(farewell.signal)
            .args(farewell.remove)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start the guardian of {name}"))?;
        Ok(Process {
            name: name.into(),
            child,
            guardian,
            log: log.into(),
        })
    }

    /// What the process is called in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The process number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The file with everything the process has written.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// The exit status, once the process has ended.
    pub fn exit_status(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// Ends the process with SIGKILL and waits until it is gone.
    pub fn kill9(&mut self) -> Result<ExitStatus> {
        self.child
            .kill()
            .with_context(|| format!("cannot kill {}", self.name))?;
        Ok(self.child.wait()?)
    }

    /// Asks the process to end with SIGTERM and waits for it.
    pub fn terminate(&mut self, limit: Duration) -> Result<ExitStatus> {
        self.signal("TERM")?;
        let name = self.name.clone();
        crate::wait::until(&format!("the end of {name} after SIGTERM"), limit, || {
            Ok(self.child.try_wait()?)
        })
    }

    /// Sends a signal by name (`TERM`, `STOP`, `CONT`, ...).
    pub fn signal(&mut self, signal: &str) -> Result<()> {
        // A process that has been waited for no longer owns its number.
        ensure!(
            self.child.try_wait()?.is_none(),
            "{} has already ended",
            self.name
        );
        let status = Command::new("sh")
            .args(["-c", "kill -s \"$1\" \"$2\"", "kill", signal])
            .arg(self.child.id().to_string())
            .status()?;
        ensure!(
            status.success(),
            "kill -s {signal} failed for {}",
            self.name
        );
        Ok(())
    }

    /// The resident memory in bytes, from `/proc`.
    pub fn resident_memory(&self) -> Result<u64> {
        self.memory("VmRSS:")
    }

    /// The most that the resident memory ever was, in bytes.
    pub fn peak_memory(&self) -> Result<u64> {
        self.memory("VmHWM:")
    }

    fn memory(&self, name: &str) -> Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let kibibytes: u64 = status
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .and_then(|rest| rest.split_whitespace().next())
            .with_context(|| format!("no {name} in the process status"))?
            .parse()?;
        Ok(kibibytes * 1024)
    }

    /// The processor time the process has used so far, in seconds, from `/proc`.
    pub fn processor_seconds(&self) -> Result<f64> {
        /// Linux reports in hundredths, whatever its clock does.
        const TICKS: f64 = 100.0;
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // The command's name stands in parentheses and may hold anything.
        let (_, rest) = stat
            .rsplit_once(')')
            .context("no name in the process state")?;
        let ticks = |at: usize| -> Result<f64> {
            let field = rest.split_whitespace().nth(at);
            Ok(field.context("the process state is cut short")?.parse()?)
        };
        Ok((ticks(11)? + ticks(12)?) / TICKS)
    }

    /// The last lines the process has written.
    pub fn log_tail(&self) -> String {
        match fs::read(&self.log) {
            Err(error) => format!("(no log: {error})"),
            Ok(bytes) => {
                let text = String::from_utf8_lossy(&bytes);
                let lines: Vec<&str> = text.lines().collect();
                lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The guardian goes first: it must not fire at a number that is free again.
        let _ = self.guardian.kill();
        let _ = self.guardian.wait();
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn open_log(log: &Path) -> Result<File> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(log)
        .with_context(|| format!("cannot write {}", log.display()))
}

/// A directory for one server's files, removed at the end unless the test is failing: then it
/// stays, and its path is printed, so that the logs can be read.
#[derive(Debug)]
pub struct Directory {
    inner: Option<tempfile::TempDir>,
}

impl Directory {
    /// A fresh directory whose name starts with `prefix`.
    pub fn new(prefix: &str) -> Result<Directory> {
        let inner = tempfile::Builder::new()
            .prefix(&format!("muster-{prefix}-"))
            .tempdir()?;
        Ok(Directory { inner: Some(inner) })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.inner
            .as_ref()
            .map_or(Path::new(""), |inner| inner.path())
    }

    /// A file or directory in it.
    pub fn join(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if std::thread::panicking()
            && let Some(inner) = self.inner.take()
        {
            eprintln!("kept for a look: {}", inner.keep().display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeper(directory: &Directory) -> Result<Process> {
        Process::start(
            "sleeper",
            Command::new("sleep").arg("60"),
            &directory.join("log"),
        )
    }

    #[test]
    fn a_dropped_process_is_gone() -> Result<()> {
        let directory = Directory::new("process")?;
        let process = sleeper(&directory)?;
        let status = PathBuf::from(format!("/proc/{}", process.id()));
        assert!(status.exists());
        drop(process);
        assert!(!status.exists());
        Ok(())
    }

    #[test]
    fn a_terminated_process_reports_its_end() -> Result<()> {
        let directory = Directory::new("process")?;
        let mut process = sleeper(&directory)?;
        let status = process.terminate(Duration::from_secs(5))?;
        assert!(!status.success());
        assert!(
            process.signal("TERM").is_err(),
            "its number may belong to another by now"
        );
        Ok(())
    }
}
