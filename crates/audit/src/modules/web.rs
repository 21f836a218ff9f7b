//! Code on a web server. Plain HTTP, and certificates that nobody checks, are only for the hosts for
//! which a PolicyServer says so; a redirect leads to no place that a policy could not name itself.

use super::place::host;
use crate::logins::Sources;
use crate::prepare::PrepareError;
use crate::tls::{self, Trust};
use muster_policy::load::LoadError;
use muster_registry::Digest;
use reqwest::{Client, StatusCode, Url, redirect};
use std::error::Error;
use std::time::Duration;

/// Until a connection stands.
const CONNECT: Duration = Duration::from_secs(10);
/// How many redirects are followed.
const REDIRECTS: usize = 5;

/// Fetches what is at an address, checked against the digest if there is one.
pub(super) async fn fetch(
    url: &Url,
    digest: Option<&Digest>,
    sources: &Sources,
    authorities: &[u8],
    largest: usize,
) -> Result<Vec<u8>, PrepareError> {
    let refused = |why: String| PrepareError::Load(LoadError::Module(format!("{url}: {why}")));
    let later =
        |why: String| PrepareError::Later(format!("the module cannot be fetched: {url}: {why}"));
    let at = host(url);
    if url.scheme() == "http" && !sources.is_insecure(&at) {
        return Err(refused(format!(
            "plain HTTP is only spoken with the insecureSources of the PolicyServer, and {at} is \
             none"
        )));
    }
    let client = client(url, sources, authorities).map_err(&later)?;
    let broken = |error: reqwest::Error| later(chain(&error.without_url()));
    let mut answer = client.get(url.clone()).send().await.map_err(broken)?;
    if answer.status() != StatusCode::OK {
        return Err(later(format!("the server answers {}", answer.status())));
    }
    let too_large = || refused(format!("it is larger than {largest} bytes"));
    if answer
        .content_length()
        .is_some_and(|length| length > largest as u64)
    {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    while let Some(piece) = answer.chunk().await.map_err(broken)? {
        if bytes.len() + piece.len() > largest {
            return Err(too_large());
        }
        bytes.extend_from_slice(&piece);
    }
    if let Some(expected) = digest
        && let Err(actual) = expected.check(&bytes)
    {
        return Err(refused(format!(
            "the digest is {actual}, and {expected} was expected"
        )));
    }
    Ok(bytes)
}

fn client(url: &Url, sources: &Sources, authorities: &[u8]) -> Result<Client, String> {
    let at = host(url);
    let own = sources.authorities(&at).unwrap_or_default().as_bytes();
    let both = [authorities, own];
    let trust = match sources.is_insecure(&at) {
        true => Trust::Anyone,
        false => Trust::SystemAnd(&both),
    };
    let builder = Client::builder()
        .tls_backend_preconfigured(tls::configuration(trust, None)?)
        .redirect(redirects(sources.clone(), sources.is_insecure(&at)))
        .connect_timeout(CONNECT)
        .user_agent(concat!("muster/", env!("CARGO_PKG_VERSION")));
    let name = url.host_str().unwrap_or_default();
    let here = muster_registry::Host::parse(name).is_ok_and(|host| host.is_loopback());
    // No proxy can reach this machine itself.
    let builder = if here { builder.no_proxy() } else { builder };
    builder.build().map_err(|error| chain(&error.without_url()))
}

fn redirects(sources: Sources, unchecked: bool) -> redirect::Policy {
    redirect::Policy::custom(move |attempt| {
        let insecure = sources.is_insecure(&host(attempt.url()));
        if attempt.previous().len() > REDIRECTS {
            attempt.error("too many redirects")
        } else if attempt.url().scheme() != "https" && !insecure {
            attempt.error("redirected to plain HTTP")
        } else if unchecked && !insecure {
            // The connection to the other host would not be checked either.
            attempt.error("redirected from an insecure source to a host that is none")
        } else {
            attempt.follow()
        }
    })
}

/// An error with its causes, each said once.
fn chain(error: &dyn Error) -> String {
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
