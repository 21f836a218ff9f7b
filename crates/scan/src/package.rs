//! Packages: what is installed, as the file that declares it says.

use crate::layer::PathSet;
use serde::{Deserialize, Serialize};

/// One installed package.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Package {
    /// The name, as its ecosystem writes it: `openssl`, `@babel/core`, `org.slf4j:slf4j-api`.
    pub name: String,
    /// The whole version, with epoch and revision where there are such. Empty where nobody knows.
    pub version: String,
    /// What it was built for, as its package manager names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub architecture: Option<String>,
    /// The source package it was built from; advisories of most distributions speak of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// Who made it: a maintainer or vendor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vendor: Option<String>,
    /// Its licence, as it states it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub licence: Option<String>,
    /// The module and stream it comes from, on distributions that have such.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modularity: Option<String>,
}

/// A source package.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Source {
    /// Its name.
    pub name: String,
    /// Its whole version.
    pub version: String,
}

impl Package {
    /// A package of which only name and version are known.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Package {
            name: name.into(),
            version: version.into(),
            ..Package::default()
        }
    }

    /// The name that advisories about sources use.
    pub fn source_name(&self) -> &str {
        self.source
            .as_ref()
            .map_or(&self.name, |source| &source.name)
    }

    /// The version that advisories about sources use.
    pub fn source_version(&self) -> &str {
        self.source
            .as_ref()
            .map_or(&self.version, |source| &source.version)
    }

    /// About how many bytes it takes to remember it.
    pub(crate) fn weight(&self) -> usize {
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        size_of::<Package>()
            + self.name.len()
            + self.version.len()
            + length(&self.architecture)
            + length(&self.vendor)
            + length(&self.licence)
            + length(&self.modularity)
            + self
                .source
                .as_ref()
                .map_or(0, |source| source.name.len() + source.version.len())
    }
}

/// What a parser made of a file: packages, and what it could not understand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// The packages.
    pub packages: Vec<Package>,
    /// What was left out, and why.
    pub problems: Vec<String>,
    /// Files that belong to these packages, where the same file says so.
    pub owned: PathSet,
}

impl Reading {
    pub(crate) fn with_problems(mut self, problems: Vec<String>) -> Self {
        self.problems.extend(problems);
        self
    }
}

/// What understands a file that declares packages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Detector {
    /// Debian's package manager.
    Dpkg,
    /// Alpine's package manager.
    Apk,
    /// Red Hat's package manager.
    Rpm,
    /// What a Go program says of itself.
    #[serde(rename = "gobinary")]
    GoBinary,
    /// An installed npm package.
    #[serde(rename = "node-pkg")]
    NodePackage,
    /// An installed Python distribution.
    #[serde(rename = "python-pkg")]
    PythonPackage,
    /// A Java archive.
    Jar,
    /// An installed Ruby gem.
    Gemspec,
    /// What Composer installed.
    #[serde(rename = "composer-vendor")]
    Composer,
    /// What a .NET program depends on.
    DotnetCore,
    /// What a Rust program says of itself.
    #[serde(rename = "rustbinary")]
    RustBinary,
    /// A lockfile of npm.
    Npm,
    /// A lockfile of Yarn.
    Yarn,
    /// A lockfile of pnpm.
    Pnpm,
    /// Requirements of pip.
    Pip,
    /// A lockfile of Pipenv.
    Pipenv,
    /// A lockfile of Poetry.
    Poetry,
    /// A lockfile of uv.
    Uv,
    /// A lockfile of Cargo.
    Cargo,
    /// What a Go module requires.
    #[serde(rename = "gomod")]
    GoModule,
    /// A project of Maven.
    Pom,
    /// A lockfile of Gradle.
    Gradle,
    /// A lockfile of Bundler.
    Bundler,
    /// A lockfile of Composer.
    #[serde(rename = "composer")]
    ComposerLock,
    /// A lockfile of NuGet.
    #[serde(rename = "nuget")]
    NuGet,
}

/// Where a package comes from, which decides how versions compare and which advisories count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ecosystem {
    /// Debian and what derives from it.
    Debian,
    /// Alpine and what uses its package manager.
    Alpine,
    /// Distributions of rpm packages.
    Rpm,
    /// Go modules.
    Go,
    /// npm.
    Npm,
    /// The Python package index.
    Python,
    /// Maven repositories.
    Maven,
    /// RubyGems.
    Ruby,
    /// Packagist.
    Composer,
    /// NuGet.
    NuGet,
    /// crates.
    Cargo,
}

impl Detector {
    /// All there are.
    pub const ALL: [Detector; 25] = [
        Detector::Dpkg,
        Detector::Apk,
        Detector::Rpm,
        Detector::GoBinary,
        Detector::NodePackage,
        Detector::PythonPackage,
        Detector::Jar,
        Detector::Gemspec,
        Detector::Composer,
        Detector::DotnetCore,
        Detector::RustBinary,
        Detector::Npm,
        Detector::Yarn,
        Detector::Pnpm,
        Detector::Pip,
        Detector::Pipenv,
        Detector::Poetry,
        Detector::Uv,
        Detector::Cargo,
        Detector::GoModule,
        Detector::Pom,
        Detector::Gradle,
        Detector::Bundler,
        Detector::ComposerLock,
        Detector::NuGet,
    ];

