//! Versions: each ecosystem orders them in its own way, and a comparison that is nearly right is
//! wrong. Every order here is held against the tool that defines it, where there is one.

pub mod apk;
pub mod composer;
pub mod dpkg;
pub mod maven;
pub mod python;
pub mod range;
pub mod rpm;
pub mod ruby;
pub mod semantic;

use crate::package::Ecosystem;
use range::Compare;

/// The order of an ecosystem's versions.
pub fn order(ecosystem: Ecosystem) -> Compare {
    match ecosystem {
        Ecosystem::Debian => dpkg::compare,
        Ecosystem::Alpine => apk::compare,
        Ecosystem::Rpm => rpm::compare,
        Ecosystem::Go => semantic::compare_go,
        Ecosystem::Npm => semantic::compare,
        Ecosystem::Python => python::compare,
        Ecosystem::Maven => maven::compare,
        Ecosystem::Ruby => ruby::compare,
        Ecosystem::Composer => composer::compare,
        Ecosystem::NuGet => semantic::compare_nuget,
        Ecosystem::Cargo => semantic::compare_loose,
    }
}

/// Digits of any length, as numbers.
pub(crate) use dpkg::numbers;
