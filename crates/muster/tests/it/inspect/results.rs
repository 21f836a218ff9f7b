//! What a scan tells: in which form, how much of it, and with which exit code.

use super::{Desk, expected, found, only, write_root};
use crate::hub::{Hub, statement};
use anyhow::{Result, ensure};
use serde_json::Value;

fn desk() -> Result<Desk> {
    let desk = Desk::new()?;
    write_root(&desk.path("work")?.join("root"))?;
    Ok(desk)
}

#[test]
fn the_table_says_what_to_update() -> Result<()> {
    let told = desk()?.told(&["scan", "root"])?;
    let expected = "\
root (debian 12.7)
2 packages, 1 vulnerability: 1 critical

debian packages
PACKAGE  INSTALLED         FIXED IN          SEVERITY  VULNERABILITY  TITLE
libssl3  3.0.11-1~deb12u2  3.0.11-1~deb12u3  critical  CVE-2024-0001  CVE-2024-0001
";
    assert_eq!(told, expected);
    Ok(())
}

#[test]
fn machines_get_the_same_in_every_form() -> Result<()> {
    let desk = desk()?;
    let form = |form: &str| desk.told(&["scan", "-o", form, "root"]);
    let json: Value = serde_json::from_str(&form("json")?)?;
    let mut yaml: Value = serde_saphyr::from_str(&form("yaml")?)?;
    // The two were scanned at different moments.
    yaml["inspections"][0]["report"]["scannedAt"] =
        json["inspections"][0]["report"]["scannedAt"].clone();
    assert_eq!(yaml, json);
    let sarif: Value = serde_json::from_str(&form("sarif")?)?;
    let result = &sarif["runs"][0]["results"][0];
    assert_eq!(result["ruleId"], "CVE-2024-0001");
    assert_eq!(result["level"], "error");
    let spdx: Value = serde_json::from_str(&form("spdx")?)?;
    assert_eq!(spdx["spdxVersion"], "SPDX-2.3");
    let cyclonedx: Value = serde_json::from_str(&form("cyclonedx")?)?;
    assert_eq!(cyclonedx["specVersion"], "1.6");
    Ok(())
}

#[test]
fn exit_codes_tell_what_came_of_it() -> Result<()> {
    let desk = desk()?;
    let work = desk.path("work")?;
    std::fs::write(work.join("accepted"), "CVE-2024-0001 exp:2999-01-01\n")?;
    std::fs::write(work.join("lapsed"), "CVE-2024-0001 exp:2020-01-01\n")?;
    std::fs::write(work.join("wrong"), "CVE-2024-0001 until tomorrow\n")?;
    for (arguments, expected) in [
        (vec![], 0),
        (vec!["--fail-on", "critical"], 3),
        (vec!["--fail-on", "low"], 3),
        // What is shown does not decide what fails.
        (vec!["--fail-on", "high", "--severity", "low"], 3),
        (vec!["--fail-on", "high", "--ignore-unfixed"], 3),
        (vec!["--fail-on", "high", "--ignore-file", "accepted"], 0),
        (vec!["--fail-on", "high", "--ignore-file", "lapsed"], 3),
        (vec!["--fail-on", "high", "--ignore-file", "wrong"], 1),
        (vec!["--fail-on", "high", "./missing"], 1),
        (vec!["--fail-on", "huge"], 2),
    ] {
        let all = [vec!["scan", "root"], arguments.clone()].concat();
        let (code, told) = desk.refused(&all)?;
        ensure!(
            code == Some(expected),
            "{arguments:?} ended with {code:?}: {told}"
        );
    }
    Ok(())
}

#[test]
fn what_was_not_matched_is_never_clean() -> Result<()> {
    let desk = desk()?;
    let work = desk.path("work")?;
    std::fs::write(
        work.join("root/etc/os-release"),
        "ID=debian\nVERSION_ID=\"11\"\n",
    )?;
    std::fs::write(work.join("root/etc/debian_version"), "11.2\n")?;
    let expected = "\
root (debian 11.2)
2 packages, none of them matched
2 deb packages were not matched: the vulnerability data has nothing for debian 11.2; run `muster db update`
";
    let table = desk.told(&["scan", "root"])?;
    ensure!(table.starts_with(expected), "{table}");
    for (arguments, code) in [
        (&["--fail-on", "critical"][..], 4),
        (&["--fail-on", "critical", "--allow-unmatched"], 0),
    ] {
        let all = [&["scan", "root"], arguments].concat();
        let (found, told) = desk.refused(&all)?;
        ensure!(found == Some(code), "{all:?} exited with {found:?}: {told}");
    }
    let output = desk.run(&["scan", "-o", "json", "root"])?;
    let told = String::from_utf8(output.stderr)?;
    ensure!(
        told.contains("root: 2 of 2 packages were not matched"),
        "{told}"
    );
    let one = only(std::str::from_utf8(&output.stdout)?)?;
    assert_eq!(one["report"]["unmatched"][0]["reason"], "NoData");
    assert_eq!(one["report"]["unmatched"][0]["count"], 2);
    Ok(())
}

