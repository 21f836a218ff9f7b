//! Muster from the outside: the binary as a process, met by real clients and real servers.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod aggregated;
mod audit_command;
mod auditing;
mod backup;
mod chart;
mod clients;
mod compression;
mod config_audit;
mod demo;
mod differential;
mod documents;
mod hostile;
mod hub;
mod inspect;
mod kubectl;
mod layers;
mod leader;
mod outside;
mod plugin;
mod scan;
mod shared_layers;
mod start;
mod swept;
mod telemetry;
mod torture;
mod upgrade;
mod web;
mod why;
mod workload;
