//! Policies and conditions in CEL. Whoever may write a policy in a namespace writes these expressions,
//! so they are hostile: nothing of the host can be asked, an expression that calls what there is not
//! does not load, and one that loads ends within its time, its steps and its memory whatever the object
//! is ([`meter`]). The `cel` crate reads them; they are evaluated here, since its evaluation counts
//! nothing, copies what it looks at, and lets `||` swallow any error.

mod compile;
mod conditions;
mod evaluate;
mod functions;
mod meter;
mod node;
mod policy;
mod value;

pub use conditions::Conditions;
pub use policy::CelPolicy;
