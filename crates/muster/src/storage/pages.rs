//! The web pages in a cluster. Whoever shows a token that kube-apiserver knows may look, and everything they
//! see is read from kube-apiserver with that token: what this server itself may read does not count.

use super::requester::Tokens;
use crate::pages::PagesLobby;
use async_trait::async_trait;
use http::{HeaderValue, Request, header};
use kube::client::Body;
use muster_apiserver::identity::Refusal;
use muster_web::{Pages, Review, TokenDoor};
use std::sync::Arc;
use tokio::sync::watch;

/// The pages of a cluster. Tokens are asked about as `client`; what is shown is read as whoever shows one,
/// through `stranger`, who has no rights. Cookies are sealed with the secret that all replicas share.
pub(super) fn lobby(
    client: kube::Client,
    stranger: kube::Client,
    secret: watch::Receiver<Arc<[u8]>>,
) -> Arc<PagesLobby> {
    let visitors = Visitors {
        tokens: Tokens::new(client),
        stranger,
    };
    let door = TokenDoor::new(move || secret.borrow().clone(), visitors);
    PagesLobby::shared(Pages::new(Arc::new(door)))
}

struct Visitors {
    tokens: Tokens,
    stranger: kube::Client,
}

#[async_trait]
impl Review for Visitors {
    async fn whose(&self, token: &str) -> Result<Option<String>, String> {
        match self.tokens.whose(token).await {
            Ok(identity) => Ok(identity.map(|identity| identity.user)),
            // kube-apiserver says why a token is no good; nobody needs to know.
            Err(Refusal::Bad(_)) => Ok(None),
            Err(Refusal::Unavailable(why)) => Err(why),
        }
    }

    fn client(&self, token: &str) -> kube::Client {
        // What is no header was no token either: then nothing is said, and nothing may be read.
        let mut said = HeaderValue::from_str(&format!("Bearer {token}")).ok();
        if let Some(said) = &mut said {
            said.set_sensitive(true);
        }
        let stranger = self.stranger.clone();
        let service = tower::service_fn(move |mut request: Request<Body>| {
            let (stranger, said) = (stranger.clone(), said.clone());
            async move {
                if let Some(said) = said {
                    request.headers_mut().insert(header::AUTHORIZATION, said);
                }
                stranger.send(request).await
            }
        });
        kube::Client::new(service, "default")
    }
}
