//! Updates from a real registry: what is transferred, from where, and what readers see meanwhile.

use crate::support::*;
use anyhow::Result;
use http::{Method, StatusCode};
use muster_advisories::{Error, Kind, Outcome};
use muster_testkit::proxy::{Fault, Proxy};
use muster_testkit::registry::Registry;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[tokio::test(flavor = "multi_thread")]
async fn an_update_goes_live_at_once_and_readers_keep_what_they_have() -> Result<()> {
    let registry = Registry::start()?;
    let first = push(&registry, "2", &[(LAYER, &archive("1.0"))]).await?;
    let proxy = Proxy::start(&registry.host(), |_, _| Fault::Pass).await?;
    let (_place, directory) = directory();
    assert!(matches!(directory.open(), Err(Error::Empty(_))));
    let update = from(&[&proxy.host()]);
    let outcome = directory.update(&update, &Deaf).await?;
    let Outcome::Updated { revision, .. } = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(revision, first.digest);
    let opened = directory.open()?;
    assert_eq!(opened.database.metadata().revision, first.digest);
    let updated = opened.database.metadata().updated_at.clone();
    assert_eq!(updated.as_deref(), Some("2026-01-02T03:04:05Z"));
    assert_eq!(fixed(&*opened.database), "1.0");
    assert!(!directory.is_stale(&opened)?);
    // What is there is not transferred again, unless asked to.
    assert!(matches!(
        directory.update(&update, &Deaf).await?,
        Outcome::Current { .. }
    ));
    assert_eq!(proxy.count(Method::GET, "/blobs/"), 1);
    let forced = muster_advisories::Update {
        force: true,
        ..update.clone()
    };
    assert!(matches!(
        directory.update(&forced, &Deaf).await?,
        Outcome::Updated { .. }
    ));
    assert_eq!(proxy.count(Method::GET, "/blobs/"), 2);
    // A new one goes live; who has the old one open keeps it until it looks again.
    push(&registry, "2", &[(LAYER, &archive("2.0"))]).await?;
    directory.update(&update, &Deaf).await?;
    assert!(directory.is_stale(&opened)?);
    assert_eq!(fixed(&*opened.database), "1.0");
    let again = directory.open()?;
    assert_eq!(fixed(&*again.database), "2.0");
    assert_ne!(again.revision, opened.revision);
    assert_eq!(files(directory.path()), ["metadata.json", "trivy.db"]);
    let info = directory.info()?;
    let part = &info.parts[0];
    assert_eq!(part.kind, Kind::Trivy);
    assert_eq!(part.revision, again.database.metadata().revision);
    assert_eq!(
        part.origin.as_deref(),
        Some(update.repositories[0].as_str())
    );
    assert!(part.downloaded_at.is_some() && part.size > 0);
    assert_eq!(part.summary.streams[0].name, "debian 12");
    assert_eq!(part.summary.vulnerabilities, 401);
    // Other readers of such directories find what they look for.
    let plain = muster_scan::vulnerability::trivy_db::TrivyDatabase::open(directory.path(), None)?;
    assert_eq!(fixed(&plain), "2.0");
    serde_json::to_string(&info)?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_repository_is_asked_and_each_failure_is_told() -> Result<()> {
    let registry = Registry::start()?;
    push(&registry, "2", &[(LAYER, &archive("1.0"))]).await?;
    let busy = Proxy::start(&registry.host(), |_, _| {
        let wait = vec![("retry-after", "3600".to_owned())];
        Fault::Answer(StatusCode::TOO_MANY_REQUESTS, wait, "{}".into())
    })
    .await?;
    let gone = Proxy::start(&registry.host(), |_, _| Fault::HangUp).await?;
    let (_place, directory) = directory();
    let update = from(&[&busy.host(), &gone.host(), &registry.host()]);
    let Outcome::Updated {
        repository,
        failures,
        ..
    } = directory.update(&update, &Deaf).await?
    else {
        panic!("not updated")
    };
    assert_eq!(repository, update.repositories[2]);
    let failed: Vec<_> = failures.iter().map(|one| one.repository.clone()).collect();
    assert_eq!(failed, update.repositories[..2]);
    let update = from(&[&busy.host(), &gone.host(), "no host"]);
    let error = directory
        .update(&update, &Deaf)
        .await
        .unwrap_err()
        .to_string();
    for repository in &update.repositories {
        assert!(error.contains(repository), "{error}");
    }
    assert_eq!(fixed_in(&directory), "1.0");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transfer_is_taken_up_where_it_broke() -> Result<()> {
    const CUT: usize = 40_000;
    let registry = Registry::start()?;
    let archive = archive("1.0");
    assert!(archive.len() > 3 * CUT, "{}", archive.len());
    push(&registry, "2", &[(LAYER, &archive)]).await?;
    let cutting = Proxy::start(&registry.host(), |seen, _| {
        match seen.target.contains("/blobs/") {
            true => Fault::CutAfter(CUT),
            false => Fault::Pass,
        }
    })
    .await?;
    let whole = Proxy::start(&registry.host(), |_, _| Fault::Pass).await?;
    let ranges = |proxy: &Proxy| -> Vec<String> {
        let seen = proxy.seen();
        let ranges = seen.iter().filter_map(|seen| seen.headers.get("range"));
        ranges
            .map(|range| range.to_str().unwrap().to_owned())
            .collect()
    };
    let (_place, directory) = directory();
    let error = directory
        .update(&from(&[&cutting.host()]), &Deaf)
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Repositories(_)), "{error}");
    let left = files(directory.path());
    assert!(left.len() == 1 && left[0].ends_with(".partial"), "{left:?}");
    let partial = directory.path().join(&left[0]);
    let kept = std::fs::read(&partial)?;
    assert!(kept.len() >= CUT && archive.starts_with(&kept));
    let outcome = directory.update(&from(&[&whole.host()]), &Deaf).await?;
    assert_eq!(ranges(&whole), [format!("bytes={}-", kept.len())]);
    let Outcome::Updated { transferred, .. } = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(transferred as usize, archive.len() - kept.len());
    assert_eq!(files(directory.path()), ["metadata.json", "trivy.db"]);
    // What was left may be damaged or too long: then it is begun anew.
    for wrong in [vec![0; CUT], vec![0; archive.len() + 1], archive.clone()] {
        std::fs::remove_file(directory.path().join("trivy.db"))?;
        std::fs::write(&partial, &wrong)?;
        let outcome = directory.update(&from(&[&whole.host()]), &Deaf).await?;
        assert!(matches!(outcome, Outcome::Updated { .. }));
        assert_eq!(fixed_in(&directory), "1.0");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn many_update_and_read_at_once() -> Result<()> {
    let registry = Registry::start()?;
    push(&registry, "2", &[(LAYER, &archive("1.0"))]).await?;
    let (_place, directory) = directory();
    directory.update(&from(&[&registry.host()]), &Deaf).await?;
    push(&registry, "2", &[(LAYER, &archive("2.0"))]).await?;
    let over = Arc::new(AtomicBool::new(false));
    let readers: Vec<_> = (0..2)
        .map(|_| {
            let (directory, over) = (directory.clone(), over.clone());
            std::thread::spawn(move || {
                let mut reads = 0;
                while !over.load(Ordering::Relaxed) || reads == 0 {
                    let opened = directory.open().unwrap();
                    let fixed = fixed(&*opened.database);
                    assert!(fixed == "1.0" || fixed == "2.0", "{fixed}");
                    // Data and note are of one piece.
                    let title = opened
                        .database
                        .vulnerability("CVE-2025-1")
                        .unwrap()
                        .unwrap();
                    assert_eq!(title.title, fixed);
                    reads += 1;
                }
            })
        })
        .collect();
    let updates: Vec<_> = (0..8)
        .map(|number| {
            let (directory, host) = (directory.clone(), registry.host());
            tokio::spawn(async move {
                let mut update = from(&[&host]);
                update.force = number % 2 == 0;
                directory.update(&update, &Deaf).await
            })
        })
        .collect();
    for update in updates {
        update.await??;
    }
    over.store(true, Ordering::Relaxed);
    for reader in readers {
        reader.join().unwrap();
    }
    assert_eq!(fixed_in(&directory), "2.0");
    assert_eq!(files(directory.path()), ["metadata.json", "trivy.db"]);
    Ok(())
}
