//! The images that are scanned: made by the real tools, once, into the cache. A small distribution,
//! an application upon it with programs and packages of three languages, and a family of ten that
//! share most of their layers.

use crate::run::run;
use anyhow::{Context, Result, ensure};
use muster_testkit::binaries;
use muster_testkit::debian;
use muster_testkit::layout::{Layer, Layout};
use std::fs;
use std::path::{Path, PathBuf};

/// Raised when an image is made differently.
const VERSION: &str = "1";
const FAMILY: usize = 10;

const NPM: &[&str] = &[
    "express@4.18.2",
    "webpack@5.88.0",
    "typescript@5.1.6",
    "react@18.2.0",
    "react-dom@18.2.0",
    "next@13.4.0",
    "eslint@8.44.0",
    "jest@29.6.0",
    "axios@0.21.0",
    "lodash@4.17.15",
    "aws-sdk@2.1400.0",
];
const PYTHON: &[&str] = &[
    "django==3.2.0",
    "flask==2.0.0",
    "requests==2.25.0",
    "sqlalchemy==1.4.0",
    "celery==5.0.0",
    "boto3==1.17.0",
];

/// The images as layouts.
pub(super) struct Images {
    /// A distribution of about 120 MB.
    pub(super) distribution: PathBuf,
    /// An application of about 550 MB.
    pub(super) application: PathBuf,
    /// Ten that share most of their layers.
    pub(super) family: Vec<PathBuf>,
}

/// Finds the images, or makes them.
pub(super) fn images() -> Result<Images> {
    let cache = binaries::cache().context("neither MUSTER_CACHE nor HOME is set")?;
    let parent = cache.join("bench-images");
    let place = parent.join(VERSION);
    if !place.is_dir() {
        fs::create_dir_all(&parent)?;
        eprintln!("making the images; this is done once and takes some minutes");
        let made = tempfile::Builder::new().tempdir_in(&parent)?;
        make(made.path())?;
        fs::rename(made.keep(), &place).context("keeping the images")?;
    }
    Ok(Images {
        distribution: place.join("distribution"),
        application: place.join("application"),
        family: (0..FAMILY)
            .map(|number| place.join(format!("family-{number}")))
            .collect(),
    })
}

fn make(directory: &Path) -> Result<()> {
    let distribution = Layout::create(&directory.join("distribution"))?;
    let base = packed(&distribution, &debian::root()?)?;
    distribution.image("distribution:1", std::slice::from_ref(&base))?;

    let work = tempfile::tempdir()?;
    let tree = |name: &str| -> Result<PathBuf> {
        let path = work.path().join(name);
        fs::create_dir_all(&path)?;
        Ok(path)
    };
    let (node, python, programs) = (
        tree("node/srv/app")?,
        tree("python/opt/app")?,
        tree("go/usr/local/bin")?,
    );
    let prefix = node.to_string_lossy();
    run(
        "npm",
        &[
            &[
                "install",
                "--no-audit",
                "--no-fund",
                "--ignore-scripts",
                "--prefix",
                &prefix,
            ],
            NPM,
        ]
        .concat(),
    )?;
    let target = python.to_string_lossy();
    run(
        "pip3",
        &[
            &["install", "--quiet", "--no-compile", "--target", &target],
            PYTHON,
        ]
        .concat(),
    )?;
    let binaries = binaries::ensure_kubernetes()?;
    for program in [
        &binaries.kube_apiserver,
        &binaries.kube_controller_manager,
        &binaries.kubectl,
    ] {
        let name = program.file_name().context("a program's name")?;
        fs::copy(program, programs.join(name)).context("copying a program")?;
    }
    let application = Layout::create(&directory.join("application"))?;
    let mut layers = vec![application.adopt(&distribution, &base)?];
    for name in ["node", "python", "go"] {
        layers.push(packed(&application, &work.path().join(name))?);
    }
    application.image("application:1", &layers)?;

    for number in 0..FAMILY {
        let member = Layout::create(&directory.join(format!("family-{number}")))?;
        let own = tree(&format!("own-{number}/srv/member"))?;
        let about = format!("{{\"name\":\"member\",\"version\":\"1.{number}.0\"}}");
        fs::write(own.join("package.json"), about)?;
        let mut shared: Vec<Layer> = layers[..3]
            .iter()
            .map(|layer| member.adopt(&application, layer))
            .collect::<Result<_>>()?;
        shared.push(packed(&member, &work.path().join(format!("own-{number}")))?);
        member.image(&format!("member:{number}"), &shared)?;
    }
    Ok(())
}

fn packed(layout: &Layout, directory: &Path) -> Result<Layer> {
    let mut archive = debian::archive(directory)?;
    let layer = layout.layer(archive.stdout.take().context("an archive")?)?;
    ensure!(archive.wait()?.success(), "tar failed");
    Ok(layer)
}

/// The compressed layers of a layout.
pub(super) fn layers(layout: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(layout.join("blobs/sha256"))? {
        let path = entry?.path();
        let mut start = [0; 2];
        let read = std::io::Read::read(&mut fs::File::open(&path)?, &mut start)?;
        if start[..read] == [0x1f, 0x8b] {
            found.push(path);
        }
    }
    Ok(found)
}
