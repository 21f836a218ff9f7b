//! Packages that come from neither the distribution nor its maintainers, though its package manager
//! installed them. The distribution's advisories do not speak of them, and it does not vouch for
//! the files in them: what lies in such a package counts by itself.

/// Words and addresses of makers who publish packages for Debian and its kin in places of their
/// own.
const MAKERS: &[&str] = &[
    "adoptium",
    "amazon corretto",
    "azul systems",
    "@confluent.io",
    "@datadoghq.com",
    "@docker.com",
    "@elastic.co",
    "chrome linux team",
    "@github.com",
    "@gitlab.com",
    "google cloud cli authors",
    "@grafana.com",
    "@hashicorp.com",
    "hashicorp",
    "@influxdb.com",
    "@influxdata.com",
    "kubernetes authors",
    "mariadb developers",
    "@microsoft.com",
    "microsoft corporation",
    "@mongodb.com",
    "mysql release engineering",
    "@nginx.com",
    "nginx-packaging@f5.com",
    "nginx packaging",
    "@nodesource.com",
    "nodesource",
    "@nvidia.com",
    "@percona.com",
    "@rabbitmq.com",
    "@redis.io",
    "@redis.com",
    "@cloudflare.com",
    "dev@couchdb.apache.org",
    "@konghq.com",
    "@openrobotics.org",
    "@osrfoundation.org",
    "sapmachine@sap.com",
    "info@tailscale.com",
    "yarn developers",
];

/// Whether a maintainer is one of these.
pub(crate) fn is_one(maintainer: Option<&str>) -> bool {
    let Some(maintainer) = maintainer.map(str::to_lowercase) else {
        return false;
    };
    // Somebody of a company may maintain a package inside of the distribution.
    let inside = ["debian.org", "ubuntu.com", "debian.net"];
    !inside.iter().any(|place| maintainer.contains(place))
        && MAKERS.iter().any(|maker| maintainer.contains(maker))
}

/// How the vendors of distributions of rpm packages start their names.
const VENDORS: &[&str] = &[
    "Amazon Linux",
    "Amazon.com",
    "CentOS",
    "Fedora Project",
    "Oracle America",
    "Red Hat",
    "AlmaLinux",
    "CloudLinux",
    "VMware",
    "SUSE",
    "openSUSE",
    "Microsoft Corporation",
    "Rocky",
];

/// Whether the vendor of an rpm package is outside of all distributions. Amazon leaves its name
/// out of some of its own, but not the mark in the version.
pub(crate) fn is_vendor(vendor: Option<&str>, version: &str) -> bool {
    match vendor.filter(|vendor| !vendor.is_empty()) {
        Some(vendor) => !VENDORS.iter().any(|start| vendor.starts_with(start)),
        None => !version.contains("amzn"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn makers_outside_of_the_distribution_are_known() {
        for (maintainer, expected) in [
            ("Docker <support@docker.com>", true),
            ("Ivan Iguaran <ivan@nodesource.com>", true),
            ("NGINX Packaging <nginx-packaging@f5.com>", true),
            (
                "Debian OpenSSL Team <pkg-openssl-devel@alioth-lists.debian.net>",
                false,
            ),
            (
                "Somebody <somebody@google.com> for team@lists.debian.org",
                false,
            ),
            (
                "Ubuntu Developers <ubuntu-devel-discuss@lists.ubuntu.com>",
                false,
            ),
        ] {
            assert_eq!(is_one(Some(maintainer)), expected, "{maintainer}");
        }
        assert!(!is_one(None));
    }

    #[test]
    fn vendors_outside_of_the_distribution_are_known() {
        for (vendor, version, expected) in [
            (Some("Red Hat, Inc."), "1-1.el9", false),
            (Some("SUSE LLC <https://www.suse.com/>"), "1-1", false),
            (Some("Docker, Inc."), "1-1.el9", true),
            (Some("NVIDIA CORPORATION"), "1-1", true),
            (None, "1-1.amzn2", false),
            (None, "1-1.el9", true),
            (Some(""), "1-1.el9", true),
        ] {
            assert_eq!(is_vendor(vendor, version), expected, "{vendor:?} {version}");
        }
    }
}
