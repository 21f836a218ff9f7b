use super::*;
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::{ServerName, UnixTime};

const NOW: u64 = 1_800_000_000;
const DAY: u64 = 24 * HOUR;

fn names(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// Whether whoever trusts this bundle believes this certificate.
fn believes(bundle: &str, keys: &Keys, name: &str, now: u64) -> bool {
    let mut roots = RootCertStore::empty();
    for root in CertificateDer::pem_slice_iter(bundle.as_bytes()) {
        roots.add(root.unwrap()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .unwrap();
    let certificate = CertificateDer::from_pem_slice(keys.serving.certificate.as_bytes()).unwrap();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(now));
    verifier
        .verify_server_cert(&certificate, &[], &name, &[], now)
        .is_ok()
}

#[test]
fn keys_stay_as_they_are_while_they_are_young() {
    let (service, address) = ("muster-operator.muster.svc", "127.0.0.1");
    let wanted = names(&[service, address]);
    let keys = Keys::renewed(None, &wanted, NOW).unwrap();
    for name in [service, address] {
        assert!(believes(&keys.bundle(), &keys, name, NOW), "{name}");
    }
    assert!(!believes(&keys.bundle(), &keys, "other.svc", NOW));
    for later in [0, DAY, 200 * DAY] {
        let again = Keys::renewed(Some(&keys), &wanted, NOW + later).unwrap();
        assert!(again == keys, "after {later} s");
    }
    let read = Keys::read(&keys.written()).unwrap();
    assert!(read == keys, "what is kept is what was made");
}

#[test]
fn keys_of_a_clock_that_was_ahead_are_made_anew_as_soon_as_somebody_looks() {
    let wanted = names(&["a.b.svc"]);
    for ahead in [2 * DAY, 300 * DAY, 10 * 365 * DAY] {
        let kept = Keys::renewed(None, &wanted, NOW).unwrap();
        for before in [None, Some(&kept)] {
            let wrong = Keys::renewed(before, &wanted, NOW + ahead).unwrap();
            let mended = Keys::renewed(Some(&wrong), &wanted, NOW + DAY / 2).unwrap();
            let believed = believes(&mended.bundle(), &mended, "a.b.svc", NOW + DAY / 2);
            assert!(believed, "{ahead} s ahead, of {}", before.is_some());
        }
    }
}

#[test]
fn a_certificate_is_renewed_long_before_it_ends() {
    let wanted = names(&["a.b.svc"]);
    let keys = Keys::renewed(None, &wanted, NOW).unwrap();
    let later = NOW + 250 * DAY;
    let renewed = Keys::renewed(Some(&keys), &wanted, later).unwrap();
    assert!(renewed.serving != keys.serving);
    assert_eq!(renewed.bundle(), keys.bundle());
    let end = later + SERVING - 1;
    assert!(believes(&keys.bundle(), &renewed, "a.b.svc", end));
}

#[test]
fn whoever_needs_another_name_gets_it_beside_those_of_others() {
    let keys = Keys::renewed(None, &names(&["a.b.svc"]), NOW).unwrap();
    let both = Keys::renewed(Some(&keys), &names(&["10.0.0.1"]), NOW).unwrap();
    for name in ["a.b.svc", "10.0.0.1"] {
        assert!(believes(&keys.bundle(), &both, name, NOW), "{name}");
    }
    let again = Keys::renewed(Some(&both), &names(&["a.b.svc"]), NOW).unwrap();
    assert!(again == both, "replicas of two names do not take turns");
    let mut crowd = keys;
    for number in 0..40 {
        let name = names(&[&format!("n{number}.svc")]);
        crowd = Keys::renewed(Some(&crowd), &name, NOW).unwrap();
        let known = read(&crowd.serving.certificate).unwrap().names;
        assert!(known.len() <= NAMES && name.is_subset(&known));
    }
}

#[test]
fn an_authority_is_trusted_before_it_signs_and_after_it_signed() {
    let wanted = names(&["a.b.svc"]);
    let mut keys = Keys::renewed(None, &wanted, NOW).unwrap();
    let first = keys.bundle();
    // A look every day for twelve years, and what each is seen by: the bundle of the look before.
    let mut now = NOW;
    let (mut most, mut rotations) = (1, 0);
    while now < NOW + 12 * YEAR {
        now += DAY;
        let next = Keys::renewed(Some(&keys), &wanted, now).unwrap();
        let case = (now - NOW) / DAY;
        assert!(
            believes(&keys.bundle(), &next, "a.b.svc", now),
            "day {case}"
        );
        assert!(
            believes(&next.bundle(), &keys, "a.b.svc", now),
            "day {case}"
        );
        rotations += usize::from(next.authority_key != keys.authority_key);
        most = most.max(next.authorities.len());
        keys = next;
    }
    assert!((3..=4).contains(&rotations), "{rotations}");
    assert!(most == 2 && !keys.bundle().contains(&first), "{most}");
}

#[test]
fn keys_that_nobody_looked_after_for_years_are_made_anew() {
    let wanted = names(&["a.b.svc"]);
    let keys = Keys::renewed(None, &wanted, NOW).unwrap();
    let now = NOW + 20 * YEAR;
    let renewed = Keys::renewed(Some(&keys), &wanted, now).unwrap();
    assert_eq!(renewed.authorities.len(), 1);
    assert!(believes(&renewed.bundle(), &renewed, "a.b.svc", now));
    // The authority lasts, the certificate does not.
    let now = NOW + 2 * YEAR;
    let renewed = Keys::renewed(Some(&keys), &wanted, now).unwrap();
    assert_eq!(renewed.bundle(), keys.bundle());
    assert!(believes(&renewed.bundle(), &renewed, "a.b.svc", now));
}

#[test]
fn what_is_no_key_is_named() {
    let keys = Keys::renewed(None, &names(&["a.b.svc"]), NOW).unwrap();
    let other = Keys::renewed(None, &names(&["a.b.svc"]), NOW).unwrap();
    for (key, value, expected) in [
        ("ca.crt", None, "ca.crt is missing"),
        ("ca.crt", Some("x".to_owned()), "there is no authority"),
        ("ca.key", Some("x".to_owned()), "authority's private key"),
        ("tls.crt", Some(String::new()), "tls.crt"),
        ("tls.key", Some("x".to_owned()), "tls.key is no private key"),
        ("tls.key", Some(other.serving.key), "tls.key"),
    ] {
        let mut data = keys.written();
        match value {
            Some(value) => data.insert(key.into(), value.into_bytes()),
            None => data.remove(key),
        };
        let Err(error) = Keys::read(&data) else {
            panic!("{key} was taken");
        };
        let error = format!("{error:#}");
        assert!(error.contains(expected), "{key}: {error}");
    }
}
