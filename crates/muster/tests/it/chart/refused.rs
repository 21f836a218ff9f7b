//! Wrong values are refused before anything is installed, with a word on what is wrong.

use super::{chart, values};
use anyhow::{Result, ensure};
use muster_testkit::helm::Helm;

#[test]
fn wrong_values_are_refused_with_the_place_and_the_reason() -> Result<()> {
    let helm = Helm::new()?;
    let chart = chart();
    for (set, told) in [
        ("replicas=3", "additional properties 'replicas' not allowed"),
        ("storage.replicas=0", "at '/storage/replicas'"),
        ("storage.replicas=two", "at '/storage/replicas'"),
        (
            "storage.replica=2",
            "additional properties 'replica' not allowed",
        ),
        ("storage.connections=1", "at '/storage/connections'"),
        ("reports.backend=etcd", "at '/reports/backend'"),
        ("reports.format=html", "at '/reports/format'"),
        ("certificates.from=vault", "at '/certificates/from'"),
        ("image.digest=latest", "at '/image/digest'"),
        ("image.pullPolicy=Sometimes", "at '/image/pullPolicy'"),
        ("bindAddress=localhost", "at '/bindAddress'"),
        ("workloadScan.enabled=maybe", "at '/workloadScan/enabled'"),
        (
            "workloadScan.configuration.spec.interval=24h",
            "additional properties 'interval' not allowed",
        ),
        ("authorities.pem=secret", "at '/authorities/pem'"),
        (
            "vulnerabilityData.mirrors={ghcr.io}",
            "at '/vulnerabilityData/mirrors/0'",
        ),
        (
            "vulnerabilityData.volume.size=big",
            "at '/vulnerabilityData/volume/size'",
        ),
        (
            "postgresql.external.url=postgres://muster:secret@db/muster",
            "at '/postgresql/external/url'",
        ),
        (
            "nats.external.servers={nats://user:secret@nats:4222}",
            "at '/nats/external/servers/0'",
        ),
        (
            "metrics.serviceMonitor.interval=often",
            "at '/metrics/serviceMonitor/interval'",
        ),
        // What belongs together.
        (
            "pages.ingress.enabled=true",
            "pages.ingress.host: name the host",
        ),
        (
            "pages.enabled=false,pages.ingress.enabled=true,pages.ingress.host=a.example",
            "pages.ingress: there is nothing to lead to",
        ),
        (
            "postgresql.bundled.enabled=false",
            "postgresql.external: say where the database is",
        ),
        (
            "postgresql.bundled.enabled=false,postgresql.external.url=postgres://a@b/c,postgresql.external.urlSecret.name=d",
            "postgresql.external: give either",
        ),
        (
            "nats.bundled.enabled=false",
            "nats.external.servers: say where NATS is",
        ),
        (
            "certificates.from=secrets",
            "certificates.storageSecret: name the Secret",
        ),
        (
            "certificates.from=secrets,certificates.storageSecret=a",
            "certificates.webhookSecret: name the Secret",
        ),
        (
            "certificates.from=secrets,certificates.storageSecret=a,certificates.webhookSecret=b",
            "certificates.storageAuthority: say who signed",
        ),
        (
            "vulnerabilityData.update=false",
            "vulnerabilityData.update is off: name the claim",
        ),
        (
            "authorities.configMap=a,authorities.pem=-----BEGIN CERTIFICATE-----",
            "authorities: give either",
        ),
    ] {
        let complaint = helm.fail(&["template", "muster", &chart, "--set", set])?;
        ensure!(complaint.contains(told), "{set}: {complaint}");
    }
    Ok(())
}

#[test]
fn a_cluster_that_is_too_old_is_refused() -> Result<()> {
    let (chart, helm) = (chart(), Helm::new()?);
    for (version, fine) in [
        ("v1.28.0", false),
        ("v1.30.14", false),
        ("v1.30.14-eks-1", false),
        ("v1.31.0", true),
        ("v1.31.4+k3s1", true),
        ("v1.31.5-eks-1", true),
    ] {
        let mut arguments = vec!["template", "muster", &chart, "--kube-version", version];
        let values = values(Some("minimal"));
        arguments.extend(values.iter().map(String::as_str));
        assert_eq!(helm.run(&arguments)?.status.success(), fine, "{version}");
    }
    Ok(())
}
