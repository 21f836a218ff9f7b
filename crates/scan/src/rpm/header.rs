//! One record: an index of tags and the data they point into.

use super::{big, slice};
use crate::layer::path;
use crate::package::{Package, Reading, Source};

const NAME: u32 = 1000;
const VERSION: u32 = 1001;
const RELEASE: u32 = 1002;
const EPOCH: u32 = 1003;
const VENDOR: u32 = 1011;
const LICENCE: u32 = 1014;
const ARCHITECTURE: u32 = 1022;
const SOURCE: u32 = 1044;
const FOLDER_INDEXES: u32 = 1116;
const FILE_NAMES: u32 = 1117;
const FOLDERS: u32 = 1118;
const MODULARITY: u32 = 5096;

/// Length of an entry of the index: tag, type, offset and count.
const ENTRY: usize = 16;
const MAX_ENTRIES: usize = 0xffff;
/// Files of one package.
const MAX_FILES: usize = 500_000;

/// The tags of a record that matter, each with its type and count, and its data onwards.
struct Tags<'a> {
    index: &'a [u8],
    data: &'a [u8],
}

/// Reads a record into a package, or says what is wrong with it.
pub(super) fn read(record: &[u8], reading: &mut Reading) {
    let Some(tags) = Tags::parse(record) else {
        reading
            .problems
            .push("a record of the package database is damaged".into());
        return;
    };
    let (name, version) = (tags.text(NAME), tags.text(VERSION));
    // Keys that signatures are checked with are kept like packages.
    if name == Some("gpg-pubkey") {
        return;
    }
    let (Some(name), Some(version)) = (name, version) else {
        reading
            .problems
            .push("a package of the database has no name or no version".into());
        return;
    };
    let epoch = tags.numbers(EPOCH).next().filter(|epoch| *epoch > 0);
    let epoch = epoch.map_or(String::new(), |epoch| format!("{epoch}:"));
    let release = tags
        .text(RELEASE)
        .map_or(String::new(), |text| format!("-{text}"));
    let given = |tag| {
        tags.text(tag)
            .filter(|text| *text != "(none)")
            .map(str::to_owned)
    };
    reading.packages.push(Package {
        architecture: given(ARCHITECTURE),
        source: tags.text(SOURCE).and_then(|file| source(file, &epoch)),
        vendor: given(VENDOR),
        licence: given(LICENCE),
        modularity: given(MODULARITY),
        ..Package::new(name, format!("{epoch}{version}{release}"))
    });
    let folders: Vec<&str> = tags.texts(FOLDERS).take(MAX_FILES).collect();
    let files = tags.texts(FILE_NAMES).zip(tags.numbers(FOLDER_INDEXES));
    for (file, folder) in files.take(MAX_FILES) {
        let folder = usize::try_from(folder)
            .ok()
            .and_then(|place| folders.get(place));
        if let Some(path) = folder.and_then(|folder| path::normal(&format!("{folder}{file}"))) {
            reading.owned.insert(&path);
        }
    }
}

/// `name-version-release.src.rpm`, from the right. It has no epoch of its own.
pub(super) fn source(file: &str, epoch: &str) -> Option<Source> {
    let stem = file.strip_suffix(".rpm")?;
    let (stem, _) = stem.rsplit_once('.')?;
    let (stem, release) = stem.rsplit_once('-')?;
    let (name, version) = stem.rsplit_once('-')?;
    Some(Source {
        name: name.into(),
        version: format!("{epoch}{version}-{release}"),
    })
}

impl<'a> Tags<'a> {
    fn parse(record: &'a [u8]) -> Option<Self> {
        let entries = usize::try_from(big(record, 0)?).ok()?;
        let length = usize::try_from(big(record, 4)?).ok()?;
        if entries > MAX_ENTRIES {
            return None;
        }
        let index = slice(record, 8, entries * ENTRY)?;
        let data = slice(record, 8 + entries * ENTRY, length)?;
        Some(Tags { index, data })
    }

    /// The data of a tag onwards, and its count, if it has one of these types.
    fn data(&self, tag: u32, types: &[u32]) -> Option<(&'a [u8], usize)> {
        let entry = self
            .index
            .chunks_exact(ENTRY)
            .find(|entry| big(entry, 0) == Some(tag))?;
        if !types.contains(&big(entry, 4)?) {
            return None;
        }
        let offset = usize::try_from(big(entry, 8)?).ok()?;
        let count = usize::try_from(big(entry, 12)?).ok()?;
        Some((self.data.get(offset..)?, count))
    }

