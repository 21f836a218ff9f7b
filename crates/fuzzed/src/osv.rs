//! OSV records and the files that are compiled of them: whatever the bytes are, compiling and
//! looking up end.

use muster_scan::vulnerability::osv::{Compiler, OsvIndex};
use muster_scan::vulnerability::{Database, Stream};
use std::io::Cursor;

fn look_up(index: &OsvIndex) {
    let _ = (index.verify(), index.summary(), index.records());
    for id in ["CVE-2025-1", "GHSA-1", ""] {
        let _ = index.vulnerability(id);
    }
    let languages = ["npm", "pip", "go"].map(Stream::Ecosystem);
    let releases = ["debian 12", "ubuntu 18.04-ESM"];
    let releases = releases.map(|name| Stream::Distribution(name.into()));
    for stream in languages.iter().chain(&releases) {
        for advisory in index.advisories(stream, "a").unwrap_or_default() {
            let _ = (index.described(&advisory), advisory.aliases().count());
        }
    }
}

pub(crate) fn run(bytes: &[u8]) {
    if let Ok(index) = OsvIndex::open(bytes.to_vec()) {
        look_up(&index);
    }
    let mut compiler = Compiler::new().unwrap();
    for record in bytes.split(|byte| *byte == 0) {
        compiler.add(record).unwrap();
    }
    let mut file = Cursor::new(Vec::new());
    compiler.finish(&mut file).unwrap();
    // What we wrote ourselves is right.
    let index = OsvIndex::open(file.into_inner()).unwrap();
    index.verify().unwrap();
    look_up(&index);
}
