//! OSV records of several origins: what an import replaces, what it keeps, and what is left when it is
//! killed.

use crate::import::{put, record, zip};
use crate::support::*;
use anyhow::Result;
use muster_advisories::{DataDirectory, Error, Kind, Opened};
use muster_scan::vulnerability::Stream;
use muster_scan::vulnerability::osv::Compiler;
use serde_json::json;
use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// Archives as their publishers name them.
fn archives() -> Result<(TempDir, impl Fn(&str) -> PathBuf)> {
    let brought = tempfile::tempdir()?;
    let root = brought.path().to_owned();
    let path = move |name: &str| root.join(name);
    for (name, id, ecosystem, package) in [
        ("Alpine.zip", "ALPINE-CVE-2025-1", "Alpine:v3.20", "openssl"),
        ("Go.zip", "GO-2025-1", "Go", "example.org/mod"),
        ("PyPI.zip", "PYSEC-2025-1", "PyPI", "flask"),
        ("npm/all.zip", "GHSA-1", "npm", "left-pad"),
        ("PyPI/all.zip", "PYSEC-2025-2", "PyPI", "django"),
    ] {
        put(
            &path(name),
            zip(&[("1.json", &record(id, ecosystem, package))]),
        );
    }
    Ok((brought, path))
}

const PACKAGES: [(&str, &str); 5] = [
    ("alpine 3.20", "openssl"),
    ("go", "example.org/mod"),
    ("pip", "flask"),
    ("npm", "left-pad"),
    ("pip", "django"),
];

fn stream(name: &str) -> Stream {
    match name {
        "go" => Stream::Ecosystem("go"),
        "pip" => Stream::Ecosystem("pip"),
        "npm" => Stream::Ecosystem("npm"),
        name => Stream::Distribution(name.into()),
    }
}

/// The packages that there are advisories for.
fn known(opened: &Opened) -> Vec<&'static str> {
    let has = |(name, package): &&(&str, &str)| {
        let found = opened.database.advisories(&stream(name), package);
        !found.unwrap().is_empty()
    };
    PACKAGES
        .iter()
        .filter(has)
        .map(|(_, package)| *package)
        .collect()
}

fn origins(directory: &DataDirectory) -> Vec<(String, u64)> {
    let info = directory.info().unwrap();
    let origins = info.parts.into_iter().flat_map(|part| part.origins);
    origins.map(|one| (one.name, one.records)).collect()
}

fn names(directory: &DataDirectory) -> Vec<String> {
    origins(directory)
        .into_iter()
        .map(|(name, _)| name)
        .collect()
}

#[test]
fn an_import_of_a_second_file_keeps_the_first() -> Result<()> {
    let (_brought, path) = archives()?;
    let (_place, directory) = directory();
    for name in ["Go.zip", "PyPI.zip", "Alpine.zip"] {
        directory.import(&path(name), &Deaf)?;
    }
    let opened = directory.open()?;
    assert_eq!(known(&opened), ["openssl", "example.org/mod", "flask"]);
    assert_eq!(opened.parts, [Kind::Osv]);
    let summary = directory.info()?.parts.remove(0).summary;
    let streams: Vec<_> = summary
        .streams
        .iter()
        .map(|one| one.name.as_str())
        .collect();
    assert_eq!(streams, ["alpine 3.20", "go", "pip"]);
    assert_eq!(summary.vulnerabilities, 3);
    Ok(())
}

