//! Imports of everything that is known, by what is in it.

use crate::support::*;
use anyhow::Result;
use muster_advisories::{Error, Kind};
use muster_scan::vulnerability::Stream;
use serde_json::json;
use std::fs;
use std::io::{Cursor, Write};
use std::path::Path;

const SCORES: &str = "#model_version:v2025.03.14,score_date:2026-11-15T00:00:00+0000\n\
    cve,epss,percentile\nCVE-2025-1,0.5,0.9\n";
const CATALOGUE: &str = r#"{"title": "t", "catalogVersion": "2026.11.15", "dateReleased": "2026-11-15T10:00:00.000Z",
    "vulnerabilities": [{"cveID": "CVE-2025-1", "dateAdded": "2025-12-10"}]}"#;

pub fn record(id: &str, ecosystem: &str, name: &str) -> String {
    json!({"id": id, "modified": "2026-01-02T03:04:05Z", "summary": id, "affected": [{
        "package": {"ecosystem": ecosystem, "name": name},
        "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "9.0"}]}],
    }]})
    .to_string()
}

pub fn zip(files: &[(&str, &str)]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, text) in files {
        let options = zip::write::SimpleFileOptions::default();
        writer.start_file(*name, options).unwrap();
        writer.write_all(text.as_bytes()).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

pub fn put(path: &Path, contents: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, contents).unwrap();
}

#[test]
fn a_plain_directory_is_read_as_it_is() -> Result<()> {
    let (_place, directory) = directory();
    put(&directory.path().join("trivy.db"), database("1.0"));
    assert!(directory.open().is_err());
    put(
        &directory.path().join("metadata.json"),
        metadata("2026-01-02T03:04:05Z"),
    );
    assert_eq!(fixed_in(&directory), "1.0");
    let info = directory.info()?;
    assert_eq!(
        info.parts[0].updated_at.as_deref(),
        Some("2026-01-02T03:04:05Z")
    );
    assert_eq!(info.parts[0].downloaded_at, None);
    Ok(())
}

#[test]
fn a_trivy_database_comes_from_a_directory_a_file_or_an_archive() -> Result<()> {
    let brought = tempfile::tempdir()?;
    let plain = brought.path().join("plain");
    put(&plain.join("trivy.db"), database("1.0"));
    put(
        &plain.join("metadata.json"),
        metadata("2026-01-02T03:04:05Z"),
    );
    put(&brought.path().join("db.tar.gz"), archive("2.0"));
    let (_place, directory) = directory();
    let mut revisions = Vec::new();
    for (path, expected) in [
        (plain.clone(), "1.0"),
        (brought.path().join("db.tar.gz"), "2.0"),
        (plain.join("trivy.db"), "1.0"),
    ] {
        let imported = directory.import(&path, &Deaf)?;
        assert_eq!(imported.kind, Kind::Trivy);
        assert_eq!(fixed_in(&directory), expected);
        revisions.push(imported.revision);
    }
    assert_eq!(revisions[0], revisions[2]);
    assert_ne!(revisions[0], revisions[1]);
    // What one directory has, another takes over, note and all.
    let (_other_place, other) = self::directory();
    other.import(&directory.path().join("trivy.db"), &Deaf)?;
    assert_eq!(
        other.open()?.database.metadata(),
        directory.open()?.database.metadata()
    );
    Ok(())
}

#[test]
fn records_come_from_directories_archives_and_buckets() -> Result<()> {
    let brought = tempfile::tempdir()?;
    let npm = record("GHSA-1", "npm", "left-pad");
    let debian = record("DEBIAN-CVE-2025-7", "Debian:12", "vim");
    let python = record("PYSEC-1", "PyPI", "flask");
    let files = brought.path().join("files");
    put(&files.join("a/GHSA-1.json"), &npm);
    put(&files.join("b/c/DEBIAN-CVE-2025-7.json"), &debian);
    put(&files.join("PYSEC-1.json"), &python);
    let bucket = brought.path().join("bucket");
    put(&bucket.join("npm/all.zip"), zip(&[("GHSA-1.json", &npm)]));
    put(
        &bucket.join("Debian/all.zip"),
        zip(&[("DEBIAN-CVE-2025-7.json", &debian)]),
    );
    put(
        &bucket.join("PyPI/all.zip"),
        zip(&[("PYSEC-1.json", &python)]),
    );
    let all = brought.path().join("all.zip");
    put(
        &all,
        zip(&[
            ("PYSEC-1.json", &python),
            ("GHSA-1.json", &npm),
            ("DEBIAN-CVE-2025-7.json", &debian),
        ]),
    );
    let tarred = brought.path().join("records.tgz");
    put(
        &tarred,
        gzip(&tar(&[
            ("r/1.json", npm.as_bytes()),
            ("r/2.json", python.as_bytes()),
            ("r/3.json", debian.as_bytes()),
        ])),
    );
    let (_place, directory) = directory();
    let mut revisions = Vec::new();
    for path in [&files, &bucket, &all, &tarred] {
        let imported = directory.import(path, &Deaf)?;
        assert_eq!((imported.kind, imported.records), (Kind::Osv, Some(3)));
        let opened = directory.open()?;
        let found = opened
            .database
            .advisories(&Stream::Distribution("debian 12".into()), "vim")?;
        assert_eq!(found[0].id, "CVE-2025-7");
        revisions.push(imported.revision);
    }
    // The same records are the same data, however they came.
    revisions.dedup();
    assert_eq!(revisions.len(), 1);
    // One bad file spoils no others.
    put(&files.join("bad.json"), "{");
    put(&files.join("bad.zip"), "PK nothing");
    put(&files.join("empty.json"), "");
    let imported = directory.import(&files, &Deaf)?;
    assert_eq!(imported.records, Some(3));
    let reasons: Vec<_> = imported.summary.left_out.keys().cloned().collect();
    assert_eq!(
        reasons,
        ["damaged archive", "empty file", "unreadable record"]
    );
    let info = directory.info()?;
    assert_eq!(info.parts[0].summary.left_out, imported.summary.left_out);
    Ok(())
}

