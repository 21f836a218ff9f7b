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
fn what_is_left_out_is_said() -> Result<()> {
    let desk = desk()?;
    let work = desk.path("work")?;
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
