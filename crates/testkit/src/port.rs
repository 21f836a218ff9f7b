//! Private ports. The kernel chooses a free one; between choosing and use another process may
//! take it, so whoever starts a server on such a port is ready to choose again.

use crate::process::Process;
use anyhow::{Context, Result};
use std::net::TcpListener;

/// How often a server is started again because its port was taken meanwhile.
const ATTEMPTS: usize = 5;

/// A port of the loopback address that was free a moment ago.
pub fn free() -> Result<u16> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).context("no free port on 127.0.0.1")?;
    Ok(listener.local_addr()?.port())
}

/// Calls `start` until it succeeds or fails for another reason than a port in use.
pub(crate) fn retrying<T>(mut start: impl FnMut() -> Result<T>) -> Result<T> {
    for _ in 1..ATTEMPTS {
        match start() {
            Err(error) if is_collision(&error) => continue,
            other => return other,
        }
    }
    start()
}

/// An early exit of `process` as an error. The caller adds the end of the log, where [`retrying`]
/// finds the reason.
pub(crate) fn early_exit(process: &mut Process) -> Result<()> {
    match process.exit_status()? {
        None => Ok(()),
        Some(status) => {
            anyhow::bail!("{} ended with {status}", process.name())
        }
    }
}

fn is_collision(error: &anyhow::Error) -> bool {
    let text = format!("{error:#}");
    text.contains("address already in use") || text.contains("Address already in use")
}
