//! Archives made by hand, right and wrong.

use super::*;

/// A header with a right checksum.
pub(crate) fn header(name: &str, flag: u8, size: u64, link: &str) -> Vec<u8> {
    let mut block = vec![0; BLOCK];
    block[..name.len()].copy_from_slice(name.as_bytes());
    block[100..107].copy_from_slice(b"0000644");
    let size = format!("{size:011o}");
    block[124..135].copy_from_slice(size.as_bytes());
    block[156] = flag;
    block[157..157 + link.len()].copy_from_slice(link.as_bytes());
    block[257..263].copy_from_slice(b"ustar\0");
    seal(&mut block);
    block
}

fn seal(block: &mut [u8]) {
    block[148..156].copy_from_slice(b"        ");
    let sum: u64 = block.iter().map(|byte| u64::from(*byte)).sum();
    let sum = format!("{sum:06o}\0 ");
    block[148..156].copy_from_slice(sum.as_bytes());
}

pub(crate) fn file(name: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes = header(name, b'0', body.len() as u64, "");
    bytes.extend(body);
    bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
    bytes
}

fn extended(flag: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = file("header", body);
    bytes[156] = flag;
    seal(&mut bytes[..BLOCK]);
    bytes
}

fn record(key: &str, value: &str) -> String {
    let rest = format!(" {key}={value}\n");
    let length = (1..).find(|length: &usize| length.to_string().len() + rest.len() == *length);
    format!("{}{rest}", length.unwrap())
}

fn walk(bytes: &[u8], limits: &Limits) -> Result<Vec<(Entry, Vec<u8>)>, TarError> {
    let mut tar = Tar::new(bytes, limits);
    let mut entries = Vec::new();
    while let Some(entry) = tar.next()? {
        let mut body = Vec::new();
        if entries.len() % 2 == 0 {
            tar.body().read_to_end(&mut body)?;
        }
        entries.push((entry, body));
    }
    Ok(entries)
}

fn paths(bytes: &[u8]) -> Vec<String> {
    let entries = walk(bytes, &Limits::DEFAULT).unwrap();
    let path = |(entry, _): (Entry, Vec<u8>)| entry.path.unwrap_or("(outside)".into());
    entries.into_iter().map(path).collect()
}

#[test]
fn names_are_taken_from_whichever_header_has_them() {
    let long = "d/".repeat(100) + "file";
    let mut split = file("file", b"");
    split[345..350].copy_from_slice(b"usr/x");
    seal(&mut split[..BLOCK]);
    let archive = [
        file("./etc/os-release", b"ID=debian\n"),
        extended(b'L', format!("{long}\0").as_bytes()),
        file("cut", b""),
        extended(b'x', record("path", "etc/pax").as_bytes()),
        file("cut", b"body"),
        split,
        extended(b'g', record("path", "everywhere").as_bytes()),
        file("/abs//olute/../path", b""),
        file("../../etc/passwd", b""),
    ]
    .concat();
    assert_eq!(
        paths(&archive),
        [
            "etc/os-release",
            long.as_str(),
            "etc/pax",
            "usr/x/file",
            "abs/path",
            "(outside)"
        ]
    );
}

#[test]
fn the_extended_size_is_the_one_that_counts() {
    let mut lying = header("file", b'0', 0, "");
    lying.extend(file("smuggled", b""));
    let archive = [
        extended(b'x', record("size", "512").as_bytes()),
        lying,
        file("after", b""),
    ]
    .concat();
    assert_eq!(paths(&archive), ["file", "after"]);
}

#[test]
fn links_and_directories_have_no_body_whatever_they_say() {
    let archive = [
        header("link", b'2', 512, "target"),
        header("hard", b'1', 512, "target"),
        header("directory/", b'0', 512, ""),
        file("after", b"x"),
    ]
    .concat();
    assert_eq!(paths(&archive), ["link", "hard", "directory", "after"]);
}

#[test]
fn sparse_files_are_marked_and_their_maps_skipped() {
    let mut old = header("old", b'S', 4, "");
    old[482] = 1;
    seal(&mut old[..BLOCK]);
    let mut map = vec![0; 2 * BLOCK];
    map[504] = 1;
    old.extend(map);
    old.extend(file("", b"abcd").split_off(BLOCK));
    let records = record("GNU.sparse.major", "1") + &record("GNU.sparse.name", "new");
    let archive = [
        old,
        extended(b'x', records.as_bytes()),
        file("GNUSparseFile.0/new", b"1\n"),
        file("after", b""),
    ]
    .concat();
    let entries = walk(&archive, &Limits::DEFAULT).unwrap();
    let sparse: Vec<_> = entries
        .iter()
        .map(|(entry, _)| (entry.path.as_deref().unwrap(), entry.sparse))
        .collect();
    assert_eq!(sparse, [("old", true), ("new", true), ("after", false)]);
}

#[test]
fn the_archive_ends_at_two_empty_blocks_or_at_the_end() {
    let mut archive = file("a", b"");
    assert_eq!(paths(&archive), ["a"]);
    archive.extend([0; 2 * BLOCK]);
    archive.extend(file("after the end", b""));
    assert_eq!(paths(&archive), ["a"]);
    assert_eq!(paths(&[]), Vec::<String>::new());
}

#[test]
fn what_is_wrong_is_said() {
    let mut broken = file("a", b"");
    broken[0] = b'b';
    let mut number = file("a", b"");
    number[124..135].copy_from_slice(b"99999999999");
    seal(&mut number);
    let mut negative = file("a", b"");
    negative[124..136].copy_from_slice(&[0xff; 12]);
    seal(&mut negative);
    let mut enormous = file("a", b"");
    enormous[124..136].copy_from_slice(&[0x80, 0, 0, 0, 0x7f, 255, 255, 255, 255, 255, 255, 255]);
    seal(&mut enormous);
    let mut single = vec![0; BLOCK];
    single.extend(file("a", b""));
    for (archive, expected) in [
        (broken, "its checksum is wrong"),
        (number, "its size is no number"),
        (negative, "its size is no number"),
        (enormous, "its size is larger than a layer may be"),
        (single, "an empty block stands before it"),
        (
            file("a", b"abc")[..100].to_vec(),
            "the archive ends inside a header",
        ),
        (
            header("a", b'0', 9, ""),
            "the archive ends inside its contents",
        ),
        (
            extended(b'x', b"9 path"),
            "its extended header is malformed",
        ),
        (
            extended(b'x', b"999 path=a\n"),
            "its extended header is malformed",
        ),
        (
            extended(b'x', b"1 path=a\n"),
            "its extended header is malformed",
        ),
        (
            header("x", b'x', 1 << 21, ""),
            "more than 1048576 bytes in a header",
        ),
        (
            [extended(b'L', &[b'a'; 5000]), file("a", b"")].concat(),
            "more than 4096 bytes in a path",
        ),
    ] {
        let mut tar = Tar::new(archive.as_slice(), &Limits::DEFAULT);
        let error = loop {
            match tar.next() {
                Ok(Some(_)) => {}
                Ok(None) => panic!("{expected}"),
                Err(error) => break error.to_string(),
            }
        };
        assert!(error.ends_with(expected), "{error}, not {expected}");
    }
    let limits = Limits {
        entries: 2,
        ..Limits::DEFAULT
    };
    let three = [file("a", b""), file("b", b""), file("c", b"")].concat();
    let error = walk(&three, &limits).unwrap_err().to_string();
    assert_eq!(error, "more than 2 entries in a layer");
}
