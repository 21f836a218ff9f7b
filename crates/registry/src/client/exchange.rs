//! One question and its answer: mirrors first, then the host itself, with the pauses, logins and
//! retries that it takes. Everything that is sent goes through here, so every request waits at
//! the gate of its host.

use super::{Client, Inner};
use crate::answer::{self, Open, Whole};
use crate::authorization::{Asker, challenge, described};
use crate::credentials::Login;
use crate::error::Error;
use crate::mirror::Mirror;
use crate::reference::{Host, Repository};
use crate::retry::Next;
use crate::traffic::Use;
use crate::transport::{Scheme, fault, may_be_plain};
use http::header::{ACCEPT, AUTHORIZATION, RANGE};
use http::{HeaderValue, Method, StatusCode};
use reqwest::Response;
use std::borrow::Cow;
use std::future::Future;
use tokio::time::{sleep, timeout};
use tracing::{Instrument, Span};

/// What is asked about.
#[derive(Clone, Debug)]
pub(crate) enum Target<'a> {
    /// The registry as such.
    Base(&'a Host),
    /// Its list of repositories.
    Catalog(&'a Host),
    /// Something of a repository.
    Repository(&'a Repository, String),
}

impl<'a> Target<'a> {
    pub(crate) fn host(&self) -> &'a Host {
        match self {
            Target::Base(host) | Target::Catalog(host) => host,
            Target::Repository(repository, _) => repository.host(),
        }
    }

    fn repository(&self) -> Option<&'a str> {
        match self {
            Target::Repository(repository, _) => Some(repository.name()),
            _ => None,
        }
    }
}

/// A question.
#[derive(Clone, Debug)]
pub(crate) struct Call<'a> {
    /// What is being done, for messages.
    pub(crate) attempt: String,
    pub(crate) method: Method,
    pub(crate) target: Target<'a>,
    /// What follows the address after a question mark.
    pub(crate) query: Option<String>,
    pub(crate) accept: Option<&'static str>,
    /// From which byte on.
    pub(crate) from: u64,
    /// Whether mirrors are left out.
    pub(crate) direct: bool,
}

impl<'a> Call<'a> {
    pub(crate) fn new(attempt: String, method: Method, target: Target<'a>) -> Call<'a> {
        Call {
            attempt,
            method,
            target,
            query: None,
            accept: None,
            from: 0,
            direct: false,
        }
    }

    pub(crate) fn accepting(mut self, types: &'static str) -> Call<'a> {
        self.accept = Some(types);
        self
    }
}

/// Where a question goes.
struct Endpoint<'a> {
    attempt: String,
    host: &'a Host,
    repository: Option<Cow<'a, str>>,
    plain: bool,
    mirrored: bool,
}

impl Client {
    /// Asks, and reads the whole answer of at most `limit` bytes.
    pub(crate) async fn fetch(&self, call: &Call<'_>, limit: usize) -> Result<Whole, Error> {
        let tries = self.inner.options.retry.attempts;
        self.anywhere(call, tries, |endpoint| {
            self.inner.whole(call, endpoint, limit)
        })
        .await
    }

    /// As [`Client::fetch`], without another try after a failure.
    pub(crate) async fn once(&self, call: &Call<'_>, limit: usize) -> Result<Whole, Error> {
        self.anywhere(call, 1, |endpoint| self.inner.whole(call, endpoint, limit))
            .await
    }

    /// Asks for a transfer, and returns when its head is here.
    pub(crate) async fn open(&self, call: &Call<'_>) -> Result<Open, Error> {
        self.anywhere(call, 1, |endpoint| {
            self.inner.head(call, endpoint, Use::Transfer)
        })
        .await
    }

    async fn anywhere<'a, T, F>(
        &'a self,
        call: &'a Call<'a>,
        tries: u32,
        ask: impl Fn(Endpoint<'a>) -> F,
    ) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let host = call.target.host();
        let repository = call.target.repository();
        let mirrors = self.inner.options.mirrors.of(host);
        if let Some(name) = repository.filter(|_| !call.direct) {
            for mirror in mirrors {
                match ask(mirror_endpoint(call, mirror, name)).await {
                    Ok(answer) => return Ok(answer),
                    Err(error) => tracing::debug!(%error, "a mirror did not help"),
                }
            }
        }
        let mut failures = 0;
        loop {
            let endpoint = Endpoint {
                attempt: call.attempt.clone(),
                host,
                repository: repository.map(Cow::Borrowed),
                plain: false,
                mirrored: false,
            };
            let error = match ask(endpoint).await {
                Err(error) if error.is_transient() => error,
                outcome => return outcome,
            };
            failures += 1;
            let retry = &self.inner.options.retry;
            let next = match failures >= tries {
                true => Next::GiveUp,
                false => retry.next(failures, error.retry_after(), rand::random()),
            };
            match next {
                Next::GiveUp => return Err(error),
                Next::After(pause) => {
                    self.inner.traffic.tally().retry();
                    tracing::debug!(%error, ?pause, "trying again");
                    sleep(pause).await;
                }
            }
        }
    }
}

