//! The code of policies on web servers and in files.

use crate::modules::modules;
use crate::server::{Answer, Asked, Protection, Server, answer};
use anyhow::Result;
use http::header::LOCATION;
use http::{HeaderValue, Response};
use http_body_util::Full;
use muster_audit::logins::Sources;
use muster_audit::modules::{Loaded, Modules, Options};
use muster_audit::prepare::PrepareError;
use muster_testkit::policies::{self, Abi};
use muster_testkit::push;
use serde_json::{Value, json};

async fn files(asked: Asked, elsewhere: String) -> Answer {
    match asked.target.as_str() {
        "/policy.wasm" => answer(200, policies::accepting(Abi::Wapc)),
        "/large" => answer(200, vec![0; 1 << 20]),
        "/nonsense" => answer(200, "hello"),
        "/away" => {
            let mut answer = Response::new(Full::default());
            *answer.status_mut() = http::StatusCode::FOUND;
            let to = format!("{elsewhere}/policy.wasm");
            let to = HeaderValue::try_from(to).ok()?;
            answer.headers_mut().insert(LOCATION, to);
            Some(answer)
        }
        _ => answer(404, "nothing here"),
    }
}

async fn told(modules: &Modules, module: &str, spec: &Value) -> (String, bool) {
    let sources = Sources::read(spec, None).unwrap_or_default();
    match modules.load(module, &sources).await {
        Ok((_, Loaded::Wasm(_))) => ("wasm".into(), false),
        Ok(_) => ("text".into(), false),
        Err(error) => (error.to_string(), matches!(error, PrepareError::Later(_))),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_web_server_is_trusted_as_far_as_the_policy_server_says() -> Result<()> {
    let plain = Server::start(Protection::Plain, |asked| files(asked, String::new())).await?;
    let to = plain.url();
    let server = Server::start(Protection::Tls, move |asked| files(asked, to.clone())).await?;
    let to = server.url();
    let other = Server::start(Protection::Tls, move |asked| files(asked, to.clone())).await?;
    let at = |path: &str| format!("{}{path}", server.url());
    let digits = push::digest(&policies::accepting(Abi::Wapc)).replace("sha256:", "#sha256=");
    let wrong = push::digest(b"another").replace("sha256:", "#sha256=");
    let authority = &server.authority.certificate;
    let trusting = json!({"sourceAuthorities": {server.host(): [authority]}});
    let careless = json!({"insecureSources": [server.host(), plain.host()]});
    let half = json!({"insecureSources": [other.host()]});
    let policy = at("/policy.wasm");
    for (module, spec, expected, later) in [
        (policy.clone(), &trusting, "wasm", false),
        (policy.clone(), &careless, "wasm", false),
        (format!("{policy}{digits}"), &trusting, "wasm", false),
        (format!("{policy}{wrong}"), &trusting, "was expected", false),
        (policy.clone(), &json!({}), "invalid peer certificate", true),
        (at("/missing"), &trusting, "answers 404", true),
        (at("/large"), &trusting, "larger than 65536 bytes", false),
        (
            at("/nonsense"),
            &trusting,
            "the module cannot be used",
            false,
        ),
        (at("/away"), &trusting, "redirected to plain HTTP", true),
        (at("/away"), &careless, "wasm", false),
        (
            format!("{}/away", other.url()),
            &half,
            "to a host that is none",
            true,
        ),
        (
            format!("{}/policy.wasm", plain.url()),
            &careless,
            "wasm",
            false,
        ),
        (
            format!("{}/policy.wasm", plain.url()),
            &trusting,
            "insecureSources",
            false,
        ),
    ] {
        let modules = modules(Options {
            largest: 64 << 10,
            ..Options::default()
        })?;
        let (said, retried) = told(&modules, &module, spec).await;
        assert!(said.contains(expected), "{module}: {said}");
        assert_eq!(retried, later, "{module}: {said}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_read_where_that_is_allowed_and_again_when_told() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("policy.wasm");
    std::fs::write(&path, policies::accepting(Abi::Wasi))?;
    let module = format!("file://{}", path.display());
    let closed = modules(Options::default())?;
    let (said, later) = told(&closed, &module, &json!({})).await;
    assert!(said.contains("no files are read here") && !later, "{said}");
    let open = modules(Options {
        files: vec![directory.path().into()],
        ..Options::default()
    })?;
    let digest = async || -> Result<String> {
        let (digest, _) = open.load(&module, &Sources::default()).await?;
        Ok(digest.as_str().to_owned())
    };
    let before = digest().await?;
    std::fs::write(&path, policies::rejecting(Abi::Wasi, "no"))?;
    assert_eq!(digest().await?, before);
    open.refresh();
    assert_ne!(digest().await?, before);
    Ok(())
}
