//! A busy host and a bad network: what passes is tried again, within bounds; what does not is
//! told at once.

use crate::support::*;
use anyhow::Result;
use http::{Method, StatusCode};
use muster_registry::{Client, Error, Retry, Timeouts, Traffic};
use muster_testkit::proxy::{Fault, Proxy};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

#[tokio::test]
async fn a_layer_is_taken_up_where_the_connection_broke() -> Result<()> {
    let bytes = noise(2 << 20);
    let (registry, _) = with_image(&bytes).await?;
    let ranged = Proxy::start(&registry.host(), |seen, _| {
        match seen.target.contains("/blobs/") {
            true => Fault::CutAfter(700_000),
            false => Fault::Pass,
        }
    })
    .await?;
    let traffic = Traffic::default();
    let client = Client::new(options(), traffic.clone())?;
    let (repository, layer) = first_layer(&client, &ranged.host()).await?;
    assert!(read(client.layer(&repository, &layer)?).await? == bytes);
    let starts: Vec<String> = ranged
        .seen()
        .iter()
        .filter_map(|seen| seen.headers.get("range"))
        .map(|range| String::from_utf8_lossy(range.as_bytes()).into_owned())
        .collect();
    assert_eq!(starts, ["bytes=700000-", "bytes=1400000-"]);
    let counts = traffic.counts();
    assert_eq!(counts.retries, 2);
    let least = bytes.len() as u64;
    assert!((least..2 * least).contains(&counts.bytes), "{counts:?}");
    let answered = counts
        .requests
        .iter()
        .filter(|(_, code, _)| *code != "none");
    let answered: u64 = answered.map(|(_, _, count)| count).sum();
    assert_eq!(answered, ranged.seen().len() as u64, "{counts:?}");
    Ok(())
}

#[tokio::test]
async fn a_layer_goes_on_from_what_an_earlier_reading_left() -> Result<()> {
    let bytes = noise(300_000);
    let (registry, _) = with_image(&bytes).await?;
    let proxy = Proxy::start(&registry.host(), |_, _| Fault::Pass).await?;
    let client = client(options())?;
    let (repository, descriptor) = first_layer(&client, &proxy.host()).await?;
    let mut layer = client.layer(&repository, &descriptor)?;
    layer.skip(&bytes[..60_000])?;
    layer.skip(&bytes[60_000..100_000])?;
    assert!(read(layer).await? == bytes[100_000..]);
    let mut whole = client.layer(&repository, &descriptor)?;
    whole.skip(&bytes)?;
    assert!(read(whole).await?.is_empty());
    let asked: Vec<_> = proxy
        .seen()
        .iter()
        .filter_map(|seen| seen.headers.get("range").cloned())
        .collect();
    assert_eq!(asked, ["bytes=100000-"]);
    // What was left is not believed, and may not be too much.
    let mut wrong = client.layer(&repository, &descriptor)?;
    wrong.skip(&[0; 100])?;
    let error = read(wrong).await.expect_err("another digest");
    assert!(matches!(error, Error::DigestMismatch { .. }), "{error}");
    let mut long = client.layer(&repository, &descriptor)?;
    assert!(long.skip(&[0; 300_001]).is_err());
    Ok(())
}

#[tokio::test]
async fn a_registry_without_ranges_or_with_short_bodies_is_read_too() -> Result<()> {
    let bytes = noise(300_000);
    let (registry, _) = with_image(&bytes).await?;
    let rangeless = Proxy::start(&registry.host(), |seen, before| {
        match (seen.target.contains("/blobs/"), before) {
            (true, 0) => Fault::CutAfter(100_000),
            (true, _) => Fault::Unasked("range"),
            _ => Fault::Pass,
        }
    })
    .await?;
    let short = Proxy::start(&registry.host(), |seen, before| {
        match (seen.target.contains("/blobs/"), before) {
            (true, 0) => Fault::EndAfter(100_000),
            _ => Fault::Pass,
        }
    })
    .await?;
    let client = client(options())?;
    for proxy in [&rangeless, &short] {
        let (repository, layer) = first_layer(&client, &proxy.host()).await?;
        assert!(read(client.layer(&repository, &layer)?).await? == bytes);
        assert_eq!(proxy.count(Method::GET, "/blobs/"), 2);
    }
    Ok(())
}

#[tokio::test]
async fn tries_are_bounded() -> Result<()> {
    let (registry, _) = with_image(&noise(300_000)).await?;
    let proxy = Proxy::start(&registry.host(), |seen, _| {
        match seen.target.contains("/blobs/") {
            true => Fault::CutAfter(10),
            false if seen.target.contains("/tags/") => Fault::HangUp,
            false => Fault::Pass,
        }
    })
    .await?;
    let client = client(options())?;
    let (repository, layer) = first_layer(&client, &proxy.host()).await?;
    let error = read(client.layer(&repository, &layer)?)
        .await
        .expect_err("it never comes");
    assert!(
        error.is_transient() && error.to_string().contains(&repository.to_string()),
        "{error}"
    );
    assert_eq!(proxy.count(Method::GET, "/blobs/"), 5);
    let error = client.tags(&repository).await.expect_err("it never comes");
    assert!(error.is_transient(), "{error}");
    // The scheme is known by now, so each try is one request; the HTTP client may send a request
    // once more where a kept connection turns out to be closed.
    assert!(
        (5..=10).contains(&proxy.count(Method::GET, "/tags/")),
        "{:?}",
        proxy.seen().len()
    );
    Ok(())
}

