//! The certificate of the webhooks: one of our own that is renewed in time, or a given one.

use super::SOON;
use super::admission::{Cluster, registry};
use anyhow::{Context, Result};
use muster_testkit::certificates::Authority;
use muster_testkit::{port, wait};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::time::Duration;

/// An authority that ends in a day and began so many days ago, in PEM with its key, and a
/// certificate of it.
fn ending(days: u64) -> Result<[(&'static str, String); 4]> {
    let day = Duration::from_secs(24 * 60 * 60);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    let limited = |mut params: CertificateParams| {
        params.not_before = epoch + (now - day * u32::try_from(days).unwrap());
        params.not_after = epoch + (now + day);
        params
    };
    let mut authority = limited(CertificateParams::default());
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    let authority_key = KeyPair::generate()?;
    let authority_pem = authority.self_signed(&authority_key)?.pem();
    let key_pem = authority_key.serialize_pem();
    let issuer = Issuer::new(authority, authority_key);
    let serving = limited(CertificateParams::new(vec!["127.0.0.1".to_owned()])?);
    let serving_key = KeyPair::generate()?;
    let serving = serving.signed_by(&serving_key, &issuer)?.pem();
    Ok([
        ("ca.crt", authority_pem),
        ("ca.key", key_pem),
        ("tls.crt", serving),
        ("tls.key", serving_key.serialize_pem()),
    ])
}

/// Puts an authority and a certificate of it where an operator looks for them.
fn give(directory: &Path) -> Result<String> {
    let authority = Authority::new("a given authority")?;
    let pair = authority.server(&["127.0.0.1"])?;
    for (name, contents) in [
        ("tls.crt", &pair.certificate),
        ("tls.key", &pair.key),
        ("ca.crt", &authority.certificate),
    ] {
        let part = directory.join("part");
        fs::write(&part, contents)?;
        fs::rename(&part, directory.join(name))?;
    }
    Ok(authority.certificate)
}

#[test]
fn certificates_are_renewed_in_time_and_taken_up_when_given() -> Result<()> {
    const KINDS: [&str; 2] = [
        "validatingwebhookconfiguration",
        "mutatingwebhookconfiguration",
    ];
    let cluster = Cluster::start()?;
    let port = port::free()?;
    // An authority at its end is followed by another, which is believed beside it.
    let kept = ending(9)?;
    let data: serde_json::Map<String, Value> = kept
        .iter()
        .map(|(key, text)| ((*key).to_owned(), json!(text)))
        .collect();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "stringData": data,
        "metadata": {"name": "muster-webhook", "namespace": "muster"},
    });
    cluster
        .kubectl
        .succeed_with(&["create", "-f", "-"], &secret.to_string())?;
    let mut operator = cluster.operator(port, port, &[], "own.log")?;
    cluster
        .wait_refusing()
        .with_context(|| operator.log_tail())?;
    for kind in KINDS {
        let bundle = cluster.bundle(kind)?.context("a bundle")?;
        assert_eq!(bundle.matches("BEGIN CERTIFICATE").count(), 2, "{bundle}");
        assert!(bundle.contains(kept[0].1.trim()), "{bundle}");
    }
    // What somebody deletes is put back, and is what it was.
    let get = [
        "-n",
        "muster",
        "get",
        "secret",
        "muster-webhook",
        "-o",
        "jsonpath={.data}",
    ];
    let before = cluster.kubectl.succeed(&get)?;
    cluster
        .kubectl
        .succeed(&["-n", "muster", "delete", "secret", "muster-webhook"])?;
    cluster.kubectl.succeed(&["delete", KINDS[0], "muster"])?;
    wait::until("the Secret to be back", SOON, || {
        let outcome = cluster.kubectl.run(&get, "")?;
        Ok((outcome.stdout == before).then_some(()))
    })?;
    cluster.wait_refusing()?;
    // While nobody answers nothing new comes in, and what is not managed can go.
    let left = registry("default", "left", json!({"uri": "x.io"})).to_string();
    cluster.kubectl.succeed_with(&["apply", "-f", "-"], &left)?;
    operator.terminate(SOON)?;
    cluster.kubectl.succeed(&["delete", "registry", "left"])?;
    let refused = cluster.kubectl.fail(&["create", "-f", "-"], &left)?;
    assert!(refused.contains("failed calling webhook"), "{refused}");

    let given = cluster.files.path().join("given");
    fs::create_dir(&given)?;
    let first = give(&given)?;
    let file = |name: &str| given.join(name).display().to_string();
    let (certificate, key, authority) = (file("tls.crt"), file("tls.key"), file("ca.crt"));
    let arguments = [
        "--webhook-certificate",
        &certificate,
        "--webhook-key",
        &key,
        "--webhook-authority",
        &authority,
    ];
    let operator = cluster.operator(port, port, &arguments, "given.log")?;
    let until = |expected: &str| -> Result<()> {
        wait::until("kube-apiserver to be told", SOON, || {
            let mut told = true;
            for kind in KINDS {
                told &= cluster.bundle(kind)?.as_deref() == Some(expected);
            }
            Ok(told.then_some(()))
        })
        .with_context(|| operator.log_tail())
    };
    until(&first)?;
    cluster.wait_refusing()?;
    let second = give(&given)?;
    assert_ne!(first, second);
    until(&second)?;
    cluster.wait_refusing()
}
