//! Who may begin on a Registry, as the author of a job learns it at once.

use super::conditions::Bench;
use super::discovery::{Gate, discovery, registry};
use super::{LIMIT, ended, get, job, push};
use anyhow::Result;
use muster_testkit::kubectl::Kubectl;
use muster_testkit::registry::Registry;
use muster_testkit::wait;

/// The Leases of Registries.
fn claims(kubectl: &Kubectl) -> Result<Vec<String>> {
    let listed = kubectl.succeed(&["-n", "muster", "get", "leases", "-o", "name"])?;
    let claims = listed.lines().filter(|name| name.contains("/lease-"));
    Ok(claims.map(str::to_owned).collect())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_comes_second_is_warned_and_whoever_comes_too_late_refused() -> Result<()> {
    let server = Registry::start()?;
    push(&server, 2024).await?;
    let gate = Gate::default();
    let proxy = gate.before(&server).await?;
    let bench = Bench::start()?;
    let kubectl = &bench.kubectl;
    let manifest = registry("local", &proxy.host());
    kubectl.succeed_with(&["apply", "-f", "-"], &manifest.to_string())?;

    // What is only tried claims nothing, nor what is refused, nor what has no Registry.
    let create = ["create", "-f", "-"];
    let dry = ["create", "--dry-run=server", "-f", "-"];
    kubectl.succeed_with(&dry, &job("first", "local"))?;
    kubectl.succeed_with(&create, &job("lost", "nowhere"))?;
    let wrong = job("wrong", "local").replace(r#""registry""#, r#""repositories":1,"registry""#);
    kubectl.fail(&["create", "--validate=false", "-f", "-"], &wrong)?;
    assert_eq!(claims(kubectl)?, Vec::<String>::new());

    gate.close("/tags/list");
    let first = kubectl.run(&create, &job("first", "local"))?;
    assert!(first.status.success(), "{first:?}");
    assert!(!first.stderr.contains("Warning"), "{first:?}");
    let why = r#"ScanJob default/first works on the Registry "local""#;
    for (arguments, name) in [(&dry[..], "dry"), (&create[..], "second")] {
        let second = kubectl.run(arguments, &job(name, "local"))?;
        assert!(second.status.success(), "{second:?}");
        assert!(second.stderr.contains(why), "{second:?}");
    }
    let third = kubectl.run(&create, &discovery("third", "local"))?;
    assert!(third.status.success(), "{third:?}");
    assert!(third.stderr.contains(why), "{third:?}");
    wait::until("the second job to say for whom it waits", LIMIT, || {
        let second = get(kubectl, &["scanjob", "second"])?;
        let said = second["status"].to_string();
        Ok(said.contains("ScanJob default/first").then_some(()))
    })?;

    kubectl.succeed(&["delete", "registry", "local", "--wait=false"])?;
    for late in [job("late", "local"), discovery("late", "local")] {
        let refused = kubectl.fail(&create, &late)?;
        assert!(
            refused.contains(r#"the Registry "local" is being deleted"#),
            "{refused}"
        );
    }
    gate.open("/tags/list");
    let reason = ended(kubectl, "first")?;
    assert!(reason.contains("AllImagesScanned"), "{reason}");
    kubectl.succeed(&["wait", "--for=delete", "registry/local", "--timeout=180s"])?;
    Ok(())
}
