//! The workloads' reports: computed from Images and VulnerabilityReports, and changed with them.

use super::*;
use muster_api::link;
use muster_apiserver::store::{Detail, EventType};

const WORKLOADS: &str = "workloadscanreports.storage.sbomscanner.kubewarden.io";
const IMAGES: &str = "images.storage.sbomscanner.kubewarden.io";
const REPORTS: &str = "vulnerabilityreports.storage.sbomscanner.kubewarden.io";

/// A report of a workload in namespace `web` whose containers run these tags.
fn workload(name: &str, tags: &[&str]) -> Thing {
    let mut thing = Thing::new("web", name).of(WORKLOADS);
    let containers = tags.iter().map(|tag| {
        json!({"name": tag, "imageRef": {
            "registry": "hub", "namespace": "art", "repository": "app", "tag": tag,
        }})
    });
    thing.tree["spec"] = json!({"containers": containers.collect::<Vec<_>>()});
    thing.index.links = link::asked(&thing.tree).into_iter().collect();
    thing
}

/// One platform of a tag, in namespace `art`.
fn image(tag: &str, platform: &str) -> Thing {
    about(tag, platform).of(IMAGES)
}

fn about(tag: &str, platform: &str) -> Thing {
    let mut thing = Thing::new("art", &format!("{tag}-{platform}"));
    thing.tree["imageMetadata"] = json!({
        "registry": "hub", "repository": "app", "tag": tag,
        "digest": format!("sha256:{tag}{platform}"),
    });
    thing.index.links = link::answered(&thing.tree).into_iter().collect();
    thing
}

/// What was found in it: identifiers, all of high severity; those with an exclamation mark are
/// suppressed.
fn findings(tag: &str, platform: &str, found: &[&str]) -> Thing {
    let list: Vec<Value> = found
        .iter()
        .map(|cve| {
            json!({
                "cve": cve.trim_end_matches('!'), "packageName": "p", "installedVersion": "1",
                "severity": "HIGH", "suppressed": cve.ends_with('!'),
            })
        })
        .collect();
    let results = json!([{"target": "t", "vulnerabilities": list}]).to_string();
    about(tag, platform).of(REPORTS).blob(&results.into())
}

/// The report as it is read now.
async fn read(store: &Shared, name: &str) -> Value {
    let stored = store.get(&resource(WORKLOADS), &key("web", name)).await;
    let stored = stored.unwrap().unwrap();
    let bodies = vec![stored.body];
    let computed = store
        .compute(&resource(WORKLOADS), bodies.clone(), Detail::Full)
        .await
        .unwrap();
    let brief = store
        .compute(&resource(WORKLOADS), bodies, Detail::Brief)
        .await
        .unwrap();
    let tree = computed[0].tree(stored.revision);
    let brief = brief[0].tree(0);
    assert_eq!(brief["summary"], tree["summary"]);
    assert_eq!(brief["status"], tree["status"]);
    tree
}

fn statuses(report: &Value) -> Vec<&str> {
    let statuses = report["status"]["containerStatuses"].as_array().unwrap();
    let status = statuses
        .iter()
        .map(|one| one["scanStatus"].as_str().unwrap());
    status.collect()
}

/// A workload with an image of its own and one that every tenth shares.
pub(crate) async fn sample(store: &Shared, number: usize) {
    let (own, shared) = (format!("own{number}"), format!("shared{}", number % 10));
    workload(&format!("w{number}"), &[&own, &shared])
        .create(store)
        .await;
    image(&own, "amd").create(store).await;
    findings(&own, "amd", &["CVE-1"]).create(store).await;
}

/// All that is done with computed reports.
pub(crate) async fn everything(store: &Shared, round: u64) {
    let (tag, cve) = (format!("shared{}", round % 10), format!("CVE-{round}"));
    let platform = format!("round{round}");
    let image = image(&tag, &platform);
    let made = image.create(store).await;
    let found = findings(&tag, &platform, &[&cve]);
    let revision = found.create(store).await;
    let revision = found.clone().label("a", "b").update(store, revision).await;
    let listed = ListQuery {
        resource: resource(WORKLOADS),
        limit: 50,
        ..all()
    };
    let page = store.list(listed).await.unwrap();
    let bodies: Vec<Body> = page.items.into_iter().map(|item| item.body).collect();
    for detail in [Detail::Brief, Detail::Full] {
        let computed = store
            .compute(&resource(WORKLOADS), bodies.clone(), detail)
            .await;
        assert_eq!(computed.unwrap().len(), bodies.len());
    }
    found.delete(store, revision).await;
    image.delete(store, made).await;
}