fn mirror_endpoint<'a>(call: &Call<'a>, mirror: &'a Mirror, name: &str) -> Endpoint<'a> {
    Endpoint {
        attempt: format!("{} at its mirror {}", call.attempt, mirror.host),
        host: &mirror.host,
        repository: Some(Cow::Owned(mirror.repository(name))),
        plain: mirror.plain,
        mirrored: true,
    }
}

impl Inner {
    async fn whole(
        &self,
        call: &Call<'_>,
        endpoint: Endpoint<'_>,
        limit: usize,
    ) -> Result<Whole, Error> {
        let attempt = endpoint.attempt.clone();
        let time = self.options.timeouts.answer;
        // Waiting at the gate is not the registry's time.
        let open = self.head(call, endpoint, Use::Request).await?;
        let headers = open.response.headers().clone();
        let url = open.response.url().clone();
        let read = async {
            match call.method == Method::HEAD {
                true => Ok(bytes::Bytes::new()),
                false => answer::body(&attempt, open.response, limit).await,
            }
        };
        let slow = || Error::unavailable(&attempt, format!("no whole answer within {time:?}"));
        let body = timeout(time, read).await.unwrap_or_else(|_| Err(slow()))?;
        self.traffic.tally().read(body.len());
        drop(open.place);
        Ok(Whole {
            headers,
            body,
            url,
            mirrored: open.mirrored,
        })
    }

    /// The head of an answer that is no refusal, with whichever login the host takes.
    async fn head(
        &self,
        call: &Call<'_>,
        endpoint: Endpoint<'_>,
        purpose: Use,
    ) -> Result<Open, Error> {
        let repository = endpoint.repository.as_deref();
        let logins = self
            .options
            .credentials
            .logins(endpoint.host, repository)
            .await?;
        let mut slots: Vec<Option<&Login>> = logins.iter().map(Some).collect();
        if slots.is_empty() {
            slots.push(None);
        }
        let mut refused = None;
        for (slot, login) in slots.into_iter().enumerate() {
            match self.logged_in(call, &endpoint, purpose, slot, login).await {
                // Another login may be the right one for this repository; the first refusal is
                // the one to tell, because its login is the most specific.
                Err(error @ (Error::Unauthorized { .. } | Error::Denied { .. })) => {
                    refused.get_or_insert(error);
                }
                outcome => return outcome,
            }
        }
        Err(refused.unwrap_or_else(|| Error::malformed(&endpoint.attempt, "no answer at all")))
    }

    async fn logged_in(
        &self,
        call: &Call<'_>,
        endpoint: &Endpoint<'_>,
        purpose: Use,
        slot: usize,
        login: Option<&Login>,
    ) -> Result<Open, Error> {
        let scope = match &call.target {
            Target::Base(_) => None,
            Target::Catalog(_) => Some("registry:catalog:*".to_string()),
            Target::Repository(..) => {
                let name = endpoint.repository.as_deref().unwrap_or_default();
                Some(format!("repository:{name}:pull"))
            }
        };
        let gate = self.traffic.gate(endpoint.host.address());
        let (mut challenged, mut renewed) = (false, false);
        loop {
            let asker = Asker {
                attempt: &endpoint.attempt,
                host: endpoint.host,
                scope: scope.as_deref(),
                login,
                slot,
                secure: self.wire.scheme(endpoint.host, endpoint.plain).0 == Scheme::Https,
            };
            let authorization = self
                .authorizer
                .authorization(&self.wire, &self.traffic, asker)
                .await?;
            let header = authorization.as_ref().map(|a| a.header.clone());
            let place = gate
                .enter(purpose, self.options.retry.patience)
                .await
                .map_err(|closed| closed.over(&endpoint.attempt))?;
            let response = self.send(call, endpoint, header).await?;
            let status = response.status();
            if status == StatusCode::UNAUTHORIZED
                && let Some(wanted) = challenge(response.headers())
            {
                match &authorization {
                    // The host had not said before what it wants, or wants something else now.
                    None if !challenged => {
                        challenged = true;
                        self.authorizer.learn(endpoint.host, wanted);
                        continue;
                    }
                    // The token may have run out on the way, or been withdrawn.
                    Some(used) if used.renewable && !renewed => {
                        renewed = true;
                        self.authorizer.learn(endpoint.host, wanted);
                        self.authorizer.forget(asker, used).await;
                        continue;
                    }
                    _ => {}
                }
            }
            if status.is_success() {
                return Ok(Open {
                    response,
                    place,
                    mirrored: endpoint.mirrored,
                });
            }
            let error = answer::refusal(&endpoint.attempt, described(login), response).await;
            if let Error::RateLimited { retry_after, .. } = &error {
                gate.pause(retry_after.unwrap_or(self.options.retry.first));
            }
            return Err(error);
        }
    }

