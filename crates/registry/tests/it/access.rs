//! Getting in: TLS, logins, tokens, and what must not get out.

use crate::support::*;
use anyhow::Result;
use http::StatusCode;
use muster_registry::{Access, Credentials, Error, Login, Mirror, Mirrors, Secret, Transport};
use muster_testkit::port;
use muster_testkit::proxy::{Fault, Proxy};
use muster_testkit::push::Pusher;
use muster_testkit::registry::{self, Registry, Setup};
use muster_testkit::token::{IDENTITY_TOKEN, TokenService};

#[tokio::test]
async fn a_private_authority_is_trusted_when_it_is_given() -> Result<()> {
    let registry = Registry::start_with(Setup {
        tls: true,
        ..Setup::default()
    })?;
    let at = host(&registry.host());
    let error = client(options())?.ping(&at).await.expect_err("not trusted");
    assert!(matches!(error, Error::Untrusted { .. }), "{error}");
    assert!(error.to_string().contains(&registry.host()), "{error}");
    let mut trusting = options();
    trusting.authorities = registry.authority().map(|pem| pem.as_bytes().to_vec());
    assert_eq!(client(trusting)?.ping(&at).await?, Access::Open);
    let mut careless = options();
    careless.transport = Transport::Insecure;
    assert_eq!(client(careless)?.ping(&at).await?, Access::Open);
    for bundle in [
        "",
        "no certificate",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    ] {
        let mut broken = options();
        broken.authorities = Some(bundle.into());
        let error = client(broken).expect_err("no bundle");
        assert!(error.to_string().contains("certificate"), "{error}");
    }
    Ok(())
}

#[tokio::test]
async fn plain_http_is_spoken_where_it_is_allowed() -> Result<()> {
    let registry = Registry::start()?;
    for transport in [Transport::Verified, Transport::Insecure, Transport::Plain] {
        let mut wanted = options();
        wanted.transport = transport;
        assert_eq!(
            client(wanted)?.ping(&host(&registry.host())).await?,
            Access::Open
        );
    }
    let nobody = format!("127.0.0.1:{}", port::free()?);
    let error = client(options())?
        .ping(&host(&nobody))
        .await
        .expect_err("nobody is there");
    assert!(
        error.is_transient() && error.to_string().contains(&nobody),
        "{error}"
    );
    Ok(())
}

#[tokio::test]
async fn a_password_is_sent_once_it_is_asked_for_and_a_wrong_one_fails_at_once() -> Result<()> {
    let registry = Registry::start_with(Setup {
        login: registry::Login::Password,
        ..Setup::default()
    })?;
    Pusher::new(&registry)?
        .image("team/app", Some("1"), &[b"layer"], &config("amd64"))
        .await?;
    let proxy = Proxy::start(&registry.host(), |_, _| Fault::Pass).await?;
    let at = host(&proxy.host());
    let reference = repository(&proxy.host(), "team/app").tagged("1")?;

    let stranger = client(options())?;
    assert_eq!(stranger.ping(&at).await?, Access::LoginRequired);
    let error = stranger.resolve(&reference).await.expect_err("a stranger");
    assert!(matches!(error, Error::Unauthorized { .. }), "{error}");

    let mut wrong = options();
    wrong.credentials = password(&proxy.host(), "hunter2");
    let wrong = client(wrong)?;
    let before = proxy.seen().len();
    for error in [
        wrong.ping(&at).await.expect_err("a wrong password"),
        wrong
            .manifest(&reference)
            .await
            .expect_err("a wrong password"),
    ] {
        assert!(matches!(error, Error::Unauthorized { .. }), "{error}");
        assert!(!format!("{error} {error:?} {wrong:?}").contains("hunter2"));
    }
    assert!(
        proxy.seen().len() - before <= 3,
        "it is not tried again and again"
    );

    let mut right = options();
    right.credentials = right_password(&proxy.host());
    let right = client(right)?;
    assert_eq!(right.ping(&at).await?, Access::Open);
    let before = proxy.seen().len();
    right.resolve(&reference).await?;
    assert_eq!(
        proxy.seen().len() - before,
        1,
        "what the host wants is remembered"
    );
    assert_eq!(right.catalog(&at).await?.len(), 1);

    // Of several logins the one that is let in is used.
    let mut several = options();
    several.credentials = password(&proxy.host(), "old").and(right_password(&proxy.host()));
    client(several)?.manifest(&reference).await?;
    Ok(())
}

async fn with_tokens(expired: usize) -> Result<(TokenService, Registry)> {
    let service = TokenService::start(expired).await?;
    let login = registry::Login::Token {
        realm: service.realm(),
        certificate: service.certificate(),
    };
    let registry = Registry::start_with(Setup {
        login,
        ..Setup::default()
    })?;
    let token = service.token("repository:team/app:pull,push")?;
    let pusher = Pusher::new(&registry)?.with_token(&token);
    pusher
        .image("team/app", Some("1"), &[b"layer"], &config("amd64"))
        .await?;
    Ok((service, registry))
}

