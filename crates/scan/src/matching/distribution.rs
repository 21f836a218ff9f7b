//! The rules of distributions: which stream of advisories a release has, whether they speak of the
//! source or of the package itself, how versions compare, and what an advisory without a fix means.

use super::end_of_life;
use super::red_hat;
use super::sources;
use super::unmatched::{Gap, Reason};
use crate::image::Component;
use crate::os::{Family, Os};
use crate::package::{Detector, Package};
use crate::version::range::Compare;
use crate::version::{self, range};
use crate::vulnerability::{Advisory, Database, DatabaseError, Status, Stream};
use jiff::Timestamp;
use std::borrow::Cow;
use std::cmp::Ordering;

/// Which name of a package advisories use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name {
    Source,
    Package,
    /// The package's own, after the module and stream it comes from.
    Modular,
}

/// How the packages of one release are matched.
#[derive(Debug)]
pub(super) struct Rules {
    family: Family,
    stream: Stream,
    name: Name,
    /// Fixed versions are those of the source.
    source_version: bool,
    /// An advisory without a fixed version hits every version. Elsewhere it says nothing.
    unfixed: bool,
    /// The vendor rates the vulnerability for this very package, and says what it does about it.
    rated: bool,
    /// The fixed version is shown without an epoch that is none.
    plain_epoch: bool,
    /// The products that the image is made of, where advisories are about such.
    products: Vec<u32>,
}

/// The rules for a release; a gap if there are none, or if the data has nothing for it.
pub(super) fn rules(
    os: &Os,
    database: &dyn Database,
    now: Option<Timestamp>,
) -> Result<Result<Rules, Gap>, DatabaseError> {
    let mut rules = match unlimited(os, now) {
        Ok(rules) => rules,
        Err(gap) => return Ok(Err(gap)),
    };
    if !database.has(&rules.stream)? {
        return Ok(Err(Gap::no_data(os)));
    }
    if rules.has_products() {
        match red_hat::products(os, database)? {
            Ok(products) => rules.products = products,
            Err(gap) => return Ok(Err(gap)),
        }
    }
    Ok(Ok(rules))
}

/// The rules for a release, whatever products it is made of.
pub(super) fn unlimited(os: &Os, now: Option<Timestamp>) -> Result<Rules, Gap> {
    let family = &os.family;
    Ok(Rules {
        stream: Stream::Distribution(stream(os, now)?),
        name: match family {
            Family::Alma | Family::Rocky | Family::RedHat | Family::CentOs => Name::Modular,
            Family::Oracle
            | Family::Amazon
            | Family::SuseEnterprise
            | Family::SuseMicro
            | Family::OpenSuseLeap
            | Family::OpenSuseTumbleweed
            | Family::Bottlerocket => Name::Package,
            _ => Name::Source,
        },
        source_version: matches!(
            family,
            Family::Debian
                | Family::Ubuntu
                | Family::Echo
                | Family::Alpine
                | Family::Azure
                | Family::Mariner
        ),
        unfixed: matches!(
            family,
            Family::Debian
                | Family::Ubuntu
                | Family::Echo
                | Family::Alpine
                | Family::Azure
                | Family::Mariner
                | Family::RedHat
                | Family::CentOs
        ),
        rated: matches!(
            family,
            Family::Debian | Family::Echo | Family::RedHat | Family::CentOs
        ),
        plain_epoch: matches!(
            family,
            Family::Alma
                | Family::Rocky
                | Family::Azure
                | Family::Mariner
                | Family::RedHat
                | Family::CentOs
        ),
        products: Vec::new(),
        family: family.clone(),
    })
}