    /// Sends the question, over whichever scheme the host speaks.
    async fn send(
        &self,
        call: &Call<'_>,
        endpoint: &Endpoint<'_>,
        authorization: Option<HeaderValue>,
    ) -> Result<Response, Error> {
        let (scheme, lenient) = self.wire.scheme(endpoint.host, endpoint.plain);
        let attempt = &endpoint.attempt;
        match self
            .over(scheme, call, endpoint, authorization.clone())
            .await?
        {
            Ok(response) => {
                self.wire.learn(endpoint.host, scheme);
                Ok(response)
            }
            Err(error) if lenient && may_be_plain(&error) => {
                match self
                    .over(Scheme::Http, call, endpoint, authorization)
                    .await?
                {
                    Ok(response) => {
                        self.wire.learn(endpoint.host, Scheme::Http);
                        Ok(response)
                    }
                    Err(_) => Err(fault(attempt, error)),
                }
            }
            Err(error) => Err(fault(attempt, error)),
        }
    }

    async fn over(
        &self,
        scheme: Scheme,
        call: &Call<'_>,
        endpoint: &Endpoint<'_>,
        authorization: Option<HeaderValue>,
    ) -> Result<Result<Response, reqwest::Error>, Error> {
        let url = address(scheme, call, endpoint);
        let client = self.wire.client(endpoint.host.is_loopback());
        let mut request = client.request(call.method.clone(), url);
        if let Some(accept) = call.accept {
            request = request.header(ACCEPT, accept);
        }
        if call.from > 0 {
            request = request.header(RANGE, format!("bytes={}-", call.from));
        }
        if let Some(authorization) = authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        let time = self.options.timeouts.answer;
        // It is told as a part of something greater, or not at all.
        let span = match Span::current().is_none() {
            true => Span::none(),
            false => tracing::info_span!(
                "registry request", otel.kind = "client",
                http.request.method = %call.method, server.address = endpoint.host.address(),
                http.response.status_code = tracing::field::Empty,
            ),
        };
        let answered = timeout(time, request.send());
        let answered = answered.instrument(span.clone()).await;
        let status = answered.as_ref().ok().and_then(|sent| sent.as_ref().ok());
        let status = status.map(Response::status);
        if let Some(status) = status {
            span.record("http.response.status_code", status.as_u16());
        }
        self.traffic.tally().request(&call.method, status);
        match answered {
            Ok(outcome) => Ok(outcome),
            Err(_) => Err(Error::unavailable(
                &endpoint.attempt,
                format!("no answer within {time:?}"),
            )),
        }
    }
}

/// Every part was parsed before and holds nothing that an address would need to escape.
fn address(scheme: Scheme, call: &Call<'_>, endpoint: &Endpoint<'_>) -> String {
    let repository = endpoint.repository.as_deref().unwrap_or_default();
    let path = match &call.target {
        Target::Base(_) => String::new(),
        Target::Catalog(_) => "_catalog".into(),
        Target::Repository(_, path) => format!("{repository}/{path}"),
    };
    let query = call
        .query
        .as_ref()
        .map(|query| format!("?{query}"))
        .unwrap_or_default();
    format!(
        "{}://{}/v2/{path}{query}",
        scheme.as_str(),
        endpoint.host.address()
    )
}
