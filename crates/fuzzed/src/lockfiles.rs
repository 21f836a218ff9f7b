//! The parsers of lockfiles: the first byte chooses one, the rest is its file and whatever lies
//! beside it.

use muster_scan::lockfile;

const NAMES: [&str; 14] = [
    "package-lock.json",
    "yarn.lock",
    "pnpm-lock.yaml",
    "requirements.txt",
    "Pipfile.lock",
    "poetry.lock",
    "uv.lock",
    "Cargo.lock",
    "go.mod",
    "pom.xml",
    "gradle.lockfile",
    "Gemfile.lock",
    "composer.lock",
    "packages.lock.json",
];

pub(crate) fn run(bytes: &[u8]) {
    let Some((which, contents)) = bytes.split_first() else {
        return;
    };
    let name = NAMES[usize::from(*which) % NAMES.len()];
    // Two files in one: what stands behind the mark lies beside the lockfile.
    let mut parts = contents.splitn(2, |byte| *byte == 0);
    let (lock, beside) = (parts.next().unwrap_or_default(), parts.next());
    let mut nearby = |_: &str| beside.map(<[u8]>::to_vec);
    let read = lockfile::read(&format!("a/{name}"), lock, &mut nearby);
    assert!(read.is_some());
}
