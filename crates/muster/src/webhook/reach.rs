//! Whether the address at which kube-apiserver is to ask answers. Once a webhook is registered, kube-apiserver
//! rejects every write that it cannot ask about, so the operator asks first.

use super::configuration::{Place, VERDICT};
use anyhow::{Context, Result, ensure};
use http::{Request, StatusCode};
use kube::client::Body;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::time::Duration;
use tracing::instrument::WithSubscriber;
use tracing::subscriber::NoSubscriber;

/// Timeout of one question.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Asks the webhooks at an address, over TLS with the CA certificates that kube-apiserver is to trust.
/// Without any, somebody else tells kube-apiserver whom to trust, so every certificate will do here.
pub(super) async fn ask(place: &Place, bundle: Option<&str>) -> Result<()> {
    let address = place.address();
    // kube logs each failure as an error; what it means here is for the caller to say.
    let answer = answer(&address, bundle).with_subscriber(NoSubscriber::default());
    let asked = tokio::time::timeout(TIMEOUT, answer).await;
    let asked = asked.context("timed out").flatten();
    asked.with_context(|| format!("no answer from the webhooks at {address}"))
}

async fn answer(address: &str, bundle: Option<&str>) -> Result<()> {
    let roots = bundle.map(|bundle| {
        CertificateDer::pem_slice_iter(bundle.as_bytes())
            .map(|root| root.map(|root| root.to_vec()))
            .collect::<Result<Vec<_>, _>>()
    });
    let mut config = kube::Config::new(address.parse()?);
    config.accept_invalid_certs = bundle.is_none();
    config.root_cert = roots.transpose().context("reading the CA certificates")?;
    config.default_retry = false;
    let client = kube::Client::try_from(config)?;
    let answer = client
        .send(Request::get(VERDICT).body(Body::empty())?)
        .await?;
    // Reviews are posted.
    let status = answer.status();
    ensure!(status == StatusCode::METHOD_NOT_ALLOWED, "{status}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls;
    use futures::future::BoxFuture;
    use muster_apiserver::body::RequestBody;
    use muster_apiserver::listen::{self, Handler};
    use muster_apiserver::respond::{self, Answer};
    use muster_kind::Status;
    use muster_testkit::certificates::Authority;
    use std::sync::Arc;
    use tokio::net::TcpListener;
    use tokio::sync::watch;
    use tokio_util::sync::CancellationToken;
    use tokio_util::task::AbortOnDropHandle;

    struct Webhooks;

    impl Handler for Webhooks {
        fn handle(&self, request: Request<RequestBody>) -> BoxFuture<'_, Answer> {
            let answer = match request.uri().path() {
                VERDICT => respond::error(&Status::method_not_allowed()),
                _ => respond::no_page(),
            };
            Box::pin(async move { answer })
        }
    }

    #[tokio::test]
    async fn webhooks_answer_once_a_server_with_their_certificate_listens() -> Result<()> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let (ours, others) = (Authority::new("ours")?, Authority::new("others")?);
        let pair = ours.server(&["127.0.0.1"])?;
        let tls = tls::config(
            ("tls.crt", pair.certificate.as_bytes()),
            ("tls.key", pair.key.as_bytes()),
        )?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let place = Place::Url(format!("https://{}", listener.local_addr()?).parse()?);
        drop(listener);
        let bundle = Some(ours.certificate.as_str());
        assert!(ask(&place, bundle).await.is_err(), "nothing listens");

        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let place = Place::Url(format!("https://{}", listener.local_addr()?).parse()?);
        let (_, tls) = watch::channel(tls);
        let serving = listen::serve(Arc::new(Webhooks), listener, tls, CancellationToken::new());
        let _serving = AbortOnDropHandle::new(tokio::spawn(serving));
        let both = format!("{}{}", others.certificate, ours.certificate);
        for (bundle, is_trusted) in [
            (bundle, true),
            (Some(both.as_str()), true),
            (Some(others.certificate.as_str()), false),
            (Some(""), false),
            (None, true),
        ] {
            let asked = ask(&place, bundle).await;
            assert_eq!(asked.is_ok(), is_trusted, "{bundle:?}: {asked:?}");
        }
        Ok(())
    }
}
