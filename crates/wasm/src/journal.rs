//! What a module writes for people: to its console, and to its standard error. It is kept as long as it
//! is short, told once when the call is over, and the rest forgotten without the module noticing.

/// The most that is kept of one call, in bytes.
const KEPT: usize = 16 << 10;
/// The most that is quoted in an error, in characters.
const QUOTED: usize = 512;

/// What one call wrote.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    written: Vec<u8>,
}

impl Journal {
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        let room = KEPT.saturating_sub(self.written.len());
        self.written.extend(bytes.iter().take(room));
    }

    pub(crate) fn write_line(&mut self, bytes: &[u8]) {
        self.write(bytes);
        self.write(b"\n");
    }

    /// How a crash was explained, if it was: the first line, and the next one if that one announces
    /// it. What follows is a backtrace in most languages.
    pub(crate) fn last_words(&self) -> Option<String> {
        let text = String::from_utf8_lossy(&self.written);
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let mut words = lines.next()?.to_owned();
        if words.ends_with(':')
            && let Some(next) = lines.next()
        {
            words = format!("{words} {next}");
        }
        Some(words.chars().take(QUOTED).collect())
    }

    /// Tells it to whoever follows the log.
    pub(crate) fn tell(&self, operation: &str) {
        if !self.written.is_empty() {
            let written = String::from_utf8_lossy(&self.written);
            tracing::debug!(operation, written = written.trim(), "a policy wrote");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_words_are_the_explanation_without_the_backtrace() {
        for (written, expected) in [
            ("", None),
            ("\n \n", None),
            (
                "panic: no\n\ngoroutine 1 [running]:\n\t0x1",
                Some("panic: no"),
            ),
            (
                "\nthread 'main' panicked at a.rs:1:2:\nno\nnote: run with",
                Some("thread 'main' panicked at a.rs:1:2: no"),
            ),
            ("only:", Some("only:")),
        ] {
            let mut journal = Journal::default();
            journal.write(written.as_bytes());
            assert_eq!(journal.last_words().as_deref(), expected, "{written:?}");
        }
    }

    #[test]
    fn only_the_beginning_is_kept() {
        let mut journal = Journal::default();
        for _ in 0..1000 {
            journal.write_line(&[b'a'; 1000]);
        }
        assert_eq!(journal.written.len(), KEPT);
    }
}