#[tokio::test]
async fn wrong_bytes_are_told_at_the_end_and_never_tried_again() -> Result<()> {
    let (registry, pushed) = with_image(&noise(50_000)).await?;
    let proxy = Proxy::start(&registry.host(), |seen, _| {
        let content = seen.target.contains("/blobs/") || seen.target.contains("/manifests/sha256");
        if content { Fault::Change } else { Fault::Pass }
    })
    .await?;
    let (client, stranger) = (client(options())?, client(options())?);
    let (repository, layer) = first_layer(&client, &proxy.host()).await?;
    let digest = pushed.digest.parse().expect("a digest");
    // Whoever has read it a moment ago does not ask again, and nobody else goes by that.
    let known = client.manifest(&repository.at(&digest)).await?;
    assert_eq!(known.digest, digest);
    assert_eq!(proxy.count(Method::GET, "/manifests/sha256"), 0);
    for error in [
        read(client.layer(&repository, &layer)?)
            .await
            .expect_err("a layer"),
        stranger
            .manifest(&repository.at(&digest))
            .await
            .expect_err("a manifest"),
        client
            .config(&repository, &layer)
            .await
            .expect_err("a configuration"),
    ] {
        assert!(matches!(error, Error::DigestMismatch { .. }), "{error}");
        assert!(!error.is_transient());
    }
    assert_eq!(proxy.count(Method::GET, "/blobs/"), 2);
    assert_eq!(proxy.count(Method::GET, "/manifests/sha256"), 1);
    Ok(())
}

#[tokio::test]
async fn trouble_that_passes_is_waited_out_and_refusals_are_not() -> Result<()> {
    let (registry, _) = with_image(b"layer").await?;
    let trouble = [
        StatusCode::INTERNAL_SERVER_ERROR,
        StatusCode::BAD_GATEWAY,
        StatusCode::TOO_MANY_REQUESTS,
    ];
    for status in trouble {
        let proxy = Proxy::start(&registry.host(), move |_, before| match before < 2 {
            true => Fault::Answer(status, vec![], "trouble".into()),
            false => Fault::Pass,
        })
        .await?;
        let reference = repository(&proxy.host(), "team/app").tagged("1")?;
        client(options())?.manifest(&reference).await?;
        assert_eq!(proxy.seen().len(), 3, "{status}");
    }
    let cut = Proxy::start(&registry.host(), |_, before| match before {
        0 => Fault::HangUp,
        1 => Fault::CutAfter(20),
        _ => Fault::Pass,
    })
    .await?;
    client(options())?
        .manifest(&repository(&cut.host(), "team/app").tagged("1")?)
        .await?;
    for (status, name) in [(403, "Denied"), (404, "NotFound"), (400, "Malformed")] {
        let refusal = StatusCode::from_u16(status)?;
        let proxy = Proxy::start(&registry.host(), move |_, _| {
            Fault::Answer(refusal, vec![], "{}".into())
        })
        .await?;
        let reference = repository(&proxy.host(), "team/app").tagged("1")?;
        let error = client(options())?
            .manifest(&reference)
            .await
            .expect_err("refused");
        assert!(
            format!("{error:?}").starts_with(name) && !error.is_transient(),
            "{error:?}"
        );
        assert_eq!(proxy.seen().len(), 1);
    }
    Ok(())
}

#[tokio::test]
async fn a_pause_that_a_host_asks_for_is_kept_by_every_call_to_it() -> Result<()> {
    let (registry, _) = with_image(b"layer").await?;
    for date in [false, true] {
        let told = Arc::new(AtomicUsize::new(0));
        let counter = told.clone();
        let proxy = Proxy::start(&registry.host(), move |_, _| {
            if counter.fetch_add(1, Ordering::SeqCst) > 0 {
                return Fault::Pass;
            }
            // A date has no fractions of a second, so one second could already be over.
            let when = SystemTime::now() + Duration::from_secs(3);
            let value = if date {
                httpdate::fmt_http_date(when)
            } else {
                "2".into()
            };
            Fault::Answer(
                StatusCode::TOO_MANY_REQUESTS,
                vec![("retry-after", value)],
                String::new(),
            )
        })
        .await?;
        let traffic = Traffic::default();
        let first = Client::new(options(), traffic.clone())?;
        let second = Client::new(options(), traffic.clone())?;
        let reference = repository(&proxy.host(), "team/app").tagged("1")?;
        let start = Instant::now();
        let told = async { first.resolve(&reference).await };
        let other = async {
            let pause =
                muster_testkit::wait::until_async("the pause", Duration::from_secs(20), || async {
                    Ok(traffic.pause_of(&proxy.host()))
                })
                .await?;
            let waited = Instant::now();
            second.resolve(&reference).await?;
            anyhow::Ok((waited.elapsed(), pause))
        };
        let (one, two) = futures::join!(told, other);
        one?;
        let (waited, pause) = two?;
        assert!(start.elapsed() >= Duration::from_millis(1900));
        assert!(
            waited >= pause.mul_f64(0.5),
            "the other waited {waited:?} of {pause:?} only"
        );
        assert_eq!(proxy.seen().len(), 3);
    }
    Ok(())
}

