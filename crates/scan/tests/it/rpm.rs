//! Package databases of rpm: one in SQLite, written by the real library, with small rows, rows over
//! many pages and a tree of several levels; and those that the real rpm writes.

use muster_scan::rpm::database;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
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

/// A Debian with an rpm that writes both of today's formats, in the cache. The machine's own rpm
/// may be built without one of them.
fn debian_with_rpm() -> PathBuf {
    let cache = muster_testkit::binaries::cache().unwrap().join("debian");
    let place = cache.join("trixie-rpm-1");
    std::fs::create_dir_all(&cache).unwrap();
    let lock = std::fs::File::create(cache.join("trixie-rpm.lock")).unwrap();
    lock.lock().unwrap();
    if !place.is_dir() {
        let made = tempfile::Builder::new().tempdir_in(&cache).unwrap();
        let root = made.path().join("root");
        let output = Command::new("/usr/sbin/debootstrap")
            .args(["--variant=minbase", "--include=rpm", "trixie"])
            .arg(&root)
            .output()
            .expect("debootstrap runs: apt-get install debootstrap");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success(),
            "debootstrap, which needs an administrator's rights: {said}"
        );
        std::fs::rename(&root, &place).unwrap();
    }
    place
}

const SPECIFICATION: &str = "
Name: alpha
Epoch: 2
Version: 1.2~rc1
Release: 3.el9
Summary: A package
License: MIT
Vendor: Example
BuildArch: noarch
ModularityLabel: alpha:1:20240101:abc
%description
A package.
%package libs
Summary: Libraries
Version: 9.0^git1
License: GPL-2.0-or-later
%description libs
Libraries.
%package -n libbeta
Summary: Another
%description -n libbeta
Another.
%install
mkdir -p %{buildroot}/usr/share/alpha %{buildroot}/opt
echo '{}' > %{buildroot}/usr/share/alpha/package.json
echo > '%{buildroot}/opt/a b'
%files
/usr/share/alpha/package.json
%files libs
\"/opt/a b\"
%files -n libbeta
";

/// Builds the packages, installs them into a database and prints what rpm then says.
const INSTALL: &str = r#"
set -e
cd "$1"
rpmbuild --quiet --define "_topdir $1/top" -bb alpha.spec >build.log 2>&1
for form in sqlite ndb; do
    rpm="rpm --dbpath $1/$form --define"
    $rpm "_db_backend $form" --justdb --nodeps --noscripts -i top/RPMS/*/*.rpm
    format='%{NAME}\t%{EVR}\t%{ARCH}\t%{LICENSE}\t%{VENDOR}\t%{MODULARITYLABEL}\t%{SOURCERPM}\n'
    $rpm "_db_backend $form" -qa --qf "$format" >$form.packages
    $rpm "_db_backend $form" -qal >$form.files
done
"#;

#[test]
fn packages_are_those_that_rpm_lists() {
    let root = debian_with_rpm();
    let directory = tempfile::tempdir_in(root.join("tmp")).unwrap();
    std::fs::write(directory.path().join("alpha.spec"), SPECIFICATION).unwrap();
    let inside = Path::new("/tmp").join(directory.path().file_name().unwrap());
    let output = Command::new("chroot")
        .arg(&root)
        .args(["/bin/sh", "-c", INSTALL, "sh"])
        .arg(&inside)
        .output()
        .expect("chroot runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = |name: &str| std::fs::read_to_string(directory.path().join(name)).unwrap();
    for (form, file) in [("sqlite", "rpmdb.sqlite"), ("ndb", "Packages.db")] {
        let bytes = std::fs::read(directory.path().join(form).join(file)).unwrap();
        let reading = database(&bytes);
        assert_eq!(reading.problems, Vec::<String>::new());
        let given = |text: &Option<String>| text.clone().unwrap_or_else(|| "(none)".into());
        let found: BTreeSet<String> = reading
            .packages
            .iter()
            .map(|one| {
                let source = one.source.as_ref().unwrap();
                // The source's file name has no epoch.
                let version = source.version.trim_start_matches("2:");
                [
                    one.name.clone(),
                    one.version.clone(),
                    given(&one.architecture),
                    given(&one.licence),
                    given(&one.vendor),
                    given(&one.modularity),
                    format!("{}-{version}.src.rpm", source.name),
                ]
                .join("\t")
            })
            .collect();
        let listed = text(&format!("{form}.packages"));
        let expected: BTreeSet<String> = listed.lines().map(Into::into).collect();
        assert_eq!(expected.len(), 3, "{listed}");
        assert_eq!(found, expected, "{form}");
        let files = text(&format!("{form}.files"));
        let files: Vec<&str> = files.lines().filter(|line| line.starts_with('/')).collect();
        assert_eq!(files.len(), 2, "{files:?}");
        for file in files {
            assert!(reading.owned.contains(&file[1..]), "{file}");
        }
    }
}
