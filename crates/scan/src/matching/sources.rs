//! Distributions and package types for which a data source exists: those that the formats of our
//! databases can carry. Packages of others are reported as not matched, and no scan fails for them.

use super::language;
use crate::os::{Family, Os};
use crate::package::Ecosystem;

/// Whether a data source exists for the releases of a distribution.
pub(super) fn cover_distribution(os: &Os) -> bool {
    match &os.family {
        // Stream is ahead of the releases that advisories are about.
        Family::CentOs => !os.version.starts_with("stream"),
        Family::Alma
        | Family::Alpine
        | Family::Amazon
        | Family::Azure
        | Family::Bottlerocket
        | Family::Chainguard
        | Family::Debian
        | Family::Echo
        | Family::Mariner
        | Family::MinimOs
        | Family::OpenSuseLeap
        | Family::OpenSuseTumbleweed
        | Family::Oracle
        | Family::Photon
        | Family::RedHat
        | Family::Rocky
        | Family::SuseEnterprise
        | Family::SuseMicro
        | Family::Ubuntu
        | Family::Wolfi => true,
        Family::ActiveState
        | Family::CoreOs
        | Family::Fedora
        | Family::OpenSuse
        | Family::Other(_) => false,
    }
}

/// Whether a data source exists for packages of a package URL type.
pub(super) fn cover_type(kind: &str) -> bool {
    let is_os = |one: Ecosystem| one.detector().is_os();
    language::is_published(kind) || Ecosystem::of_purl_type(kind).is_some_and(is_os)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matching::distribution;

    #[test]
    fn a_distribution_with_a_data_source_has_rules_and_no_other_has() {
        for (name, version) in [
            ("alma", "9.4"),
            ("alpine", "3.20.1"),
            ("amazon", "2023.5"),
            ("azurelinux", "3.0"),
            ("bottlerocket", "1"),
            ("cbl-mariner", "2.0"),
            ("centos", "8.5"),
            ("centos", "stream 9"),
            ("chainguard", "1"),
            ("coreos", "1"),
            ("debian", "12.1"),
            ("echo", "1"),
            ("fedora", "40"),
            ("minimos", "1"),
            ("opensuse", "1"),
            ("opensuse-leap", "15.6"),
            ("opensuse-tumbleweed", ""),
            ("oracle", "9.4"),
            ("photon", "5.0"),
            ("redhat", "9.4"),
            ("rocky", "9.4"),
            ("slem", "5.4"),
            ("suse linux enterprise server", "15.6"),
            ("ubuntu", "24.04"),
            ("void", "1"),
            ("wolfi", "1"),
        ] {
            let os = Os::new(Family::named(name), version);
            let rules = distribution::unlimited(&os, None);
            assert_eq!(rules.is_ok(), cover_distribution(&os), "{os}: {rules:?}");
        }
    }

    #[test]
    fn types_with_a_data_source_are_those_that_databases_carry() {
        for (kind, expected) in [
            ("deb", true),
            ("rpm", true),
            ("npm", true),
            ("hex", true),
            ("swift", true),
            ("conda", false),
            ("generic", false),
            ("", false),
        ] {
            assert_eq!(cover_type(kind), expected, "{kind}");
        }
    }
}
