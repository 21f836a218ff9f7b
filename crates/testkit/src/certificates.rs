//! A certificate authority for one test server, its serving certificate and an administrator's
//! client certificate.

use anyhow::Result;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

/// Everything in PEM.
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
    /// A key that signs service account tokens.
    pub service_account_key: String,
    /// The public half of it.
    pub service_account_public_key: String,
}

impl Certificates {
    /// Makes them all afresh.
    pub fn generate() -> Result<Certificates> {
        let mut params = CertificateParams::default();
        params
            .distinguished_name
            .push(DnType::CommonName, "muster test authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::DigitalSignature,
        ];
        let authority_key = KeyPair::generate()?;
        let authority = params.self_signed(&authority_key)?;
        let issuer = Issuer::new(params, authority_key);

        let names = vec!["127.0.0.1".to_string(), "localhost".to_string()];
        let mut params = CertificateParams::new(names)?;
        params
            .distinguished_name
            .push(DnType::CommonName, "kube-apiserver");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let server_key = KeyPair::generate()?;
        let server = params.signed_by(&server_key, &issuer)?;

        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "admin");
        params
            .distinguished_name
            .push(DnType::OrganizationName, "system:masters");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let client_key = KeyPair::generate()?;
        let client = params.signed_by(&client_key, &issuer)?;

        let service_account_key = KeyPair::generate()?;
        Ok(Certificates {
            authority: authority.pem(),
            server: server.pem(),
            server_key: server_key.serialize_pem(),
            client: client.pem(),
            client_key: client_key.serialize_pem(),
            service_account_key: service_account_key.serialize_pem(),
            service_account_public_key: service_account_key.public_key_pem(),
        })
    }
}
