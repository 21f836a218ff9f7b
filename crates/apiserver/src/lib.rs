//! The Kubernetes API contract over HTTP: discovery, OpenAPI, reading and writing objects, patches,
//! server-side apply, lists, watches and tables, for whatever kinds it is given. It knows none of
//! them by itself, keeps nothing (a [`store::Store`] does) and decides no rights (an
//! [`identity::Authorizer`] does). Start reading at [`Server`]: a request goes through
//! `server` → `resource` → one of `list`, `watch`, `create`, `update`, `patch`, `delete`; all
//! writes share the steps in `write`.

pub mod admission;
pub mod body;
pub mod front;
pub mod identity;
pub mod listen;
pub mod negotiate;
pub mod page;
pub mod query;
pub mod request;
pub mod respond;
pub mod store;
pub mod token;

mod catalog;
mod compress;
mod computed;
mod create;
mod delete;
mod discovery;
mod failure;
mod fixed;
mod garbage;
mod hub;
mod impersonate;
mod index;
mod links;
mod list;
mod metadata;
mod metrics;
mod namespaces;
mod opaque;
mod openapi;
mod outgoing;
mod patch;
mod render;
mod resource;
mod reviews;
mod room;
mod server;
mod swagger;
mod typed;
mod update;
mod upkeep;
mod watch;
mod write;

pub use metrics::Counters;
pub use server::{Check, Parts, Server};
pub use upkeep::Upkeep;
