//! What keeps `muster up` from starting is said in words that tell what to do next.

use anyhow::{Result, ensure};
use muster_testkit::kubeconfig::Kubeconfig;
use muster_testkit::muster::Muster;
use muster_testkit::process::{Directory, Process};
use muster_testkit::{http, wait};
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const MUSTER: &str = env!("CARGO_BIN_EXE_muster");
/// Far beyond what a start or an end takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// Gives a database the schema of a build that is yet to come.
const AGE: &str = "import sqlite3, sys
with sqlite3.connect(sys.argv[1]) as database:
    database.execute('UPDATE meta SET value = 4711')
";

/// What `muster up` says when it will not start; it must end by itself.
fn refusal(data: &Path, listen: &str) -> Result<String> {
    let directory = Directory::new("refusal")?;
    let mut command = Command::new(MUSTER);
    command.arg("up").arg("--data").arg(data);
    command.args(["--listen", listen]);
    let mut process = Process::start("muster", &mut command, &directory.join("log"))?;
    let status = wait::until("the refusal", PATIENCE, || process.exit_status())?;
    ensure!(!status.success(), "it ended well: {}", process.log_tail());
    Ok(process.log_tail())
}

fn assert_says(message: &str, words: &[&str]) {
    assert!(message.starts_with("error: "), "{message}");
    for word in words {
        assert!(message.contains(word), "{word:?} is not in {message:?}");
    }
}

#[test]
fn a_port_in_use_is_named_with_the_flag_that_changes_it() -> Result<()> {
    let directory = Directory::new("start")?;
    let taken = TcpListener::bind(("127.0.0.1", 0))?;
    let address = taken.local_addr()?.to_string();
    let message = refusal(&directory.join("data"), &address)?;
    assert_says(&message, &[&address, "in use", "--listen"]);
    Ok(())
}

#[test]
fn a_data_directory_has_one_process_at_a_time() -> Result<()> {
    let first = Muster::start(MUSTER)?;
    let message = refusal(first.data(), "127.0.0.1:0")?;
    let data = first.data().display().to_string();
    let words = [
        &data,
        "in use by another process",
        "stop that one",
        "another directory",
    ];
    assert_says(&message, &words);
    assert!(http::is_ready(first.kubeconfig()), "the first is unharmed");
    Ok(())
}

#[test]
fn a_data_directory_that_cannot_be_made_is_named() -> Result<()> {
    let directory = Directory::new("start")?;
    let file = directory.join("file");
    fs::write(&file, "not a directory")?;
    // Nobody makes directories in /proc, not even root.
    for place in [file.as_path(), Path::new("/proc/muster")] {
        let message = refusal(place, "127.0.0.1:0")?;
        let place = place.display().to_string();
        assert_says(&message, &[&place, "writable"]);
    }
    assert_eq!(fs::read_to_string(file)?, "not a directory");
    Ok(())
}

#[test]
fn a_database_from_the_future_is_left_alone() -> Result<()> {
    let mut muster = Muster::start(MUSTER)?;
    ensure!(muster.terminate()?.success());
    let database = muster.data().join("state.db");
    let aged = Command::new("python3")
        .args(["-c", AGE])
        .arg(&database)
        .status()?;
    ensure!(aged.success(), "the schema's version could not be changed");
    // Twice, because the first refusal must not have made it its own.
    for _ in 0..2 {
        let message = refusal(muster.data(), "127.0.0.1:0")?;
        assert_says(&message, &["state.db", "4711", "newer muster"]);
    }
    Ok(())
}

#[test]
fn a_damaged_database_is_named_with_the_way_out() -> Result<()> {
    let mut muster = Muster::start(MUSTER)?;
    ensure!(muster.terminate()?.success());
    let database = muster.data().join("state.db");
    fs::write(&database, "no database".repeat(1000))?;
    let message = refusal(muster.data(), "127.0.0.1:0")?;
    assert_says(&message, &["state.db", "damaged", "backup", "move it away"]);
    Ok(())
}

#[tokio::test]
async fn a_full_disk_refuses_writes_and_still_answers_reads() -> Result<()> {
    let directory = Directory::new("full")?;
    let small = directory.join("small");
    fs::create_dir(&small)?;
    // A mount of its own, which ends with the process.
    let script = "mount -t tmpfs -o size=3m none \"$1\" || exit 77; \
                  exec \"$2\" up --data \"$1/data\" --listen 127.0.0.1:0";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script, "sh"]);
    command.arg(&small).arg(MUSTER);
    let mut process = Process::start("muster", &mut command, &directory.join("log"))?;
    let seen = format!("/proc/{}/root{}/data", process.id(), small.display());
    let kubeconfig = wait::until("a server on a small disk", PATIENCE, || {
        if process.exit_status()?.is_some() {
            return Ok(Some(None));
        }
        let kubeconfig = Kubeconfig::read(&Path::new(&seen).join("kubeconfig")).ok();
        Ok(kubeconfig.filter(http::is_ready).map(Some))
    })?;
    let Some(kubeconfig) = kubeconfig else {
        // Only root may mount; the store's own suite covers a full disk everywhere.
        eprintln!("no small disk here: {}", process.log_tail());
        return Ok(());
    };
    let client = http::Client::new(&kubeconfig)?;
    let collection = "/api/v1/namespaces/default/configmaps";
    let mut written = 0;
    let refused = loop {
        let noise: String = (0..50_000u32)
            .map(|place| {
                char::from(b'a' + ((place + written).wrapping_mul(2_654_435_761) >> 27) as u8 % 26)
            })
            .collect();
        let body = serde_json::json!({"metadata": {"name": format!("o-{written}")}, "data": {"noise": noise}});
        let request = http::Request::new(::http::Method::POST, collection);
        let answer = client
            .send(request.body("application/json", body.to_string())?)
            .await?;
        if answer.status != 201 {
            break answer;
        }
        written += 1;
        ensure!(written < 1000, "the disk never became full");
    };
    let status = refused.json()?;
    assert!(refused.status.is_server_error(), "{status}");
    assert_eq!(status["kind"], "Status");
    let message = status["message"].as_str().unwrap_or_default().to_owned();
    assert!(
        message.contains("full") || message.contains("room"),
        "{message}"
    );
    for number in 0..written {
        let answer = client.get(&format!("{collection}/o-{number}")).await?;
        assert_eq!(answer.status, 200, "acknowledged and gone: o-{number}");
    }
    assert!(process.exit_status()?.is_none());
    Ok(())
}