#[test]
fn all_paths_of_one_import_add_up() -> Result<()> {
    let (_brought, path) = archives()?;
    let (_place, together) = directory();
    let paths = ["Go.zip", "PyPI.zip", "npm/all.zip", "PyPI/all.zip"].map(&path);
    let import = together.import_all(&paths, false, &Deaf)?;
    assert_eq!(import.imported.len(), 4);
    assert!(import.kept.is_empty() && import.removed.is_empty());
    assert_eq!(
        known(&together.open()?),
        ["example.org/mod", "flask", "left-pad", "django"]
    );
    // Archives of that name are told apart by their ecosystem.
    assert_eq!(
        names(&together),
        ["Go.zip", "PyPI.zip", "PyPI/all.zip", "npm/all.zip"]
    );
    // One by one, in another order, they are the same data.
    let (_other, apart) = directory();
    for path in paths.iter().rev() {
        apart.import(path, &Deaf)?;
    }
    assert_eq!(apart.open()?.revision, together.open()?.revision);
    // Files of one name in one import add up too, and later each replaces the one with its path.
    put(
        &path("a/osv.zip"),
        zip(&[("1.json", &record("A-1", "npm", "left-pad"))]),
    );
    put(
        &path("b/osv.zip"),
        zip(&[("1.json", &record("A-2", "PyPI", "flask"))]),
    );
    let (_third, directory) = directory();
    directory.import_all(&["a/osv.zip", "b/osv.zip"].map(&path), false, &Deaf)?;
    assert_eq!(known(&directory.open()?), ["flask", "left-pad"]);
    put(
        &path("b/osv.zip"),
        zip(&[("1.json", &record("A-3", "PyPI", "django"))]),
    );
    let imported = directory.import(&path("b/osv.zip"), &Deaf)?;
    let replaced: Vec<_> = imported.replaced.iter().map(|one| &one.path).collect();
    assert_eq!(replaced, [&path("b/osv.zip").display().to_string()]);
    assert_eq!(known(&directory.open()?), ["left-pad", "django"]);
    assert_eq!(names(&directory), ["osv.zip", "osv.zip"]);
    Ok(())
}

#[test]
fn an_import_replaces_only_the_records_of_its_own_origin() -> Result<()> {
    let (_brought, path) = archives()?;
    let (_place, directory) = directory();
    directory.import_all(&["Go.zip", "PyPI.zip"].map(&path), false, &Deaf)?;
    let reader = directory.open()?;
    // A newer archive, from another place, in which one record was withdrawn.
    let newer = path("usb/PyPI.zip");
    let records = [
        record("PYSEC-2025-2", "PyPI", "django"),
        record("X-1", "npm", "left-pad"),
    ];
    put(
        &newer,
        zip(&[("2.json", &records[0]), ("3.json", &records[1])]),
    );
    let import = directory.import_all(std::slice::from_ref(&newer), false, &Deaf)?;
    let replaced: Vec<_> = import.imported[0]
        .replaced
        .iter()
        .map(|one| &*one.name)
        .collect();
    let kept: Vec<_> = import
        .kept
        .iter()
        .map(|one| (&*one.name, one.records))
        .collect();
    assert_eq!(replaced, ["PyPI.zip"]);
    assert_eq!(kept, [("Go.zip", 1)]);
    assert_eq!(
        origins(&directory),
        [("Go.zip".to_owned(), 1), ("PyPI.zip".to_owned(), 2)]
    );
    let opened = directory.open()?;
    assert_eq!(known(&opened), ["example.org/mod", "left-pad", "django"]);
    // Readers learn of it, and those that have the old data open go on with it.
    assert!(directory.is_stale(&reader)?);
    assert!(!directory.is_stale(&opened)?);
    assert_eq!(known(&reader), ["example.org/mod", "flask"]);
    // The origins are described.
    let part = directory.info()?.parts.remove(0);
    let python = &part.origins[1];
    assert_eq!(python.path, newer.display().to_string());
    assert_eq!(python.updated_at.as_deref(), Some("2026-01-02T03:04:05Z"));
    assert!(python.downloaded_at.is_some() && python.size > 0);
    let text = serde_json::to_value(&part)?;
    assert_eq!(text["origins"][1]["name"], "PyPI.zip");
    assert_eq!(text["origins"][1]["records"], 2);
    // Everything else can be removed.
    let import = directory.import_all(&[path("Alpine.zip")], true, &Deaf)?;
    let removed: Vec<_> = import.removed.iter().map(|one| &*one.name).collect();
    assert_eq!(removed, ["Go.zip", "PyPI.zip"]);
    assert_eq!(names(&directory), ["Alpine.zip"]);
    assert_eq!(known(&directory.open()?), ["openssl"]);
    Ok(())
}