/// The name of a release's stream; a gap if there is none.
fn stream(os: &Os, now: Option<Timestamp>) -> Result<String, Gap> {
    if !sources::cover_distribution(os) {
        let message = format!("no data source publishes advisories for {os}");
        return Err(Gap::new(Reason::NoRules, false, message));
    }
    Ok(match &os.family {
        Family::Debian => format!("debian {}", numeric(os, 1)?),
        Family::Ubuntu => format!("ubuntu {}", ubuntu(os, now)?),
        Family::Echo => "echo".into(),
        Family::Alpine => match os.repository.as_deref() {
            // Packages come from the repositories, whatever the release file says.
            Some(repository) => format!("alpine {repository}"),
            None => format!("alpine {}", numeric(os, 2)?),
        },
        Family::Wolfi => "wolfi".into(),
        Family::Chainguard => "chainguard".into(),
        Family::MinimOs => "minimos".into(),
        Family::Bottlerocket => "bottlerocket".into(),
        Family::Alma => format!("alma {}", numeric(os, 1)?),
        Family::Rocky => format!("rocky {}", numeric(os, 1)?),
        Family::Oracle => format!("Oracle Linux {}", numeric(os, 1)?),
        Family::RedHat | Family::CentOs => red_hat::STREAM.into(),
        Family::Amazon => format!("amazon linux {}", amazon(os)?),
        Family::SuseEnterprise => format!("SUSE Linux Enterprise {}", os.version),
        Family::SuseMicro => format!("SUSE Linux Enterprise Micro {}", os.version),
        Family::OpenSuseLeap => format!("openSUSE Leap {}", os.version),
        Family::OpenSuseTumbleweed => "openSUSE Tumbleweed".into(),
        Family::Photon => format!("Photon OS {}", numeric(os, 2)?),
        Family::Azure => format!("Azure Linux {}", numeric(os, 2)?),
        Family::Mariner => format!("CBL-Mariner {}", numeric(os, 2)?),
        Family::ActiveState
        | Family::CoreOs
        | Family::Fedora
        | Family::OpenSuse
        | Family::Other(_) => return Err(no_release(os)),
    })
}

/// A release under extended maintenance has a stream of its own, but only from the day on which
/// the ordinary one ends.
fn ubuntu(os: &Os, now: Option<Timestamp>) -> Result<String, Gap> {
    let release = numeric(os, 2)?;
    let extended = format!("{release}-ESM");
    let is_separate = end_of_life::is_listed("ubuntu", &extended)
        || end_of_life::has_ended("ubuntu", &release, now) == Some(true);
    Ok(if os.extended && is_separate {
        extended
    } else {
        release
    })
}

/// The first release was named by year and month.
pub(super) fn amazon(os: &Os) -> Result<String, Gap> {
    Ok(match numeric(os, 1)?.as_str() {
        release @ ("2" | "2022" | "2023") => release.into(),
        _ => "1".into(),
    })
}

/// The first numbers of the release, as streams are named by them.
pub(super) fn numeric(os: &Os, count: usize) -> Result<String, Gap> {
    let numbers: Vec<&str> = os.version.split('.').take(count).collect();
    let is_number =
        |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if numbers.len() < count || !numbers.iter().all(is_number) {
        return Err(no_release(os));
    }
    Ok(numbers.join("."))
}

/// The gap of a release without a stream, of a distribution that has some.
fn no_release(os: &Os) -> Gap {
    let message = format!("advisories exist for no release called {os}");
    Gap::new(Reason::NoRules, true, message)
}

/// Oracle has builds of its own kind beside the plain ones, which only compare among themselves.
#[derive(Debug, PartialEq, Eq)]
enum Build {
    Plain,
    Certified,
    LivePatched,
}

fn build(version: &str) -> Build {
    let version = version.to_ascii_lowercase();
    if version.ends_with("_fips") {
        return Build::Certified;
    }
    let mut parts = version.split('.');
    match parts.any(|part| part.starts_with("ksplice")) {
        true => Build::LivePatched,
        false => Build::Plain,
    }
}

/// Packages of a module are named after it and its stream, without the build.
fn modular(package: &Package) -> Cow<'_, str> {
    let label = package.modularity.as_deref().unwrap_or_default();
    let mut parts = label.split(':');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(module), Some(stream), Some(_)) => {
            Cow::Owned(format!("{module}:{stream}::{}", package.name))
        }
        _ => Cow::Borrowed(&package.name),
    }
}

/// How a package manager compares versions.
fn compare(detector: Detector) -> Compare {
    match detector {
        Detector::Dpkg => version::dpkg::compare,
        Detector::Apk => version::apk::compare,
        _ => version::rpm::compare,
    }
}

impl Rules {
    /// Whether advisories are about products.
    pub fn has_products(&self) -> bool {
        matches!(self.family, Family::RedHat | Family::CentOs)
    }

