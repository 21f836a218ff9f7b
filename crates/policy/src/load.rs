//! Why a policy cannot be asked at all. It is told in the policy's status, and in the reports of what
//! it should have judged.

/// Why a policy does not load. The messages are for people, and the same for the same cause.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// What was fetched is no policy, or one that cannot be run here.
    #[error("the module cannot be used: {0}")]
    Module(String),
    /// The policy refuses its settings.
    #[error("the settings are refused: {0}")]
    Settings(String),
    /// An expression, or a source, has a mistake.
    #[error("{0}")]
    Source(String),
    /// The settings could not be validated, since the policy makes a host call that is not available. That
    /// says nothing about the settings.
    #[error("{0}")]
    HostCall(String),
    /// What the policy is made of cannot be reached at the moment. That says nothing about the policy:
    /// what it answered before still holds.
    #[error("{0}")]
    Unreachable(String),
}
