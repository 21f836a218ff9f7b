//! Layers that mean harm: each ends with an error that says why, quickly.

use flate2::Compression;
use flate2::write::GzEncoder;
use muster_scan::layer::{self, LayerError};
use muster_scan::limits::Limits;
use std::io::{self, Read, Write};

/// Zeros without end, with a count of how many were asked for.
struct Zeros(u64);

impl Read for Zeros {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        buffer.fill(0);
        let length = buffer.len().min(usize::try_from(self.0).unwrap());
        self.0 -= length as u64;
        Ok(length)
    }
}

fn gzip(mut source: impl Read) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    io::copy(&mut source, &mut encoder).unwrap();
    encoder.finish().unwrap()
}

fn error(blob: &[u8], limits: &Limits) -> String {
    layer::read(blob, limits).unwrap_err().to_string()
}

const SMALL: Limits = Limits {
    compressed_bytes: 1 << 20,
    layer_bytes: 1 << 24,
    expansion_from: 1 << 20,
    ..Limits::DEFAULT
};

#[test]
fn a_bomb_is_refused_by_how_it_grows() {
    let expected = "reading the layer: more than 200 times the size of the compressed layer";
    assert_eq!(error(&gzip(Zeros(1 << 23)), &SMALL), expected);
    let zstd = zstd::encode_all(Zeros(1 << 23), 3).unwrap();
    assert_eq!(error(&zstd, &SMALL), expected);
}

#[test]
fn a_layer_is_refused_by_its_size_on_either_side() {
    let mut random = crate::random::Random(11);
    let noise: Vec<u8> = (0..1 << 21).map(|_| random.next() as u8).collect();
    let expected = "reading the layer: more than 1048576 compressed bytes in a layer";
    // Behind the end of the archive, where nothing else would look at it.
    let noise = Zeros(1024).chain(noise.as_slice());
    assert_eq!(error(&gzip(noise), &SMALL), expected);
    let limits = Limits {
        expansion: u64::MAX,
        ..SMALL
    };
    let expected = "reading the layer: more than 16777216 bytes in a layer";
    assert_eq!(error(&gzip(Zeros(1 << 25)), &limits), expected);
}

#[test]
fn a_window_that_needs_too_much_memory_is_refused() {
    let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
    encoder.window_log(24).unwrap();
    io::copy(&mut Zeros(1 << 25), &mut encoder).unwrap();
    let blob = encoder.finish().unwrap();
    let limits = Limits {
        window_log: 20,
        ..Limits::DEFAULT
    };
    assert!(matches!(
        layer::read(blob.as_slice(), &limits),
        Err(LayerError::Read(_))
    ));
    assert!(layer::read(blob.as_slice(), &Limits::DEFAULT).is_ok());
}

#[test]
fn every_cut_of_a_layer_is_an_error_or_a_shorter_archive_and_never_a_panic() {
    let mut archive = vec![0; 512];
    archive[..19].copy_from_slice(b"var/lib/dpkg/status");
    archive[124..135].copy_from_slice(b"00000000012");
    archive[156] = b'0';
    let sum: u32 = archive.iter().map(|byte| u32::from(*byte)).sum::<u32>() + 8 * 32;
    archive[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    archive.extend(b"Package: a");
    archive.resize(2048, 0);
    let compressed = gzip(archive.as_slice());
    assert!(layer::read(compressed.as_slice(), &Limits::DEFAULT).is_ok());
    for length in 1..compressed.len() {
        assert!(
            layer::read(&compressed[..length], &Limits::DEFAULT).is_err(),
            "{length}"
        );
    }
    for length in 0..archive.len() {
        let _ = layer::read(&archive[..length], &Limits::DEFAULT);
    }
    let mut random = crate::random::Random(7);
    for _ in 0..2000 {
        let mut damaged = archive.clone();
        for _ in 0..3 {
            let place = random.below(600);
            damaged[place] = random.next() as u8;
        }
        let _ = layer::read(damaged.as_slice(), &Limits::DEFAULT);
    }
}

#[test]
fn what_follows_a_compressed_layer_is_part_of_its_digest_or_an_error() {
    let mut blob = gzip(&[0; 1024][..]);
    blob.write_all(b"something else").unwrap();
    assert!(layer::read(blob.as_slice(), &Limits::DEFAULT).is_err());
}

#[test]
fn a_million_empty_files_are_walked_in_bounded_memory() {
    // One header over and over: the same name, so that only the walk itself is measured.
    let mut header = vec![0; 512];
    header[..4].copy_from_slice(b"file");
    header[156] = b'0';
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum::<u32>() + 8 * 32;
    header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    struct Repeated(Vec<u8>, usize, usize);
    impl Read for Repeated {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.2 == 0 {
                return Ok(0);
            }
            let length = buffer.len().min(self.0.len() - self.1);
            buffer[..length].copy_from_slice(&self.0[self.1..self.1 + length]);
            self.1 += length;
            if self.1 == self.0.len() {
                (self.1, self.2) = (0, self.2 - 1);
            }
            Ok(length)
        }
    }
    let layer = layer::read(Repeated(header, 0, 1_000_000), &Limits::DEFAULT).unwrap();
    assert_eq!(layer.inventory.paths.len(), 1);
    assert_eq!(layer.size, 512_000_000);
}
