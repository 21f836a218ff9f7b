//! Waiting for a condition with a deadline: the only place where the test kit sleeps.

use anyhow::{Context, Result, bail};
use std::thread;
use std::time::{Duration, Instant};

/// The pause between two looks at a condition.
const PAUSE: Duration = Duration::from_millis(20);

/// Looks again and again until `look` returns a value. An error from `look` ends the wait at once;
/// `Ok(None)` means "not yet".
pub fn until<T>(
    what: &str,
    limit: Duration,
    mut look: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(value) = look().with_context(|| format!("while waiting for {what}"))? {
            return Ok(value);
        }
        if Instant::now() >= deadline {
            bail!("{what} did not happen within {limit:?}");
        }
        thread::sleep(PAUSE);
    }
}

/// As [`until`], for conditions that are themselves asynchronous.
pub async fn until_async<T, F>(
    what: &str,
    limit: Duration,
    mut look: impl FnMut() -> F,
) -> Result<T>
where
    F: Future<Output = Result<Option<T>>>,
{
    let deadline = Instant::now() + limit;
    loop {
        if let Some(value) = look()
            .await
            .with_context(|| format!("while waiting for {what}"))?
        {
            return Ok(value);
        }
        if Instant::now() >= deadline {
            bail!("{what} did not happen within {limit:?}");
        }
        tokio::time::sleep(PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_that_comes_true_ends_the_wait() -> Result<()> {
        let mut looks = 0;
        let value = until("the third look", Duration::from_secs(5), || {
            looks += 1;
            Ok((looks == 3).then_some(looks))
        })?;
        assert_eq!(value, 3);
        Ok(())
    }

    #[test]
    fn a_condition_that_never_comes_true_is_named_in_the_error() {
        let error = until::<()>("the flood", Duration::from_millis(1), || Ok(None))
            .expect_err("nothing came true");
        assert!(error.to_string().contains("the flood"), "{error}");
    }
}