#[test]
fn a_directory_is_one_origin() -> Result<()> {
    let (brought, path) = archives()?;
    let (_place, directory) = directory();
    directory.import(&path("Go.zip"), &Deaf)?;
    let bucket = path("bucket");
    put(&bucket.join("a.json"), record("A-1", "npm", "left-pad"));
    fs::copy(path("PyPI.zip"), bucket.join("PyPI.zip"))?;
    directory.import(&bucket, &Deaf)?;
    assert_eq!(names(&directory), ["Go.zip", "bucket"]);
    assert_eq!(
        known(&directory.open()?),
        ["example.org/mod", "flask", "left-pad"]
    );
    fs::remove_file(bucket.join("PyPI.zip"))?;
    directory.import(&bucket, &Deaf)?;
    assert_eq!(known(&directory.open()?), ["example.org/mod", "left-pad"]);
    // Another data directory brings its origins.
    let (_other_place, other) = self::directory();
    other.import_all(&["Go.zip", "Alpine.zip"].map(&path), false, &Deaf)?;
    let imported = other.import(&directory.path().join("osv.index"), &Deaf)?;
    assert_eq!(imported.records, Some(2));
    assert_eq!(names(&other), ["Alpine.zip", "Go.zip", "bucket"]);
    drop(brought);
    Ok(())
}

#[test]
fn a_path_that_fails_changes_no_records() -> Result<()> {
    let (_brought, path) = archives()?;
    let (_place, directory) = directory();
    directory.import(&path("Go.zip"), &Deaf)?;
    let before = directory.open()?;
    put(&path("poem.txt"), "The fog comes on little cat feet.");
    let paths = ["PyPI.zip", "poem.txt", "Alpine.zip"].map(&path);
    let failed = directory.import_all(&paths, true, &Deaf);
    assert!(matches!(failed, Err(Error::Unrecognised(_))));
    assert!(!directory.is_stale(&before)?);
    assert_eq!(names(&directory), ["Go.zip"]);
    Ok(())
}

/// The file that versions before this one wrote: one compiled file and its note.
fn old_file(records: &[String], origin: &str) -> Vec<u8> {
    let mut compiler = Compiler::new().unwrap();
    for record in records {
        compiler.add(record.as_bytes()).unwrap();
    }
    let mut file = Cursor::new(Vec::new());
    let compiled = compiler.finish(&mut file).unwrap();
    let note = json!({
        "revision": compiled.revision, "downloadedAt": "2026-01-03T00:00:00Z", "origin": origin,
        "metadata": null,
    });
    let note = note.to_string();
    let mut bytes = file.into_inner();
    bytes.extend(note.as_bytes());
    bytes.extend((note.len() as u64).to_le_bytes());
    bytes.extend(b"MSTRNOTE");
    bytes
}

