//! The operator's client: the API server itself, called in process. Whoever works with it cannot
//! tell it from a server across the network; who it is, is an extension of its requests and never
//! a header.

use http_body_util::BodyExt;
use kube::client::Body;
use muster_apiserver::Server;
use muster_apiserver::identity::Identity;
use std::convert::Infallible;
use std::sync::Arc;

/// A client of a server in this process.
pub(crate) fn client(server: &Arc<Server>, identity: Identity) -> kube::Client {
    let server = server.clone();
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let (server, identity) = (server.clone(), identity.clone());
        async move {
            let mut request = request.map(|body| body.map_err(Into::into).boxed_unsync());
            request.extensions_mut().insert(identity);
            // A task of its own: a caller that goes away does not leave a write half-way.
            let answer = tokio::spawn(async move { server.handle(request).await }).await;
            Ok::<_, Infallible>(answer.unwrap_or_else(|_| {
                let mut failed = http::Response::new(muster_apiserver::respond::full(""));
                *failed.status_mut() = http::StatusCode::INTERNAL_SERVER_ERROR;
                failed
            }))
        }
    });
    kube::Client::new(service, "default")
}