pub(crate) async fn a_report_follows_its_images_and_their_findings(store: Shared) {
    let report = workload("deployment-web", &["1", "2"]);
    report.create(&store).await;
    let found = read(&store, "deployment-web").await;
    assert_eq!(statuses(&found), ["WaitingForScan", "WaitingForScan"]);
    assert_eq!(found["summary"]["high"], 0);

    let images = [image("1", "amd"), image("1", "arm")];
    for image in &images {
        image.create(&store).await;
    }
    let found = read(&store, "deployment-web").await;
    assert_eq!(statuses(&found), ["ScanInProgress", "WaitingForScan"]);

    let amd = findings("1", "amd", &["CVE-1", "CVE-2"]);
    let first = amd.create(&store).await;
    let found = read(&store, "deployment-web").await;
    assert_eq!(statuses(&found)[0], "ScanInProgress");
    assert_eq!(found["summary"]["high"], 2);

    // What two platforms share is counted once.
    let arm = findings("1", "arm", &["CVE-2", "CVE-3"]);
    let second = arm.create(&store).await;
    let found = read(&store, "deployment-web").await;
    assert_eq!(statuses(&found), ["ScanComplete", "WaitingForScan"]);
    assert_eq!(found["summary"]["high"], 3);
    let quoted = found["containers"][0]["vulnerabilityReports"]
        .as_array()
        .unwrap();
    assert_eq!(quoted.len(), 2);
    assert_eq!(quoted[0]["imageMetadata"]["digest"], "sha256:1amd");

    // Findings that were not sent again are still counted; other ones replace them.
    let mut kept = amd.clone().label("a", "b");
    kept.blobs.clear();
    let first = kept.update(&store, first).await;
    assert_eq!(read(&store, "deployment-web").await["summary"]["high"], 3);
    let fewer = findings("1", "arm", &["CVE-2"]);
    let second = fewer.update(&store, second).await;
    assert_eq!(read(&store, "deployment-web").await["summary"]["high"], 2);

    // A report that is about another image now counts there, and no longer here.
    let mut moved = findings("2", "amd", &["CVE-9"]);
    moved.key = kept.key.clone();
    let first = moved.update(&store, first).await;
    let found = read(&store, "deployment-web").await;
    assert_eq!(found["summary"]["high"], 2);
    assert_eq!(statuses(&found), ["ScanInProgress", "WaitingForScan"]);

    moved.delete(&store, first).await;
    fewer.delete(&store, second).await;
    let found = read(&store, "deployment-web").await;
    assert_eq!(found["summary"]["high"], 0);
    assert_eq!(found["containers"][0]["vulnerabilityReports"], json!([]));
    for image in &images {
        let revision = store.get(&image.resource, &image.key).await;
        image
            .delete(&store, revision.unwrap().unwrap().revision)
            .await;
    }
    let found = read(&store, "deployment-web").await;
    assert_eq!(statuses(&found), ["WaitingForScan", "WaitingForScan"]);
}

pub(crate) async fn a_change_of_an_image_is_one_of_every_report_it_is_in(store: Shared) {
    let workloads = resource(WORKLOADS);
    let mut hint = store.hint(&workloads);
    workload("a", &["1", "1", "2"]).create(&store).await;
    workload("b", &["2"]).create(&store).await;
    let untouched = workload("c", &["3"]).create(&store).await;
    let start = store.revision(&workloads).await.unwrap();

    let made = image("1", "amd").create(&store).await;
    // That somebody has noted something on an Image is none of the reports' business.
    let noted = image("1", "amd").label("a", "b");
    noted.update(&store, made).await;
    let shared = findings("2", "amd", &["CVE-1"]).create(&store).await;
    findings("4", "amd", &["CVE-1"]).create(&store).await;
    findings("2", "amd", &[]).update(&store, shared).await;

    let events = store.events(&workloads, start, 100).await.unwrap();
    let seen: Vec<_> = events
        .iter()
        .map(|event| (event.revision - start, event.event, event.key.name.as_str()))
        .collect();
    let modified = EventType::Modified;
    assert_eq!(
        seen,
        [
            (1, modified, "a"),
            (2, modified, "a"),
            (3, modified, "b"),
            (4, modified, "a"),
            (5, modified, "b")
        ]
    );
    for event in &events {
        assert_eq!(event.before.as_ref(), Some(&event.body));
    }
    assert_eq!(store.revision(&workloads).await.unwrap(), start + 5);
    assert_eq!(*hint.borrow_and_update(), start + 5);
    let found = store.get(&workloads, &key("web", "c")).await.unwrap();
    assert_eq!(found.unwrap().revision, untouched);
    let listed = ListQuery {
        resource: workloads.clone(),
        ..all()
    };
    let listed = store.list(listed).await.unwrap();
    let revisions: Vec<u64> = listed.items.iter().map(|item| item.revision).collect();
    assert_eq!(revisions, [start + 4, start + 5, untouched]);

    // Whoever read the report before its image changed has read another report.
    let stale = workload("b", &["2"]).write(Expect::Revision(start));
    assert!(matches!(
        store.write(stale).await,
        Err(StoreError::Conflict)
    ));
    workload("b", &["5"]).update(&store, start + 5).await;
    findings("2", "arm", &[]).create(&store).await;
    let events = store.events(&workloads, start + 6, 100).await.unwrap();
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].key.name, "a");
}

