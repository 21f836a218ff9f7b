//! A release from its installation to its end: Helm installs and upgrades it, every role is started from
//! what the cluster was told, with the rights that it was given and no others, and a scan goes through
//! all of them.

use super::nodes::{Nodes, SERVICE};
use super::{NAMESPACE, chart};
use crate::scan::{LIMIT, data, ended, get, job, manifests, push};
use anyhow::{Context, Result, ensure};
use muster_testkit::helm::Helm;
use muster_testkit::installation::lacking_right;
use muster_testkit::kubectl::Kubectl;
use muster_testkit::kubernetes::{Kubernetes, Options};
use muster_testkit::registry::Registry;
use muster_testkit::wait;

/// Installs a release whose workers have their data from a claim, as one without a network does.
fn install(helm: &Helm, verb: &str) -> Result<()> {
    let chart = chart();
    let data = "--set=vulnerabilityData.update=false,vulnerabilityData.volume.existingClaim=data";
    let place = ["--namespace", NAMESPACE, "--create-namespace"];
    helm.succeed(&[&[verb, "--install", "muster", &chart, data], &place[..]].concat())?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_scans_with_the_rights_it_has_until_it_goes() -> Result<()> {
    let registry = Registry::start()?;
    push(&registry, 2024).await?;
    let kubernetes = Kubernetes::start(&Options {
        controllers: true,
        ..Options::default()
    })?;
    let path = kubernetes.kubeconfig_path();
    let (kubectl, helm) = (Kubectl::new(&path)?, Helm::of(&path)?);
    install(&helm, "upgrade")?;

    // What was made for it once stays through upgrades.
    let secrets = || {
        let names = [
            "-n",
            NAMESPACE,
            "get",
            "secret",
            "muster-storage-tls",
            "muster-postgresql",
        ];
        kubectl.succeed(&[&names[..], &["-o", "jsonpath={.items[*].data}"]].concat())
    };
    let made = secrets()?;
    ensure!(made.contains("tls.key") && made.contains("password"));
    install(&helm, "upgrade")?;
    ensure!(made == secrets()?, "an upgrade made keys anew");

    let mut nodes = Nodes::new(&kubernetes)?;
    data(nodes.claim())?;
    nodes.lead()?;
    nodes.store()?;
    nodes.decide()?;
    nodes.scan()?;

    kubectl.succeed_with(&["apply", "-f", "-"], &manifests(&registry.host()))?;
    kubectl.succeed_with(&["apply", "-f", "-"], &job("first", "local"))?;
    let reason = ended(&kubectl, "first").with_context(|| nodes.log())?;
    let is_scanned = reason.contains("AllImagesScanned");
    ensure!(is_scanned, "{reason}\n{}", nodes.log());
    readable(&kubernetes, &kubectl)?;
    let log = nodes.log();
    let refused = lacking_right(&log);
    ensure!(refused.is_none(), "{refused:?}");
    // A storage with a certificate of its own is trusted, so workers share what they read.
    for complaint in [
        "an inventory is not shared",
        "a shared inventory is not used",
    ] {
        ensure!(!log.contains(complaint), "{log}");
    }

    drop(nodes);
    helm.succeed(&["uninstall", "muster", "--namespace", NAMESPACE])?;
    let left = kubectl.succeed(&[
        "get",
        "clusterroles,clusterrolebindings,apiservices,\
         mutatingwebhookconfigurations,validatingwebhookconfigurations",
        "-o",
        "name",
    ])?;
    ensure!(
        !left.contains("muster") && !left.contains(SERVICE),
        "{left}"
    );
    // What people wrote is not Helm's to delete.
    get(&kubectl, &["registry", "local"])?;
    taken_up(&kubectl, &helm)
}

/// The claim of the bundled database stays when a release goes, so its password does too; the next
/// release goes on with both.
fn taken_up(kubectl: &Kubectl, helm: &Helm) -> Result<()> {
    let password = || {
        let secret = ["-n", NAMESPACE, "get", "secret", "muster-postgresql"];
        kubectl.succeed(&[&secret[..], &["-o", "jsonpath={.data.password}"]].concat())
    };
    let kept = password()?;
    ensure!(!kept.is_empty());
    install(helm, "upgrade")?;
    ensure!(kept == password()?, "the next release has another password");
    Ok(())
}

/// Findings are for those who have been given the role, and Registries for all who may view.
fn readable(kubernetes: &Kubernetes, kubectl: &Kubectl) -> Result<()> {
    for (user, role) in [("ann", "muster-findings-reader"), ("bob", "view")] {
        let (role, user) = (format!("--clusterrole={role}"), format!("--user={user}"));
        let name = format!("test{}", user.replace("--user=", "-"));
        kubectl.succeed(&["create", "rolebinding", &name, &role, &user])?;
    }
    let ann = Kubectl::new(&kubernetes.user_path("ann", &[])?)?;
    let reports = wait::until("the right to read findings", LIMIT, || {
        Ok(get(&ann, &["vulnerabilityreports"]).ok())
    })?;
    let reports = reports["items"].as_array().context("reports")?;
    assert_eq!(reports.len(), 2);
    for report in reports {
        assert_eq!(report["report"]["summary"]["critical"], 1, "{report}");
    }
    let bob = Kubectl::new(&kubernetes.user_path("bob", &[])?)?;
    wait::until("the role `view` to have grown", LIMIT, || {
        let seen =
            get(&bob, &["registries"]).is_ok() && get(&bob, &["workloadscanreports"]).is_ok();
        Ok(seen.then_some(()))
    })?;
    bob.fail(&["get", "vulnerabilityreports"], "")?;
    bob.fail(&["delete", "registry", "local"], "")?;
    Ok(())
}
