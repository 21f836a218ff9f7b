//! Progress for people: a bar for each layer and each download, on standard error, and only where
//! somebody is watching.

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::collections::HashMap;
use std::io::IsTerminal;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

const BYTES: &str = "{prefix:20} {wide_bar} {bytes:>11} / {total_bytes:11} {bytes_per_sec:>13}";
const COUNTLESS: &str = "{prefix:20} {spinner} {bytes:>11} {bytes_per_sec:>13}";

/// The bars of one command.
#[derive(Clone)]
pub(crate) struct Bars {
    drawn: MultiProgress,
    layers: Arc<Mutex<HashMap<String, ProgressBar>>>,
    download: Arc<Mutex<Option<ProgressBar>>>,
}

impl Bars {
    /// Bars, if standard error is a terminal and nobody asked for quiet.
    pub(crate) fn new(quiet: bool) -> Self {
        let watched = !quiet && std::io::stderr().is_terminal();
        let target = match watched {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        };
        Bars {
            drawn: MultiProgress::with_draw_target(target),
            layers: Arc::default(),
            download: Arc::default(),
        }
    }

    /// Says something above the bars.
    pub(crate) fn say(&self, text: &str) {
        self.drawn.suspend(|| eprintln!("{text}"));
    }

    fn bar(&self, prefix: String, total: Option<u64>) -> ProgressBar {
        let template = if total.is_some() { BYTES } else { COUNTLESS };
        let style = ProgressStyle::with_template(template)
            .unwrap_or_else(|_| ProgressStyle::default_bar())
            .progress_chars("━╸─");
        let bar = match total {
            Some(total) => ProgressBar::new(total),
            None => ProgressBar::no_length(),
        };
        let bar = self.drawn.add(bar.with_style(style).with_prefix(prefix));
        bar.enable_steady_tick(Duration::from_millis(200));
        bar
    }
}

impl muster_source::Progress for Bars {
    fn layer_started(&self, digest: &str, size: Option<u64>) {
        let digits = digest.split_once(':').map_or(digest, |(_, digits)| digits);
        let short: String = digits.chars().take(12).collect();
        let bar = self.bar(format!("layer {short}"), size);
        let mut layers = self.layers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(other) = layers.insert(digest.to_owned(), bar) {
            other.finish_and_clear();
        }
    }

    fn layer_advanced(&self, digest: &str, bytes: u64) {
        let layers = self.layers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bar) = layers.get(digest) {
            bar.inc(bytes);
        }
    }

    fn layer_done(&self, digest: &str, _cached: bool) {
        let mut layers = self.layers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bar) = layers.remove(digest) {
            bar.finish_and_clear();
        }
    }
}

impl muster_advisories::Progress for Bars {
    fn begins(&self, what: &str, total: Option<u64>) {
        let bar = self.bar(what.to_owned(), total);
        let mut download = self.download.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(other) = download.replace(bar) {
            other.finish_and_clear();
        }
    }

    fn advances(&self, bytes: u64) {
        let download = self.download.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bar) = &*download {
            bar.inc(bytes);
        }
    }

    fn ends(&self) {
        let mut download = self.download.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bar) = download.take() {
            bar.finish_and_clear();
        }
    }
}
