//! A package database in SQLite, written by the real library: small rows, rows over many pages, and
//! a tree of several levels.

use muster_scan::rpm::database;
use std::collections::BTreeSet;
use std::process::Command;

/// Writes records in the shape of rpm's into a table like rpm's, then prints what was written.
const SCRIPT: &str = "
import sqlite3, struct, sys
def record(name, files):
    tags, data = [], b''
    for tag, kind, count, value in [
        (1000, 6, 1, name.encode() + b'\\0'), (1001, 6, 1, b'1.0\\0'), (1002, 6, 1, b'2.el9\\0'),
        (1116, 4, files, None), (1117, 8, files, b''.join(b'file%d\\0' % n for n in range(files))),
        (1118, 8, 1, b'/usr/share/%s/\\0' % name.encode())]:
        if kind == 4:
            data += b'\\0' * (-len(data) % 4)
            value = b'\\0\\0\\0\\0' * count
        tags.append(struct.pack('>IIII', tag, kind, len(data), count))
        data += value
    return struct.pack('>II', len(tags), len(data)) + b''.join(tags) + data
database = sqlite3.connect(sys.argv[1])
database.execute('PRAGMA page_size = %s' % sys.argv[2])
database.execute('CREATE TABLE Other (a)')
database.execute('CREATE TABLE Packages (hnum INTEGER PRIMARY KEY AUTOINCREMENT, blob BLOB NOT NULL)')
for number in range(700):
    name = 'package%d' % number
    database.execute('INSERT INTO Packages (blob) VALUES (?)', (record(name, number * 7 % 900),))
    print(name)
database.execute('DELETE FROM Packages WHERE hnum = 5')
database.commit()
";

#[test]
fn every_record_that_sqlite_wrote_is_read() {
    for page in ["512", "4096", "65536"] {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("rpmdb.sqlite");
        let output = Command::new("python3")
            .args(["-c", SCRIPT])
            .arg(&file)
            .arg(page)
            .output()
            .expect("python3 runs");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let text = String::from_utf8(output.stdout).unwrap();
        let mut expected: BTreeSet<&str> = text.lines().collect();
        expected.remove("package4");
        let bytes = std::fs::read(&file).unwrap();
        let reading = database(&bytes);
        assert_eq!(reading.problems, Vec::<String>::new());
        let found: BTreeSet<&str> = reading
            .packages
            .iter()
            .map(|one| one.name.as_str())
            .collect();
        assert_eq!(found, expected);
        assert!(
            reading
                .packages
                .iter()
                .all(|one| one.version == "1.0-2.el9")
        );
        assert!(reading.owned.contains("usr/share/package9/file62"));
        assert!(!reading.owned.contains("usr/share/package9/file63"));

        let mut random = crate::random::Random(0x5eed);
        for _ in 0..60 {
            let mut damaged = bytes.clone();
            for _ in 0..20 {
                let place = random.below(damaged.len());
                let header = place - place % 512 + random.below(16);
                damaged[header] = random.next() as u8;
            }
            damaged.truncate(damaged.len() - random.below(damaged.len()) / 4);
            drop(database(&damaged));
        }
    }
}
