//! Requests and answers that are much larger than their text, through a server on a real store: bodies that
//! would be large trees are refused, and large reports are sent in small pieces.

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{Method, Request, StatusCode, header};
use http_body_util::BodyExt;
use muster_apiserver::identity::{Identity, OwnerOnly};
use muster_apiserver::respond::{Answer, full};
use muster_apiserver::{Parts, Server, Upkeep};
use muster_store::{Options, SqliteStore};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::sync::Arc;
use tempfile::TempDir;

const STORAGE: &str = "storage.sbomscanner.kubewarden.io/v1alpha1";
const REPORTS: &str =
    "/apis/storage.sbomscanner.kubewarden.io/v1alpha1/namespaces/default/workloadscanreports";
const FINDINGS: &str =
    "/apis/storage.sbomscanner.kubewarden.io/v1alpha1/namespaces/default/vulnerabilityreports";
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const JSON: &str = "application/json";
/// No piece of an answer is larger.
const PIECE: usize = 128 * 1024;

/// A server, the store it is on, and its directory.
struct World {
    server: Arc<Server>,
    store: Arc<SqliteStore>,
    _directory: TempDir,
}

impl World {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(Options::new(directory.path())).await;
        let store = Arc::new(store.unwrap());
        let mut kinds = muster_api::builtin::builtin();
        kinds.extend(muster_api::kinds());
        let server = Server::new(Parts {
            kinds,
            store: store.clone(),
            authenticators: Vec::new(),
            authorizer: Arc::new(OwnerOnly),
            admissions: Vec::new(),
            pages: Vec::new(),
            protobuf: muster_api::builtin::protobuf::decode,
            version: json!({}),
            upkeep: Upkeep::default(),
            checks: Vec::new(),
            counters: None,
        });
        let world = World {
            server,
            store,
            _directory: directory,
        };
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}});
        world.create("/api/v1/namespaces", &namespace).await;
        world
    }

    /// A request, with headers as `name: value` in lines.
    async fn ask(&self, method: Method, path: &str, headers: &str, body: Bytes) -> Answer {
        let mut request = Request::new(full(body));
        *request.method_mut() = method;
        *request.uri_mut() = path.parse().unwrap();
        for line in headers.lines() {
            let (name, value) = line.split_once(": ").unwrap();
            let name: header::HeaderName = name.parse().unwrap();
            request.headers_mut().insert(name, value.parse().unwrap());
        }
        let owner = Identity::new("owner", &["system:masters"]);
        request.extensions_mut().insert(owner);
        self.server.handle(request).await
    }

    async fn get(&self, path: &str) -> Answer {
        self.ask(Method::GET, path, "", Bytes::new()).await
    }

    async fn create(&self, path: &str, object: &Value) -> Answer {
        let body = object.to_string().into();
        let answer = self.ask(Method::POST, path, "", body).await;
        assert_eq!(answer.status(), 201, "{path}");
        answer
    }

    async fn end(self) {
        self.server.shut_down().await;
        self.store.close().await.unwrap();
    }
}

async fn read(answer: Answer) -> Bytes {
    answer.into_body().collect().await.unwrap().to_bytes()
}

async fn value(answer: Answer) -> Value {
    serde_json::from_slice(&read(answer).await).unwrap()
}

fn gzip(text: &str) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap().into()
}

/// A list of zeros in JSON.
fn zeros(count: usize) -> String {
    format!("[{}0]", "0,".repeat(count - 1))
}

fn container(name: &str) -> Value {
    json!({"name": name, "imageRef": {
        "registry": "hub", "namespace": "default", "repository": "app", "tag": "1",
    }})
}

fn report(name: &str, containers: usize) -> Value {
    json!({
        "apiVersion": STORAGE, "kind": "WorkloadScanReport", "metadata": {"name": name},
        "spec": {"containers": vec![container("app"); containers]},
    })
}

