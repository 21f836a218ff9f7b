//! When the exit code says that it was not good enough.

use super::configuration::CheckResult;
use super::judge::{Audited, Bench};
use clap::ValueEnum;
use muster_policy::Outcome;

/// From where on it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(super) enum Threshold {
    /// Any policy or check that could not say.
    Error,
    /// Any policy that refuses and any check that fails, or could not say.
    Fail,
    /// The same, of policies and checks of this severity or a worse one.
    Info,
    Low,
    Medium,
    High,
    Critical,
}

impl Threshold {
    fn of(severity: &str) -> Option<Threshold> {
        Some(match severity {
            "info" => Threshold::Info,
            "low" => Threshold::Low,
            "medium" => Threshold::Medium,
            "high" => Threshold::High,
            "critical" => Threshold::Critical,
            _ => return None,
        })
    }

    /// Whether something is that bad. What nobody knows is as bad as what is known to be wrong.
    pub(super) fn is_reached(self, audited: &[Audited], bench: &Bench) -> bool {
        audited.iter().any(|one| {
            let policies = one.refusals().any(|(place, verdict)| {
                let severity = bench.policies[place].policy().severity();
                self.is_met(verdict.outcome == Outcome::Error, severity)
            });
            let mut findings = one.findings().iter().filter(|said| said.is_refusal());
            policies
                || findings
                    .any(|said| self.is_met(said.result == CheckResult::Error, said.severity()))
        })
    }

    fn is_met(self, is_error: bool, severity: Option<&str>) -> bool {
        match self {
            Threshold::Error => is_error,
            Threshold::Fail => true,
            least => severity
                .and_then(Threshold::of)
                .is_some_and(|severity| severity >= least),
        }
    }
}
