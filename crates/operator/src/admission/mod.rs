//! Admission: what is asked of our kinds before kube-apiserver keeps them, by the same validators,
//! defaults and guard that the API server of `muster up` asks. What an [`AdmissionReview`] comes to
//! is decided from the review alone ([`decide`]); only whether a job may begin on its Registry must
//! be looked up, and is written down at once ([`Gate`]), so that of two jobs created at the same
//! instant one is told about the other.
//!
//! [`AdmissionReview`]: https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/

mod decide;
mod gate;
mod review;

pub use gate::{Gate, Newcomer};

use decide::{defaulted, judged};
use muster_api::guard::Accounts;
use muster_api::scanner;
use muster_kind::{Kind, Status};
use review::{Answer, Operation, Review};
use serde_json::Value;

/// What kube-apiserver wants to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// What an object lacks.
    Defaults,
    /// Whether a write may happen.
    Verdict,
}

/// Answers reviews.
pub struct Admission {
    kinds: Vec<Kind>,
    accounts: Accounts,
    gate: Gate,
}

impl Admission {
    /// Answers for an installation with these accounts.
    pub fn new(accounts: Accounts, gate: Gate) -> Self {
        Admission {
            kinds: scanner::kinds(),
            accounts,
            gate,
        }
    }

    /// The answer to a review, as JSON; or what is wrong with the review itself.
    pub async fn answer(&self, question: Question, body: &[u8]) -> Result<Value, Status> {
        let review = Review::read(body)?;
        let Some(kind) = self.kind(&review) else {
            return Err(Status::bad_request(format!(
                "nothing is known here about the kind {:?} of the group {:?}",
                review.kind, review.group
            )));
        };
        let answer = match question {
            Question::Defaults => Answer::Patched(defaulted(&review, kind)),
            Question::Verdict => match self.verdict(&review, kind).await {
                Ok(warnings) => Answer::Allowed(warnings),
                Err(refusal) => Answer::Refused(Box::new(refusal)),
            },
        };
        Ok(review.answered(&answer))
    }

    fn kind(&self, review: &Review) -> Option<&Kind> {
        let mut kinds = self.kinds.iter();
        kinds.find(|kind| kind.group == review.group && kind.kind == review.kind)
    }

    async fn verdict(&self, review: &Review, kind: &Kind) -> Result<Vec<String>, Status> {
        judged(review, kind, &self.accounts)?;
        match (&review.operation, &review.object) {
            (Operation::Create, Some(object)) if review.subresource.is_empty() => {
                let newcomer = Newcomer {
                    kind,
                    namespace: &review.namespace,
                    object,
                    dry_run: review.dry_run,
                };
                self.gate.admit(&newcomer).await
            }
            _ => Ok(Vec::new()),
        }
    }
}
