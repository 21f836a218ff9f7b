//! `kubectl get -w`: changes are seen while they happen.

use super::{Scene, cells, config_map, registry};
use anyhow::{Context, Result};
use muster_testkit::wait;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;
use std::time::Duration;

const SOON: Duration = Duration::from_secs(60);

/// A kubectl that keeps watching; it ends when dropped.
struct Watching {
    child: Child,
    lines: Receiver<String>,
}

impl Watching {
    fn start(scene: &Scene, line: &str) -> Result<Watching> {
        let mut child = scene
            .command(line)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let output = child.stdout.take().context("no standard output")?;
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Watching { child, lines })
    }

    /// The next line that kubectl prints.
    fn next(&mut self) -> Result<String> {
        wait::until("the next line of kubectl", SOON, || {
            match self.lines.try_recv() {
                Ok(line) => Ok(Some(line)),
                Err(TryRecvError::Empty) => Ok(None),
                Err(TryRecvError::Disconnected) => anyhow::bail!("kubectl ended"),
            }
        })
    }

    /// The cells of the next line.
    fn row(&mut self) -> Result<Vec<String>> {
        let line = self.next()?;
        let rows = cells(&line);
        let row = rows.first().context("an empty line")?;
        Ok(row.iter().map(|cell| (*cell).into()).collect())
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_watch_prints_what_is_there_and_then_every_change() -> Result<()> {
    let scene = Scene::new("watch-table")?;
    scene.apply(&registry("seen", "before.example.org"))?;
    let mut watching = Watching::start(&scene, "get registries -w")?;
    assert_eq!(
        watching.row()?,
        ["NAME", "URI", "INTERVAL", "REACHABLE", "LAST SCAN", "AGE"]
    );
    assert_eq!(watching.row()?[..2], ["seen", "before.example.org"]);
    scene.apply(&registry("seen", "after.example.org"))?;
    assert_eq!(watching.row()?[..2], ["seen", "after.example.org"]);
    scene.apply(&registry("later", "later.example.org"))?;
    assert_eq!(watching.row()?[..2], ["later", "later.example.org"]);
    scene.run("delete registry seen")?;
    assert_eq!(watching.row()?[..2], ["seen", "after.example.org"]);
    Ok(())
}

#[test]
fn events_are_named_and_selected() -> Result<()> {
    let scene = Scene::new("watch-events")?;
    let columns = "EVENT:.type,NAME:.object.metadata.name,A:.object.data.a";
    let mut watching = Watching::start(
        &scene,
        &format!("get cm -l seen=yes -w --output-watch-events -o custom-columns={columns}"),
    )?;
    // Only a list can tell that the watch has begun, and an empty one prints nothing.
    scene.apply(&config_map("hidden", "{a: '0'}"))?;
    scene.run("create cm shown --from-literal=a=1")?;
    scene.run("label cm shown seen=yes")?;
    assert_eq!(watching.row()?, ["EVENT", "NAME", "A"]);
    assert_eq!(watching.row()?, ["ADDED", "shown", "1"]);
    scene.run(r#"patch cm shown --type=merge -p '{"data":{"a":"2"}}'"#)?;
    assert_eq!(watching.row()?, ["MODIFIED", "shown", "2"]);
    // Leaving the selection is a deletion to whoever watches it.
    scene.run("label cm shown seen-")?;
    assert_eq!(watching.row()?[..2], ["DELETED", "shown"]);
    Ok(())
}

#[test]
fn watch_only_begins_with_now() -> Result<()> {
    let scene = Scene::new("watch-only")?;
    scene.apply(&config_map("old", "{a: '1'}"))?;
    let mut watching = Watching::start(
        &scene,
        "get cm old --watch-only --no-headers -o custom-columns=A:.data.a",
    )?;
    // Nothing is printed until something changes, and when the watch begins is not to be seen
    // from outside: change again and again until it is.
    let mut changes = 0;
    wait::until("a change to be seen", SOON, || {
        changes += 1;
        let patch = format!(r#"{{"data":{{"a":"change {changes}"}}}}"#);
        scene.run(&format!("patch cm old --type=merge -p '{patch}'"))?;
        match watching.lines.try_recv() {
            Ok(line) => Ok(Some(line)),
            Err(TryRecvError::Empty) if watching.child.try_wait()?.is_none() => Ok(None),
            Err(error) => Err(error.into()),
        }
    })
    .map(|line| assert!(line.starts_with("change "), "{line}"))
}
