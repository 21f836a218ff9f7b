//! A request for a page, from the first look at it to the answer. Nobody who is not signed in gets anything
//! but the way to sign in; every answer forbids what no page of ours does; a page that has not changed is
//! not sent again.

use crate::address::{Filter, ROOT, Route};
use crate::door::{Door, Entry, Visitor, cookie};
use crate::layout::{self, Framed};
use crate::page;
use crate::read::ReadError;
use crate::reader::Reader;
use crate::stock::Stock;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use bytes::Bytes;
use form_urlencoded::Serializer;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use jiff::Timestamp;
use ring::digest;
use std::sync::Arc;

const HTML: &str = "text/html; charset=utf-8";

/// What pages may do: nothing that is not ours, and nothing that is written into them.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; \
     connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The link that leads in with a token, at the address of a server: `http://127.0.0.1:7443`.
pub fn sign_in_link(server: &str, token: &str) -> String {
    format!("{server}{}?token={token}", Route::SignIn.path())
}

/// The pages.
pub struct Pages {
    door: Arc<dyn Door>,
    stock: Arc<Stock>,
}

impl Pages {
    /// Pages behind a door.
    pub fn new(door: Arc<dyn Door>) -> Self {
        Pages {
            door,
            stock: Arc::default(),
        }
    }