#[test]
fn a_directory_of_an_older_version_is_read_and_added_to() -> Result<()> {
    let (_brought, path) = archives()?;
    for (origin, name) in [("/tmp/PyPI.zip", "PyPI.zip"), ("", "osv.index")] {
        let (_place, directory) = directory();
        let old = old_file(&[record("PYSEC-2025-1", "PyPI", "flask")], origin);
        put(&directory.path().join("osv.index"), old);
        let opened = directory.open()?;
        assert_eq!(known(&opened), ["flask"]);
        assert_eq!(origins(&directory), [(name.to_owned(), 1)]);
        let info = directory.info()?;
        let downloaded = info.parts[0].origins[0].downloaded_at.as_deref();
        assert_eq!(downloaded, Some("2026-01-03T00:00:00Z"));
        assert!(!directory.is_stale(&opened)?);
        directory.import(&path("Go.zip"), &Deaf)?;
        assert_eq!(known(&directory.open()?), ["example.org/mod", "flask"]);
        assert_eq!(names(&directory), ["Go.zip", name]);
    }
    // The same origin is replaced.
    let (_place, directory) = directory();
    let old = old_file(&[record("PYSEC-1", "PyPI", "django")], "old/PyPI.zip");
    put(&directory.path().join("osv.index"), old);
    directory.import(&path("PyPI.zip"), &Deaf)?;
    assert_eq!(known(&directory.open()?), ["flask"]);
    // So is an archive of one ecosystem that was named without it, also after another import.
    for before in [None, Some("Go.zip")] {
        let (_place, directory) = self::directory();
        let old = old_file(&[record("PYSEC-1", "PyPI", "flask")], "/old/all.zip");
        put(&directory.path().join("osv.index"), old);
        if let Some(name) = before {
            directory.import(&path(name), &Deaf)?;
        }
        let imported = directory.import(&path("PyPI/all.zip"), &Deaf)?;
        let replaced: Vec<_> = imported.replaced.iter().map(|one| &*one.name).collect();
        assert_eq!(replaced, ["all.zip"], "{before:?}");
        let names = names(&directory);
        assert!(!names.contains(&"all.zip".into()), "{names:?}");
        let opened = directory.open()?;
        let known = known(&opened);
        assert!(known.contains(&"django"), "{known:?}");
        assert!(!known.contains(&"flask"), "{known:?}");
        // Only the first import replaces it: the next ecosystem is added.
        directory.import(&path("npm/all.zip"), &Deaf)?;
        assert_eq!(origins(&directory).len(), names.len() + 1);
    }
    // An archive of all ecosystems is not such an archive.
    let (_place, directory) = self::directory();
    let records = [
        record("A-1", "npm", "left-pad"),
        record("A-2", "PyPI", "flask"),
    ];
    put(
        &path("all.zip"),
        zip(&[("1.json", &records[0]), ("2.json", &records[1])]),
    );
    directory.import_all(&["all.zip", "PyPI/all.zip"].map(&path), false, &Deaf)?;
    directory.import(&path("PyPI/all.zip"), &Deaf)?;
    assert_eq!(names(&directory), ["PyPI/all.zip", "all.zip"]);
    Ok(())
}

#[test]
fn imports_at_the_same_time_lose_nothing() -> Result<()> {
    let (_brought, path) = archives()?;
    let (_place, directory) = directory();
    let paths = ["Go.zip", "PyPI.zip", "Alpine.zip", "npm/all.zip"].map(path);
    std::thread::scope(|scope| {
        for path in &paths {
            scope.spawn(|| directory.import(path, &Deaf).unwrap());
        }
    });
    assert_eq!(
        names(&directory),
        ["Alpine.zip", "Go.zip", "PyPI.zip", "npm/all.zip"]
    );
    Ok(())
}

#[test]
fn a_damaged_list_of_origins_is_an_error() -> Result<()> {
    let (_brought, path) = archives()?;
    let (_place, directory) = directory();
    directory.import_all(&["Go.zip", "PyPI.zip"].map(&path), false, &Deaf)?;
    let place = directory.path().join("osv.index");
    let whole = fs::read(&place)?;
    let length = whole.len() - 16;
    let size = u64::from_le_bytes(whole[length..length + 8].try_into()?) as usize;
    let (data, note) = whole[..length].split_at(length - size);
    let note: serde_json::Value = serde_json::from_slice(note)?;
    let piece = |origin: &str, length: u64| json!({"origin": origin, "length": length});
    let lengths: Vec<u64> = (0..2)
        .filter_map(|at| note["pieces"][at]["length"].as_u64())
        .collect();
    let many: Vec<_> = (0..300).map(|_| piece("a", 0)).collect();
    for pieces in [
        json!([]),
        json!([piece("a", u64::MAX)]),
        json!([piece("a", lengths[0]), piece("b", u64::MAX)]),
        json!([piece("a", lengths[0]), piece("b", lengths[1] + 1)]),
        json!([piece("a", 3)]),
        json!(many),
    ] {
        let note = json!({"revision": "x", "origin": "", "pieces": pieces}).to_string();
        let mut bytes = data.to_vec();
        bytes.extend(note.as_bytes());
        bytes.extend((note.len() as u64).to_le_bytes());
        bytes.extend(b"MSTRNOTE");
        put(&place, bytes);
        assert!(directory.open().is_err(), "{note}");
        // No import claims to keep what it cannot read; what is to be removed need not be read.
        assert!(directory.import(&path("Go.zip"), &Deaf).is_err(), "{note}");
    }
    directory.import_all(&[path("Go.zip")], true, &Deaf)?;
    assert_eq!(names(&directory), ["Go.zip"]);
    Ok(())
}

