//! An rpm database that the real `rpm` wrote, of packages that the real `rpmbuild` built: with and
//! without epoch, of modules, for no processor in particular, of other vendors.

use super::run;
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Name, epoch, version, release, architecture, vendor and module.
const PACKAGES: [(&str, u32, &str, &str, &str, &str, &str); 10] = [
    ("tool", 0, "1.2.3", "4.el9", "x86_64", "Red Hat, Inc.", ""),
    (
        "libcurl",
        0,
        "7.76.1",
        "29.el9_4",
        "x86_64",
        "Red Hat, Inc.",
        "",
    ),
    (
        "openssl-libs",
        1,
        "3.0.7",
        "27.el9",
        "x86_64",
        "Red Hat, Inc.",
        "",
    ),
    ("tzdata", 0, "2024a", "1.el9", "noarch", "Red Hat, Inc.", ""),
    (
        "vim-data",
        2,
        "8.2.2637",
        "20.el9_1",
        "noarch",
        "Red Hat, Inc.",
        "",
    ),
    (
        "nodejs",
        1,
        "18.20.2",
        "1.module+el9.4.0+1",
        "x86_64",
        "Red Hat, Inc.",
        "nodejs:18:9040020240101:rhel9",
    ),
    (
        "npm",
        1,
        "10.5.0",
        "1.18.20.2.1.module_el9",
        "x86_64",
        "Red Hat, Inc.",
        "",
    ),
    (
        "kernel-uek",
        0,
        "5.15.0",
        "1.ksplice1.el9",
        "x86_64",
        "Oracle America",
        "",
    ),
    (
        "gnutls",
        10,
        "3.8.3",
        "4.el9_4_fips",
        "x86_64",
        "Oracle America",
        "",
    ),
    ("docker-ce", 3, "26.1.0", "1.el9", "x86_64", "Docker", ""),
];

/// The bytes of the database.
pub(super) fn database(work: &Path) -> Result<Vec<u8>> {
    let place = work.join("rpm");
    let root = place.join("root");
    fs::create_dir_all(&root)?;
    let mut built = Vec::new();
    for (name, epoch, version, release, architecture, vendor, module) in PACKAGES {
        let mut spec = format!(
            "Name: {name}\nEpoch: {epoch}\nVersion: {version}\nRelease: {release}\nSummary: A package\nLicense: MIT\nVendor: {vendor}\n"
        );
        if epoch == 0 {
            spec = spec.replace("Epoch: 0\n", "");
        }
        if !module.is_empty() {
            spec += &format!("ModularityLabel: {module}\n");
        }
        if architecture == "noarch" {
            spec += "BuildArch: noarch\n";
        }
        spec += "\n%description\nA package.\n\n%files\n";
        let file = place.join(format!("{name}.spec"));
        fs::write(&file, spec)?;
        let top = format!("_topdir {}", place.display());
        run(Command::new("rpmbuild")
            .args(["--quiet", "--target", architecture, "--define", &top, "-bb"])
            .arg(&file))?;
        let package = format!("{name}-{version}-{release}.{architecture}.rpm");
        built.push(place.join("RPMS").join(architecture).join(package));
    }
    run(Command::new("rpm")
        .arg("--root")
        .arg(&root)
        .args(["--dbpath", "/var/lib/rpm", "--define", "_db_backend sqlite"])
        .args(["--justdb", "--nodeps", "--noscripts", "--ignorearch", "-i"])
        .args(&built))?;
    // What rpm has only noted beside the file goes into it.
    let file = root.join("var/lib/rpm/rpmdb.sqlite");
    let script = "import sqlite3, sys
sqlite3.connect(sys.argv[1]).execute('pragma journal_mode = delete').fetchall()";
    run(Command::new("python3").args(["-c", script]).arg(&file))?;
    fs::read(file).context("rpm left no database")
}
