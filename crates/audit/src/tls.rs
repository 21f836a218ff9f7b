//! Whom we trust and who we are, for connections that are made for policies: the system's authorities
//! or others, a client certificate if there is one, and no check at all only where somebody who may
//! decide it wrote so. Registries have the same in a crate of their own, which shows no certificates.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::sync::{Arc, OnceLock};

/// Whose certificates are trusted.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Trust<'a> {
    /// Those of the system's authorities, and of these, in PEM.
    SystemAnd(&'a [&'a [u8]]),
    /// Those of these authorities alone, in PEM.
    Only(&'a [u8]),
    /// Everybody's.
    Anyone,
}

/// A certificate and its key, in PEM.
#[derive(Clone, Copy)]
pub(crate) struct Identity<'a> {
    pub(crate) certificate: &'a [u8],
    pub(crate) key: &'a [u8],
}

/// How to connect. The error is for people, and tells nothing of what is secret.
pub(crate) fn configuration(
    trust: Trust,
    identity: Option<Identity>,
) -> Result<ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let builder = match trust {
        Trust::Anyone => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Anyone(provider))),
        Trust::Only(authorities) => {
            builder.with_root_certificates(add(RootCertStore::empty(), authorities)?)
        }
        Trust::SystemAnd(all) => {
            let all = all.iter().filter(|pem| !pem.is_empty());
            let roots = all.copied().try_fold(system_roots().clone(), add)?;
            builder.with_root_certificates(roots)
        }
    };
    let Some(identity) = identity else {
        return Ok(builder.with_no_client_auth());
    };
    let chain: Vec<_> = CertificateDer::pem_slice_iter(identity.certificate)
        .collect::<Result<_, _>>()
        .map_err(|_| "the client certificate cannot be read")?;
    if chain.is_empty() {
        return Err("there is no client certificate in it".into());
    }
    let key = PrivateKeyDer::from_pem_slice(identity.key)
        .map_err(|_| "the key of the client certificate cannot be read")?;
    builder
        .with_client_auth_cert(chain, key)
        .map_err(|_| "the client certificate and its key do not belong together".into())
}

fn add(mut roots: RootCertStore, authorities: &[u8]) -> Result<RootCertStore, String> {
    let before = roots.len();
    for certificate in CertificateDer::pem_slice_iter(authorities) {
        let certificate = certificate.map_err(|_| "an authority's certificate cannot be read")?;
        roots
            .add(certificate)
            .map_err(|_| "an authority's certificate makes no sense")?;
    }
    match roots.len() == before {
        true => Err("there is no authority's certificate in it".into()),
        false => Ok(roots),
    }
}

/// The system's authorities, read once: it takes some ten milliseconds.
fn system_roots() -> &'static RootCertStore {
    static ROOTS: OnceLock<RootCertStore> = OnceLock::new();
    ROOTS.get_or_init(|| {
        let mut roots = RootCertStore::empty();
        let found = rustls_native_certs::load_native_certs();
        for error in &found.errors {
            tracing::warn!(%error, "a certificate authority of the system cannot be read");
        }
        roots.add_parsable_certificates(found.certs);
        roots
    })
}

/// Takes any certificate whose key really signs the handshake.
#[derive(Debug)]
struct Anyone(Arc<CryptoProvider>);

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
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

#[cfg(test)]
mod tests {
    use super::*;
    use muster_testkit::certificates::Certificates;

    #[test]
    fn what_cannot_be_used_is_told_before_anybody_is_called() {
        let good = Certificates::generate().unwrap();
        let other = Certificates::generate().unwrap();
        let authority = good.authority.as_bytes();
        let identity = |certificate: &'static str, key: &'static str| Identity {
            certificate: certificate.as_bytes(),
            key: key.as_bytes(),
        };
        let leak = |text: &String| -> &'static str { Box::leak(text.clone().into_boxed_str()) };
        let (client, key) = (leak(&good.client), leak(&good.client_key));
        for (trust, who, right) in [
            (Trust::Only(authority), None, true),
            (Trust::SystemAnd(&[authority, b""]), None, true),
            (Trust::Anyone, None, true),
            (Trust::Only(authority), Some(identity(client, key)), true),
            (Trust::Only(b"x"), None, false),
            (Trust::SystemAnd(&[b"x"]), None, false),
            (Trust::Anyone, Some(identity("", key)), false),
            (Trust::Anyone, Some(identity(client, "")), false),
            (
                Trust::Anyone,
                Some(identity(client, leak(&other.client_key))),
                false,
            ),
        ] {
            assert_eq!(configuration(trust, who).is_ok(), right, "{trust:?}");
        }
    }
}