#[test]
fn a_directory_in_which_nothing_is_recognised_is_an_error() -> Result<()> {
    let desk = Desk::new()?;
    std::fs::create_dir(desk.path("work")?.join("empty"))?;
    for arguments in [
        &["scan", "empty"][..],
        &["scan", "--fail-on", "high", "--allow-unmatched", "empty"],
        &["scan", "-o", "spdx", "empty"],
        &["sbom", "empty"],
    ] {
        let (code, told) = desk.refused(arguments)?;
        ensure!(
            code == Some(1),
            "{arguments:?} exited with {code:?}: {told}"
        );
        ensure!(
            told.contains("no packages found") && told.contains("go.mod"),
            "{told}"
        );
    }
    Ok(())
}

#[test]
fn what_is_left_out_is_said() -> Result<()> {
    let desk = desk()?;
    let work = desk.path("work")?;
    let table = desk.told(&["scan", "--severity", "low,medium", "root"])?;
    let expected = "root (debian 12.7)\n2 packages, 1 vulnerability, none low or medium\n";
    assert_eq!(table, expected);
    let output = desk.run(&["scan", "-o", "json", "--severity", "low,medium", "root"])?;
    ensure!(found(&only(std::str::from_utf8(&output.stdout)?)?).is_empty());
    let told = String::from_utf8(output.stderr)?;
    ensure!(
        told.contains("1 finding is not shown, of other severities"),
        "{told}"
    );
    // A file of this name is followed without being named.
    std::fs::write(work.join(".musterignore"), "CVE-2024-0001\n")?;
    let output = desk.run(&["scan", "-o", "json", "root"])?;
    ensure!(found(&only(std::str::from_utf8(&output.stdout)?)?).is_empty());
    let told = String::from_utf8(output.stderr)?;
    ensure!(told.contains("1 finding is ignored by"), "{told}");
    Ok(())
}

#[test]
fn a_hub_is_asked_and_remembered() -> Result<()> {
    let desk = desk()?;
    let mut hub = Hub::start()?;
    let address = hub.address.clone();
    let scan = ["scan", "-o", "json", "--vex-hub", &address, "root"];
    let one = only(&desk.told(&scan)?)?;
    assert_eq!(one["report"]["summary"]["suppressed"], 1, "{one}");
    hub.stop()?;
    // What was fetched stays, and a hub that never was is an error and not silence.
    let one = only(&desk.told(&[&scan[..], &["--offline"]].concat())?)?;
    assert_eq!(one["report"]["summary"]["suppressed"], 1, "{one}");
    let (code, told) = desk.refused(&[
        "scan",
        "--offline",
        "--vex-hub",
        "https://example.org/hub",
        "root",
    ])?;
    ensure!(
        code == Some(1) && told.contains("example.org/hub"),
        "{told}"
    );
    Ok(())
}

#[test]
fn a_statement_suppresses_and_is_shown() -> Result<()> {
    let desk = desk()?;
    std::fs::write(desk.path("work")?.join("vex.json"), statement().to_string())?;
    let scan = ["scan", "--vex", "vex.json", "root"];
    let (code, _) = desk.refused(&[&scan[..], &["--fail-on", "low"]].concat())?;
    assert_eq!(code, Some(0));
    let table = desk.told(&scan)?;
    ensure!(
        table.contains("no vulnerabilities (1 suppressed)"),
        "{table}"
    );
    ensure!(!table.contains("CVE-2024-0001"), "{table}");
    let table = desk.told(&[&scan[..], &["--show-suppressed"]].concat())?;
    ensure!(table.contains("not affected"), "{table}");
    let one = only(&desk.told(&[&scan[..], &["-o", "json"]].concat())?)?;
    assert_eq!(found(&one), expected());
    let finding = &one["report"]["results"][0]["vulnerabilities"][0];
    assert_eq!(finding["suppressed"], true);
    assert_eq!(finding["vexStatus"]["repository"], "vex.json");
    assert_eq!(
        finding["vexStatus"]["statement"],
        "vulnerable_code_not_in_execute_path"
    );
    Ok(())
}
