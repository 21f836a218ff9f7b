//! The way to a host: TLS with the system's and the caller's authorities, or less where the
//! caller said so; redirects that give nothing away; and connection faults as our errors. The
//! client drops the login when a redirect leads to another host, port or scheme.

use crate::error::Error;
use crate::reference::Host;
use reqwest::{Client, redirect};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::collections::HashMap;
use std::error::Error as StdError;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// How many redirects are followed.
const REDIRECTS: usize = 5;
/// How many connections to a host are kept for reuse.
const IDLE: usize = 8;

/// How a connection is protected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// TLS with a trusted certificate. A host that is this machine may also speak plain HTTP.
    #[default]
    Verified,
    /// TLS with any certificate, or plain HTTP where the host speaks no TLS.
    Insecure,
    /// Plain HTTP.
    Plain,
}

/// What goes before `://`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    Https,
    Http,
}

impl Scheme {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Scheme::Https => "https",
            Scheme::Http => "http",
        }
    }
}

/// The HTTP clients and what was learned of the hosts.
#[derive(Debug)]
pub(crate) struct Wire {
    client: Client,
    /// As the other, but past any proxy: for this machine itself.
    direct: Client,
    transport: Transport,
    learned: Mutex<HashMap<Host, Scheme>>,
}

impl Wire {
    pub(crate) fn new(
        transport: Transport,
        authorities: Option<&[u8]>,
        connect: Duration,
        idle: Duration,
    ) -> Result<Wire, Error> {
        let tls = configuration(transport, authorities)?;
        let build = |proxied: bool| {
            let builder = Client::builder()
                .tls_backend_preconfigured(tls.clone())
                .redirect(redirects(transport))
                .connect_timeout(connect)
                .read_timeout(idle)
                .pool_max_idle_per_host(IDLE)
                .user_agent(concat!("muster/", env!("CARGO_PKG_VERSION")));
            let builder = if proxied { builder } else { builder.no_proxy() };
            let attempt = "making the HTTP client";
            builder
                .build()
                .map_err(|error| Error::configuration(attempt, chain(&error)))
        };
        Ok(Wire {
            client: build(true)?,
            direct: build(false)?,
            transport,
            learned: Mutex::default(),
        })
    }

    /// The client for a host.
    pub(crate) fn client(&self, loopback: bool) -> &Client {
        if loopback { &self.direct } else { &self.client }
    }

    /// Whether a login may go over plain HTTP at all.
    pub(crate) fn allows_plain(&self) -> bool {
        self.transport != Transport::Verified
    }

    /// The scheme to begin with, and whether the other may be tried.
    pub(crate) fn scheme(&self, host: &Host, plain: bool) -> (Scheme, bool) {
        if plain || self.transport == Transport::Plain {
            return (Scheme::Http, false);
        }
        let learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        match learned.get(host) {
            Some(scheme) => (*scheme, false),
            None => {
                let lenient = self.transport == Transport::Insecure || host.is_loopback();
                (Scheme::Https, lenient)
            }
        }
    }

    /// Remembers what a host speaks. One that has spoken TLS is never asked without.
    pub(crate) fn learn(&self, host: &Host, scheme: Scheme) {
        let mut learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        learned.insert(host.clone(), scheme);
    }
}

fn redirects(transport: Transport) -> redirect::Policy {
    redirect::Policy::custom(move |attempt| {
        let secure = |url: &reqwest::Url| url.scheme() == "https";
        let downgrade = attempt.previous().last().is_some_and(secure) && !secure(attempt.url());
        if attempt.previous().len() > REDIRECTS {
            attempt.error("too many redirects")
        } else if downgrade && transport == Transport::Verified {
            attempt.error("redirected from HTTPS to plain HTTP")
        } else {
            attempt.follow()
        }
    })
}

fn configuration(transport: Transport, authorities: Option<&[u8]>) -> Result<ClientConfig, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let attempt = "preparing TLS";
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::configuration(attempt, error))?;
    if transport == Transport::Insecure {
        let anyone = Arc::new(Anyone(provider));
        let builder = builder.dangerous().with_custom_certificate_verifier(anyone);
        return Ok(builder.with_no_client_auth());
    }
    let mut roots = system_roots().clone();
    if let Some(authorities) = authorities {
        let attempt = "reading the bundle of certificate authorities";
        let mut count = 0;
        for certificate in CertificateDer::pem_slice_iter(authorities) {
            let certificate = certificate.map_err(|error| Error::configuration(attempt, error))?;
            roots
                .add(certificate)
                .map_err(|error| Error::configuration(attempt, error))?;
            count += 1;
        }
        if count == 0 {
            return Err(Error::configuration(
                attempt,
                "there is no certificate in it",
            ));
        }
    }
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
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

/// A fault of the connection as our error. The address is left out: where blobs are stored, it is
/// itself a login.
pub(crate) fn fault(attempt: &str, error: reqwest::Error) -> Error {
    let error = error.without_url();
    let (attempt, reason) = (attempt.to_string(), chain(&error));
    if certificate_fault(&error) {
        return Error::Untrusted { attempt, reason };
    }
    match error.is_redirect() || error.is_builder() {
        true => Error::Malformed { attempt, reason },
        false => Error::Unavailable { attempt, reason },
    }
}

/// Whether the host may speak no TLS: the connection failed, and not because of a certificate.
pub(crate) fn may_be_plain(error: &reqwest::Error) -> bool {
    error.is_connect() && !certificate_fault(error)
}

fn certificate_fault(error: &reqwest::Error) -> bool {
    let mut next: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(error) = next {
        // An I/O error hides what it wraps from the chain.
        let wrapped = error
            .downcast_ref::<std::io::Error>()
            .and_then(|error| error.get_ref());
        let found = error
            .downcast_ref::<rustls::Error>()
            .or_else(|| wrapped.and_then(|inner| inner.downcast_ref::<rustls::Error>()));
        if let Some(error) = found {
            return matches!(error, rustls::Error::InvalidCertificate(_));
        }
        next = match wrapped {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    false
}

/// An error with its causes, each said once.
pub(crate) fn chain(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        let cause = error.to_string();
        if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
        next = error.source();
    }
    text
}
