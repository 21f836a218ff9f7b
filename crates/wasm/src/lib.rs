//! The sandbox in which policy modules run. It knows how they are spoken to (waPC, or as a WASI
//! command) and what they may use up (time, memory, output); what is said it does not understand.
//! Every call gets an instance of its own that is thrown away afterwards, so nothing that a module
//! does is seen by another call. Whatever a module does, a call ends, and with a [`Failure`] that
//! names what happened; the text is the same for the same cause. Start reading at [`Sandbox`].

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod error;
mod guest;
mod host;
mod journal;
mod limits;
mod metadata;
mod module;
mod sandbox;
mod state;
mod ticker;
mod wapc;
mod wasi;

pub use error::{Error, Failure};
pub use host::{Host, HostError, Unavailable};
pub use limits::Limits;
pub use metadata::Metadata;
pub use module::{Mode, Module, Operation};
pub use sandbox::{LARGEST_MODULE, Options, Sandbox};
