//! Policies made ready with everything real around them: a registry, web servers, a policy server with
//! client certificates.

mod modules;
mod prepare;
mod remote;
mod server;
mod web;