    /// The ecosystem of the packages it finds.
    pub fn ecosystem(self) -> Ecosystem {
        match self {
            Detector::Dpkg => Ecosystem::Debian,
            Detector::Apk => Ecosystem::Alpine,
            Detector::Rpm => Ecosystem::Rpm,
            Detector::GoBinary | Detector::GoModule => Ecosystem::Go,
            Detector::NodePackage | Detector::Npm | Detector::Yarn | Detector::Pnpm => {
                Ecosystem::Npm
            }
            Detector::PythonPackage
            | Detector::Pip
            | Detector::Pipenv
            | Detector::Poetry
            | Detector::Uv => Ecosystem::Python,
            Detector::Jar | Detector::Pom | Detector::Gradle => Ecosystem::Maven,
            Detector::Gemspec | Detector::Bundler => Ecosystem::Ruby,
            Detector::Composer | Detector::ComposerLock => Ecosystem::Composer,
            Detector::DotnetCore | Detector::NuGet => Ecosystem::NuGet,
            Detector::RustBinary | Detector::Cargo => Ecosystem::Cargo,
        }
    }

    /// Whether it finds packages of the distribution and not of a language.
    pub fn is_os(self) -> bool {
        matches!(self, Detector::Dpkg | Detector::Apk | Detector::Rpm)
    }

    /// Its name in reports and bills of materials.
    pub fn name(self) -> &'static str {
        match self {
            Detector::Dpkg => "dpkg",
            Detector::Apk => "apk",
            Detector::Rpm => "rpm",
            Detector::GoBinary => "gobinary",
            Detector::NodePackage => "node-pkg",
            Detector::PythonPackage => "python-pkg",
            Detector::Jar => "jar",
            Detector::Gemspec => "gemspec",
            Detector::Composer => "composer-vendor",
            Detector::DotnetCore => "dotnet-core",
            Detector::RustBinary => "rustbinary",
            Detector::Npm => "npm",
            Detector::Yarn => "yarn",
            Detector::Pnpm => "pnpm",
            Detector::Pip => "pip",
            Detector::Pipenv => "pipenv",
            Detector::Poetry => "poetry",
            Detector::Uv => "uv",
            Detector::Cargo => "cargo",
            Detector::GoModule => "gomod",
            Detector::Pom => "pom",
            Detector::Gradle => "gradle",
            Detector::Bundler => "bundler",
            Detector::ComposerLock => "composer",
            Detector::NuGet => "nuget",
        }
    }

    /// The detector of that name.
    pub fn named(name: &str) -> Option<Self> {
        Detector::ALL.into_iter().find(|one| one.name() == name)
    }
}

impl Ecosystem {
    /// The type of its package URLs.
    pub fn purl_type(self) -> &'static str {
        match self {
            Ecosystem::Debian => "deb",
            Ecosystem::Alpine => "apk",
            Ecosystem::Rpm => "rpm",
            Ecosystem::Go => "golang",
            Ecosystem::Npm => "npm",
            Ecosystem::Python => "pypi",
            Ecosystem::Maven => "maven",
            Ecosystem::Ruby => "gem",
            Ecosystem::Composer => "composer",
            Ecosystem::NuGet => "nuget",
            Ecosystem::Cargo => "cargo",
        }
    }

    /// The detector that finds such packages in images.
    pub fn detector(self) -> Detector {
        match self {
            Ecosystem::Debian => Detector::Dpkg,
            Ecosystem::Alpine => Detector::Apk,
            Ecosystem::Rpm => Detector::Rpm,
            Ecosystem::Go => Detector::GoBinary,
            Ecosystem::Npm => Detector::NodePackage,
            Ecosystem::Python => Detector::PythonPackage,
            Ecosystem::Maven => Detector::Jar,
            Ecosystem::Ruby => Detector::Gemspec,
            Ecosystem::Composer => Detector::Composer,
            Ecosystem::NuGet => Detector::DotnetCore,
            Ecosystem::Cargo => Detector::RustBinary,
        }
    }

    /// The ecosystem whose package URLs have that type.
    pub fn of_purl_type(kind: &str) -> Option<Self> {
        Detector::ALL
            .into_iter()
            .map(Detector::ecosystem)
            .find(|ecosystem| ecosystem.purl_type() == kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_detector_has_one_name_wherever_it_is_written() {
        for detector in Detector::ALL {
            assert_eq!(Detector::named(detector.name()), Some(detector));
            let written = serde_json::to_value(detector).unwrap();
            assert_eq!(written, detector.name());
        }
        let names: std::collections::BTreeSet<_> = Detector::ALL.map(Detector::name).into();
        assert_eq!(names.len(), Detector::ALL.len());
    }
}
