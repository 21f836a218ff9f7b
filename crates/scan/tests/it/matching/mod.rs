//! The rules of each distribution and language, with the vendor's own expectations.

mod apk;
mod batch;
mod dpkg;
mod languages;
mod red_hat;
mod rpm;
mod unmatched;

use muster_scan::image::Component;
use muster_scan::matching::{Findings, find};
use muster_scan::os::{Family, Os};
use muster_scan::package::{Detector, Package, Source};
use muster_scan::sbom::Bill;
use muster_scan::vulnerability::Database;

fn bill(os: Option<Os>, detector: Detector, package: Package) -> Bill {
    Bill {
        os,
        components: vec![Component {
            detector,
            package,
            path: "somewhere".into(),
            layer: None,
        }],
        ..Bill::default()
    }
}

fn from(source: &str, version: &str) -> Package {
    Package {
        source: Some(Source {
            name: source.into(),
            version: version.into(),
        }),
        ..Package::new(format!("lib{source}"), version)
    }
}

/// A finding in a line: identifier, fixed versions, status, severity and who says so.
fn lines(found: &Findings) -> Vec<String> {
    let line = |one: &muster_scan::matching::Finding| {
        let (fixed, status) = (one.fixed_text(), one.status.name());
        let (severity, source) = (one.severity.name(), &one.severity_source);
        format!("{} [{fixed}] {status} {severity} {source}", one.id)
    };
    found.findings.iter().map(line).collect()
}

fn ids(os: &Os, detector: Detector, package: Package, database: &dyn Database) -> Vec<String> {
    let found = find(&bill(Some(os.clone()), detector, package), database).unwrap();
    found.findings.iter().map(|one| one.id.clone()).collect()
}

fn extended(version: &str) -> Os {
    Os {
        extended: true,
        ..Os::new(Family::Ubuntu, version)
    }
}