    /// The strings of a tag: one, a list, or one in several languages.
    fn texts(&self, tag: u32) -> impl Iterator<Item = &'a str> {
        let (data, count) = self.data(tag, &[6, 8, 9]).unwrap_or_default();
        data.split(|byte| *byte == 0)
            .take(count)
            .map(|text| std::str::from_utf8(text).unwrap_or_default())
    }

    fn text(&self, tag: u32) -> Option<&'a str> {
        self.texts(tag).next().filter(|text| !text.is_empty())
    }

    fn numbers(&self, tag: u32) -> impl Iterator<Item = u32> {
        let (data, count) = self.data(tag, &[4]).unwrap_or_default();
        data.chunks_exact(4)
            .take(count)
            .filter_map(|bytes| big(bytes, 0))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) enum Value<'a> {
        Text(&'a str),
        List(&'a [&'a str]),
        Numbers(&'a [u32]),
    }

    /// A record as rpm writes it.
    pub(crate) fn record(tags: &[(u32, Value)]) -> Vec<u8> {
        let (mut index, mut data) = (Vec::new(), Vec::new());
        for (tag, value) in tags {
            let (kind, count, bytes): (u32, usize, Vec<u8>) = match value {
                Value::Text(text) => (6, 1, format!("{text}\0").into_bytes()),
                Value::List(list) => (8, list.len(), (list.join("\0") + "\0").into_bytes()),
                Value::Numbers(numbers) => {
                    let bytes = numbers.iter().flat_map(|one| one.to_be_bytes());
                    (4, numbers.len(), bytes.collect())
                }
            };
            for field in [*tag, kind, data.len() as u32, count as u32] {
                index.extend(field.to_be_bytes());
            }
            data.extend(bytes);
        }
        let mut record = (tags.len() as u32).to_be_bytes().to_vec();
        record.extend((data.len() as u32).to_be_bytes());
        record.extend(index);
        record.extend(data);
        record
    }

    pub(crate) fn openssl() -> Vec<u8> {
        record(&[
            (NAME, Value::Text("openssl-libs")),
            (VERSION, Value::Text("3.0.7")),
            (RELEASE, Value::Text("27.el9")),
            (EPOCH, Value::Numbers(&[1])),
            (ARCHITECTURE, Value::Text("x86_64")),
            (SOURCE, Value::Text("openssl-3.0.7-27.el9.src.rpm")),
            (VENDOR, Value::Text("AlmaLinux")),
            (LICENCE, Value::Text("ASL 2.0")),
            (MODULARITY, Value::Text("(none)")),
            (FOLDERS, Value::List(&["/usr/lib64/", "/etc/"])),
            (FILE_NAMES, Value::List(&["libssl.so.3", "x.cnf"])),
            (FOLDER_INDEXES, Value::Numbers(&[0, 1])),
        ])
    }

    #[test]
    fn a_record_is_a_package_with_its_source_and_files() {
        let mut reading = Reading::default();
        read(&openssl(), &mut reading);
        reading.owned.seal();
        let package = &reading.packages[0];
        assert_eq!(package.version, "1:3.0.7-27.el9");
        assert_eq!(
            (package.source_name(), package.source_version()),
            ("openssl", "1:3.0.7-27.el9")
        );
        assert_eq!(package.modularity, None);
        assert!(
            reading.owned.contains("usr/lib64/libssl.so.3") && reading.owned.contains("etc/x.cnf")
        );
        assert!(reading.problems.is_empty());
    }

    #[test]
    fn records_that_lie_are_noted() {
        for bytes in [
            vec![],
            vec![0xff; 64],
            openssl()[..40].to_vec(),
            record(&[]),
        ] {
            let mut reading = Reading::default();
            read(&bytes, &mut reading);
            assert_eq!((reading.packages.len(), reading.problems.len()), (0, 1));
        }
        let mut reading = Reading::default();
        read(&record(&[(NAME, Value::Text("gpg-pubkey"))]), &mut reading);
        assert_eq!(reading, Reading::default());
    }
}
