//! The keys of the webhooks while nobody gives any: an authority, and a certificate signed by it.
//! Both end, and are renewed when a third of their time is left. A new authority is trusted before
//! anything is signed by it, and an old one until it ends: whoever still answers with an older
//! certificate, or has not heard of a newer authority, is understood at every moment.

use crate::certificates::{Authority, Pair, Validity, make_authority};
use crate::tls;
use anyhow::{Context, Result};
use rustls::ServerConfig;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use x509_parser::extensions::GeneralName;

const HOUR: u64 = 60 * 60;
const YEAR: u64 = 365 * 24 * HOUR;
/// How long an authority lasts.
const AUTHORITY: u64 = 5 * YEAR;
/// How long a certificate lasts.
const SERVING: u64 = YEAR;
/// How far clocks may be apart.
const SKEW: u64 = HOUR;
/// How long an authority is known before anything is signed by it.
const GRACE: u64 = HOUR;
/// How many names a certificate may have: replicas of other names share it.
const NAMES: usize = 32;

/// What the Secret holds.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Keys {
    /// The authorities, in PEM, newest first.
    authorities: Vec<String>,
    /// The key of the newest.
    authority_key: String,
    serving: Pair,
}

impl Keys {
    /// Reads what a Secret holds.
    pub(super) fn read(data: &BTreeMap<String, Vec<u8>>) -> Result<Keys> {
        let text = |key: &str| {
            let bytes = data.get(key).with_context(|| format!("{key} is missing"))?;
            let text = String::from_utf8(bytes.clone());
            text.with_context(|| format!("{key} is no text"))
        };
        let keys = Keys {
            authorities: split(&text("ca.crt")?),
            authority_key: text("ca.key")?,
            serving: Pair {
                certificate: text("tls.crt")?,
                key: text("tls.key")?,
            },
        };
        keys.authority()?;
        keys.tls()?;
        Ok(keys)
    }

    /// The same to write.
    pub(super) fn written(&self) -> BTreeMap<String, Vec<u8>> {
        let entry = |key: &str, text: &str| (key.to_owned(), text.as_bytes().to_vec());
        BTreeMap::from([
            entry("ca.crt", &self.bundle()),
            entry("ca.key", &self.authority_key),
            entry("tls.crt", &self.serving.certificate),
            entry("tls.key", &self.serving.key),
        ])
    }

    /// All authorities, in PEM.
    pub(super) fn bundle(&self) -> String {
        self.authorities.concat()
    }

    /// TLS with the certificate.
    pub(super) fn tls(&self) -> Result<Arc<ServerConfig>> {
        let Pair { certificate, key } = &self.serving;
        tls::config(
            ("tls.crt", certificate.as_bytes()),
            ("tls.key", key.as_bytes()),
        )
    }

    fn newest(&self) -> Result<&str> {
        let newest = self.authorities.first().context("there is no authority")?;
        Ok(newest)
    }

    fn authority(&self) -> Result<Authority> {
        Authority::of(&Pair {
            certificate: self.newest()?.to_owned(),
            key: self.authority_key.clone(),
        })
    }

    /// Keys that nothing is known of yet.
    fn made(names: &BTreeSet<String>, now: u64) -> Result<Keys> {
        let authority = make_authority(Some(lasting(AUTHORITY, now)))?;
        let names: Vec<String> = names.iter().cloned().collect();
        Ok(Keys {
            serving: Authority::of(&authority)?.service(&names, lasting(SERVING, now))?,
            authorities: vec![authority.certificate],
            authority_key: authority.key,
        })
    }

    /// What the keys are to be now, for a server of these names; `now` is in seconds since 1970.
    pub(super) fn renewed(kept: Option<&Keys>, names: &BTreeSet<String>, now: u64) -> Result<Keys> {
        let Some(kept) = kept else {
            return Keys::made(names, now);
        };
        let mut keys = kept.clone();
        let newest = read(keys.newest()?)?;
        // One of the future is of a clock that was wrong.
        let early = |validity: Validity| validity.from > now.saturating_add(SKEW);
        if is_late(newest.validity, now) || early(newest.validity) {
            let authority = make_authority(Some(lasting(AUTHORITY, now)))?;
            keys.authorities.insert(0, authority.certificate);
            keys.authority_key = authority.key;
        }
        keys.authorities.retain(|authority| {
            let known = read(authority);
            known.is_ok_and(|known| now < known.validity.until && !early(known.validity))
        });
        let newest = read(keys.newest()?)?.validity;
        let serving = read(&keys.serving.certificate)?;
        let known = now >= newest.from.saturating_add(SKEW + GRACE);
        let of_an_older_one = serving.validity.from < newest.from;
        // One that has ended is understood by nobody anyway.
        let ended = now >= serving.validity.until || keys.authorities.len() == 1;
        let renew = match of_an_older_one {
            true => known || ended,
            false => is_late(serving.validity, now) || early(serving.validity),
        };
        if renew || !names.is_subset(&serving.names) {
            let all: BTreeSet<String> = serving.names.union(names).cloned().collect();
            let names = if all.len() > NAMES { names } else { &all };
            let names: Vec<String> = names.iter().cloned().collect();
            keys.serving = keys.authority()?.service(&names, lasting(SERVING, now))?;
        }
        Ok(keys)
    }
}

/// What is read of a certificate.
struct Known {
    validity: Validity,
    names: BTreeSet<String>,
}

fn read(pem: &str) -> Result<Known> {
    let der = CertificateDer::from_pem_slice(pem.as_bytes()).context("reading a certificate")?;
    let (_, certificate) =
        x509_parser::parse_x509_certificate(&der).context("reading a certificate")?;
    let seconds = |time: x509_parser::time::ASN1Time| u64::try_from(time.timestamp()).unwrap_or(0);
    let mut names = BTreeSet::new();
    if let Ok(Some(extension)) = certificate.subject_alternative_name() {
        names.extend(extension.value.general_names.iter().filter_map(spelled));
    }
    Ok(Known {
        validity: Validity {
            from: seconds(certificate.validity().not_before),
            until: seconds(certificate.validity().not_after),
        },
        names,
    })
}

fn spelled(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => {
            let four = <[u8; 4]>::try_from(*bytes).map(IpAddr::from);
            let address = four.or_else(|_| <[u8; 16]>::try_from(*bytes).map(IpAddr::from));
            address.ok().map(|address| address.to_string())
        }
        _ => None,
    }
}

fn lasting(span: u64, now: u64) -> Validity {
    Validity {
        from: now.saturating_sub(SKEW),
        until: now.saturating_add(span),
    }
}

/// Whether less than a third of the time is left.
fn is_late(validity: Validity, now: u64) -> bool {
    let span = validity.until.saturating_sub(validity.from);
    validity.until.saturating_sub(now) < span / 3
}

/// The certificates of a bundle, one by one.
fn split(bundle: &str) -> Vec<String> {
    const END: &str = "-----END CERTIFICATE-----";
    let parts = bundle.split_inclusive(END).map(str::trim);
    let parts = parts.filter(|part| part.ends_with(END));
    parts.map(|part| format!("{part}\n")).collect()
}

#[cfg(test)]
mod tests;
