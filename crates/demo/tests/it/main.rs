//! What a demonstration shows, as those see it who look: the images as a scanner reads them, the registry
//! as a client asks it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod findings;
mod images;
mod manifests;
mod registry;