pub(crate) async fn findings_written_at_once_are_all_counted(store: Shared) {
    workload("a", &["1"]).create(&store).await;
    let start = store.revision(&resource(WORKLOADS)).await.unwrap();
    let writers: Vec<_> = (0..16)
        .map(|number| {
            let store = store.clone();
            tokio::spawn(async move {
                let (platform, cve) = (format!("p{number}"), format!("CVE-{number}"));
                image("1", &platform).create(&store).await;
                findings("1", &platform, &[&cve, "CVE-0"])
                    .create(&store)
                    .await;
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let found = read(&store, "a").await;
    assert_eq!(found["summary"]["high"], 16);
    assert_eq!(statuses(&found), ["ScanComplete"]);
    let events = store
        .events(&resource(WORKLOADS), start, 100)
        .await
        .unwrap();
    let revisions: Vec<u64> = events.iter().map(|event| event.revision).collect();
    assert_eq!(revisions, (start + 1..=start + 32).collect::<Vec<_>>());
}

pub(crate) async fn findings_of_another_shape_count_nothing(store: Shared) {
    workload("a", &["1"]).create(&store).await;
    let odd = about("1", "amd")
        .of(REPORTS)
        .blob(&Bytes::from_static(b"{\"no\":[]}"));
    odd.create(&store).await;
    let none = about("1", "arm").of(REPORTS);
    none.create(&store).await;
    assert_eq!(read(&store, "a").await["summary"]["unknown"], 0);
}

pub(crate) async fn what_has_to_be_mended_twice_counts_twice(store: Shared) {
    let platforms = ["amd", "arm"];
    for (tag, found) in [
        ("same", [&["CVE-1"][..], &["CVE-1"]]),
        ("apart", [&["CVE-1"], &["CVE-2"]]),
        ("half", [&["CVE-1!"], &["CVE-1"]]),
        ("quiet", [&["CVE-1!"], &["CVE-1!"]]),
    ] {
        for (platform, found) in platforms.iter().zip(found) {
            image(tag, platform).create(&store).await;
            findings(tag, platform, found).create(&store).await;
        }
    }
    for (name, tags, high, suppressed) in [
        // Once for all platforms of a container.
        ("platforms", &["same"][..], 1, 0),
        ("differing", &["apart"], 2, 0),
        // For each container, whether or not it runs what another one does.
        ("twice", &["same", "same"], 2, 0),
        ("both", &["same", "apart"], 3, 0),
        // What is suppressed on one platform only is to be mended, and is suppressed.
        ("half", &["half"], 1, 1),
        ("quiet", &["quiet"], 0, 1),
        ("all", &["same", "apart", "half", "quiet"], 4, 2),
    ] {
        workload(name, tags).create(&store).await;
        let summary = read(&store, name).await["summary"].clone();
        let counted = (&summary["high"], &summary["suppressed"]);
        assert_eq!(counted, (&json!(high), &json!(suppressed)), "{name}");
    }
}

pub(crate) async fn every_step_of_a_scan_is_an_event(store: Shared) {
    let workloads = resource(WORKLOADS);
    let mut last = workload("a", &["1"]).create(&store).await;
    let (amd, arm) = (image("1", "amd"), image("1", "arm"));
    let (in_amd, in_arm) = (findings("1", "amd", &["CVE-1"]), findings("1", "arm", &[]));
    for (thing, comes, status) in [
        (&amd, true, "ScanInProgress"),
        (&in_amd, true, "ScanComplete"),
        (&arm, true, "ScanInProgress"),
        (&in_arm, true, "ScanComplete"),
        (&in_amd, false, "ScanInProgress"),
        (&amd, false, "ScanComplete"),
        (&arm, false, "WaitingForScan"),
        (&in_arm, false, "WaitingForScan"),
    ] {
        match comes {
            true => drop(thing.create(&store).await),
            false => {
                let stored = store.get(&thing.resource, &thing.key).await;
                let revision = stored.unwrap().unwrap().revision;
                thing.delete(&store, revision).await;
            }
        }
        let events = store.events(&workloads, last, 10).await.unwrap();
        let [event] = &events[..] else {
            panic!("one event when {:?} changes: {events:?}", thing.key)
        };
        assert_eq!(
            (event.revision, event.event),
            (last + 1, EventType::Modified)
        );
        last = event.revision;
        let computed = store.compute(&workloads, vec![event.body.clone()], Detail::Full);
        let seen = computed.await.unwrap()[0].tree(last);
        assert_eq!(statuses(&seen), [status], "{:?}", thing.key);
        assert_eq!(statuses(&read(&store, "a").await), [status]);
    }
}

pub(crate) async fn what_stands_in_the_way_of_a_scan_is_told_until_it_is_done(store: Shared) {
    let mut report = workload("a", &["1", "2"]);
    report.tree["spec"]["containers"][0]["message"] = json!("the registry does not have it");
    report.create(&store).await;
    let messages = async || {
        let report = read(&store, "a").await;
        let statuses = report["status"]["containerStatuses"].as_array().unwrap();
        let messages = statuses.iter().map(|status| status["message"].clone());
        messages.collect::<Vec<_>>()
    };
    let told = [json!("the registry does not have it"), Value::Null];
    assert_eq!(messages().await, told);
    image("1", "amd").create(&store).await;
    assert_eq!(messages().await, told);
    findings("1", "amd", &[]).create(&store).await;
    assert_eq!(messages().await, [Value::Null, Value::Null]);
}

/// How many reports one change of one image concerns; more than two portions.
const MANY: usize = 1100;

/// Makes many reports that share an image, and says where their log then ends.
pub(crate) async fn crowd(store: &Shared) -> u64 {
    for piece in (0..MANY).collect::<Vec<_>>().chunks(100) {
        let made = piece.iter().map(|number| {
            let report = workload(&format!("w{number:04}"), &["1", "2"]);
            let store = store.clone();
            async move { report.create(&store).await }
        });
        futures::future::join_all(made).await;
    }
    store.revision(&resource(WORKLOADS)).await.unwrap()
}

/// Changes the image that a crowd shares.
pub(crate) async fn stir(store: &Shared) {
    image("1", "amd").create(store).await;
}

/// Waits until every report of a crowd was told once of a change, in order.
pub(crate) async fn assert_told_once(store: &Shared, mut after: u64) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    let mut told = Vec::new();
    while told.len() < MANY {
        assert!(
            std::time::Instant::now() < deadline,
            "{} were told",
            told.len()
        );
        for event in store
            .events(&resource(WORKLOADS), after, 100)
            .await
            .unwrap()
        {
            assert_eq!(
                (event.revision, event.event),
                (after + 1, EventType::Modified)
            );
            after = event.revision;
            told.push(event.key.name);
        }
        tokio::task::yield_now().await;
    }
    told.sort();
    told.dedup();
    assert_eq!(told.len(), MANY);
    assert_eq!(store.revision(&resource(WORKLOADS)).await.unwrap(), after);
}

/// Changes the last report of a crowd by itself.
pub(crate) async fn change_last(store: &Shared) {
    let report = workload(&format!("w{:04}", MANY - 1), &["1", "2"]);
    let stored = store.get(&resource(WORKLOADS), &report.key).await;
    let revision = stored.unwrap().unwrap().revision;
    report.label("a", "b").update(store, revision).await;
}

pub(crate) async fn a_change_reaches_any_number_of_reports_once(store: Shared) {
    let before = crowd(&store).await;
    stir(&store).await;
    // The first are told in the very transaction.
    let now = store.revision(&resource(WORKLOADS)).await.unwrap();
    assert!(now >= before + 500, "{before} {now}");
    assert_told_once(&store, before).await;
    let last = store.revision(&resource(WORKLOADS)).await.unwrap();
    findings("1", "amd", &["CVE-1"]).create(&store).await;
    assert_told_once(&store, last).await;
    assert_eq!(read(&store, "w0999").await["summary"]["high"], 1);
}

pub(crate) async fn objects_without_links_are_found_until_they_have_them(store: Shared) {
    let unlinked = async |resource_name: &str| {
        let found = store.unlinked(&resource(resource_name)).await.unwrap();
        found.into_iter().map(|key| key.name).collect::<Vec<_>>()
    };
    for name in [IMAGES, REPORTS, WORKLOADS] {
        assert_eq!(unlinked(name).await, [""; 0], "{name}");
    }
    let linked = image("1", "amd");
    let mut old = linked.clone();
    old.index.links.clear();
    let revision = old.create(&store).await;
    image("2", "amd").create(&store).await;
    findings("1", "amd", &["CVE-1"]).create(&store).await;
    workload("deployment-web", &["1"]).create(&store).await;
    assert_eq!(unlinked(IMAGES).await, ["1-amd"]);
    assert_eq!(unlinked(REPORTS).await, [""; 0]);
    assert_eq!(unlinked(WORKLOADS).await, [""; 0]);

    linked.update(&store, revision).await;
    assert_eq!(unlinked(IMAGES).await, [""; 0]);
}
