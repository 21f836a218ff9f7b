//! Pages: paths that name no resource, answered by somebody else. A page has one word at the root of
//! all paths and whatever lies below it. The server keeps the door: who asks is authenticated and
//! authorized by path and method, bodies are bounded and find their room, and requests are counted.
//! What a path means is the page's own business.

use crate::body::{self, RequestBody};
use crate::query::Query;
use crate::respond::Answer;
use crate::server::Server;
use crate::store::StoreError;
use async_trait::async_trait;
use bytes::Bytes;
use http::Method;
use http::request::Parts;
use muster_kind::Status;
use std::sync::Arc;

/// Answers the paths below one word.
#[async_trait]
pub trait Page: Send + Sync + 'static {
    /// The word, such as `layers` for `/layers/…`. It must not be one of the server's own.
    fn root(&self) -> &'static str;

    /// The largest body it takes, decompressed.
    fn size_limit(&self) -> usize;

    /// Answers a request of somebody who may make it. There is a body only where the method is one
    /// that brings one.
    async fn answer(&self, parts: &Parts, query: &Query, body: Bytes) -> Result<Answer, Status>;
}

/// What a failure of the store is answered with.
pub fn store_failure(error: StoreError) -> Status {
    crate::failure::store_failure(error)
}

/// The page of a path.
pub(crate) fn find<'a>(pages: &'a [Arc<dyn Page>], path: &str) -> Option<&'a dyn Page> {
    let root = path.strip_prefix('/')?.split('/').next()?;
    let page = pages.iter().find(|page| page.root() == root)?;
    Some(&**page)
}

/// Has a page answer.
pub(crate) async fn answer(
    server: &Server,
    page: &dyn Page,
    parts: &Parts,
    query: &Query,
    body: RequestBody,
) -> Result<Answer, Status> {
    let body = match parts.method {
        Method::PUT | Method::POST | Method::PATCH => {
            body::read(body, &parts.headers, page.size_limit(), &server.room).await?
        }
        _ => Bytes::new(),
    };
    page.answer(parts, query, body).await
}

/// What a request to a page is counted as; methods that somebody invents are one.
pub(crate) fn verb(method: &Method) -> &'static str {
    match *method {
        Method::GET => "get",
        Method::HEAD => "head",
        Method::PUT => "put",
        Method::POST => "post",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Layers;

    #[async_trait]
    impl Page for Layers {
        fn root(&self) -> &'static str {
            "layers"
        }
        fn size_limit(&self) -> usize {
            0
        }
        async fn answer(&self, _: &Parts, _: &Query, _: Bytes) -> Result<Answer, Status> {
            Err(Status::no_such_path())
        }
    }

    #[test]
    fn a_page_has_its_root_and_what_is_below() {
        let pages: [Arc<dyn Page>; 1] = [Arc::new(Layers)];
        for (path, found) in [
            ("/layers", true),
            ("/layers/", true),
            ("/layers/sha256:00", true),
            ("/layers2/x", false),
            ("/", false),
            ("layers/x", false),
            ("//layers/x", false),
            ("/%6cayers/x", false),
            ("/api/layers", false),
        ] {
            assert_eq!(find(&pages, path).is_some(), found, "{path}");
        }
    }
}
