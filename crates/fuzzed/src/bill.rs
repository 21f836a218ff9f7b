//! SBOMs: what is read can be written, and then says the same. Packages of unsupported types are counted and
//! not written.

use muster_scan::sbom::{cyclonedx, spdx};

pub(crate) fn run(bytes: &[u8]) {
    let Ok(bill) = spdx::read(bytes).or_else(|_| cyclonedx::read(bytes)) else {
        return;
    };
    let written = spdx::write(&bill).expect("what was read can be written");
    let mut again = spdx::read(&written).expect("and read again");
    again.unsupported.clear();
    let twice = spdx::write(&again).expect("and written again");
    assert_eq!(spdx::read(&twice).expect("and read"), again);
    let written = cyclonedx::write(&again).expect("in the other format, too");
    assert_eq!(cyclonedx::read(&written).expect("and read"), again);
}