const DIRECTORY: &str = "MUSTER_TEST_IMPORT_DIRECTORY";
const PATHS: &str = "MUSTER_TEST_IMPORT_PATHS";

/// The process that is killed; as a test of its own it has nothing to do.
#[test]
fn the_import_that_is_killed() -> Result<()> {
    let Ok(path) = std::env::var(DIRECTORY) else {
        return Ok(());
    };
    let doomed = crate::killed::Doomed::of_environment()?;
    let paths = std::env::var(PATHS)?;
    let paths: Vec<PathBuf> = paths.split(':').map(PathBuf::from).collect();
    DataDirectory::new(path.into()).import_all(&paths, false, &doomed)?;
    Ok(())
}

#[test]
fn a_killed_import_leaves_the_old_records_or_the_new() -> Result<()> {
    let (_brought, path) = archives()?;
    put(
        &path("usb/PyPI.zip"),
        zip(&[("2.json", &record("PYSEC-2025-2", "PyPI", "django"))]),
    );
    let (_place, directory) = directory();
    directory.import_all(&["Go.zip", "PyPI.zip"].map(&path), false, &Deaf)?;
    let old = ["example.org/mod", "flask"];
    let new = ["openssl", "example.org/mod", "django"];
    let paths = ["usb/PyPI.zip", "Alpine.zip"].map(|name| path(name).display().to_string());
    let mut deaths = 0;
    loop {
        let status = Command::new(std::env::current_exe()?)
            .args(["--exact", "origins::the_import_that_is_killed"])
            .env(DIRECTORY, directory.path())
            .env(PATHS, paths.join(":"))
            .env(crate::killed::STEPS, deaths.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()?;
        if status.success() {
            break;
        }
        deaths += 1;
        assert!(deaths < 100, "it never ends");
        assert_eq!(known(&directory.open()?), old, "killed at step {deaths}");
    }
    // Two archives are compiled, and three origins are written.
    assert!(deaths >= 8, "{deaths}");
    assert_eq!(known(&directory.open()?), new);
    Ok(())
}

#[test]
fn states_between_two_steps_of_an_import_do_no_harm() -> Result<()> {
    let (_brought, path) = archives()?;
    let (_place, directory) = directory();
    directory.import(&path("Go.zip"), &Deaf)?;
    let whole = fs::read(directory.path().join("osv.index"))?;
    let put_rest = |name: &str, length: usize| put(&directory.path().join(name), &whole[..length]);
    for length in [1, whole.len() / 2, whole.len()] {
        put_rest(&format!("osv.index-{length:016x}.unfinished"), length);
    }
    put(&directory.path().join("osv.lock"), "");
    assert_eq!(known(&directory.open()?), ["example.org/mod"]);
    directory.import(&path("PyPI.zip"), &Deaf)?;
    assert_eq!(known(&directory.open()?), ["example.org/mod", "flask"]);
    Ok(())
}

#[test]
fn records_without_a_date_have_no_age() -> Result<()> {
    let brought = tempfile::tempdir()?;
    let path = brought.path().join("undated.zip");
    let undated =
        record("A-1", "npm", "left-pad").replace("2026-01-02T03:04:05Z", "0001-01-01T00:00:00Z");
    put(&path, zip(&[("1.json", &undated)]));
    let (_place, directory) = directory();
    directory.import(&path, &Deaf)?;
    let part = directory.info()?.parts.remove(0);
    assert_eq!(
        (part.updated_at, &part.origins[0].updated_at),
        (None, &None)
    );
    assert_eq!(directory.open()?.database.metadata().updated_at, None);
    assert!(Path::new(&part.origins[0].path).ends_with("undated.zip"));
    Ok(())
}
