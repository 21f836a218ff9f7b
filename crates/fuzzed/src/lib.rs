//! What every parser must keep to whatever it is given: it ends, it does not panic, and what it took
//! can be written and taken again. Each module is one such promise, as a function of bytes. Fuzzing
//! looks for bytes that break it, for as long as one likes; a test of this crate tries a fixed set
//! of them every time. It knows the pure crates alone. Start reading at [`TARGETS`].

#![allow(clippy::unwrap_used)]

mod apply;
mod bill;
mod bolt;
mod exploitation;
mod hub;
mod inventory;
mod json_patch;
mod layer;
mod lockfiles;
mod merge_patch;
mod osv;
mod packages;
mod parse;
mod schema;
mod selectors;
mod store;
mod strategic;
mod token;
mod versions;
mod vex;

/// A promise, by its name.
pub type Target = (&'static str, fn(&[u8]));

/// All of them.
pub const TARGETS: &[Target] = &[
    ("apply", apply::run),
    ("bill", bill::run),
    ("bolt", bolt::run),
    ("exploitation", exploitation::run),
    ("hub", hub::run),
    ("inventory", inventory::run),
    ("json_patch", json_patch::run),
    ("layer", layer::run),
    ("lockfiles", lockfiles::run),
    ("merge_patch", merge_patch::run),
    ("osv", osv::run),
    ("packages", packages::run),
    ("parse", parse::run),
    ("selectors", selectors::run),
    ("strategic", strategic::run),
    ("token", token::run),
    ("versions", versions::run),
    ("vex", vex::run),
];

/// Holds bytes against the promise of that name, and panics where it is broken.
pub fn run(name: &str, bytes: &[u8]) {
    let target = TARGETS.iter().find(|(known, _)| *known == name);
    let (_, run) = target.expect("the name is in the list");
    run(bytes);
}
