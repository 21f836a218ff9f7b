//! The rules of distributions: which stream of advisories a release has, whether they speak of the
//! source or of the package itself, and how versions compare.

use crate::image::Component;
use crate::os::{Family, Os};
use crate::version;
use crate::vulnerability::{Advisory, Database, DatabaseError, Status, Stream};
use std::cmp::Ordering;

/// How the packages of one release are matched.
pub(super) struct Rules {
    stream: Stream,
    compare: fn(&str, &str) -> Option<Ordering>,
}

/// The rules for a package; a note where there are none.
pub(super) fn rules(component: &Component, os: Option<&Os>) -> Result<Rules, String> {
    let Some(os) = os else {
        let detector = component.detector.name();
        return Err(format!(
            "no distribution is known for packages of {detector}"
        ));
    };
    match os.family {
        Family::Debian => debian(os),
        _ => Err(format!("no advisories are known for {os}")),
    }
}

/// Debian: by the source's name and version, a stream for each major release.
fn debian(os: &Os) -> Result<Rules, String> {
    let major = os.version.split('.').next().unwrap_or_default();
    if !major.starts_with(|first: char| first.is_ascii_digit()) {
        return Err(format!("{os} is no release that advisories are kept for"));
    }
    Ok(Rules {
        stream: Stream::Distribution(format!("debian {major}")),
        compare: version::dpkg::compare,
    })
}

impl Rules {
    /// The advisories that hit a package.
    pub fn matched(
        &self,
        component: &Component,
        database: &dyn Database,
    ) -> Result<Vec<Advisory>, DatabaseError> {
        let package = &component.package;
        let mut advisories = database.advisories(&self.stream, package.source_name())?;
        advisories.retain(|advisory| self.hits(advisory, package.source_version()));
        Ok(advisories)
    }

    /// Without a fixed version every version is hit. A version that is none is not judged.
    fn hits(&self, advisory: &Advisory, installed: &str) -> bool {
        if advisory.status == Status::NotAffected {
            return false;
        }
        let below = |fixed: &str| (self.compare)(installed, fixed) == Some(Ordering::Less);
        let introduced = advisory.affected_version.is_empty()
            || (self.compare)(installed, &advisory.affected_version) != Some(Ordering::Less);
        introduced && (advisory.fixed_version.is_empty() || below(&advisory.fixed_version))
    }
}
