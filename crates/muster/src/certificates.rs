//! Authorities of our own and what they sign. A standalone server's authority is made once and
//! kept in the data directory, and certificates for the server and its owner are made from it at
//! every start; that of the webhooks is kept by the cluster, and ends some day.

use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, SanType,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use std::fs;
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A certificate and its key, as PEM.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

/// From when until when a certificate is valid, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Validity {
    pub(crate) from: u64,
    pub(crate) until: u64,
}

impl Validity {
    fn limit(self, params: &mut CertificateParams) {
        let at = |seconds| rcgen::date_time_ymd(1970, 1, 1) + Duration::from_secs(seconds);
        params.not_before = at(self.from);
        params.not_after = at(self.until);
    }
}

/// An authority.
pub(crate) struct Authority {
    pub(crate) certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// Reads the authority of a data directory, or makes it.
    pub(crate) fn open(directory: &Path) -> Result<Self> {
        let pki = directory.join("pki");
        let (certificate_path, key_path) = (pki.join("ca.crt"), pki.join("ca.key"));
        if !key_path.exists() || !certificate_path.exists() {
            fs::create_dir_all(&pki).with_context(|| format!("creating {}", pki.display()))?;
            let pair = make_authority(None)?;
            write_private(&key_path, &pair.key)?;
            write_private(&certificate_path, &pair.certificate)?;
        }
        let read = |path: &Path| {
            fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))
        };
        let pair = Pair {
            certificate: read(&certificate_path)?,
            key: read(&key_path)?,
        };
        Authority::of(&pair).with_context(|| format!("using {}", pki.display()))
    }

    /// The authority that a pair is.
    pub(crate) fn of(pair: &Pair) -> Result<Self> {
        let key = KeyPair::from_pem(&pair.key).context("reading the authority's private key")?;
        let issuer = Issuer::from_ca_cert_pem(&pair.certificate, key)
            .context("reading the authority's certificate")?;
        Ok(Authority {
            certificate: pair.certificate.clone(),
            issuer,
        })
    }

    fn issue(&self, mut params: CertificateParams) -> Result<Pair> {
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate().context("making a key")?;
        let certificate = params
            .signed_by(&key, &self.issuer)
            .context("signing a certificate")?;
        Ok(Pair {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        })
    }

    /// A certificate for a server at these addresses.
    pub(crate) fn server(&self, addresses: &[IpAddr]) -> Result<Pair> {
        let names = [
            "localhost".to_owned(),
            "kubernetes".into(),
            "kubernetes.default.svc".into(),
        ];
        let mut params = CertificateParams::new(names).context("naming the server")?;
        params.distinguished_name = name("muster", None);
        params
            .subject_alt_names
            .extend(addresses.iter().map(|ip| SanType::IpAddress(*ip)));
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.issue(params)
    }

    /// A certificate for a server of these names and addresses, for a while.
    pub(crate) fn service(&self, names: &[String], validity: Validity) -> Result<Pair> {
        let mut params = CertificateParams::new(names).context("naming the server")?;
        validity.limit(&mut params);
        params.distinguished_name = name("muster", None);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.issue(params)
    }

    /// A certificate for a user in a group.
    pub(crate) fn client(&self, user: &str, group: &str) -> Result<Pair> {
        let mut params = CertificateParams::default();
        params.distinguished_name = name(user, Some(group));
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.issue(params)
    }

    /// TLS for a server with this certificate, which asks clients for one of ours and lets
    /// those without one in as nobody.
    pub(crate) fn tls(&self, server: &Pair) -> Result<rustls::ServerConfig> {
        let mut roots = rustls::RootCertStore::empty();
        roots
            .add(certificate_der(&self.certificate)?)
            .context("trusting our own authority")?;
        let verifier = WebPkiClientVerifier::builder(Arc::new(roots))
            .allow_unauthenticated()
            .build()
            .context("verifying client certificates")?;
        let key = KeyPair::from_pem(&server.key).context("reading the server's key")?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let mut config = rustls::ServerConfig::builder()
            .with_client_cert_verifier(verifier)
            .with_single_cert(vec![certificate_der(&server.certificate)?], key)
            .context("using the server's certificate")?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }
}

fn certificate_der(pem: &str) -> Result<CertificateDer<'static>> {
    use rustls::pki_types::pem::PemObject;
    CertificateDer::from_pem_slice(pem.as_bytes()).context("reading a certificate")
}

fn name(common: &str, organization: Option<&str>) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common);
    if let Some(organization) = organization {
        name.push(DnType::OrganizationName, organization);
    }
    name
}

/// Makes an authority, for a while or for good.
pub(crate) fn make_authority(validity: Option<Validity>) -> Result<Pair> {
    let mut params = CertificateParams::default();
    if let Some(validity) = validity {
        validity.limit(&mut params);
    }
    params.distinguished_name = name("muster-ca", None);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    let key = KeyPair::generate().context("making the authority's key")?;
    let certificate = params.self_signed(&key).context("making the authority")?;
    Ok(Pair {
        certificate: certificate.pem(),
        key: key.serialize_pem(),
    })
}

/// Writes a file that only its owner may read, whole or not at all.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<()> {
    use std::io::Write;
    let part = path.with_extension("part");
    let _ = fs::remove_file(&part);
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&part)
        .with_context(|| format!("writing {}", part.display()))?;
    file.write_all(text.as_bytes())
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&part, path))
        .with_context(|| format!("writing {}", path.display()))
}
