//! Certificate authorities for test servers, and what they sign: serving certificates and clients'.

use anyhow::Result;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

/// A certificate and its key, in PEM.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The certificate.
    pub certificate: String,
    /// Its key.
    pub key: String,
}

/// A certificate authority.
#[derive(Debug)]
pub struct Authority {
    /// Its own certificate, in PEM.
    pub certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// A new authority of this name.
    pub fn new(name: &str) -> Result<Authority> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::DigitalSignature,
        ];
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?.pem();
        let issuer = Issuer::new(params, key);
        Ok(Authority {
            certificate,
            issuer,
        })
    }

    /// A certificate for a server of these names and addresses.
    pub fn server(&self, names: &[&str]) -> Result<Pair> {
        let names: Vec<String> = names.iter().map(|&name| name.into()).collect();
        let mut params = CertificateParams::new(names)?;
        params
            .distinguished_name
            .push(DnType::CommonName, "muster test server");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.issue(params)
    }

    /// A certificate for a user in some groups.
    pub fn client(&self, user: &str, groups: &[&str]) -> Result<Pair> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, user);
        for &group in groups {
            let organization = DnType::OrganizationName;
            params.distinguished_name.push(organization, group);
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.issue(params)
    }

    fn issue(&self, params: CertificateParams) -> Result<Pair> {
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?.pem();
        Ok(Pair {
            certificate,
            key: key.serialize_pem(),
        })
    }
}

/// An authority, a serving certificate and an administrator's, everything in PEM.
#[derive(Clone, Debug)]
pub struct Certificates {
    /// The certificate authority.
    pub authority: String,
    /// The serving certificate for 127.0.0.1 and localhost.
    pub server: String,
    /// Its key.
    pub server_key: String,
    /// The client certificate of `admin` in the group `system:masters`.
    pub client: String,
    /// Its key.
    pub client_key: String,
}

impl Certificates {
    /// Makes them all afresh.
    pub fn generate() -> Result<Certificates> {
        Certificates::of(&Authority::new("muster test authority")?)
    }

    /// Has an authority sign them.
    pub fn of(authority: &Authority) -> Result<Certificates> {
        let server = authority.server(&["127.0.0.1", "localhost"])?;
        let client = authority.client("admin", &["system:masters"])?;
        Ok(Certificates {
            authority: authority.certificate.clone(),
            server: server.certificate,
            server_key: server.key,
            client: client.certificate,
            client_key: client.key,
        })
    }
}

/// A key that signs service account tokens, and its public half, in PEM.
pub fn signing_key() -> Result<(String, String)> {
    let key = KeyPair::generate()?;
    Ok((key.serialize_pem(), key.public_key_pem()))
}
