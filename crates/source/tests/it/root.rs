//! A root file system on disk is the same as the same tree in an image.

use crate::support::{Image, RELEASE, bill, gzip, names, options, status, written};
use anyhow::Result;
use muster_scan::sbom::Bill;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

/// A bill without what only an image has.
fn bare(mut bill: Bill) -> Bill {
    bill.subject = Default::default();
    for component in &mut bill.components {
        component.layer = None;
    }
    bill
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tree_is_what_an_image_of_it_would_be() -> Result<()> {
    let home = tempfile::tempdir()?;
    let root = home.path().join("root");
    let long = format!("srv/{}/{}", "d".repeat(90), "e".repeat(90));
    let node = |name: &str| {
        format!(r#"{{"name": "{name}", "version": "2.0.0", "license": "MIT"}}"#).into_bytes()
    };
    written(
        &root,
        &[
            ("usr/lib/os-release".into(), RELEASE.to_vec()),
            ("var/lib/dpkg/status".into(), status(&["base", "odd"])),
            (format!("{long}/node_modules/far/package.json"), node("far")),
            ("app/node_modules/near/package.json".into(), node("near")),
            ("app/empty".into(), vec![]),
            ("app/big".into(), vec![1; 3 << 20]),
            ("app/broken/package.json".into(), b"{".to_vec()),
        ],
    );
    fs::create_dir_all(root.join("etc"))?;
    // Some links are on the way to databases, and one leads out of the tree.
    symlink("../usr/lib/os-release", root.join("etc/os-release"))?;
    symlink("/usr/lib/sysimage/rpm", root.join("var/lib/rpm"))?;
    symlink("/proc/self", root.join("app/outside"))?;
    fs::hard_link(
        root.join("app/node_modules/near/package.json"),
        root.join("app/package.json"),
    )?;
    // The test itself is a program.
    fs::copy(std::env::current_exe()?, root.join("app/program"))?;
    fs::set_permissions(root.join("app/program"), fs::Permissions::from_mode(0o755))?;
    let pipe = root.join("app/pipe.jar");
    assert!(Command::new("mkfifo").arg(&pipe).status()?.success());

    let archived = Command::new("tar")
        .args(["-C", &root.display().to_string(), "-c", "."])
        .output()?;
    assert!(
        archived.status.success(),
        "{}",
        String::from_utf8_lossy(&archived.stderr)
    );
    let mut image = Image::new("amd64", vec![archived.stdout]);
    image.layers = vec![gzip(&image.plain[0])];
    let layout = home.path().join("layout");
    written(&layout, &image.layout("a"));

    let expected = bare(bill(&layout.display().to_string(), &options()).await?);
    let found = bare(bill(&root.display().to_string(), &options()).await?);
    for name in ["base", "odd", "far", "near"] {
        assert!(names(&expected).contains(&name), "{name} of {expected:?}");
    }
    assert_eq!(found, expected);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_kernel_makes_up_is_not_looked_into() -> Result<()> {
    let home = tempfile::tempdir()?;
    let package = br#"{"name": "x", "version": "1"}"#.to_vec();
    let path = |top: &str| {
        (
            format!("{top}/node_modules/x/package.json"),
            package.clone(),
        )
    };
    written(home.path(), &["proc", "sys", "dev", "srv/proc"].map(path));
    let typed = format!("rootfs:{}", home.path().display());
    let found = bill(&typed, &options()).await?;
    let paths: Vec<_> = found
        .components
        .iter()
        .map(|one| one.path.as_str())
        .collect();
    assert_eq!(paths, ["srv/proc/node_modules/x/package.json"]);
    Ok(())
}
