//! The code of policies in a real registry: with tags and digests, behind logins and an authority of
//! its own, damaged, missing, and no code at all.

use anyhow::Result;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::Method;
use muster_audit::logins::Sources;
use muster_audit::modules::{Loaded, Modules, Options};
use muster_audit::prepare::PrepareError;
use muster_registry::Retry;
use muster_testkit::policies::{self, Abi};
use muster_testkit::proxy::{Fault, Proxy};
use muster_testkit::push::{self, Pushed, Pusher};
use muster_testkit::registry::{Login, PASSWORD, Registry, Setup, USERNAME};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// The media type of a module, as Kubewarden's tools push it.
const WASM: &str = "application/vnd.wasm.content.layer.v1+wasm";
const CONFIG: (&str, &[u8]) = ("application/vnd.wasm.config.v1+json", b"{}");

fn options() -> Options {
    Options {
        retry: Retry {
            attempts: 2,
            first: Duration::from_millis(5),
            longest: Duration::from_millis(50),
            patience: Duration::from_secs(1),
        },
        ..Options::default()
    }
}

pub fn modules(options: Options) -> Result<Arc<Modules>> {
    let sandbox = muster_wasm::Sandbox::new(Default::default())?;
    Ok(Arc::new(Modules::new(options, sandbox)))
}

async fn push(registry: &Registry, tag: &str, layers: &[(&str, &[u8])]) -> Result<Pushed> {
    Pusher::new(registry)?
        .artifact("team/policy", Some(tag), CONFIG, layers)
        .await
}

