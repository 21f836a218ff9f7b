//! What is said beside the result, on standard error: notes, complaints, and how far it has come
//! where somebody is watching. Whether there was a complaint decides the exit code.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use muster_scan::output::layout::plain;
use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const COUNTED: &str = "{prefix:20} {wide_bar} {pos:>8} / {len:8} {per_sec:>13}";
const COUNTLESS: &str = "{prefix:20} {spinner} {pos:>8} {wide_msg}";

/// What is said beside the result.
pub(super) struct Talk {
    bar: ProgressBar,
    watched: bool,
    quiet: bool,
    incomplete: AtomicBool,
    said: Mutex<BTreeSet<String>>,
}

impl Talk {
    pub(super) fn new(quiet: bool) -> Self {
        Talk {
            bar: ProgressBar::hidden(),
            watched: !quiet && std::io::stderr().is_terminal(),
            quiet,
            incomplete: AtomicBool::new(false),
            said: Mutex::default(),
        }
    }

    /// Says something that is good to know, once.
    pub(super) fn note(&self, text: &str) {
        let is_new = {
            let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
            said.insert(text.to_owned())
        };
        if is_new && !self.quiet {
            self.say(text);
        }
    }

    /// Says what could not be done, so that the result is not all that was asked for.
    pub(super) fn trouble(&self, text: &str) {
        self.incomplete.store(true, Ordering::Relaxed);
        self.say(&format!("error: {text}"));
    }

    fn say(&self, text: &str) {
        let text = plain(text);
        self.bar.suspend(|| eprintln!("{text}"));
    }

    /// Whether something was left out because of trouble.
    pub(super) fn is_incomplete(&self) -> bool {
        self.incomplete.load(Ordering::Relaxed)
    }

    /// Begins a bar of so many steps, or of nobody knows how many.
    pub(super) fn begin(&self, what: &'static str, total: Option<usize>) {
        if !self.watched {
            return;
        }
        let template = if total.is_some() { COUNTED } else { COUNTLESS };
        let style = ProgressStyle::with_template(template)
            .unwrap_or_else(|_| ProgressStyle::default_bar())
            .progress_chars("━╸─");
        self.bar.reset();
        self.bar.set_draw_target(ProgressDrawTarget::stderr());
        self.bar.set_style(style);
        self.bar.set_prefix(what);
        self.bar.set_message("");
        self.bar.set_position(0);
        match total {
            Some(total) => self.bar.set_length(total as u64),
            None => self.bar.unset_length(),
        }
        self.bar.enable_steady_tick(Duration::from_millis(200));
    }

    /// What is being looked at.
    pub(super) fn at(&self, what: &str) {
        if self.watched {
            self.bar.set_message(plain(what));
        }
    }

    /// A step is done.
    pub(super) fn step(&self) {
        self.bar.inc(1);
    }

    /// The bar is done.
    pub(super) fn end(&self) {
        self.bar.disable_steady_tick();
        self.bar.finish_and_clear();
    }
}
