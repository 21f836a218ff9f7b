//! Registries that want to know who is asking, and whose certificates only a private authority
//! knows: what a Registry has to say, and what it is told when it says something wrong.

use super::conditions::{Bench, image, registry};
use super::*;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use muster_testkit::registry::{Login, PASSWORD, Setup, USERNAME};
use muster_testkit::token::{IDENTITY_TOKEN, TokenService};

fn secret(name: &str, auths: Value) -> Value {
    let config = json!({ "auths": auths }).to_string();
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/dockerconfigjson",
        "metadata": {"name": name, "namespace": "default"},
        "data": {".dockerconfigjson": BASE64_STANDARD.encode(config)},
    })
}

/// Nothing that is not to be known is in the log or in an object other than the Secret.
fn keeps(bench: &Bench, secrets: &[&str]) -> Result<()> {
    let log = fs::read_to_string(bench.muster.process().log())?;
    let kinds = "registries,scanjobs,images,sboms,vulnerabilityreports,events";
    let objects = bench.kubectl.succeed(&["get", kinds, "-A", "-o", "json"])?;
    for secret in secrets {
        let encoded = BASE64_STANDARD.encode(format!("{USERNAME}:{secret}"));
        for (place, text) in [("log", &log), ("objects", &objects)] {
            assert!(!text.contains(secret), "{secret} is in the {place}");
            assert!(
                !text.contains(&encoded),
                "{secret} is in the {place}, encoded"
            );
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_registry_with_a_password_and_its_own_authority_is_scanned() -> Result<()> {
    const WRONG: &str = "hunter2hunter2";
    let server = Registry::start_with(Setup {
        tls: true,
        login: Login::Password,
    })?;
    image(&Pusher::new(&server)?, "team/app", Some("1"), 2000).await?;
    let host = server.host();
    let bench = Bench::start()?;
    let pair = |password: &str| BASE64_STANDARD.encode(format!("{USERNAME}:{password}"));
    let address = format!("https://{host}");
    for object in [
        secret("joined", json!({&host: {"auth": pair(PASSWORD)}})),
        secret(
            "apart",
            json!({&address: {"username": USERNAME, "password": PASSWORD}}),
        ),
        secret("wrong", json!({&host: {"auth": pair(WRONG)}})),
        secret("other", json!({"ghcr.io": {"auth": pair(WRONG)}})),
        json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {"name": "opaque", "namespace": "default"},
            "stringData": {"password": WRONG},
        }),
        json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {"name": "torn", "namespace": "default"},
            "stringData": {".dockerconfigjson": format!("{{\"auths\": {WRONG}")},
        }),
    ] {
        bench.apply(&object)?;
    }
    let repositories = json!([{"name": "team/app"}]);
    let trusting = |secret: &str| {
        let mut spec = json!({
            "catalogType": "NoCatalog", "repositories": repositories, "insecure": false,
            "caBundle": server.authority(),
        });
        if !secret.is_empty() {
            spec["authSecret"] = json!(secret);
        }
        registry(&host, spec)
    };
    for name in ["joined", "apart"] {
        bench.apply(&trusting(name))?;
        let (reason, job) = bench.scan(name, json!({"registry": "local"}))?;
        assert!(reason.contains("AllImagesScanned"), "{name}: {reason}");
        assert_eq!(job["status"]["imagesCount"], 1);
    }
    for (name, secret, words) in [
        (
            "one",
            "wrong",
            vec!["refuses the login of the Secret default/wrong", &host],
        ),
        (
            "two",
            "other",
            vec!["Secret default/other has no login for", &host],
        ),
        ("three", "", vec!["wants a login", "spec.authSecret", &host]),
        ("four", "lost", vec!["Secret default/lost does not exist"]),
        (
            "five",
            "opaque",
            vec!["Secret default/opaque", "kubernetes.io/dockerconfigjson"],
        ),
        ("six", "torn", vec!["Secret default/torn cannot be used"]),
    ] {
        bench.apply(&trusting(secret))?;
        let (reason, _) = bench.scan(name, json!({"registry": "local"}))?;
        for word in [vec!["InternalError"], words].concat() {
            assert!(reason.contains(word), "{name}: {word}: {reason}");
        }
    }
    // Where the Registry names no Secret, those count that Pods of the namespace pull with.
    for (name, secrets, word) in [
        ("eight", ["lost", "wrong"], "refuses the pull secrets"),
        ("nine", ["lost", "joined"], "AllImagesScanned"),
    ] {
        let secrets = secrets.map(|name| json!({ "name": name }));
        bench.apply(&json!({
            "apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": "default", "namespace": "default"}, "imagePullSecrets": secrets,
        }))?;
        bench.apply(&trusting(""))?;
        let (reason, _) = bench.scan(name, json!({"registry": "local"}))?;
        assert!(reason.contains(word), "{name}: {reason}");
    }
    // Without the authority nobody is talked to, and no password is sent.
    let mut stranger = trusting("joined");
    stranger["spec"]["caBundle"] = json!("");
    bench.apply(&stranger)?;
    let (reason, _) = bench.scan("seven", json!({"registry": "local"}))?;
    assert!(reason.contains("spec.caBundle"), "{reason}");
    assert_eq!(
        bench.references()?,
        ["team/app:1"],
        "a failed scan takes nothing away"
    );
    keeps(&bench, &[PASSWORD, WRONG])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_identity_token_is_exchanged_for_what_the_registry_takes() -> Result<()> {
    let service = TokenService::start(1).await?;
    let server = Registry::start_with(Setup {
        login: Login::Token {
            realm: service.realm(),
            certificate: service.certificate(),
        },
        ..Setup::default()
    })?;
    let token = service.token("repository:team/app:pull,push")?;
    let pusher = Pusher::new(&server)?.with_token(&token);
    image(&pusher, "team/app", Some("1"), 2000).await?;
    let bench = Bench::start()?;
    let host = server.host();
    for (name, token) in [("right", IDENTITY_TOKEN), ("wrong", "hunter2hunter2")] {
        bench.apply(&secret(name, json!({&host: {"identitytoken": token}})))?;
        bench.apply(&registry(&host, json!({
            "catalogType": "NoCatalog", "repositories": [{"name": "team/app"}], "authSecret": name,
        })))?;
        let (reason, _) = bench.scan(name, json!({"registry": "local"}))?;
        let word = match name {
            "right" => "AllImagesScanned",
            _ => "refuses the login of the Secret default/wrong",
        };
        assert!(reason.contains(word), "{name}: {reason}");
    }
    keeps(&bench, &[IDENTITY_TOKEN, "hunter2hunter2", &token])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_workload_scan_has_its_credentials_where_it_is_installed() -> Result<()> {
    let server = Registry::start_with(Setup {
        login: Login::Password,
        ..Setup::default()
    })?;
    image(&Pusher::new(&server)?, "team/app", Some("1"), 2000).await?;
    let host = server.host();
    let bench = Bench::start()?;
    let pair = BASE64_STANDARD.encode(format!("{USERNAME}:{PASSWORD}"));
    let mut installed = secret("pull", json!({&host: {"auth": pair}}));
    installed["metadata"]["namespace"] = json!("muster");
    bench.apply(&installed)?;
    let object = |name: &str| {
        registry(
            &host,
            json!({
                "catalogType": "NoCatalog", "repositories": [{"name": "team/app"}], "authSecret": name,
            }),
        )
    };
    let managed = |name: &str| {
        let mut object = object(name);
        object["metadata"]["labels"] = json!({"sbomscanner.kubewarden.io/workloadscan": "true"});
        object
    };
    // Nobody else gets at them.
    bench.apply(&object("pull"))?;
    let (reason, _) = bench.scan("plain", json!({"registry": "local"}))?;
    let word = "Secret default/pull does not exist";
    assert!(reason.contains(word), "{reason}");
    bench.kubectl.succeed(&["delete", "registry", "local"])?;

    bench.apply_as_operator(&managed("pull"))?;
    let (reason, _) = bench.scan("managed", json!({"registry": "local"}))?;
    assert!(reason.contains("AllImagesScanned"), "{reason}");
    // Nor does it use what lies beside the Registry.
    bench.apply(&secret("beside", json!({&host: {"auth": pair}})))?;
    bench.apply_as_operator(&managed("beside"))?;
    let (reason, _) = bench.scan("beside", json!({"registry": "local"}))?;
    let word = "Secret muster/beside does not exist";
    assert!(reason.contains(word), "{reason}");
    keeps(&bench, &[PASSWORD])
}