/// Loads a module, and tells what came of it.
async fn told(modules: &Modules, module: &str, sources: &Sources) -> (String, bool) {
    match modules.load(module, sources).await {
        Ok((_, Loaded::Wasm(_))) => ("wasm".into(), false),
        Ok((_, Loaded::Rego(_))) => ("rego".into(), false),
        Ok((_, Loaded::Cel(_))) => ("cel".into(), false),
        Err(error) => (error.to_string(), matches!(error, PrepareError::Later(_))),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_module_is_found_by_any_name_and_compiled_once() -> Result<()> {
    let registry = Registry::start()?;
    let module = policies::accepting(Abi::Wapc);
    let pushed = push(&registry, "v1", &[(WASM, &module)]).await?;
    push(&registry, "v1-again", &[("application/wasm", &module)]).await?;
    let proxy = Proxy::start(&registry.host(), |_, _| Fault::Pass).await?;
    let host = proxy.host();
    let names = [
        format!("registry://{host}/team/policy:v1"),
        format!("{host}/team/policy:v1"),
        format!("registry://{host}/team/policy:v1-again"),
        format!("registry://{host}/team/policy@{}", pushed.digest),
        format!("registry://{host}/team/policy:v1@{}", pushed.digest),
    ];
    let modules = modules(options())?;
    let mut all = tokio::task::JoinSet::new();
    for name in names.iter().cycle().take(20) {
        let (modules, name) = (modules.clone(), name.clone());
        all.spawn(async move { modules.load(&name, &Sources::default()).await });
    }
    let mut compiled = Vec::new();
    while let Some(loaded) = all.join_next().await {
        let (digest, Loaded::Wasm(one)) = loaded?? else {
            anyhow::bail!("no Wasm");
        };
        assert_eq!(digest.as_str(), push::digest(&module));
        compiled.push(one);
    }
    assert_eq!(compiled.len(), 20);
    let first = &compiled[0];
    assert!(compiled.iter().all(|one| Arc::ptr_eq(one, first)));
    let asked = proxy.count(Method::GET, "/manifests/");
    assert!(asked <= names.len(), "each name is looked up once: {asked}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tag_is_looked_up_again_when_told_and_a_digest_never() -> Result<()> {
    let registry = Registry::start()?;
    let (old, new) = (
        policies::accepting(Abi::Wapc),
        policies::rejecting(Abi::Wapc, "no"),
    );
    let pushed = push(&registry, "v1", &[(WASM, &old)]).await?;
    let proxy = Proxy::start(&registry.host(), |_, _| Fault::Pass).await?;
    let tag = format!("{}/team/policy:v1", proxy.host());
    let fixed = format!("{}/team/policy@{}", proxy.host(), pushed.digest);
    let modules = modules(options())?;
    let sources = Sources::default();
    let digest = async |name: &str| -> Result<String> {
        Ok(modules.load(name, &sources).await?.0.as_str().to_owned())
    };
    let (old, new) = (push::digest(&old), {
        assert_eq!(digest(&tag).await?, push::digest(&old));
        push(&registry, "v1", &[(WASM, &new)]).await?;
        push::digest(&new)
    });
    assert_eq!(digest(&tag).await?, old);
    assert_eq!(digest(&fixed).await?, old);
    modules.refresh();
    assert_eq!(digest(&tag).await?, new);
    let asked = proxy.seen().len();
    assert_eq!(digest(&fixed).await?, old);
    assert_eq!(digest(&tag).await?, new);
    assert_eq!(proxy.seen().len(), asked);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_fetched_is_there_when_the_registry_is_not() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let mut registry = Registry::start()?;
    let module = policies::accepting(Abi::Wasi);
    let pushed = push(&registry, "v1", &[(WASM, &module)]).await?;
    let tag = format!("{}/team/policy:v1", registry.host());
    let fixed = format!("{}/team/policy@{}", registry.host(), pushed.digest);
    let kept = Options {
        cache: Some(directory.path().into()),
        ..options()
    };
    let sources = Sources::default();
    for _ in 0..2 {
        let modules = modules(kept.clone())?;
        assert_eq!(told(&modules, &fixed, &sources).await.0, "wasm");
        registry.kill9()?;
    }
    let modules = modules(kept)?;
    let (why, later) = told(&modules, &tag, &sources).await;
    assert!(later && why.contains("unavailable"), "{why}");
    // It is not remembered that it was not there.
    registry.restart()?;
    assert_eq!(told(&modules, &tag, &sources).await.0, "wasm");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_private_registry_is_reached_with_the_login_and_the_authority_of_the_server() -> Result<()>
{
    let registry = Registry::start_with(Setup {
        tls: true,
        login: Login::Password,
    })?;
    let host = registry.host();
    push(&registry, "v1", &[(WASM, &policies::accepting(Abi::Wapc))]).await?;
    let name = format!("registry://{host}/team/policy:v1");
    let secret = |password: &str| {
        let auth = BASE64_STANDARD.encode(format!("{USERNAME}:{password}"));
        let auths = json!({"auths": {host.as_str(): {"auth": auth}}});
        json!({"stringData": {".dockerconfigjson": auths.to_string()}})
    };
    let (right, wrong) = (secret(PASSWORD), secret("guess"));
    let authority = registry.authority().unwrap_or_default();
    let trusting = json!({"sourceAuthorities": {host.as_str(): [authority]}});
    let careless = json!({"insecureSources": [host]});
    let elsewhere = json!({"sourceAuthorities": {"other.example": [authority]}});
    for (spec, secret, expected) in [
        (&trusting, Some(&right), "wasm"),
        (&careless, Some(&right), "wasm"),
        (&trusting, Some(&wrong), "unauthorized"),
        (&trusting, None, "unauthorized"),
        (&elsewhere, Some(&right), "untrusted certificate"),
    ] {
        let modules = modules(options())?;
        let sources = Sources::read(spec, secret).map_err(anyhow::Error::msg)?;
        let (said, later) = told(&modules, &name, &sources).await;
        assert!(said.contains(expected), "{said}");
        assert!(!said.contains("guess"), "{said}");
        assert_eq!(later, expected != "wasm", "{said}");
    }
    // What the program itself was told to trust is trusted too.
    let modules = modules(Options {
        authorities: Some(authority.into()),
        ..options()
    })?;
    let sources = Sources::read(&json!({}), Some(&right)).map_err(anyhow::Error::msg)?;
    assert_eq!(told(&modules, &name, &sources).await.0, "wasm");
    // And what one server may fetch is not found for another.
    let (said, _) = told(&modules, &name, &Sources::default()).await;
    assert!(said.contains("unauthorized"), "{said}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_policy_is_refused_with_the_reason() -> Result<()> {
    let registry = Registry::start()?;
    let module = policies::accepting(Abi::Wapc);
    let rego = b"package policy\n\ndeny contains \"no\" if { false }\n";
    let cel = b"validations:\n- expression: 'true'\n";
    let large = vec![0; 1 << 20];
    for (tag, layers) in [
        ("rego", &[("text/plain", &rego[..])][..]),
        ("cel", &[("application/yaml", &cel[..])]),
        ("nonsense", &[(WASM, b"hello")]),
        ("cut", &[(WASM, &module[..module.len() / 2])]),
        ("empty", &[(WASM, b"")]),
        ("large", &[(WASM, &large)]),
        ("archive", &[(push::LAYER, b"hello")]),
        ("two", &[(WASM, &module), (WASM, b"x")]),
        ("none", &[]),
    ] {
        push(&registry, tag, layers).await?;
    }
    let image = push(&registry, "module", &[(WASM, &module)]).await?;
    Pusher::new(&registry)?
        .index("team/policy", Some("index"), &[("linux/amd64", &image)])
        .await?;
    let other = push::digest(b"another");
    let modules = modules(Options {
        largest: 64 << 10,
        ..options()
    })?;
    for (name, expected, later) in [
        (":module", "wasm", false),
        (":rego", "rego", false),
        (":cel", "cel", false),
        (":nonsense", "the module cannot be used", false),
        (":cut", "the module cannot be used", false),
        (":empty", "the module cannot be used", false),
        (":large", "too large", false),
        (":archive", "it is no policy", false),
        (":two", "several Wasm modules", false),
        (":none", "it is no policy", false),
        (":index", "it is an index", false),
        (":missing", "not found", true),
        (&format!("@{other}"), "not found", true),
        ("@sha256:1", "the module cannot be used", false),
    ] {
        let name = format!("registry://{}/team/policy{name}", registry.host());
        let (said, retried) = told(&modules, &name, &Sources::default()).await;
        assert!(said.contains(expected), "{name}: {said}");
        assert_eq!(retried, later, "{name}: {said}");
        // And the same again, as nothing has changed.
        let again = told(&modules, &name, &Sources::default()).await;
        assert_eq!(again.0, said);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_byte_that_was_changed_on_the_way_is_noticed() -> Result<()> {
    let registry = Registry::start()?;
    let module = policies::accepting(Abi::Wapc);
    let pushed = push(&registry, "v1", &[(WASM, &module)]).await?;
    for part in ["/blobs/", "/manifests/"] {
        let proxy = Proxy::start(&registry.host(), move |seen, _| {
            match seen.method == Method::GET && seen.target.contains(part) {
                true => Fault::Change,
                false => Fault::Pass,
            }
        })
        .await?;
        let name = format!("{}/team/policy@{}", proxy.host(), pushed.digest);
        let (said, later) = told(&*modules(options())?, &name, &Sources::default()).await;
        assert!(said.contains("was expected") && !later, "{part}: {said}");
    }
    Ok(())
}