#[test]
fn all_parts_together_are_one_database() -> Result<()> {
    let brought = tempfile::tempdir()?;
    let path = |name: &str| brought.path().join(name);
    put(&path("db.tar.gz"), archive("1.0"));
    let mine = json!({"id": "DEBIAN-CVE-2025-1", "modified": "2026-01-01T00:00:00Z", "upstream": ["CVE-2025-1"],
        "affected": [{"package": {"ecosystem": "Debian:12", "name": "openssl"},
        "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "7.0"}]}]}]});
    put(&path("one.json"), mine.to_string());
    put(&path("scores.csv.gz"), gzip(SCORES.as_bytes()));
    put(&path("known.json"), CATALOGUE);
    let (_place, directory) = directory();
    let mut revisions = Vec::new();
    for (name, kind) in [
        ("db.tar.gz", Kind::Trivy),
        ("one.json", Kind::Osv),
        ("scores.csv.gz", Kind::Epss),
        ("known.json", Kind::Kev),
    ] {
        assert_eq!(directory.import(&path(name), &Deaf)?.kind, kind);
        revisions.push(directory.open()?.revision);
    }
    let count = revisions.len();
    revisions.dedup();
    assert_eq!(revisions.len(), count);
    let opened = directory.open()?;
    assert_eq!(opened.parts, Kind::ALL);
    // The Trivy database has the word.
    assert_eq!(fixed(&*opened.database), "1.0");
    let debian = Stream::Distribution("debian 12".into());
    assert_eq!(opened.database.advisories(&debian, "openssl")?.len(), 1);
    let known = opened.exploitation.of("CVE-2025-1").unwrap();
    assert_eq!((known.epss, known.percentile), (Some(0.5), Some(0.9)));
    assert_eq!(known.known_exploited.unwrap().to_string(), "2025-12-10");
    let info = directory.info()?;
    let kinds: Vec<_> = info.parts.iter().map(|part| part.kind).collect();
    assert_eq!(kinds, Kind::ALL);
    assert_eq!(
        info.parts[2].updated_at.as_deref(),
        Some("2026-11-15T00:00:00Z")
    );
    // The parts of one directory are what another imports, one by one.
    let (_other_place, other) = self::directory();
    for name in ["trivy.db", "osv.index", "epss.table", "kev.table"] {
        other.import(&directory.path().join(name), &Deaf)?;
    }
    assert_eq!(other.open()?.revision, opened.revision);
    // Not compressed, they are the same scores.
    put(&path("scores.csv"), SCORES);
    directory.import(&path("scores.csv"), &Deaf)?;
    assert_eq!(directory.open()?.revision, opened.revision);
    Ok(())
}

#[test]
fn what_is_unknown_or_damaged_changes_nothing() -> Result<()> {
    let brought = tempfile::tempdir()?;
    let path = |name: &str| brought.path().join(name);
    let (_place, directory) = directory();
    put(&path("db.tar.gz"), archive("1.0"));
    directory.import(&path("db.tar.gz"), &Deaf)?;
    let whole = archive("2.0");
    fs::create_dir(path("nothing"))?;
    for (name, contents) in [
        ("text", b"hello".to_vec()),
        ("empty", Vec::new()),
        ("object.json", b"{\"a\": 1}".to_vec()),
        ("cut.tar.gz", whole[..whole.len() / 2].to_vec()),
        ("short.db", database("2.0")[..5000].to_vec()),
        ("bad.zip", b"PK\x03\x04 and no more".to_vec()),
        ("bad.csv", b"cve,epss,percentile\nCVE-2025-1,7,7\n".to_vec()),
        ("none.csv", b"cve,epss,percentile\n".to_vec()),
        (
            "bad.kev.json",
            b"{\"catalogVersion\": 1, \"vulnerabilities\": 7}".to_vec(),
        ),
        ("osv.index", b"MSTROSV1".to_vec()),
    ] {
        put(&path(name), contents);
        assert!(directory.import(&path(name), &Deaf).is_err(), "{name}");
    }
    assert!(matches!(
        directory.import(&path("text"), &Deaf),
        Err(Error::Unrecognised(_))
    ));
    assert!(directory.import(&path("nothing"), &Deaf).is_err());
    assert!(directory.import(&path("absent"), &Deaf).is_err());
    assert_eq!(fixed_in(&directory), "1.0");
    assert_eq!(files(directory.path()), ["metadata.json", "trivy.db"]);
    Ok(())
}
