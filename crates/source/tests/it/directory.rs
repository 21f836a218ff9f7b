//! Source directories: the files in them that pin what they depend on.

use crate::support::{bill, names, options, written};
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