    /// Answers a request. Cookies are for connections that nobody else can read, if this is one.
    pub async fn answer(&self, request: Request<Bytes>, is_secure: bool) -> Response<Bytes> {
        let is_head = request.method() == Method::HEAD;
        let known = request.headers().get(header::IF_NONE_MATCH).cloned();
        let mut response = self.respond(request, is_secure).await;
        if response.status() == StatusCode::OK {
            let code = digest::digest(&digest::SHA256, response.body());
            let code = code.as_ref().get(..18).unwrap_or_default();
            let tag = format!("\"{}\"", BASE64_URL_SAFE_NO_PAD.encode(code));
            if known.is_some_and(|known| known.as_bytes() == tag.as_bytes()) {
                *response.status_mut() = StatusCode::NOT_MODIFIED;
                *response.body_mut() = Bytes::new();
            }
            set(response.headers_mut(), header::ETAG, &tag);
        }
        if is_head {
            *response.body_mut() = Bytes::new();
        }
        let headers = response.headers_mut();
        for (name, value) in [
            (header::CONTENT_SECURITY_POLICY, POLICY),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (header::X_FRAME_OPTIONS, "DENY"),
            (header::REFERRER_POLICY, "no-referrer"),
            (header::CACHE_CONTROL, "no-cache, private"),
            (header::VARY, "Cookie"),
            (
                HeaderName::from_static("cross-origin-opener-policy"),
                "same-origin",
            ),
            (
                HeaderName::from_static("cross-origin-resource-policy"),
                "same-origin",
            ),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        response
    }

    async fn respond(&self, request: Request<Bytes>, is_secure: bool) -> Response<Bytes> {
        let route = Route::read(request.uri().path());
        let is_post = request.method() == Method::POST;
        let is_read = request.method() == Method::GET || request.method() == Method::HEAD;
        if is_post && !is_own(&request) {
            return plain(StatusCode::FORBIDDEN, "this was sent by another site\n");
        }
        match &route {
            Some(Route::Style) if is_read => {
                return answer(
                    StatusCode::OK,
                    "text/css; charset=utf-8",
                    include_str!("style.css"),
                );
            }
            Some(Route::Script) if is_read => {
                let script = include_str!("script.js");
                return answer(StatusCode::OK, "text/javascript; charset=utf-8", script);
            }
            Some(Route::Icon) if is_read => {
                return answer(StatusCode::OK, "image/svg+xml", include_str!("icon.svg"));
            }
            Some(Route::SignIn) if is_read || is_post => {
                return self.sign_in(&request, is_secure).await;
            }
            Some(Route::SignOut) if is_post => {
                let ended = cookie::written(self.door.cookie(), "", is_secure);
                return redirect(&Route::SignIn.path(), Some(&ended));
            }
            _ if !is_read => {
                return plain(StatusCode::METHOD_NOT_ALLOWED, "pages are only read\n");
            }
            _ => {}
        }
        let filter = Filter::read(request.uri().query().unwrap_or_default());
        let Some(visitor) = self.visitor(&request) else {
            return outside(route.as_ref(), &filter);
        };
        self.shown(route.as_ref(), visitor, &filter).await
    }

    /// Who asks, if they are signed in.
    fn visitor(&self, request: &Request<Bytes>) -> Option<Visitor> {
        let shown = cookie::find(request.headers(), self.door.cookie());
        shown.and_then(|cookie| self.door.admit(cookie))
    }

    async fn sign_in(&self, request: &Request<Bytes>, is_secure: bool) -> Response<Bytes> {
        let wanted = wanted(request);
        let leads_to = wanted.as_deref().unwrap_or(ROOT);
        match self.door.knock(request).await {
            // What led in leaves the address.
            Entry::In(value) => {
                let cookie = cookie::written(self.door.cookie(), &value, is_secure);
                redirect(leads_to, Some(&cookie))
            }
            // Who is signed in need not be again.
            Entry::Out("") if self.visitor(request).is_some() => redirect(leads_to, None),
            Entry::Out(told) => {
                let status = match told {
                    "" => StatusCode::OK,
                    _ => StatusCode::FORBIDDEN,
                };
                let page = layout::sign_in(self.door.way(), told, wanted.as_deref());
                answer(status, HTML, page.into_string())
            }
        }
    }

    async fn shown(
        &self,
        route: Option<&Route>,
        visitor: Visitor,
        filter: &Filter,
    ) -> Response<Bytes> {
        let chosen = filter.namespace.clone();
        let name = visitor.name.clone();
        let reader = Reader::new(visitor, self.stock.clone(), chosen);
        let framed = match route {
            Some(route) => page(&reader, route, filter).await,
            None => Ok(None),
        };
        let (status, framed) = match framed {
            Ok(Some(framed)) => (StatusCode::OK, framed),
            Ok(None) => (
                StatusCode::NOT_FOUND,
                layout::trouble(
                    "Not found",
                    "There is no such page, or what it was about is gone.",
                ),
            ),
            Err(error) => match error.code() {
                // The token is not good any more.
                Some(401) => return outside(route, filter),
                Some(403) => (
                    StatusCode::FORBIDDEN,
                    layout::trouble("Not for you", "You may not read what this page shows."),
                ),
                _ => {
                    let source = &error.source;
                    tracing::warn!(%error, %source, "reading for a page");
                    let told = format!("{error} failed: {source}");
                    (
                        StatusCode::BAD_GATEWAY,
                        layout::trouble("The server could not be asked", &told),
                    )
                }
            },
        };
        let page = layout::page(route, &name, filter, framed);
        answer(status, HTML, page.into_string())
    }
}

/// Reads and draws a page; none if there is nothing that it could be about.
async fn page(
    reader: &Reader,
    route: &Route,
    filter: &Filter,
) -> Result<Option<Framed>, ReadError> {
    let now = Timestamp::now();
    let framed = match route {
        Route::Overview => {
            let view = page::overview::load(reader, filter).await?;
            page::overview::draw(&view, filter, now)
        }
        Route::Workloads => {
            let view = page::workloads::load(reader, filter).await?;
            page::workloads::draw(&view, filter)
        }
        Route::Workload { namespace, name } => {
            let view = page::workload::load(reader, namespace, name, filter).await?;
            return Ok(view.map(|view| page::workload::draw(&view, filter, now)));
        }
        Route::Images => {
            let view = page::images::load(reader, filter).await?;
            page::images::draw(&view, filter)
        }
        Route::Image { namespace, name } => {
            let view = page::image::load(reader, namespace, name, filter).await?;
            return Ok(view.map(|view| page::image::draw(&view, filter, now)));
        }
        Route::Vulnerabilities => {
            let view = page::vulnerabilities::load(reader, filter).await?;
            page::vulnerabilities::draw(&view, filter)
        }
        Route::Vulnerability(id) => {
            let view = page::vulnerability::load(reader, id, filter).await?;
            page::vulnerability::draw(&view, filter)
        }
        Route::Policies => {
            let view = page::policies::load(reader, filter).await?;
            page::policies::draw(&view, filter)
        }
        Route::Policy { family, id } => {
            let view = page::policy::load(reader, *family, id, filter).await?;
            page::policy::draw(&view, filter)
        }
        Route::Registries => {
            let view = page::registries::load(reader, filter).await?;
            page::registries::draw(&view, filter, now)
        }
        Route::Search => {
            let view = page::search::load(reader, filter).await?;
            page::search::draw(&view, filter)
        }
        Route::SignIn | Route::SignOut | Route::Style | Route::Script | Route::Icon => {
            return Ok(None);
        }
    };
    Ok(Some(framed))
}

/// Leads somebody who is not signed in to the door, and from there to what they wanted to see.
fn outside(route: Option<&Route>, filter: &Filter) -> Response<Bytes> {
    let mut to = Route::SignIn.path();
    if let Some(route) = route.filter(|route| **route != Route::Overview || filter.is_narrow()) {
        let wanted = format!("{}{}", route.path(), filter.query());
        let mut query = Serializer::new(String::new());
        query.append_pair("to", &wanted);
        to = format!("{to}?{}", query.finish());
    }
    redirect(&to, None)
}

/// What somebody wants to see once they are signed in. It is written anew from what it means here, so that
/// it cannot lead anywhere else.
fn wanted(request: &Request<Bytes>) -> Option<String> {
    let query = request.uri().query().unwrap_or_default();
    let asked = form_urlencoded::parse(query.as_bytes());
    let mut pairs = asked.chain(form_urlencoded::parse(request.body()));
    let (_, wanted) = pairs.find(|(key, _)| key == "to")?;
    let (path, query) = wanted.split_once('?').unwrap_or((&wanted, ""));
    let route = Route::read(path).filter(Route::is_page)?;
    Some(format!("{}{}", route.path(), Filter::read(query).query()))
}

/// Whether a form was sent by a page of ours, as far as the browser says where it came from.
fn is_own(request: &Request<Bytes>) -> bool {
    let headers = request.headers();
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    // A browser that says this says it of every request. Of its origin it says nothing good here, since our
    // pages tell nobody where somebody comes from.
    if let Some(site) = text("sec-fetch-site") {
        return matches!(site, "same-origin" | "none");
    }
    let Some(origin) = text("origin") else {
        return true;
    };
    let authority = origin.split_once("://").map(|(_, authority)| authority);
    // HTTP/2 says in the address what older versions say in a header.
    let asked = request.uri().authority().map(http::uri::Authority::as_str);
    authority.is_some() && authority == asked.or_else(|| text("host"))
}

fn set(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

fn answer(status: StatusCode, content: &'static str, body: impl Into<Bytes>) -> Response<Bytes> {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    let content = HeaderValue::from_static(content);
    response.headers_mut().insert(header::CONTENT_TYPE, content);
    response
}

fn plain(status: StatusCode, text: &'static str) -> Response<Bytes> {
    answer(status, "text/plain; charset=utf-8", text)
}

fn redirect(to: &str, cookie: Option<&str>) -> Response<Bytes> {
    let mut response = plain(StatusCode::SEE_OTHER, "");
    set(response.headers_mut(), header::LOCATION, to);
    if let Some(cookie) = cookie {
        set(response.headers_mut(), header::SET_COOKIE, cookie);
    }
    response
}

#[cfg(test)]
mod tests;