#[tokio::test]
async fn tokens_are_had_from_the_service_and_kept() -> Result<()> {
    let (service, registry) = with_tokens(0).await?;
    let reference = repository(&registry.host(), "team/app").tagged("1")?;
    for login in [
        right_password(&registry.host()),
        Credentials::for_host(
            &host(&registry.host()),
            Login::Identity(Secret::new(IDENTITY_TOKEN)),
        ),
    ] {
        let before = service.issued();
        let mut wanted = options();
        wanted.credentials = login;
        let client = client(wanted)?;
        let asked = (0..10).map(|_| client.manifest(&reference));
        for outcome in futures::future::join_all(asked).await {
            outcome?;
        }
        client.resolve(&reference).await?;
        assert_eq!(service.issued() - before, 1, "one token serves all");
        assert_eq!(client.ping(&host(&registry.host())).await?, Access::Open);
        client.catalog(&host(&registry.host())).await?;
    }
    let mut given = options();
    let token = service.token("repository:team/app:pull")?;
    given.credentials =
        Credentials::for_host(&host(&registry.host()), Login::Bearer(Secret::new(token)));
    client(given)?.manifest(&reference).await?;
    Ok(())
}

#[tokio::test]
async fn a_token_that_ran_out_is_renewed_and_a_wrong_login_is_not_tried_again() -> Result<()> {
    let (service, registry) = with_tokens(1).await?;
    let reference = repository(&registry.host(), "team/app").tagged("1")?;
    let mut wanted = options();
    wanted.credentials = right_password(&registry.host());
    client(wanted)?.manifest(&reference).await?;
    assert_eq!(service.issued(), 2);
    for credentials in [
        password(&registry.host(), "hunter2"),
        Credentials::for_host(
            &host(&registry.host()),
            Login::Identity(Secret::new("hunter2")),
        ),
        Credentials::for_host(
            &host(&registry.host()),
            Login::Bearer(Secret::new("hunter2")),
        ),
        Credentials::none(),
    ] {
        let mut wanted = options();
        wanted.credentials = credentials;
        let error = client(wanted)?
            .manifest(&reference)
            .await
            .expect_err("a wrong login");
        assert!(matches!(error, Error::Unauthorized { .. }), "{error}");
        assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
        assert!(
            error.to_string().contains(&reference.to_string()),
            "{error}"
        );
    }
    assert_eq!(service.issued(), 2);
    Ok(())
}

#[tokio::test]
async fn a_redirect_to_another_host_takes_no_login_along() -> Result<()> {
    let registry = Registry::start_with(Setup {
        login: registry::Login::Password,
        ..Setup::default()
    })?;
    let bytes = noise(10_000);
    Pusher::new(&registry)?
        .image("team/app", Some("1"), &[&bytes], &config("amd64"))
        .await?;
    // The storage is another registry with the same content and no login.
    let (open, _) = with_image(&bytes).await?;
    let storage = Proxy::start(&open.host(), |_, _| Fault::Pass).await?;
    let place = storage.host();
    let front = Proxy::start(&registry.host(), move |seen, _| {
        match seen.target.contains("/blobs/") && seen.headers.contains_key("authorization") {
            true => {
                let location = format!("http://{place}{}?signature=hunter2", seen.target);
                Fault::Answer(
                    StatusCode::TEMPORARY_REDIRECT,
                    vec![("location", location)],
                    String::new(),
                )
            }
            false => Fault::Pass,
        }
    })
    .await?;
    let mut wanted = options();
    wanted.credentials = right_password(&front.host());
    let client = client(wanted)?;
    let (repository, layer) = first_layer(&client, &front.host()).await?;
    assert!(read(client.layer(&repository, &layer)?).await? == bytes);
    let there = storage.seen();
    assert!(!there.is_empty());
    assert!(
        there
            .iter()
            .all(|seen| !seen.headers.contains_key("authorization"))
    );
    // The address of the storage is a login of its own and is not printed.
    drop(storage);
    let error = read(client.layer(&repository, &layer)?)
        .await
        .expect_err("the storage is gone");
    assert!(
        error.is_transient() && !format!("{error:?}").contains("hunter2"),
        "{error:?}"
    );
    Ok(())
}

#[tokio::test]
async fn mirrors_are_asked_first_and_the_origin_where_they_fail() -> Result<()> {
    let bytes = noise(10_000);
    let (registry, pushed) = with_image(&bytes).await?;
    let origin = Proxy::start(&registry.host(), |_, _| Fault::Pass).await?;
    let reference = repository(&origin.host(), "team/app").tagged("1")?;
    let (copy, _) = with_image(&bytes).await?;
    Pusher::new(&copy)?
        .image("cache/team/app", Some("1"), &[&bytes], &config("amd64"))
        .await?;
    let good = Proxy::start(&copy.host(), |_, _| Fault::Pass).await?;
    let lying = Proxy::start(&copy.host(), |_, _| Fault::Change).await?;
    let nobody = format!("127.0.0.1:{}", port::free()?);
    for (mirrors, asks_origin) in [
        (vec![format!("http://{}/cache", good.host())], false),
        (vec![nobody.clone(), good.host()], false),
        (vec![nobody], true),
        (vec![format!("{}/empty", good.host())], true),
        (vec![lying.host()], true),
    ] {
        let mut wanted = options();
        let mut known = Mirrors::default();
        for mirror in &mirrors {
            known.add(host(&origin.host()), Mirror::parse(mirror)?);
        }
        wanted.mirrors = known;
        wanted.credentials = right_password(&origin.host());
        let before = origin.seen().len();
        let client = client(wanted)?;
        let fetched = client.manifest(&reference).await?;
        assert_eq!(fetched.digest.as_str(), pushed.digest, "{mirrors:?}");
        assert_eq!(origin.seen().len() > before, asks_origin, "{mirrors:?}");
    }
    assert!(
        good.seen()
            .iter()
            .all(|seen| !seen.headers.contains_key("authorization"))
    );
    Ok(())
}
