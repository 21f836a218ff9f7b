//! The parsers of package databases: the first byte chooses one, the rest is its file.

use muster_scan::{apk, dpkg, embedded, go_binary, java, node, python, rpm, rust_binary};

pub(crate) fn run(bytes: &[u8]) {
    let Some((which, contents)) = bytes.split_first() else {
        return;
    };
    match which % 11 {
        0 => drop(dpkg::status(contents)),
        1 => drop(dpkg::files(contents)),
        2 => drop(apk::installed(contents)),
        3 => drop(rpm::database(contents)),
        4 => drop(go_binary::read(contents)),
        5 => drop(node::package("a/node_modules/b/package.json", contents)),
        6 => drop(python::metadata(contents)),
        7 => drop(java::archive(contents)),
        8 => drop(embedded::read(contents)),
        9 => drop(rust_binary::read(contents)),
        _ => drop(rpm::manifest(contents)),
    }
}
