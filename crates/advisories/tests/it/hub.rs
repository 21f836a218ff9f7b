//! VEX hubs over HTTP: fetched when due, kept whole, asked about the packages at hand.

use crate::support::*;
use anyhow::Result;
use http::StatusCode;
use muster_advisories::hub::{Fetch, Fetched, Hubs};
use muster_scan::image::Component;
use muster_scan::package::{Detector, Package};
use muster_scan::report::{Report, ReportFinding, ReportResult};
use muster_scan::sbom::Bill;
use muster_testkit::proxy::{Fault, Proxy};
use serde_json::json;
use std::sync::{Arc, Mutex};

/// What the web server has at the moment.
#[derive(Clone, Default)]
struct Site {
    archive: String,
    tag: String,
    interval: String,
    broken: bool,
}

async fn serve(site: Arc<Mutex<Site>>) -> Result<Proxy> {
    // The proxy answers by itself, and nobody is behind it.
    Proxy::start("127.0.0.1:1", move |seen, _| {
        let site = site.lock().unwrap().clone();
        let host = seen.headers["host"].to_str().unwrap();
        let path = seen.target.as_str();
        if site.broken {
            return Fault::Answer(StatusCode::INTERNAL_SERVER_ERROR, Vec::new(), String::new());
        }
        match path {
            "/vex/.well-known/vex-repository.json" => {
                let manifest = json!({"name": "hub", "versions": {"v0": {"spec_version": "v0.1",
                    "locations": [{"url": format!("http://{host}/gone.tar")}, {"url": format!("http://{host}/archive.tar//main")}],
                    "update_interval": site.interval}}});
                Fault::Answer(StatusCode::OK, Vec::new(), manifest.to_string())
            }
            "/archive.tar" => {
                let etag = vec![("etag", site.tag.clone())];
                match seen.headers.get("if-none-match") {
                    Some(tag) if tag.to_str().unwrap() == site.tag => {
                        Fault::Answer(StatusCode::NOT_MODIFIED, etag, String::new())
                    }
                    _ => Fault::Answer(StatusCode::OK, etag, site.archive),
                }
            }
            _ => Fault::Answer(StatusCode::NOT_FOUND, Vec::new(), String::new()),
        }
    })
    .await
}

fn archive(status: &str) -> String {
    let index = json!({"updated_at": "2026-01-01T00:00:00Z", "packages": [
        {"id": "pkg:npm/lodash", "location": "pkg/npm/lodash/vex.json"}]});
    let document = json!({"@context": "https://openvex.dev/ns/v0.2.0", "timestamp": "2026-01-01T00:00:00Z",
        "statements": [{"vulnerability": {"name": "CVE-1"}, "products": [{"@id": "pkg:npm/lodash"}], "status": status}]});
    let bytes = tar(&[
        ("main/index.json", index.to_string().as_bytes()),
        (
            "main/pkg/npm/lodash/vex.json",
            document.to_string().as_bytes(),
        ),
    ]);
    String::from_utf8(bytes).unwrap()
}

fn bill() -> Bill {
    Bill {
        components: vec![Component {
            detector: Detector::NodePackage,
            package: Package::new("lodash", "4.17.20"),
            path: "package.json".into(),
            layer: None,
        }],
        ..Bill::default()
    }
}

fn suppressed(hubs: &Hubs, names: &[String]) -> Result<u64> {
    let said = hubs.open(names)?.statements(&bill(), None)?;
    assert_eq!(said.problems, Vec::<String>::new());
    let finding = ReportFinding {
        cve: "CVE-1".into(),
        purl: "pkg:npm/lodash@4.17.20".into(),
        severity: "HIGH".into(),
        ..ReportFinding::default()
    };
    let mut report = Report {
        results: vec![ReportResult {
            vulnerabilities: vec![finding],
            ..ReportResult::default()
        }],
        ..Report::default()
    };
    said.statements.apply(&mut report, None);
    Ok(report.summary.suppressed as u64)
}

#[tokio::test]
async fn a_hub_is_fetched_when_due_and_kept_when_broken() -> Result<()> {
    let site = Arc::new(Mutex::new(Site {
        archive: archive("not_affected"),
        tag: "\"one\"".into(),
        interval: "24h".into(),
        broken: false,
    }));
    let server = serve(site.clone()).await?;
    let place = tempfile::tempdir()?;
    let hubs = Hubs::new(place.path().join("vex"));
    let hub = format!("http://{}/vex", server.host());
    let names = [hub.clone()];
    assert!(hubs.open(&names).is_err());
    let fetch = Fetch::default();
    assert_eq!(hubs.fetch(&hub, &fetch, &Deaf).await?, Fetched::Updated);
    assert_eq!(suppressed(&hubs, &names)?, 1);
    let first = hubs.open(&names)?.revision().to_owned();
    // Not due: nobody is asked.
    let before = server.seen().len();
    assert_eq!(hubs.fetch(&hub, &fetch, &Deaf).await?, Fetched::Fresh);
    assert_eq!(server.seen().len(), before);
    // Due, and nothing new.
    let age = |hubs_directory: &std::path::Path| -> Result<()> {
        for entry in std::fs::read_dir(hubs_directory)? {
            std::fs::File::open(entry?.path())?.set_modified(std::time::SystemTime::UNIX_EPOCH)?;
        }
        Ok(())
    };
    let directory = place.path().join("vex");
    age(&directory)?;
    assert_eq!(hubs.fetch(&hub, &fetch, &Deaf).await?, Fetched::Unchanged);
    assert_eq!(hubs.fetch(&hub, &fetch, &Deaf).await?, Fetched::Fresh);
    assert_eq!(hubs.open(&names)?.revision(), first);
    // Due, and broken: what is here stays.
    site.lock().unwrap().broken = true;
    age(&directory)?;
    assert!(hubs.fetch(&hub, &fetch, &Deaf).await.is_err());
    assert_eq!(suppressed(&hubs, &names)?, 1);
    {
        let mut site = site.lock().unwrap();
        (site.broken, site.archive, site.tag) = (false, "no archive".into(), "\"two\"".into());
    }
    assert!(hubs.fetch(&hub, &fetch, &Deaf).await.is_err());
    assert_eq!(suppressed(&hubs, &names)?, 1);
    // Another archive, another word.
    site.lock().unwrap().archive = archive("affected");
    assert_eq!(hubs.fetch(&hub, &fetch, &Deaf).await?, Fetched::Updated);
    assert_eq!(suppressed(&hubs, &names)?, 0);
    assert_ne!(hubs.open(&names)?.revision(), first);
    let forced = Fetch {
        force: true,
        ..Fetch::default()
    };
    assert_eq!(hubs.fetch(&hub, &forced, &Deaf).await?, Fetched::Updated);
    assert_eq!(files(&directory).len(), 1);
    Ok(())
}

#[tokio::test]
async fn only_secure_addresses_are_asked() -> Result<()> {
    let place = tempfile::tempdir()?;
    let hubs = Hubs::new(place.path().into());
    for hub in [
        "http://example.org",
        "ftp://example.org",
        "file:///etc/passwd",
        "nothing",
    ] {
        let error = hubs.fetch(hub, &Fetch::default(), &Deaf).await.unwrap_err();
        assert!(error.to_string().contains(hub), "{error}");
    }
    Ok(())
}
