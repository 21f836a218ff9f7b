//! Where Muster is meant to answer otherwise than kube-apiserver, and why. An entry that no longer
//! holds fails the test, so the list cannot outlive its reasons.

use super::compare::Difference;

/// A difference that stands.
#[derive(Debug)]
pub(super) struct Known {
    /// The title of the case, `topic: sentence`, or its start.
    pub case: &'static str,
    /// The start of what differs (`status`, `body /message`); empty for everything in the case.
    pub what: &'static str,
    /// What kube-apiserver's answer contains; empty for anything.
    pub real: &'static str,
    /// Whether it shows on every machine. If not, its absence is no fault.
    pub everywhere: bool,
    /// Why it stands.
    pub why: &'static str,
}

impl Known {
    /// Whether this entry explains the difference.
    pub(super) fn covers(&self, difference: &Difference) -> bool {
        // The reason is for readers, but an entry without one explains nothing.
        !self.why.is_empty()
            && difference.case.starts_with(self.case)
            && difference.what.starts_with(self.what)
            && difference.answer.contains(self.real)
    }
}

/// All of them.
pub(super) const LIST: &[Known] = &[
    Known {
        case: "watch: a watch from a revision that is long gone ends with 410",
        what: "",
        real: "too old resource version",
        everywhere: true,
        why: "every kind has a clock of its own that starts at 1, and in a young store the log \
              still reaches back to it; the torture test covers 410 after compaction",
    },
    Known {
        case: "watch: ",
        what: "event ",
        real: "storage feature RequestWatchProgress is disabled",
        everywhere: false,
        why: "kube-apiserver sends no initial events on an etcd older than 3.4.31, which is what \
              Debian 12 has; with a newer one the answers are compared",
    },
];
