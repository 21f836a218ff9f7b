//! What a person sees of a demonstration: how far it has come, on standard error and only where somebody
//! watches, and then, on standard output, where to look.

use super::ready::{Expected, Seen};
use crate::up::Serving;
use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

const BEFORE: &str = "{spinner} {msg}";
const SCANNING: &str = "{spinner} {msg:44} {wide_bar} {pos:>2} / {len}";

/// What is worth a look: each with the command that shows it.
const WORTH: [(&str, &str); 5] = [
    (
        "What has to be fixed, workload by workload; the gateway is clean",
        "kubectl get workloadscanreports -A",
    ),
    (
        "Every image of the registry, whether anybody runs it or not",
        "kubectl get vulnerabilityreports -n catalog",
    ),
    (
        "How many objects keep each policy, and how many break it",
        "kubectl get clusteradmissionpolicies,clusteradmissionpolicygroups",
    ),
    (
        "What checks say about the configuration of a namespace",
        "kubectl get configauditreports -n shop",
    ),
    (
        "Three findings that are suppressed, and who says that they do no harm",
        "kubectl get workloadscanreport deployment-metrics -n platform -o yaml",
    ),
];

/// The same for Muster's own command, which asks where kubectl does.
const WHY: [&str; 2] = [
    "muster why CVE-2023-44487",
    "muster why deployment/cart -n shop",
];

pub(super) struct Show {
    begun: Instant,
    bar: ProgressBar,
}

impl Show {
    pub(super) fn begin(begun: Instant) -> Show {
        let target = match std::io::stderr().is_terminal() {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(None, target).with_style(style(BEFORE));
        bar.enable_steady_tick(Duration::from_millis(100));
        Show { begun, bar }
    }

    /// What is being done.
    pub(super) fn says(&self, what: &'static str) {
        self.bar.set_message(what);
    }

    pub(super) fn advances(&self, seen: &Seen) {
        if self.bar.length().is_none() {
            self.bar.set_style(style(SCANNING));
        }
        self.bar.set_length(seen.of as u64);
        self.bar.set_position(seen.done as u64);
        if let Some(next) = seen.missing.first() {
            self.bar.set_message(format!("waiting for {next}"));
        }
    }

    /// Says where to look.
    pub(super) fn done(
        &self,
        serving: &Serving,
        expected: &Expected,
        missing: &[String],
        is_temporary: bool,
    ) -> Result<()> {
        self.bar.finish_and_clear();
        let mut text = match missing.is_empty() {
            true => format!(
                "Scanned {} images and {} workloads and audited {} objects in {:.1} s.\n",
                expected.images,
                expected.workloads.len(),
                expected.judged,
                self.begun.elapsed().as_secs_f64()
            ),
            false => format!("Not everything is there yet: {}.\n", missing.join(", ")),
        };
        text += &format!("\nMuster serves {}\n", serving.url);
        text += "\nLook at it in a browser; the link leads in once:\n\n";
        text += &format!("  {}\n", serving.pages);
        text += &format!("\n  export KUBECONFIG={}\n", serving.kubeconfig.display());
        for (what, command) in WORTH {
            text += &format!("\n  # {what}\n  {command}\n");
        }
        text += "\n  # Who has a vulnerability, and what a workload has to upgrade\n";
        for command in WHY {
            text += &format!("  {command}\n");
        }
        text += match is_temporary {
            true => "\nStop it with Ctrl-C; nothing is left behind.\n",
            false => "\nStop it with Ctrl-C; `muster up --data` goes on with what is there.\n",
        };
        let mut out = std::io::stdout().lock();
        let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        written.context("saying where to look")
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("━╸─")
}
