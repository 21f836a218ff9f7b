//! The commands that look at one thing and leave nothing behind: `scan`, `sbom` and `db`. Results
//! go to standard output, talk and progress to standard error, and the exit code says what came of
//! it.

mod bars;
mod data;
mod db;
mod documents;
mod outcome;
pub(crate) mod places;
mod print;
mod reading;
mod sbom;
mod scan;

pub(crate) use data::Origin;
pub(crate) use db::{Db, run as db};
pub(crate) use reading::Reach;
pub(crate) use sbom::{Sbom, run as sbom};
pub(crate) use scan::{Scan, run as scan};
