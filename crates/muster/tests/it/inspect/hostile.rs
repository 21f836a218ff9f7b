//! Images that mean harm, met by `muster scan` as a person would: each ends soon, with an error that
//! names it or a result that says what is missing, in memory that does not depend on the image.

use super::archive::{self, DIRECTORY, END, EXTENDED, HARD_LINK, LONG_NAME, SPARSE, SYMBOLIC_LINK};
use super::{Desk, debian_status};
use anyhow::{Context, Result, ensure};
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder};
use muster_testkit::layout::{Layer, Layout};
use muster_testkit::push::{LAYER, digest};
use std::io::Write;
use std::path::Path;

const MEBIBYTE: u64 = 1 << 20;
const ZSTD: &str = "application/vnd.oci.image.layer.v1.tar+zstd";
/// The digest of an archive that is never read to its end, so that nobody finds out.
const ANY: &str = "sha256:0000000000000000000000000000000000000000000000000000000000000000";

enum End {
    /// An error that says so.
    Refused(&'static str),
    /// A result that says so of itself.
    Incomplete(&'static str),
    /// A result with the packages of Debian's database, as if nothing were.
    Unharmed,
}

struct Case {
    name: &'static str,
    end: End,
    peak: u64,
    layers: fn(&Layout) -> Result<Vec<Layer>>,
}

const CASES: &[Case] = &[
    Case {
        name: "a gzip bomb",
        end: End::Refused("more than 200 times the size of the compressed layer"),
        peak: 64,
        layers: |layout| {
            let mut zeros = GzEncoder::new(Vec::new(), Compression::best());
            zeros.write_all(&vec![0; 64 << 20])?;
            let zeros = zeros.finish()?;
            let blob = [
                gzip(&archive::header("zeros", b'0', 8 << 30, ""))?,
                zeros.repeat(20),
            ];
            Ok(vec![layout.raw_layer(&blob.concat(), LAYER, ANY)?])
        },
    },
    Case {
        name: "a zstd bomb",
        end: End::Refused("more than 200 times the size of the compressed layer"),
        peak: 64,
        layers: |layout| {
            let zeros = zstd::encode_all(vec![0; 64 << 20].as_slice(), 3)?;
            let first = archive::header("zeros", b'0', 8 << 30, "");
            let blob = [zstd::encode_all(first.as_slice(), 3)?, zeros.repeat(20)];
            Ok(vec![layout.raw_layer(&blob.concat(), ZSTD, ANY)?])
        },
    },
    Case {
        name: "a million empty files",
        end: End::Unharmed,
        peak: 100,
        layers: |layout| {
            let files = (0..1_000_000)
                .map(|number| archive::file(&format!("d{}/{number}", number % 997), b""));
            let all = files.chain([debian_status(), END.to_vec()]);
            Ok(vec![layout.layer(archive::pieces(all))?])
        },
    },
    Case {
        name: "paths that lead out",
        end: End::Unharmed,
        peak: 64,
        layers: |layout| {
            let outside = [
                "../../../etc/os-release",
                "/../var/lib/dpkg/status",
                "a/../../b/package.json",
            ];
            let mut all: Vec<Vec<u8>> = outside
                .iter()
                .map(|path| archive::file(path, b"{\"name\":\"outside\",\"version\":\"1\"}"))
                .collect();
            all.push(archive::header(
                "var/lib/apk",
                SYMBOLIC_LINK,
                0,
                "../../../../../etc",
            ));
            all.push(debian_status());
            layer(layout, all)
        },
    },
    Case {
        name: "directories in directories",
        end: End::Unharmed,
        peak: 64,
        layers: |layout| {
            let deep = "d/".repeat(1_900);
            let named = |kind: u8, path: &str| {
                [
                    archive::entry("long", LONG_NAME, path.as_bytes()),
                    archive::header("x", kind, 0, ""),
                ]
                .concat()
            };
            let mut all: Vec<Vec<u8>> = (0..1_000)
                .map(|number| named(DIRECTORY, &format!("{deep}{number}")))
                .collect();
            all.push(debian_status());
            layer(layout, all)
        },
    },
    Case {
        name: "a name of a gigabyte",
        end: End::Refused("more than 1048576 bytes in a header"),
        peak: 64,
        layers: |layout| {
            layer(
                layout,
                vec![archive::header("long", LONG_NAME, 1 << 30, "")],
            )
        },
    },
    Case {
        name: "an extended header of two megabytes",
        end: End::Refused("more than 1048576 bytes in a header"),
        peak: 64,
        layers: |layout| {
            let value = "x".repeat(2 << 20);
            layer(
                layout,
                vec![archive::entry(
                    "x",
                    EXTENDED,
                    format!("{} path={value}\n", value.len() + 14).as_bytes(),
                )],
            )
        },
    },
    Case {
        name: "a sparse file of eight terabytes",
        end: End::Incomplete("var/lib/dpkg/status"),
        peak: 64,
        layers: |layout| {
            let mut sparse = archive::header("var/lib/dpkg/status", SPARSE, 512, "");
            // One piece at the start, and a real size that no disk has.
            sparse[386..398].copy_from_slice(b"00000000000\0");
            sparse[398..410].copy_from_slice(b"00000001000\0");
            sparse[483..495].copy_from_slice(b"77777777777\0");
            repair(&mut sparse);
            sparse.extend([b'x'; 512]);
            layer(layout, vec![sparse])
        },
    },
    Case {
        name: "a stream that is cut short",
        end: End::Refused("reading the layer"),
        peak: 64,
        layers: |layout| {
            let whole = gzip(&[debian_status(), END.to_vec()].concat())?;
            let cut = &whole[..whole.len() / 2];
            Ok(vec![layout.raw_layer(cut, LAYER, ANY)?])
        },
    },
    Case {
        name: "a layer that is another than the manifest says",
        end: End::Refused("the digest of layer"),
        peak: 64,
        layers: |layout| {
            let layers = layer(layout, vec![debian_status()])?;
            // The same contents, packed at another time.
            let mut other = std::fs::read(layout.path(&layers[0].digest))?;
            other[4] ^= 1;
            std::fs::write(layout.path(&layers[0].digest), other)?;
            Ok(layers)
        },
    },
    Case {
        name: "a layer that is another than the configuration says",
        end: End::Refused("the diff ID of layer"),
        peak: 64,
        layers: |layout| {
            let mut layers = layer(layout, vec![debian_status()])?;
            layers[0].diff_id = digest(b"something else");
            Ok(layers)
        },
    },
    Case {
        name: "a layer of another size than the manifest says",
        end: End::Refused("the size of layer"),
        peak: 64,
        layers: |layout| {
            let mut layers = layer(layout, vec![debian_status()])?;
            layers[0].size += 1;
            Ok(layers)
        },
    },
    Case {
        name: "a file that says it is larger than the archive",
        end: End::Refused("reading the layer"),
        peak: 64,
        layers: |layout| {
            layer(
                layout,
                vec![archive::header("var/lib/dpkg/status", b'0', 1 << 40, "")],
            )
        },
    },
    Case {
        name: "a package database of two gigabytes",
        end: End::Incomplete("var/lib/dpkg/status"),
        peak: 100,
        layers: |layout| {
            let piece: Vec<u8> = (0..1_u32 << 20)
                .flat_map(|number| {
                    format!(
                        "Package: p{:07x}\n",
                        number.wrapping_mul(2_654_435_761) >> 4
                    )
                    .into_bytes()
                })
                .collect();
            let count = (2_u64 << 30) / piece.len() as u64;
            let first =
                archive::header("var/lib/dpkg/status", b'0', piece.len() as u64 * count, "");
            let blob = [
                zstd::encode_all(first.as_slice(), 1)?,
                zstd::encode_all(piece.as_slice(), 1)?.repeat(usize::try_from(count)?),
                zstd::encode_all([0; 2048].as_slice(), 1)?,
            ]
            .concat();
            let plain = std::iter::once(first.clone())
                .chain((0..count).map(|_| piece.clone()))
                .chain([vec![0; 2048]]);
            Ok(vec![layout.raw_layer(&blob, ZSTD, &hashed(plain))?])
        },
    },
    Case {
        name: "a jar bomb",
        end: End::Incomplete("app/bomb.jar"),
        peak: 300,
        layers: |layout| {
            let bomb = zip("META-INF/maven/a/b/pom.properties", &vec![b'\n'; 512 << 20])?;
            layer(
                layout,
                vec![archive::file("app/bomb.jar", &bomb), debian_status()],
            )
        },
    },
    Case {
        name: "jars in jars in jars",
        end: End::Incomplete("app/deep.jar"),
        peak: 100,
        layers: |layout| {
            let mut jar = zip("META-INF/MANIFEST.MF", b"Manifest-Version: 1.0\n")?;
            for _ in 0..100 {
                jar = zip("inner.jar", &jar)?;
            }
            layer(
                layout,
                vec![archive::file("app/deep.jar", &jar), debian_status()],
            )
        },
    },
    Case {
        name: "links in circles",
        end: End::Unharmed,
        peak: 64,
        layers: |layout| {
            let link = |name: &str, target: &str| archive::header(name, SYMBOLIC_LINK, 0, target);
            layer(
                layout,
                vec![
                    link("usr/lib/sysimage", "../../usr/lib/sysimage"),
                    link("lib", "lib"),
                    link("usr/share", "/usr/share/rpm"),
                    archive::header("etc/hard", HARD_LINK, 0, "etc/hard"),
                    debian_status(),
                ],
            )
        },
    },
];

fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

fn layer(layout: &Layout, mut entries: Vec<Vec<u8>>) -> Result<Vec<Layer>> {
    entries.push(END.to_vec());
    Ok(vec![layout.layer(entries.concat().as_slice())?])
}

fn hashed(pieces: impl Iterator<Item = Vec<u8>>) -> String {
    use sha2::{Digest, Sha256};
    let mut hash = Sha256::new();
    pieces.for_each(|piece| hash.update(piece));
    let digits: String = hash
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("sha256:{digits}")
}

/// Makes the sum of a header right again.
fn repair(header: &mut [u8]) {
    header[148..156].copy_from_slice(b"        ");
    let sum: u32 = header[..512].iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
}

/// An archive of one deflated entry.
pub(crate) fn zip(name: &str, contents: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(contents)?;
    let packed = encoder.finish()?;
    let sizes = [
        (packed.len() as u32).to_le_bytes(),
        (contents.len() as u32).to_le_bytes(),
    ]
    .concat();
    let about = [
        &[20, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0][..],
        &sizes,
        &(name.len() as u16).to_le_bytes(),
        &[0, 0],
    ]
    .concat();
    let local = [b"PK\x03\x04", about.as_slice(), name.as_bytes(), &packed].concat();
    let central = [
        b"PK\x01\x02\x14\0",
        about.as_slice(),
        &[0; 14],
        name.as_bytes(),
    ]
    .concat();
    let end = [
        b"PK\x05\x06\0\0\0\0\x01\0\x01\0",
        (central.len() as u32).to_le_bytes().as_slice(),
        &(local.len() as u32).to_le_bytes(),
        &[0, 0],
    ]
    .concat();
    Ok([local, central, end].concat())
}

fn meet(desk: &Desk, case: &Case, directory: &Path) -> Result<()> {
    let layout = Layout::create(directory)?;
    let layers = (case.layers)(&layout)?;
    layout.image("app:1", &layers)?;
    let target = directory.to_string_lossy().into_owned();
    let measured = desk.measure(&["scan", "--offline", "--quiet", "-o", "json", &target])?;
    let peak = measured.peak / MEBIBYTE;
    eprintln!("{}: {} MiB, {:?}", case.name, peak, measured.processor);
    ensure!(
        peak <= case.peak,
        "{peak} MiB at the peak, and {} are allowed",
        case.peak
    );
    let code = measured.status.code();
    let told = format!("{}\n{}", measured.stderr, measured.stdout);
    match case.end {
        End::Refused(why) => {
            ensure!(code == Some(1), "ended with {code:?}: {told}");
            ensure!(
                measured.stderr.contains(why),
                "not refused for {why:?}: {told}"
            );
            ensure!(
                measured.stderr.contains(&target),
                "the target is not named: {told}"
            );
        }
        End::Incomplete(path) => {
            ensure!(code == Some(0), "ended with {code:?}: {told}");
            let report = super::only(&measured.stdout)?["report"].clone();
            let incomplete = report["incomplete"]
                .as_array()
                .context("nothing is incomplete")?;
            ensure!(
                incomplete.iter().any(|one| one["path"]
                    .as_str()
                    .is_some_and(|named| named.starts_with(path))),
                "{told}"
            );
        }
        End::Unharmed => {
            ensure!(code == Some(0), "ended with {code:?}: {told}");
            let one = super::only(&measured.stdout)?;
            ensure!(one["packages"] == 2, "{told}");
            ensure!(one["report"]["summary"]["critical"] == 1, "{told}");
        }
    }
    Ok(())
}

#[test]
fn images_that_mean_harm_do_none() -> Result<()> {
    let desk = Desk::new()?;
    let mut failures = Vec::new();
    for case in CASES {
        let directory = tempfile::tempdir()?;
        if let Err(error) = meet(&desk, case, directory.path()) {
            failures.push(format!("{}: {error:#}", case.name));
        }
    }
    ensure!(failures.is_empty(), "{}", failures.join("\n"));
    Ok(())
}
