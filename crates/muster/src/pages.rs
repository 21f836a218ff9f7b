//! The web pages, as the network meets them: in the lobby of a server, beside its API. In `up` a printed
//! link leads in, and a browser on the same machine needs no TLS, since it would not know our authority;
//! a server that many share is met over TLS alone.

use anyhow::Result;
use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};
use muster_apiserver::front::Lobby;
use muster_web::{LinkDoor, Pages, sign_in_link};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// The pages of a server.
pub(crate) struct PagesLobby {
    pages: Pages,
    takes_plain: bool,
}

impl PagesLobby {
    /// The pages of a server that many share.
    pub(crate) fn shared(pages: Pages) -> Arc<Self> {
        Arc::new(PagesLobby {
            pages,
            takes_plain: false,
        })
    }

    /// The pages of a server that belongs to `owner`, and the link that leads in. The next link is printed
    /// whenever one was used.
    pub(crate) fn owned(
        owner: &str,
        client: kube::Client,
        address: SocketAddr,
    ) -> Result<(Arc<Self>, String)> {
        let server = browsed(address);
        let next = server.clone();
        let tell = move |token: &str| {
            let link = sign_in_link(&next, token);
            eprintln!("Signed in. For another browser: {link}");
        };
        let door = LinkDoor::new(owner, client, address.port(), tell)?;
        let link = sign_in_link(&server, &door.token());
        let lobby = PagesLobby {
            pages: Pages::new(Arc::new(door)),
            takes_plain: true,
        };
        Ok((Arc::new(lobby), link))
    }
}

/// Where a browser on this machine finds the pages: without TLS if the server is reached from here alone
/// or from everywhere, and else where it is.
fn browsed(address: SocketAddr) -> String {
    let port = address.port();
    match address.ip() {
        ip if ip.is_unspecified() => format!("http://{}:{port}", Ipv4Addr::LOCALHOST),
        ip if ip == Ipv4Addr::LOCALHOST || ip.is_loopback() && ip.is_ipv6() => {
            format!("http://{address}")
        }
        _ => format!("https://{address}"),
    }
}

#[async_trait]
impl Lobby for PagesLobby {
    fn root(&self) -> &'static str {
        muster_web::ROOT.trim_start_matches('/')
    }

    fn takes_plain(&self) -> bool {
        self.takes_plain
    }

    async fn answer(&self, request: Request<Bytes>, is_secure: bool) -> Response<Bytes> {
        self.pages.answer(request, is_secure).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_leads_to_where_a_browser_finds_the_pages() {
        for (address, expected) in [
            ("127.0.0.1:7443", "http://127.0.0.1:7443"),
            ("0.0.0.0:7443", "http://127.0.0.1:7443"),
            ("[::]:7443", "http://127.0.0.1:7443"),
            ("[::1]:7443", "http://[::1]:7443"),
            ("127.0.0.2:7443", "https://127.0.0.2:7443"),
            ("10.0.0.5:7443", "https://10.0.0.5:7443"),
        ] {
            assert_eq!(browsed(address.parse().unwrap()), expected, "{address}");
        }
    }
}
