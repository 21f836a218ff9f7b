//! Source directories: the files in them that pin what they depend on.

use crate::support::{bill, names, options, refusal, written};
use anyhow::Result;
use std::os::unix::fs::symlink;

const GEMS: &[u8] = b"GEM\n  remote: https://rubygems.org/\n  specs:\n    rake (13.0.6)\n";

fn requirements(name: &str) -> Vec<u8> {
    format!("{name}==1.0\n").into_bytes()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_pinned_is_found_and_what_was_fetched_is_not() -> Result<()> {
    let home = tempfile::tempdir()?;
    let (root, outside) = (home.path().join("code"), home.path().join("outside"));
    written(
        &root,
        &[
            ("requirements.txt".into(), requirements("flask")),
            ("deep/down/requirements.txt".into(), requirements("django")),
            ("Gemfile.lock".into(), GEMS.to_vec()),
            (
                "node_modules/a/requirements.txt".into(),
                requirements("fetched"),
            ),
            ("deep/target/requirements.txt".into(), requirements("built")),
            ("vendor/requirements.txt".into(), requirements("copied")),
            (".git/requirements.txt".into(), requirements("recorded")),
            ("broken/package-lock.json".into(), b"{".to_vec()),
            ("notes.txt".into(), b"flask==2".to_vec()),
        ],
    );
    written(
        &outside,
        &[("requirements.txt".into(), requirements("outside"))],
    );
    symlink(&outside, root.join("linked"))?;
    std::fs::create_dir(root.join("other"))?;
    symlink(
        outside.join("requirements.txt"),
        root.join("other/requirements.txt"),
    )?;
    let found = bill(&root.display().to_string(), &options()).await?;
    let mut packages = names(&found);
    packages.sort_unstable();
    assert_eq!(packages, ["django", "flask", "rake"]);
    assert!(found.subject.digest.is_empty());
    let paths: Vec<_> = found
        .incomplete
        .iter()
        .map(|one| one.path.as_str())
        .collect();
    assert_eq!(paths, ["broken/package-lock.json"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_in_which_nothing_is_recognised_is_refused() -> Result<()> {
    let home = tempfile::tempdir()?;
    let at = |name: &str| home.path().join(name);
    written(&at("notes"), &[("notes.txt".into(), b"flask==2".to_vec())]);
    std::fs::create_dir(at("empty"))?;
    for place in ["empty", "notes"] {
        for scheme in ["", "dir:", "rootfs:"] {
            let told = refusal(&format!("{scheme}{}", at(place).display()), &options()).await;
            assert!(
                told.contains("no packages found"),
                "{scheme}{place}: {told}"
            );
            assert!(
                told.contains("package-lock.json"),
                "{scheme}{place}: {told}"
            );
        }
    }
    // A lockfile without packages is recognised, and one that is broken is reported as such.
    written(
        &at("none"),
        &[("requirements.txt".into(), b"# none\n".to_vec())],
    );
    assert!(
        bill(&at("none").display().to_string(), &options())
            .await?
            .components
            .is_empty()
    );
    written(
        &at("broken"),
        &[("package-lock.json".into(), b"{".to_vec())],
    );
    let broken = bill(&at("broken").display().to_string(), &options()).await?;
    assert_eq!(broken.incomplete.len(), 1);
    Ok(())
}
