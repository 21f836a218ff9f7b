//! Configuration checks as their users meet them: ConfigMaps and manifests in, findings out.

#![allow(clippy::unwrap_used)]

mod builtin;
mod contract;
mod documented;
mod force;
mod grouping;
mod pod_security;
mod support;
