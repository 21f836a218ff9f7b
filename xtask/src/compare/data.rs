//! Advisories for exactly the packages that an image has, drawn by lot from a fixed seed: fixed
//! below, at and above what is installed, of several sources, statuses, severities, processors and
//! products, with ranges of every sign. They are filed under every name that a package might be
//! looked up by, and under streams that are not the image's.

use super::images::{Image, Versions};
use muster_scan::package::{Ecosystem, Package};
use muster_scan::sbom::Bill;
use muster_testkit::bolt::Put;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// How many advisories a package has under each name.
const ADVISORIES: usize = 6;
const SOURCES: [&str; 6] = ["nvd", "debian", "ubuntu", "redhat", "ghsa", "alpine"];

struct Lot(u64);

impl Lot {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

/// Everything that goes into the database.
pub(super) fn advisories(image: &Image, bill: &Bill) -> Vec<Put> {
    let mut lot = Lot(0x0074_7269_7679);
    let mut puts = BTreeMap::new();
    let mut put = |path: &[&str], key: &str, value: Value| {
        let put = Put::text(path, key, value.to_string());
        puts.insert((put.path.clone(), key.to_owned()), put);
    };
    for (stream, source) in &image.streams {
        let about = json!({"ID": source, "Name": stream, "URL": "https://example.org"});
        put(&["data-source"], stream, about);
    }
    for (index, name, numbers) in [
        ("repository", "rhel-9-for-x86_64-baseos-rpms", [1, 2]),
        ("repository", "rhel-9-for-x86_64-appstream-rpms", [2, 3]),
        ("repository", "rhel-8-for-x86_64-baseos-rpms", [5, 6]),
    ] {
        put(&["Red Hat CPE", index], name, json!(numbers));
    }
    let mut number = 0;
    for component in &bill.components {
        let ecosystem = component.detector.ecosystem();
        for (stream, _) in &image.streams {
            if !belongs(stream, ecosystem) {
                continue;
            }
            for name in names(&component.package) {
                for _ in 0..ADVISORIES {
                    number += 1;
                    let id = format!("CVE-2025-{number:06}");
                    let (key, value) = match image.versions {
                        _ if stream == "Red Hat" => red_hat(&mut lot, &id, &component.package),
                        Versions::Language => {
                            let version = &component.package.version;
                            (id.clone(), ranges(&mut lot, ecosystem, version))
                        }
                        versions => {
                            let value = fixed(&mut lot, versions, stream, &component.package);
                            (id.clone(), value)
                        }
                    };
                    put(&[stream, &name], &key, value);
                    // One in ten is not described.
                    if lot.below(10) > 0 {
                        put(&["vulnerability"], &id, vulnerability(&mut lot));
                    }
                }
            }
        }
    }
    puts.into_values().collect()
}

/// Whether packages of an ecosystem may be in a stream.
fn belongs(stream: &str, ecosystem: Ecosystem) -> bool {
    match stream.split_once("::") {
        None => matches!(
            ecosystem,
            Ecosystem::Debian | Ecosystem::Alpine | Ecosystem::Rpm
        ),
        Some((language, _)) => match language {
            "pip" => ecosystem == Ecosystem::Python,
            "rubygems" => ecosystem == Ecosystem::Ruby,
            "go" => ecosystem == Ecosystem::Go,
            other => ecosystem.purl_type() == other,
        },
    }
}

/// Every name that a package might be looked up by.
fn names(package: &Package) -> Vec<String> {
    let mut names = vec![
        package.name.clone(),
        package.source_name().to_owned(),
        package.name.to_lowercase(),
        package.name.to_lowercase().replace('_', "-"),
    ];
    if let Some(label) = &package.modularity {
        let parts: Vec<&str> = label.split(':').take(2).collect();
        names.push(format!("{}::{}", parts.join(":"), package.name));
    }
    names.retain(|name| !name.is_empty());
    names.sort();
    names.dedup();
    names
}

fn vulnerability(lot: &mut Lot) -> Value {
    let mut rated = json!({});
    for _ in 0..lot.below(4) {
        rated[lot.pick(&SOURCES)] = json!(lot.below(5));
    }
    let mut about = json!({"Title": "A hole", "VendorSeverity": rated});
    if lot.below(5) > 0 {
        about["Severity"] = json!(lot.pick(&["UNKNOWN", "LOW", "MEDIUM", "HIGH", "CRITICAL"]));
    }
    about
}

/// A version near another one: below, equal or above.
fn near(lot: &mut Lot, versions: Versions, version: &str) -> String {
    let mut bumped = bump(lot, version);
    let endings: &[&str] = match versions {
        Versions::Dpkg => &["", "", "~", "+b1", ".1", "~rc1", "0", "+deb12u1"],
        Versions::Apk => return bumped,
        Versions::Rpm => &["", "", ".1", "~1", "^1", "0", ".el9_4", "_fips"],
        Versions::Language => &[""],
    };
    bumped.push_str(lot.pick(endings));
    match (versions, lot.below(8)) {
        (Versions::Rpm, 0) if !bumped.contains(':') => format!("0:{bumped}"),
        (Versions::Dpkg | Versions::Rpm, 1) if !bumped.contains(':') => format!("1:{bumped}"),
        _ => bumped,
    }
}

/// Another number somewhere, or none.
fn bump(lot: &mut Lot, version: &str) -> String {
    let digits: Vec<usize> = version
        .char_indices()
        .filter(|(_, letter)| letter.is_ascii_digit())
        .map(|(place, _)| place)
        .collect();
    let mut text = version.to_owned();
    if !digits.is_empty() && lot.below(4) > 0 {
        let place = lot.pick(&digits);
        let digit = lot.below(9) + 1;
        text.replace_range(place..=place, &digit.to_string());
    }
    text
}

fn fixed(lot: &mut Lot, versions: Versions, stream: &str, package: &Package) -> Value {
    let mut value = json!({});
    let version = match lot.below(2) {
        0 => package.version.as_str(),
        _ => package.source_version(),
    };
    let fixed = near(lot, versions, version);
    // Those that publish what is not fixed do so with a status.
    let unfixed = ["debian", "ubuntu", "Azure", "CBL"];
    let has_unfixed = unfixed.iter().any(|start| stream.starts_with(start));
    if !has_unfixed || lot.below(3) > 0 {
        value["FixedVersion"] = json!(fixed);
    } else if stream.starts_with("debian") {
        value["Status"] = json!(lot.pick(&[0, 2, 4, 5, 6, 7]));
    }
    if stream.starts_with("debian") && lot.below(3) == 0 {
        value["Severity"] = json!(lot.below(5));
    }
    if ["rocky", "Oracle"]
        .iter()
        .any(|start| stream.starts_with(start))
        && lot.below(2) == 0
    {
        let other = near(lot, versions, version);
        value["Entries"] = json!([
            {"FixedVersion": fixed, "Arches": [lot.pick(&["x86_64", "aarch64"]), "noarch"]},
            {"FixedVersion": other, "Arches": [lot.pick(&["x86_64", "s390x"])]},
        ]);
    }
    value
}

/// An advisory or a vulnerability, each in some products.
fn red_hat(lot: &mut Lot, id: &str, package: &Package) -> (String, Value) {
    let entry = |lot: &mut Lot, cve: Value, fixed: bool| {
        let mut entry = json!({"Affected": [lot.below(7) + 1, lot.below(7) + 1], "Cves": [cve]});
        match fixed {
            true => {
                entry["FixedVersion"] = json!(near(lot, Versions::Rpm, &package.version));
            }
            false => entry["Status"] = json!(lot.pick(&[2, 4, 5, 6, 7])),
        }
        if lot.below(3) == 0 {
            entry["Arches"] = json!([lot.pick(&["x86_64", "s390x"]), "aarch64"]);
        }
        entry
    };
    if lot.below(3) == 0 {
        let severity = lot.below(5);
        let only = entry(lot, json!({ "Severity": severity }), false);
        return (id.to_owned(), json!({"Entries": [only]}));
    }
    let severity = lot.below(5);
    let cve = json!({"ID": id, "Severity": severity});
    let first = entry(lot, cve.clone(), true);
    let second = entry(lot, cve, true);
    let key = id.replace("CVE-2025-", "RHSA-2025:");
    (key, json!({"Entries": [first, second]}))
}

fn ranges(lot: &mut Lot, ecosystem: Ecosystem, version: &str) -> Value {
    let version = version.trim_start_matches('v');
    let (mut low, mut high) = (bump(lot, version), bump(lot, version));
    if low > high {
        std::mem::swap(&mut low, &mut high);
    }
    let signs: &[&str] = match ecosystem {
        Ecosystem::Npm => &["<", "<=", ">", ">=", "=", "^", "~"],
        Ecosystem::Python => &["<", "<=", ">", ">=", "==", "!=", "~="],
        Ecosystem::Ruby => &["<", "<=", ">", ">=", "=", "!=", "~>"],
        Ecosystem::Maven => &["<", "<=", ">", ">=", "=", "!="],
        _ => &["<", "<=", ">", ">=", "=", "!=", "^", "~", "~>"],
    };
    let sign = lot.pick(signs);
    let short: Vec<&str> = high.split('.').take(lot.below(2) + 2).collect();
    match lot.below(9) {
        0 => json!({"VulnerableVersions": [format!("< {high}")]}),
        1 => {
            json!({"VulnerableVersions": [format!(">= {low}, < {high}")], "PatchedVersions": [high]})
        }
        2 => json!({"VulnerableVersions": [format!(">={low}, <={high}"), format!("= {version}")]}),
        3 => json!({"VulnerableVersions": [format!("{sign} {high}")]}),
        4 => json!({"VulnerableVersions": [format!("{sign}{}", short.join("."))]}),
        5 => json!({"PatchedVersions": [format!(">= {high}")]}),
        6 => {
            json!({"PatchedVersions": [format!("{sign} {high}")], "UnaffectedVersions": [format!("< {low}")]})
        }
        7 => json!({"VulnerableVersions": [format!("< {low}, >= 0"), format!("> {high}")]}),
        _ => json!({"VulnerableVersions": [""]}),
    }
}