/// What was found in the image of the containers, about so many bytes.
fn findings(name: &str, bytes: usize) -> Value {
    let one = json!({
        "cve": "CVE-2026-1", "packageName": "p", "installedVersion": "1", "severity": "HIGH",
        "title": "x".repeat(1000),
    });
    let list = vec![one; bytes / 1000];
    json!({
        "apiVersion": STORAGE, "kind": "VulnerabilityReport", "metadata": {"name": name},
        "imageMetadata": {"registry": "hub", "repository": "app", "tag": "1", "digest": name},
        "report": {
            "summary": {"critical": 0, "high": 1, "medium": 0, "low": 0, "unknown": 0, "suppressed": 0},
            "results": [{"target": "t", "vulnerabilities": list}],
        },
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_small_body_that_would_be_a_large_tree_is_refused() {
    let world = World::new().await;
    world.create(REPORTS, &report("there", 1)).await;
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "there"}});
    world.create(CONFIG_MAPS, &map).await;
    let there = format!("{REPORTS}/there");
    let apply = format!("{there}?fieldManager=m");
    let map = format!("{CONFIG_MAPS}/there");
    let head = format!(
        r#""apiVersion":"{STORAGE}","kind":"WorkloadScanReport","metadata":{{"name":"there"}}"#
    );
    // 50 million values: 100 MB of text in 100 kB.
    let many = zeros(50_000_000);
    let object = format!(r#"{{{head},"spec":{{"containers":[]}},"x":{many}}}"#);
    let packed = gzip(&object);
    assert!(packed.len() < 1_000_000, "{}", packed.len());
    let lists = format!("[{}0]", "[0],".repeat(700_000));
    let yaml = format!("apiVersion: {STORAGE}\nkind: WorkloadScanReport\nx: {lists}\n");
    let plain = |text: String| Bytes::from(text);
    for (what, method, path, media, body) in [
        ("POST", Method::POST, REPORTS, JSON, packed.clone()),
        ("PUT", Method::PUT, &there, JSON, packed.clone()),
        (
            "merge patch",
            Method::PATCH,
            &there,
            "application/merge-patch+json",
            packed.clone(),
        ),
        (
            "apply",
            Method::PATCH,
            &apply,
            "application/apply-patch+yaml",
            packed.clone(),
        ),
        (
            "JSON patch",
            Method::PATCH,
            &there,
            "application/json-patch+json",
            gzip(&format!(
                r#"[{{"op":"add","path":"/spec/x","value":{many}}}]"#
            )),
        ),
        (
            "POST of YAML",
            Method::POST,
            REPORTS,
            "application/yaml",
            gzip(&yaml),
        ),
        (
            "apply of YAML",
            Method::PATCH,
            &apply,
            "application/apply-patch+yaml",
            gzip(&yaml),
        ),
        (
            "strategic merge patch",
            Method::PATCH,
            &map,
            "application/strategic-merge-patch+json",
            plain(format!(r#"{{"x":{lists}}}"#)),
        ),
        (
            "options",
            Method::DELETE,
            &map,
            JSON,
            plain(format!(
                r#"{{"kind":"DeleteOptions","apiVersion":"v1","x":{lists}}}"#
            )),
        ),
    ] {
        let mut headers = format!("content-type: {media}");
        if body.starts_with(&[0x1f, 0x8b]) {
            headers += "\ncontent-encoding: gzip";
        }
        let answer = world.ask(method, path, &headers, body).await;
        assert_eq!(answer.status(), StatusCode::PAYLOAD_TOO_LARGE, "{what}");
        let status = value(answer).await;
        assert_eq!(status["kind"], "Status", "{what}");
        assert_eq!(status["reason"], "RequestEntityTooLarge", "{what}");
        assert_eq!(status["code"], 413, "{what}");
        let message = status["message"].as_str().unwrap();
        assert!(
            message.contains("split it into several objects"),
            "{what}: {message}"
        );
    }

    // What is computed is skipped, however large it is.
    let object = format!(
        r#"{{{head},"spec":{{"containers":[]}},"containers":{many},"status":{many},"summary":7}}"#,
        many = zeros(20_000_000)
    );
    let headers = "content-type: application/json\ncontent-encoding: gzip";
    let patch = "content-type: application/merge-patch+json\ncontent-encoding: gzip";
    for (method, headers) in [(Method::PATCH, patch), (Method::PUT, headers)] {
        let current = value(world.get(&there).await).await;
        let revision = &current["metadata"]["resourceVersion"];
        let named = format!(r#"{{"name":"there","resourceVersion":{revision}}}"#);
        let object = object.replace(r#"{"name":"there"}"#, &named);
        let answer = world.ask(method, &there, headers, gzip(&object)).await;
        assert_eq!(answer.status(), 200);
        let warning = answer.headers()[header::WARNING].to_str().unwrap();
        let ignored = "what was sent of status, summary and containers is ignored";
        assert!(warning.contains(ignored), "{warning}");
        assert_eq!(value(answer).await["spec"]["containers"], json!([]));
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_kept_of_a_report_is_limited() {
    let world = World::new().await;
    let full = report("full", 500);
    world.create(REPORTS, &full).await;
    let body = report("more", 501).to_string().into();
    let refused = world.ask(Method::POST, REPORTS, "", body).await;
    assert_eq!(refused.status(), 422);
    let message = value(refused).await["message"].to_string();
    assert!(message.contains("must have at most 500 items"), "{message}");
    let mut large = report("large", 1);
    large["spec"]["containers"][0]["message"] = "x".repeat(4 * 1024 * 1024).into();
    let refused = world
        .ask(Method::POST, REPORTS, "", large.to_string().into())
        .await;
    assert_eq!(refused.status(), 413);
    let message = value(refused).await["message"].to_string();
    assert!(message.contains("limit is 3145728"), "{message}");
    world.end().await;
}

/// Reads `count` containers that are all `element` from an answer, and how large its largest piece was.
async fn read_containers(answer: Answer, element: &[u8], count: usize) -> usize {
    const START: &[u8] = b"\"containers\":[{\"name\":\"app\",\"vulnerabilityReports\"";
    assert!(answer.status().is_success());
    let mut body = answer.into_body();
    let mut head = Vec::new();
    let (mut largest, mut at, mut read) = (0, None, 0);
    while read < count {
        let frame = body.frame().await.unwrap().unwrap().into_data().unwrap();
        largest = largest.max(frame.len());
        let mut rest = &frame[..];
        if at.is_none() {
            head.extend_from_slice(rest);
            assert!(head.len() < 1_000_000);
            let Some(start) = head.windows(START.len()).position(|part| part == START) else {
                continue;
            };
            at = Some(0);
            rest = &head[start + b"\"containers\":[".len()..];
        }
        while let (false, Some(from), true) = (rest.is_empty(), at, read < count) {
            // Each element is followed by a comma, the last one by the end of the list.
            let length = rest.len().min(element.len() + 1 - from);
            let (part, others) = rest.split_at(length);
            let expected = element.get(from..from + length).unwrap_or(&element[from..]);
            assert_eq!(&part[..expected.len()], expected, "container {read}");
            rest = others;
            at = Some(from + length);
            if from + length == element.len() + 1 {
                read += 1;
                let end = if read == count { b']' } else { b',' };
                assert_eq!(part.last(), Some(&end));
                at = Some(0);
            }
        }
    }
    largest
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_report_of_hundreds_of_megabytes_is_sent_in_small_pieces() {
    const CONTAINERS: usize = 500;
    let world = World::new().await;
    for name in ["amd", "arm"] {
        world.create(FINDINGS, &findings(name, 500_000)).await;
    }
    // Each container has the reports of its image byte for byte.
    let mut quotes = Vec::new();
    for name in ["amd", "arm"] {
        let object = read(world.get(&format!("{FINDINGS}/{name}")).await).await;
        let text = String::from_utf8(object.to_vec()).unwrap();
        let from = text.find("\"imageMetadata\":").unwrap();
        let to = text.find(",\"metadata\":").unwrap();
        let report = text.find("\"report\":").unwrap();
        let (metadata, report) = (&text[from..to], &text[report..text.len() - 1]);
        quotes.push(format!(
            r#"{{"namespace":"default","name":"{name}",{metadata},{report}}}"#
        ));
    }
    let element = format!(
        r#"{{"name":"app","vulnerabilityReports":[{}]}}"#,
        quotes.join(",")
    );
    assert!(element.len() > 1_000_000);
    let element = element.as_bytes();
    let report = report("large", CONTAINERS);
    let path = format!("{REPORTS}/large");
    let made = world.create(REPORTS, &report).await;
    let mut largest = read_containers(made, element, CONTAINERS).await;
    let watch = format!("{REPORTS}?watch=true&timeoutSeconds=60");
    for path in [&path, REPORTS, &watch] {
        let answer = world.get(path).await;
        largest = largest.max(read_containers(answer, element, CONTAINERS).await);
    }
    let small = world.get(&format!("{path}?computed=brief")).await;
    let mut object = value(small).await;
    object["metadata"]["labels"] = json!({"a": "b"});
    let from = object["metadata"]["resourceVersion"].as_str().unwrap();
    let changes = format!("{watch}&resourceVersion={from}");
    let changed = world
        .ask(Method::PUT, &path, "", object.to_string().into())
        .await;
    largest = largest.max(read_containers(changed, element, CONTAINERS).await);
    let answer = world.get(&changes).await;
    largest = largest.max(read_containers(answer, element, CONTAINERS).await);
    assert!(largest <= PIECE, "{largest}");

    // Tables do not show findings, with or without the object.
    let table = "accept: application/json;as=Table;v=v1;g=meta.k8s.io";
    let path = format!("{REPORTS}?includeObject=Object");
    let table = value(world.ask(Method::GET, &path, table, Bytes::new()).await).await;
    let object = &table["rows"][0]["object"];
    assert_eq!(object["summary"]["high"], CONTAINERS);
    assert_eq!(
        object["containers"][0],
        json!({"name": "app", "vulnerabilityReports": null})
    );
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_answer_is_the_same_in_pieces_and_compressed() {
    let world = World::new().await;
    world.create(FINDINGS, &findings("amd", 3_000_000)).await;
    world.create(REPORTS, &report("a", 3)).await;
    for path in [
        format!("{REPORTS}/a"),
        REPORTS.into(),
        format!("{FINDINGS}/amd"),
    ] {
        let plain = read(world.get(&path).await).await;
        assert!(plain.len() > 3_000_000, "{path}");
        let packed = world
            .ask(Method::GET, &path, "accept-encoding: gzip", Bytes::new())
            .await;
        assert_eq!(packed.headers()[header::CONTENT_ENCODING], "gzip");
        let packed = read(packed).await;
        let mut inflated = Vec::new();
        let mut decoder = flate2::read::GzDecoder::new(&packed[..]);
        decoder.read_to_end(&mut inflated).unwrap();
        assert!(inflated == plain, "{path}");
        let tree: Value = serde_json::from_slice(&plain).unwrap();
        assert!(tree.is_object());
    }
    world.end().await;
}
