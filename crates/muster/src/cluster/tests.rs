//! Another server than kube-apiserver, asked with the credentials for kube-apiserver.

use super::redirect;
use crate::tls;
use anyhow::Result;
use futures::future::BoxFuture;
use http::{Request, StatusCode, header};
use muster_apiserver::body::RequestBody;
use muster_apiserver::listen::{self, Handler};
use muster_apiserver::respond::{self, Answer};
use muster_testkit::certificates::Authority;
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// Answers with the token that a client sends, as a version.
struct Echo;

impl Handler for Echo {
    fn handle(&self, request: Request<RequestBody>) -> BoxFuture<'_, Answer> {
        let token = request.headers().get(header::AUTHORIZATION);
        let token = token.and_then(|token| token.to_str().ok());
        let token = token.unwrap_or("no token");
        let version = json!({
            "major": "1", "minor": "36", "gitVersion": token, "gitCommit": "", "gitTreeState": "",
            "buildDate": "", "goVersion": "", "compiler": "", "platform": "",
        });
        Box::pin(async move { respond::json(StatusCode::OK, &version) })
    }
}

/// A server with a certificate of an authority; it ends when the handle is dropped.
async fn serve(authority: &Authority) -> Result<(String, AbortOnDropHandle<()>)> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let pair = authority.server(&["localhost"])?;
    let tls = tls::config(
        ("tls.crt", pair.certificate.as_bytes()),
        ("tls.key", pair.key.as_bytes()),
    )?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let server = format!("https://localhost:{}", listener.local_addr()?.port());
    let (_, tls) = watch::channel(tls);
    let serving = listen::serve(Arc::new(Echo), listener, tls, CancellationToken::new());
    Ok((server, AbortOnDropHandle::new(tokio::spawn(serving))))
}

/// What kube makes of a pod's environment and token files, with the files in a directory.
fn in_cluster(directory: &Path, authority: &Authority) -> Result<kube::Config> {
    let (token, root) = (directory.join("token"), directory.join("ca.crt"));
    std::fs::write(&token, "a-token")?;
    std::fs::write(&root, &authority.certificate)?;
    let mut config = kube::Config::new("https://10.96.0.1:443".parse()?);
    config.root_cert_file = Some(root);
    config.auth_info.token_file = Some(token.display().to_string());
    Ok(config)
}

#[tokio::test]
async fn inside_a_cluster_another_server_is_trusted_by_its_own_authority() -> Result<()> {
    let cluster = Authority::new("kubernetes")?;
    let given = Authority::new("muster-storage authority")?;
    for (signer, is_trusted) in [(&given, true), (&cluster, false)] {
        let (server, _serving) = serve(signer).await?;
        let directory = tempfile::tempdir()?;
        let config = in_cluster(directory.path(), &cluster)?;
        let config = redirect(config, &server, given.certificate.as_bytes())?;
        let answer = kube::Client::try_from(config)?.apiserver_version().await;
        let told = answer.ok().map(|answer| answer.git_version);
        let expected = is_trusted.then(|| "Bearer a-token".to_owned());
        assert_eq!(
            told, expected,
            "signed by the given authority: {is_trusted}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn what_a_kubeconfig_allows_for_kube_apiserver_does_not_hold_for_another_server() -> Result<()>
{
    let (given, other) = (Authority::new("given")?, Authority::new("other")?);
    for (signer, is_trusted) in [(&given, true), (&other, false)] {
        let (server, _serving) = serve(signer).await?;
        let mut config = kube::Config::new("https://10.96.0.1:443".parse()?);
        config.accept_invalid_certs = true;
        config.tls_server_name = Some("kubernetes.example".into());
        let config = redirect(config, &server, given.certificate.as_bytes())?;
        let answer = kube::Client::try_from(config)?.apiserver_version().await;
        let told = answer.ok().map(|answer| answer.git_version);
        assert_eq!(told, is_trusted.then(|| "no token".to_owned()));
    }
    Ok(())
}

#[test]
fn a_file_without_a_certificate_is_refused() {
    for pem in ["", "no certificate", "-----BEGIN CERTIFICATE-----\n?\n"] {
        let config = kube::Config::new("https://10.96.0.1:443".parse().unwrap());
        assert!(
            redirect(config, "https://localhost", pem.as_bytes()).is_err(),
            "{pem:?}"
        );
    }
}