    /// The stream that is asked.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// The name that is asked for; nothing where the package is known to be named wrongly.
    pub fn name<'a>(&self, package: &'a Package) -> Option<Cow<'a, str>> {
        // Alma once built modules without saying so, and these have no name to be found by.
        let unlabelled = package.modularity.as_deref().unwrap_or_default().is_empty();
        if self.family == Family::Alma && unlabelled && package.version.contains(".module_el") {
            return None;
        }
        Some(match self.name {
            Name::Source => Cow::Borrowed(package.source_name()),
            Name::Package => Cow::Borrowed(&package.name),
            Name::Modular => modular(package),
        })
    }

    /// The version that fixed ones are compared with.
    pub fn version<'a>(&self, package: &'a Package) -> &'a str {
        match self.source_version {
            true => package.source_version(),
            false => &package.version,
        }
    }

    /// Everything about a package that its answer depends on.
    pub fn question(&self, component: &Component) -> String {
        let package = &component.package;
        let version = self.version(package);
        let architecture = package.architecture.as_deref().unwrap_or_default();
        let detector = component.detector.name();
        let mut question = format!("{version} {architecture} {detector}");
        for product in &self.products {
            question.push_str(&format!(" {product}"));
        }
        question
    }

    /// Whether the package manager can order the version of a package.
    pub fn is_version(&self, component: &Component) -> bool {
        let version = self.version(&component.package);
        compare(component.detector)(version, version).is_some()
    }

    /// The places of the advisories that hit a package, and the place of one that says neither that
    /// it does nor that it does not: a version in it cannot be parsed.
    pub fn matched(
        &self,
        component: &Component,
        advisories: &[Advisory],
    ) -> (Vec<usize>, Option<usize>) {
        let compare = compare(component.detector);
        let (package, version) = (&component.package, self.version(&component.package));
        if self.has_products() {
            return red_hat::matched(package, &self.products, advisories);
        }
        let (mut places, mut unclear) = (Vec::new(), None);
        for (place, advisory) in advisories.iter().enumerate() {
            if !self.is_built_for(advisory, package) {
                continue;
            }
            match self.hits(advisory, version, compare) {
                Some(true) => places.push(place),
                Some(false) => {}
                None => unclear = unclear.or(Some(place)),
            }
        }
        (places, unclear)
    }

    /// Whether the advisory is about packages for that processor, on those distributions that say.
    fn is_built_for(&self, advisory: &Advisory, package: &Package) -> bool {
        let limited = &advisory.architectures;
        let architecture = package.architecture.as_deref();
        match self.family {
            Family::Rocky | Family::Oracle => {
                limited.is_empty()
                    || architecture.is_none_or(|one| limited.iter().any(|other| other == one))
            }
            _ => true,
        }
    }

    /// Whether an advisory is about an installed version; nothing if that depends on versions that
    /// cannot be compared.
    fn hits(&self, advisory: &Advisory, installed: &str, compare: Compare) -> Option<bool> {
        let fixed = advisory.fixed_version.as_str();
        if advisory.status == Status::NotAffected {
            return Some(false);
        }
        if self.family == Family::Oracle && build(installed) != build(fixed) {
            return Some(false);
        }
        let is_introduced = match advisory.affected_version.as_str() {
            "" => Some(true),
            first => compare(installed, first).map(Ordering::is_ge),
        };
        if is_introduced == Some(false) {
            return is_introduced;
        }
        let is_unfixed = match fixed {
            "" if !self.unfixed => Some(false),
            "" => compare(installed, installed).map(Ordering::is_eq),
            fixed => compare(installed, fixed).map(Ordering::is_lt),
        };
        range::all([is_introduced, is_unfixed].into_iter())
    }

    /// Takes from an advisory what the vendor does not mean for the package, and what it does not
    /// say for people.
    pub fn read(&self, advisory: &mut Advisory) {
        if !self.rated {
            advisory.severity = None;
            advisory.status = Status::Unknown;
        }
        if self.plain_epoch
            && let Some(plain) = advisory.fixed_version.strip_prefix("0:")
        {
            advisory.fixed_version = plain.to_owned();
        }
    }
}
