//! The rules of distributions: which stream of advisories a release has, whether they speak of the
//! source or of the package itself, and how versions compare. Red Hat's own,
//! which depend on the products that an image was built from, are not among them yet.

use crate::image::Component;
use crate::os::{Family, Os};
use crate::package::{Detector, Package};
use crate::version;
use crate::vulnerability::{Advisory, Database, DatabaseError, Status, Stream};
use std::cmp::Ordering;

/// How the packages of one release are matched.
pub(super) struct Rules {
    stream: Stream,
    /// Advisories speak of the source, not of the package built from it.
    by_source: bool,
    /// Whether an installed version and a fixed one are of the same kind.
    is_comparable: fn(&str, &str) -> bool,
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
    let stream = match &os.family {
        Family::Debian => format!("debian {}", numeric(os, 1)?),
        Family::Ubuntu if os.extended => format!("ubuntu {}-ESM", numeric(os, 2)?),
        Family::Ubuntu => format!("ubuntu {}", numeric(os, 2)?),
        Family::Echo => "echo".into(),
        Family::Alpine => match os.repository.as_deref() {
            // Packages come from the repositories, whatever the release file says.
            Some(repository) => format!("alpine {repository}"),
            None => format!("alpine {}", numeric(os, 2)?),
        },
        Family::Wolfi => "wolfi".into(),
        Family::Chainguard => "chainguard".into(),
        Family::MinimOs => "minimos".into(),
        Family::Alma => format!("alma {}", numeric(os, 1)?),
        Family::Rocky => format!("rocky {}", numeric(os, 1)?),
        Family::Oracle => format!("Oracle Linux {}", numeric(os, 1)?),
        Family::Amazon => match numeric(os, 1)?.as_str() {
            release @ ("2" | "2022" | "2023") => format!("amazon linux {release}"),
            // The first release was named by year and month.
            _ => "amazon linux 1".into(),
        },
        Family::SuseEnterprise => format!("SUSE Linux Enterprise {}", os.version),
        Family::SuseMicro => format!("SUSE Linux Enterprise Micro {}", os.version),
        Family::OpenSuseLeap => format!("openSUSE Leap {}", os.version),
        Family::OpenSuseTumbleweed => "openSUSE Tumbleweed".into(),
        Family::Photon => format!("Photon OS {}", numeric(os, 2)?),
        Family::Azure => format!("Azure Linux {}", numeric(os, 2)?),
        Family::Mariner => format!("CBL-Mariner {}", numeric(os, 2)?),
        _ => return Err(format!("no advisories are known for {os}")),
    };
    let compare = match component.detector {
        Detector::Dpkg => version::dpkg::compare,
        Detector::Apk => version::apk::compare,
        _ => version::rpm::compare,
    };
    Ok(Rules {
        stream: Stream::Distribution(stream),
        by_source: !matches!(
            os.family,
            Family::Alma
                | Family::Rocky
                | Family::Oracle
                | Family::Amazon
                | Family::SuseEnterprise
                | Family::SuseMicro
                | Family::OpenSuseLeap
                | Family::OpenSuseTumbleweed
        ),
        is_comparable: match os.family {
            Family::Oracle => same_build,
            _ => |_, _| true,
        },
        compare,
    })
}

/// Oracle has builds of its own kind beside the plain ones, which only compare among themselves.
fn same_build(installed: &str, fixed: &str) -> bool {
    let kind = |version: &str| {
        let mark = |part: &&str| part.starts_with("ksplice") || part.ends_with("_fips");
        version.split('.').find(mark).map(str::to_owned)
    };
    kind(installed) == kind(fixed)
}

/// Packages of a module are named after it and its stream, without the build.
fn modular(package: &Package) -> String {
    let label = package.modularity.as_deref().unwrap_or_default();
    let mut parts = label.split(':');
    match (parts.next(), parts.next()) {
        (Some(module), Some(stream)) => format!("{module}:{stream}::{}", package.name),
        _ => package.name.clone(),
    }
}

/// The first numbers of the release, as streams are named by them.
fn numeric(os: &Os, count: usize) -> Result<String, String> {
    let numbers: Vec<&str> = os.version.split('.').take(count).collect();
    let is_number =
        |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if numbers.len() < count || !numbers.iter().all(is_number) {
        return Err(format!("{os} is no release that advisories are kept for"));
    }
    Ok(numbers.join("."))
}

/// Whether the advisory is about packages for that processor.
fn is_built_for(advisory: &Advisory, architecture: Option<&str>) -> bool {
    let limited = &advisory.architectures;
    limited.is_empty()
        || architecture
            .is_none_or(|one| one == "noarch" || limited.iter().any(|other| other == one))
}

impl Rules {
    /// The advisories that hit a package.
    pub fn matched(
        &self,
        component: &Component,
        database: &dyn Database,
    ) -> Result<Vec<Advisory>, DatabaseError> {
        let package = &component.package;
        let (name, version) = match self.by_source {
            true => (package.source_name().to_owned(), package.source_version()),
            false => (modular(package), package.version.as_str()),
        };
        let mut advisories = database.advisories(&self.stream, &name)?;
        advisories.retain(|advisory| {
            is_built_for(advisory, package.architecture.as_deref()) && self.hits(advisory, version)
        });
        Ok(advisories)
    }

    /// Without a fixed version every version is hit. A version that is none is not judged.
    fn hits(&self, advisory: &Advisory, installed: &str) -> bool {
        if advisory.status == Status::NotAffected {
            return false;
        }
        if !(self.is_comparable)(installed, &advisory.fixed_version) {
            return false;
        }
        let below = |fixed: &str| (self.compare)(installed, fixed) == Some(Ordering::Less);
        let introduced = advisory.affected_version.is_empty()
            || (self.compare)(installed, &advisory.affected_version) != Some(Ordering::Less);
        introduced && (advisory.fixed_version.is_empty() || below(&advisory.fixed_version))
    }
}
