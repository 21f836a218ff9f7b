//! Whom the cluster trusts to say who asks: the ConfigMap in which kube-apiserver publishes the
//! authorities of its front proxy and of its clients. It is watched, because authorities rotate;
//! one that cannot be read leaves the last good one in force.

use anyhow::{Context, Result};
use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::runtime::{WatchStreamExt, watcher};
use muster_apiserver::identity::ClientCertificate;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::watch;

const NAMESPACE: &str = "kube-system";
const NAME: &str = "extension-apiserver-authentication";

/// The state of the ConfigMap.
#[derive(Clone, Debug, Default)]
pub(super) struct Trust {
    proxies: Option<Arc<dyn ClientCertVerifier>>,
    proxy_names: Vec<String>,
    clients: Option<Arc<dyn ClientCertVerifier>>,
    /// Headers that name the user; the first that is not empty counts.
    pub(super) user_headers: Vec<String>,
    /// Headers that name groups; all count.
    pub(super) group_headers: Vec<String>,
    /// Headers that give the UID.
    pub(super) uid_headers: Vec<String>,
    /// What the names of further headers begin with.
    pub(super) extra_prefixes: Vec<String>,
}

impl Trust {
    /// Reads the ConfigMap's data.
    fn read(data: &BTreeMap<String, String>) -> Result<Self> {
        let text = |key: &str| data.get(key).map_or("", String::as_str);
        let list = |key: &str| match text(key) {
            "" => Ok(Vec::new()),
            text => serde_json::from_str::<Vec<String>>(text).with_context(|| format!("in {key}")),
        };
        let headers = |key: &str| {
            let names = list(key)?;
            Ok::<_, anyhow::Error>(names.iter().map(|name| name.to_lowercase()).collect())
        };
        let authorities =
            |key: &str| verifier(text(key)).with_context(|| format!("in {key} of {NAME}"));
        Ok(Trust {
            proxies: authorities("requestheader-client-ca-file")?,
            proxy_names: list("requestheader-allowed-names")?,
            clients: authorities("client-ca-file")?,
            user_headers: headers("requestheader-username-headers")?,
            group_headers: headers("requestheader-group-headers")?,
            uid_headers: headers("requestheader-uid-headers")?,
            extra_prefixes: headers("requestheader-extra-headers-prefix")?,
        })
    }

    /// Whether the certificate is the front proxy's, whose headers are to be believed.
    pub(super) fn is_proxy(&self, certificate: &ClientCertificate) -> bool {
        let named = || {
            let subject = certificate.subject();
            let is_named = subject.is_some_and(|subject| self.proxy_names.contains(&subject.user));
            self.proxy_names.is_empty() || is_named
        };
        is_signed(self.proxies.as_deref(), certificate) && named()
    }

    /// Whether the certificate is one of the cluster's clients'.
    pub(super) fn is_client(&self, certificate: &ClientCertificate) -> bool {
        is_signed(self.clients.as_deref(), certificate)
    }
}

fn is_signed(verifier: Option<&dyn ClientCertVerifier>, certificate: &ClientCertificate) -> bool {
    let Some((verifier, (own, intermediates))) = verifier.zip(certificate.0.split_first()) else {
        return false;
    };
    let verified = verifier.verify_client_cert(own, intermediates, UnixTime::now());
    verified.is_ok()
}

/// Who verifies certificates of these authorities; nobody if there are none.
fn verifier(bundle: &str) -> Result<Option<Arc<dyn ClientCertVerifier>>> {
    let mut roots = RootCertStore::empty();
    let mut unusable = None;
    for certificate in CertificateDer::pem_slice_iter(bundle.as_bytes()) {
        // One that cannot be used must not keep the others from being taken up.
        let certificate = certificate.context("reading a certificate authority");
        let added = certificate.and_then(|certificate| Ok(roots.add(certificate)?));
        if let Err(error) = added {
            tracing::warn!(
                error = format!("{error:#}"),
                "leaving out a certificate authority"
            );
            unusable = Some(error);
        }
    }
    match (roots.is_empty(), unusable) {
        (true, Some(error)) => return Err(error),
        (true, None) => return Ok(None),
        (false, _) => {}
    }
    let verifier = WebPkiClientVerifier::builder(Arc::new(roots)).build()?;
    Ok(Some(verifier))
}

/// Follows the ConfigMap. The receiver has nothing until it was read once.
pub(super) async fn follow(client: kube::Client, trust: watch::Sender<Option<Arc<Trust>>>) {
    let api: Api<ConfigMap> = Api::namespaced(client, NAMESPACE);
    let one = watcher::Config::default().fields(&format!("metadata.name={NAME}"));
    let stream = watcher(api, one).default_backoff().applied_objects();
    let mut stream = std::pin::pin!(stream);
    while let Some(next) = stream.next().await {
        let read = next
            .context("watching")
            .and_then(|map| Trust::read(&map.data.unwrap_or_default()));
        match read {
            Ok(read) => {
                tracing::info!("read the authorities of kube-apiserver's clients");
                trust.send_replace(Some(Arc::new(read)));
            }
            Err(error) => tracing::warn!(
                error = format!("{error:#}"),
                "reading the ConfigMap {NAMESPACE}/{NAME}"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_authorities_nobody_is_trusted() {
        let trust = Trust::read(&BTreeMap::new()).unwrap();
        let nobody = ClientCertificate(Arc::from([CertificateDer::from(vec![1, 2, 3])]));
        assert!(!trust.is_proxy(&nobody));
        assert!(!trust.is_client(&nobody));
    }

    #[test]
    fn what_cannot_be_read_is_an_error_that_names_it() {
        for (key, value) in [
            ("requestheader-username-headers", "X-Remote-User"),
            ("requestheader-allowed-names", "{}"),
            (
                "client-ca-file",
                "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            ),
        ] {
            let data = BTreeMap::from([(key.to_owned(), value.to_owned())]);
            let error = format!("{:#}", Trust::read(&data).unwrap_err());
            assert!(error.contains(key), "{error}");
        }
    }
}
