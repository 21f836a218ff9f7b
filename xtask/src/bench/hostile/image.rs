//! An image whose upper layer removes every file of the lower one, each by a whiteout of its own.

use super::command;
use anyhow::{Context, Result};
use muster_testkit::layout::Layout;
use muster_testkit::measure;
use muster_testkit::process::Directory;
use std::path::Path;

/// Files in the lower layer, and whiteouts in the upper one: both times the work must grow alike.
const SIZES: [usize; 2] = [20_000, 40_000];

pub(super) fn measure(binary: &Path) -> Result<()> {
    for size in SIZES {
        let directory = Directory::new("hostile")?;
        let layout = Layout::create(&directory.join("image"))?;
        let names = |prefix: &str| -> Vec<String> {
            let name = |number| format!("var/lib/dpkg/info/{prefix}p{number}.md5sums");
            (0..size).map(name).collect()
        };
        let lower = layout.layer(&archive(&names(""))[..])?;
        let upper = layout.layer(&archive(&names(".wh."))[..])?;
        layout.image("latest", &[lower, upper])?;
        let mut sbom = command(binary);
        sbom.args(["sbom", "--quiet"]).arg(directory.join("image"));
        sbom.env("HOME", directory.path());
        let measured = measure::measure(&sbom).context("muster sbom")?;
        eprintln!(
            "an image of {size} files and as many whiteouts: {:.1} s, {} MB, {}",
            measured.wall.as_secs_f64(),
            measured.peak / 1_000_000,
            measured.status
        );
    }
    Ok(())
}

/// A tar archive of empty files.
fn archive(names: &[String]) -> Vec<u8> {
    let mut archive = Vec::with_capacity((names.len() + 2) * 512);
    for name in names {
        let mut header = [0; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[100..108].copy_from_slice(b"0000644\0");
        header[108..116].copy_from_slice(b"0000000\0");
        header[116..124].copy_from_slice(b"0000000\0");
        header[124..136].copy_from_slice(b"00000000000\0");
        header[136..148].copy_from_slice(b"00000000000\0");
        header[148..156].copy_from_slice(b"        ");
        header[156] = b'0';
        header[257..265].copy_from_slice(b"ustar\x0000");
        let sum: u32 = header.iter().map(|&byte| u32::from(byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        archive.extend_from_slice(&header);
    }
    archive.extend_from_slice(&[0; 1024]);
    archive
}
