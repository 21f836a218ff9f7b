//! A release from its installation to its end: Helm installs and upgrades it, every role is started from
//! what the cluster was told, with the rights that it was given and no others, and a scan goes through
//! all of them.

use super::sandbox::{Role, Sandbox, answers};
use super::{NAMESPACE, chart};
use crate::scan::{LIMIT, data, ended, get, job, manifests, push};
use anyhow::{Context, Result, ensure};
use muster_testkit::helm::Helm;
use muster_testkit::http;
use muster_testkit::installation::lacking_right;
use muster_testkit::kubeconfig::Kubeconfig;
use muster_testkit::kubectl::Kubectl;
use muster_testkit::kubernetes::{Kubernetes, Options};
use muster_testkit::nats::Nats;
use muster_testkit::port;
use muster_testkit::postgres::Postgres;
use muster_testkit::process::Directory;
use muster_testkit::registry::Registry;
use muster_testkit::wait;
use serde_json::json;

const SERVICE: &str = "v1alpha1.storage.sbomscanner.kubewarden.io";

/// Installs a release whose workers have their data from a claim, as one without a network does.
fn install(helm: &Helm, verb: &str) -> Result<()> {
    let chart = chart();
    let data = "--set=vulnerabilityData.update=false,vulnerabilityData.volume.existingClaim=data";
    let place = ["--namespace", NAMESPACE, "--create-namespace"];
    helm.succeed(&[&[verb, "--install", "muster", &chart, data], &place[..]].concat())?;
    Ok(())
}

/// Has kube-apiserver find the storage on this machine: a Service leads to pods, of which there are none.
fn lead(kubectl: &Kubectl, port: u16) -> Result<()> {
    kubectl.succeed(&["-n", NAMESPACE, "delete", "service", "muster-storage"])?;
    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "muster-storage", "namespace": NAMESPACE},
        "spec": {"type": "ExternalName", "externalName": "localhost"},
    });
    kubectl.succeed_with(&["create", "-f", "-"], &service.to_string())?;
    let patch = json!({"spec": {"service": {"port": port}}}).to_string();
    kubectl.succeed(&["patch", "apiservice", SERVICE, "--type=merge", "-p", &patch])?;
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

    let (nats, postgres) = (Nats::start()?, Postgres::shared()?);
    let database = postgres.url(&postgres.database()?);
    let directory = Directory::new("chart")?;
    let claim = directory.join("claim");
    std::fs::create_dir(&claim)?;
    data(&claim)?;
    let [api, webhook, operator, worker] =
        [port::free()?, port::free()?, port::free()?, port::free()?];
    lead(&kubectl, api)?;
    let here = |port: u16| format!("127.0.0.1:{port}");
    // The two roles with a port of their own for health are told apart by which of them is asked.
    let sandbox = |health: u16| {
        let said = [
            ("nats://muster-nats.muster.svc:4222", nats.url()),
            (
                "postgres://muster@muster-postgresql.muster.svc:5432/muster",
                database.clone(),
            ),
            (
                "https://muster-storage.muster.svc",
                format!("https://localhost:{api}"),
            ),
            ("[::]:7443", here(api)),
            ("[::]:9443", here(webhook)),
            ("[::]:8080", here(health)),
        ];
        Sandbox {
            kubectl: &kubectl,
            administrator: kubernetes.kubeconfig().clone(),
            directory: &directory,
            addresses: said.map(|(there, here)| (there.to_owned(), here)).into(),
            claim: claim.clone(),
        }
    };
    let asked = ("MUSTER_WEBHOOK_URL", format!("https://{}", here(webhook)));
    let mut storing = sandbox(0).start("storage", &[])?;
    let mut deciding = sandbox(operator).start("operator", &[asked])?;
    let mut scanning = sandbox(worker).start("worker", &[])?;
    let authority = std::fs::read(directory.join("worker-storage").join("ca.crt"))?;
    let stored = Kubeconfig {
        server: format!("https://localhost:{api}"),
        authority: Some(authority),
        ..kubernetes.kubeconfig().clone()
    };
    storing.wait_ready(|| http::is_ready(&stored))?;
    deciding.wait_ready(|| answers(operator, "/readyz"))?;
    scanning.wait_ready(|| answers(worker, "/readyz"))?;
    let roles = [&storing, &deciding, &scanning];
    let logs = || roles.map(Role::log).join("\n");
    let (version, group) = SERVICE.split_once('.').context("a group")?;
    for (what, probe) in [
        (
            "the aggregated API",
            vec!["get", "--raw", &format!("/apis/{group}/{version}")],
        ),
        (
            "the webhooks",
            vec!["get", "validatingwebhookconfiguration", "muster"],
        ),
    ] {
        wait::until(what, LIMIT, || {
            Ok(kubectl.run(&probe, "")?.status.success().then_some(()))
        })
        .with_context(logs)?;
    }

    kubectl.succeed_with(&["apply", "-f", "-"], &manifests(&registry.host()))?;
    kubectl.succeed_with(&["apply", "-f", "-"], &job("first", "local"))?;
    let reason = ended(&kubectl, "first").with_context(logs)?;
    ensure!(reason.contains("AllImagesScanned"), "{reason}\n{}", logs());
    readable(&kubernetes, &kubectl)?;
    for role in roles {
        let log = role.log();
        let refused = lacking_right(&log);
        ensure!(refused.is_none(), "{refused:?}");
    }

    drop((storing, deciding, scanning));
    helm.succeed(&["uninstall", "muster", "--namespace", NAMESPACE])?;
    let left = kubectl.succeed(&[
        "get",
        "clusterroles,clusterrolebindings,apiservices",
        "-o",
        "name",
    ])?;
    ensure!(
        !left.contains("muster") && !left.contains(SERVICE),
        "{left}"
    );
    // What people wrote is not Helm's to delete.
    get(&kubectl, &["registry", "local"])?;
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
