//! What a program took: time, processor and memory at its peak, as the kernel counts them. A
//! program of seconds cannot be watched from outside without missing its peak, so the kernel is
//! asked when it has ended.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::process::{Command, ExitStatus, Output, Stdio};
use std::time::Duration;

/// Runs the program, waits for it, and leaves what it took in a file. Its exit code is passed on,
/// and the end by a signal as 128 and more, as shells do it.
const WAIT: &str = "
import json, os, sys, time
begun = time.monotonic()
child = os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ)
_, status, used = os.wait4(child, 0)
taken = {'wall': time.monotonic() - begun, 'processor': used.ru_utime + used.ru_stime, 'peak': used.ru_maxrss * 1024}
with open(sys.argv[1], 'w') as file:
    json.dump(taken, file)
code = os.waitstatus_to_exitcode(status)
sys.exit(code if code >= 0 else 128 - code)
";

/// What a program took.
#[derive(Clone, Debug)]
pub struct Measured {
    /// How it ended.
    pub status: ExitStatus,
    /// What it wrote to standard output.
    pub stdout: String,
    /// What it wrote to standard error.
    pub stderr: String,
    /// From its start to its end.
    pub wall: Duration,
    /// Of all processors together.
    pub processor: Duration,
    /// Bytes of memory at the peak.
    pub peak: u64,
}

/// Runs a program to its end. Needs `python3`.
pub fn measure(command: &Command) -> Result<Measured> {
    let taken = tempfile::NamedTempFile::new().context("making a file")?;
    let mut wrapped = Command::new("python3");
    wrapped
        .args(["-c", WAIT])
        .arg(taken.path())
        .arg(command.get_program())
        .args(command.get_args())
        .stdin(Stdio::null());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => wrapped.env(name, value),
            None => wrapped.env_remove(name),
        };
    }
    if let Some(directory) = command.get_current_dir() {
        wrapped.current_dir(directory);
    }
    let Output {
        status,
        stdout,
        stderr,
    } = wrapped
        .output()
        .context("cannot run python3; install it with `apt-get install python3`")?;
    let (stdout, stderr) = (text(stdout), text(stderr));
    let taken = std::fs::read(taken.path()).context("reading what was taken")?;
    ensure!(!taken.is_empty(), "{command:?} could not be run: {stderr}");
    let taken: Value = serde_json::from_slice(&taken)?;
    let seconds = |name: &str| {
        let seconds = taken[name].as_f64().context("a time is missing")?;
        Ok::<_, anyhow::Error>(Duration::from_secs_f64(seconds))
    };
    Ok(Measured {
        status,
        stdout,
        stderr,
        wall: seconds("wall")?,
        processor: seconds("processor")?,
        peak: taken["peak"].as_u64().context("the peak is missing")?,
    })
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_measured_though_it_is_over() {
        let mut command = Command::new("python3");
        command.args([
            "-c",
            "import sys; x = b'x' * 90_000_000; print(len(x)); sys.exit(7)",
        ]);
        let measured = measure(&command).unwrap();
        assert_eq!(measured.status.code(), Some(7));
        assert_eq!(measured.stdout, "90000000\n");
        assert!(measured.peak > 90_000_000, "{measured:?}");
        assert!(measured.processor > Duration::ZERO);
        assert!(measured.wall > Duration::ZERO);
    }

    #[test]
    fn a_program_that_is_not_there_is_an_error() {
        assert!(measure(&Command::new("no-such-program-anywhere")).is_err());
    }
}
