//! The server's certificate, read again when its files change, and what is asked of clients: a
//! certificate is welcome, whoever signed it, if the client proves to hold its key. Whether it is
//! to be believed is decided per request, by the authorities of that moment.

use anyhow::{Context, Result};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, ServerConfig, SignatureScheme};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// How often the files are looked at.
const INTERVAL: Duration = Duration::from_secs(2);

/// Where the certificate and its key are.
pub(crate) struct Files {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

type Pair = (Vec<u8>, Vec<u8>);

impl Files {
    async fn read(&self) -> Result<Pair> {
        let read = async |path: &PathBuf| {
            let bytes = tokio::fs::read(path).await;
            bytes.with_context(|| format!("reading {}", path.display()))
        };
        Ok((read(&self.certificate).await?, read(&self.key).await?))
    }

    fn config(&self, (certificate, key): &Pair) -> Result<Arc<ServerConfig>> {
        let names = (
            self.certificate.display().to_string(),
            self.key.display().to_string(),
        );
        config((&names.0, certificate), (&names.1, key))
    }
}

/// TLS with a certificate, and those between it and its authority, and its key, in PEM; each is
/// given with what it is called when it is not what it should be.
pub(crate) fn config(
    (certificate_name, certificate): (&str, &[u8]),
    (key_name, key): (&str, &[u8]),
) -> Result<Arc<ServerConfig>> {
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(certificate)
        .collect::<Result<_, _>>()
        .with_context(|| format!("{certificate_name} is no certificate"))?;
    let key = PrivateKeyDer::from_pem_slice(key)
        .with_context(|| format!("{key_name} is no private key"))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(Arc::new(AnyCertificate(provider)))
        .with_single_cert(chain, key)
        .with_context(|| {
            format!("using the certificate {certificate_name} with the key {key_name}")
        })?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// What the files say at the moment.
pub(crate) struct Followed {
    pub(crate) config: watch::Receiver<Arc<ServerConfig>>,
    /// The key as it is in its file: a secret that all replicas share.
    pub(crate) key: watch::Receiver<Arc<[u8]>>,
}

/// Reads the files now, and again whenever they change; ends when nobody serves any more.
pub(crate) async fn follow(files: Files) -> Result<Followed> {
    let mut seen = files.read().await?;
    let sender = watch::Sender::new(files.config(&seen)?);
    let keys = watch::Sender::new(Arc::from(seen.1.as_slice()));
    let followed = Followed {
        config: sender.subscribe(),
        key: keys.subscribe(),
    };
    tokio::spawn(async move {
        loop {
            tokio::select! {
                () = sender.closed() => return,
                () = tokio::time::sleep(INTERVAL) => {}
            }
            let changed = match files.read().await {
                Ok(pair) if pair == seen => continue,
                Ok(pair) => {
                    let config = files.config(&pair);
                    seen = pair;
                    config
                }
                Err(error) => Err(error),
            };
            match changed {
                Ok(config) => {
                    tracing::info!("serving with a new certificate");
                    sender.send_replace(config);
                    keys.send_replace(Arc::from(seen.1.as_slice()));
                }
                // One file may be written before the other: the next look sees both.
                Err(error) => tracing::warn!(
                    error = format!("{error:#}"),
                    "serving with the old certificate"
                ),
            }
        }
    });
    Ok(followed)
}

/// Takes any certificate whose key the client holds.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ClientCertVerifier for AnyCertificate {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