#[tokio::test]
async fn a_pause_beyond_our_patience_is_told_and_not_waited_for() -> Result<()> {
    let (registry, _) = with_image(b"layer").await?;
    let proxy = Proxy::start(&registry.host(), |_, _| {
        Fault::Answer(
            StatusCode::TOO_MANY_REQUESTS,
            vec![("retry-after", "3600".into())],
            String::new(),
        )
    })
    .await?;
    let client = client(options())?;
    let reference = repository(&proxy.host(), "team/app").tagged("1")?;
    for _ in 0..3 {
        let error = client.resolve(&reference).await.expect_err("an hour");
        assert!(
            error
                .retry_after()
                .is_some_and(|after| after > Duration::from_secs(3000)),
            "{error}"
        );
    }
    assert_eq!(proxy.seen().len(), 1, "the host is left alone");
    Ok(())
}

#[tokio::test]
async fn a_pause_without_end_is_an_error_of_the_call_and_ends_within_a_day() -> Result<()> {
    let day = Duration::from_secs(24 * 60 * 60);
    let busy = [
        StatusCode::TOO_MANY_REQUESTS,
        StatusCode::SERVICE_UNAVAILABLE,
    ];
    let values = [
        "18446744073709551615",
        "9223372036854775807",
        "99999999999999999999999999",
        "Fri, 31 Dec 9999 23:59:59 GMT",
    ];
    for (status, value, of_token_service) in busy
        .into_iter()
        .flat_map(|status| values.map(|value| (status, value)))
        .flat_map(|(status, value)| [(status, value, false), (status, value, true)])
    {
        // The proxy answers everything itself.
        let proxy = Proxy::start("127.0.0.1:1", move |seen, _| {
            if of_token_service && !seen.target.starts_with("/token") {
                let host = seen.headers["host"].to_str().unwrap_or_default();
                let wanted = format!("Bearer realm=\"http://{host}/token\"");
                let headers = vec![("www-authenticate", wanted)];
                return Fault::Answer(StatusCode::UNAUTHORIZED, headers, String::new());
            }
            let headers = vec![("retry-after", value.to_owned())];
            Fault::Answer(status, headers, String::new())
        })
        .await?;
        let traffic = Traffic::default();
        let client = Client::new(options(), traffic.clone())?;
        let error = client.ping(&host(&proxy.host())).await.expect_err("busy");
        let asked = error.retry_after().expect("a pause");
        assert!(
            asked <= day && asked > day / 2,
            "{status} {value} {asked:?}"
        );
        let paused = traffic
            .pause_of(&proxy.host())
            .or(traffic.pause_of("127.0.0.1"));
        let paused = paused.expect("a pause");
        assert!(paused <= day, "{status} {value} {paused:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_host_is_not_asked_more_at_once_than_allowed() -> Result<()> {
    let (registry, _) = with_image(b"layer").await?;
    let proxy = Proxy::start(&registry.host(), |_, _| Fault::Silence).await?;
    let mut quick = options();
    quick.timeouts = Timeouts {
        answer: Duration::from_millis(300),
        ..Timeouts::default()
    };
    quick.retry = Retry {
        attempts: 1,
        ..quick.retry
    };
    let client = Client::new(quick, Traffic::new(2, 1))?;
    let reference = repository(&proxy.host(), "team/app").tagged("1")?;
    let start = Instant::now();
    let outcomes = futures::future::join_all((0..6).map(|_| client.resolve(&reference))).await;
    // The very first request of a host may find out its scheme; three rounds of two follow.
    assert!(
        start.elapsed() >= Duration::from_millis(900),
        "{:?}",
        start.elapsed()
    );
    for outcome in outcomes {
        let error = outcome.expect_err("silence");
        assert!(error.is_transient(), "{error}");
    }
    Ok(())
}

#[tokio::test]
async fn a_registry_that_restarts_is_found_again() -> Result<()> {
    let bytes = noise(1 << 20);
    let (mut registry, pushed) = with_image(&bytes).await?;
    let mut patient = options();
    patient.retry = Retry {
        attempts: 100,
        ..patient.retry
    };
    let client = client(patient)?;
    let (repository, layer) = first_layer(&client, &registry.host()).await?;
    registry.kill9()?;
    let reader = tokio::spawn({
        let layer = client.layer(&repository, &layer)?;
        read(layer)
    });
    let resolver = tokio::spawn({
        let (client, reference) = (client.clone(), repository.tagged("1")?);
        async move { client.resolve(&reference).await }
    });
    let _running =
        tokio::task::spawn_blocking(move || registry.restart().map(|()| registry)).await??;
    assert!(reader.await?? == bytes);
    assert_eq!(resolver.await??.digest.as_str(), pushed.digest);
    Ok(())
}
