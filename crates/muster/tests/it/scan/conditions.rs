//! Which images a Registry means: conditions on tags and digests, jobs that name some of them, and
//! what becomes of Images that are meant no longer.

use super::*;
use http::Method;
use muster_testkit::proxy::{Fault, Proxy};

/// A running Muster with vulnerability data, and a kubectl for it.
pub(crate) struct Bench {
    pub(crate) muster: Muster,
    pub(crate) kubectl: Kubectl,
    _data: tempfile::TempDir,
}

impl Bench {
    pub(crate) fn start() -> Result<Bench> {
        let vulnerabilities = tempfile::tempdir()?;
        data(vulnerabilities.path())?;
        let directory = vulnerabilities.path().to_string_lossy().into_owned();
        let muster = Muster::start_with(env!("CARGO_BIN_EXE_muster"), &["--database", &directory])?;
        let kubectl = Kubectl::new(&muster.kubeconfig_path())?;
        Ok(Bench {
            muster,
            kubectl,
            _data: vulnerabilities,
        })
    }

    pub(crate) fn apply(&self, object: &Value) -> Result<()> {
        self.kubectl
            .succeed_with(&["apply", "-f", "-"], &object.to_string())
            .map(drop)
    }

    /// Applies what only the workload scan itself may write.
    pub(super) fn apply_as_operator(&self, object: &Value) -> Result<()> {
        let arguments = [
            "apply",
            "--as=muster",
            "--as-group=system:masters",
            "-f",
            "-",
        ];
        self.kubectl
            .succeed_with(&arguments, &object.to_string())
            .map(drop)
    }

    /// Runs a job to its end; returns its reason and message, and the job.
    pub(crate) fn scan(&self, name: &str, spec: Value) -> Result<(String, Value)> {
        self.apply(&json!({
            "apiVersion": "sbomscanner.kubewarden.io/v1alpha1", "kind": "ScanJob",
            "metadata": {"name": name, "namespace": "default"}, "spec": spec,
        }))?;
        let reason = ended(&self.kubectl, name)?;
        Ok((reason, get(&self.kubectl, &["scanjob", name])?))
    }

    /// The Images by `repository:tag` or `repository@digest`, each with its labels.
    pub(super) fn images(&self) -> Result<Vec<(String, Value)>> {
        let images = get(&self.kubectl, &["images"])?;
        let mut found = Vec::new();
        for image in images["items"].as_array().context("items")? {
            let about = &image["imageMetadata"];
            let repository = about["repository"].as_str().unwrap_or_default();
            let reference = match about["tag"].as_str() {
                Some(tag) => format!("{repository}:{tag}"),
                None => format!(
                    "{repository}@{}",
                    about["digest"].as_str().unwrap_or_default()
                ),
            };
            found.push((reference, image["metadata"]["labels"].clone()));
        }
        found.sort_by(|left, right| left.0.cmp(&right.0));
        Ok(found)
    }

    /// Only what the Images are called.
    pub(super) fn references(&self) -> Result<Vec<String>> {
        Ok(self.images()?.into_iter().map(|(name, _)| name).collect())
    }
}

/// A Registry that is scanned by jobs alone.
pub(crate) fn registry(host: &str, spec: Value) -> Value {
    let mut whole = json!({
        "uri": host, "insecure": true, "scanOnChange": false, "discoveryJob": {"suspend": true},
    });
    if let (Some(whole), Some(spec)) = (whole.as_object_mut(), spec.as_object()) {
        whole.extend(spec.clone());
    }
    json!({
        "apiVersion": "sbomscanner.kubewarden.io/v1alpha1", "kind": "Registry",
        "metadata": {"name": "local", "namespace": "default"}, "spec": whole,
    })
}

/// Pushes an image that no other tag has.
pub(super) async fn image(
    pusher: &Pusher,
    repository: &str,
    tag: Option<&str>,
    year: u32,
) -> Result<Pushed> {
    let (plain, packed) = layer()?;
    let config = json!({
        "os": "linux", "architecture": "amd64", "created": format!("{year}-01-01T00:00:00Z"),
        "rootfs": {"type": "layers", "diff_ids": [digest(&plain)]},
        "history": [{"created_by": "COPY . /"}],
    });
    pusher.image(repository, tag, &[&packed], &config).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conditions_choose_images_and_label_them() -> Result<()> {
    let server = Registry::start()?;
    let pusher = Pusher::new(&server)?;
    for (year, tag) in ["1.0.0", "v2.1", "2.2.0", "latest", "dev"]
        .iter()
        .enumerate()
    {
        image(&pusher, "team/app", Some(tag), 2000 + year as u32).await?;
    }
    image(&pusher, "team/other", Some("1"), 2020).await?;
    let bench = Bench::start()?;
    let releases = json!({
        "name": "releases", "expression": "semver(tag, true).isGreaterThan(semver(\"1.5.0\"))",
        "labels": {"releases": "true"},
    });
    let stable = json!({
        "name": "stable", "expression": "tag in [\"latest\", \"2.2.0\"]",
        "labels": {"team-a": "true", "team-b": "true"},
    });
    let repositories = |conditions: Value| {
        json!({"catalogType": "NoCatalog", "repositories": [
            {"name": "team/app", "matchOperator": "Or", "matchConditions": conditions},
            {"name": "team/other"},
        ]})
    };
    bench.apply(&registry(
        &server.host(),
        repositories(json!([releases, stable])),
    ))?;
    let (reason, job) = bench.scan("full", json!({"registry": "local"}))?;
    assert!(reason.contains("AllImagesScanned"), "{reason}");
    assert_eq!(job["status"]["imagesCount"], 4);
    let images = bench.images()?;
    let labels: Vec<(&str, [bool; 3])> = images
        .iter()
        .map(|(name, labels)| {
            let has = |key: &str| labels[key] == "true";
            (
                name.as_str(),
                [has("releases"), has("team-a"), has("team-b")],
            )
        })
        .collect();
    assert_eq!(
        labels,
        [
            ("team/app:2.2.0", [true, true, true]),
            ("team/app:latest", [false, true, true]),
            ("team/app:v2.1", [true, false, false]),
            ("team/other:1", [false, false, false]),
        ]
    );

    // A job that names a condition is about its images alone, and takes none away.
    image(&pusher, "team/app", Some("3.0.0"), 2030).await?;
    bench.apply(&registry(&server.host(), repositories(json!([releases]))))?;
    let target = json!([{"name": "team/app", "matchConditions": ["releases"]}]);
    let spec = json!({"registry": "local", "repositories": target});
    let (reason, job) = bench.scan("targeted", spec)?;
    assert!(reason.contains("AllImagesScanned"), "{reason}");
    assert_eq!(job["status"]["imagesCount"], 3);
    let references = bench.references()?;
    assert_eq!(
        references,
        [
            "team/app:2.2.0",
            "team/app:3.0.0",
            "team/app:latest",
            "team/app:v2.1",
            "team/other:1",
        ]
    );
    let named = |kind: &str, name: &str| {
        let target = match kind {
            "repository" => json!([{ "name": name }]),
            _ => json!([{"name": "team/app", "matchConditions": [name]}]),
        };
        json!({"registry": "local", "repositories": target})
    };
    for (name, kind, what) in [
        ("strange", "repository", "team/strange"),
        ("gone", "condition", "stable"),
    ] {
        let (reason, _) = bench.scan(name, named(kind, what))?;
        let says = reason.contains("InternalError") && reason.contains(&format!("{kind} {what}"));
        assert!(says, "{reason}");
    }

    // Whoever looks at everything takes away what is meant no longer, and the labels with it.
    let (reason, job) = bench.scan("again", json!({"registry": "local"}))?;
    assert!(reason.contains("AllImagesScanned"), "{reason}");
    assert_eq!(job["status"]["imagesCount"], 4);
    let images = bench.images()?;
    let names: Vec<&str> = images.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "team/app:2.2.0",
            "team/app:3.0.0",
            "team/app:v2.1",
            "team/other:1"
        ]
    );
    assert!(images.iter().all(|(_, labels)| labels["team-a"].is_null()));

    // Where looking fails nothing is taken away, and elsewhere it is.
    let broken = json!({"catalogType": "NoCatalog", "repositories": [
        {"name": "team/app", "matchConditions": [{"name": "one", "expression": "tag == '2.2.0'"}]},
        {"name": "team/nothing"},
    ]});
    bench.apply(&registry(&server.host(), broken))?;
    let (reason, _) = bench.scan("broken", json!({"registry": "local"}))?;
    assert!(reason.contains("team/nothing"), "{reason}");
    assert_eq!(bench.references()?, ["team/app:2.2.0"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_named_exactly_is_asked_for_and_not_searched() -> Result<()> {
    let server = Registry::start()?;
    let proxy = Proxy::start(&server.host(), |_, _| Fault::Pass).await?;
    let pusher = Pusher::new(&server)?;
    for tag in 0..20 {
        image(&pusher, "team/app", Some(&format!("1.{tag}")), 2000 + tag).await?;
    }
    let bare = image(&pusher, "team/app", None, 2050).await?;
    let gone = digest(b"gone");
    let bench = Bench::start()?;
    let condition =
        |name: &str, expression: String| json!({"name": name, "expression": expression});
    let conditions = [
        condition("a", "tag == \"1.3\"".into()),
        condition("b", "\"1.4\" == tag".into()),
        condition("c", "tag == \"9.9\"".into()),
        condition("d", format!("digest == \"{}\"", bare.digest)),
        condition("e", format!("digest == \"{gone}\"")),
    ];
    let repositories = json!([
        {"name": "team/app", "matchOperator": "Or", "matchConditions": conditions},
    ]);
    let spec = json!({"catalogType": "NoCatalog", "repositories": repositories});
    bench.apply(&registry(&proxy.host(), spec))?;
    let (reason, job) = bench.scan("first", json!({"registry": "local"}))?;
    assert!(reason.contains("AllImagesScanned"), "{reason}");
    assert_eq!(job["status"]["imagesCount"], 3);
    let by_digest = format!("team/app@{}", bare.digest);
    let expected = ["team/app:1.3", "team/app:1.4", by_digest.as_str()];
    assert_eq!(bench.references()?, expected);
    let missing = &job["metadata"]["annotations"]["sbomscanner.kubewarden.io/not-found"];
    let missing: Vec<String> = serde_json::from_str(missing.as_str().context("what is missing")?)?;
    let at = |selector: String| format!("{}/team/app{selector}", proxy.host());
    let mut expected = [at(":9.9".into()), at(format!("@{gone}"))];
    let mut missing = missing;
    missing.sort();
    expected.sort();
    assert_eq!(missing, expected);
    assert_eq!(proxy.count(Method::GET, "tags/list"), 0);

    // What has not moved is asked for its digest and nothing else.
    let fetched = |part: &str| proxy.count(Method::GET, part);
    let before = (fetched("/manifests/1."), fetched("/blobs/"));
    let (reason, job) = bench.scan("second", json!({"registry": "local"}))?;
    assert!(reason.contains("AllImagesScanned"), "{reason}");
    assert_eq!(job["status"]["imagesCount"], 3);
    assert_eq!((fetched("/manifests/1."), fetched("/blobs/")), before);
    assert_eq!(proxy.count(Method::HEAD, "/manifests/1."), 2);

    // What has moved is fetched again, and nothing else is.
    image(&pusher, "team/app", Some("1.3"), 2060).await?;
    let (reason, _) = bench.scan("third", json!({"registry": "local"}))?;
    assert!(reason.contains("AllImagesScanned"), "{reason}");
    assert_eq!(fetched("/manifests/1."), before.0 + 1);

    // Other platforms are other images.
    let mut narrowed = registry(
        &proxy.host(),
        json!({"catalogType": "NoCatalog", "repositories": repositories}),
    );
    narrowed["spec"]["platforms"] = json!([{"os": "linux", "architecture": "arm64"}]);
    bench.apply(&narrowed)?;
    let (reason, _) = bench.scan("fourth", json!({"registry": "local"}))?;
    assert!(reason.contains("NoImagesToScan"), "{reason}");
    assert!(bench.references()?.is_empty());
    Ok(())
}

#[test]
fn a_registry_that_could_not_be_scanned_is_refused_at_once() -> Result<()> {
    let muster = Muster::start(env!("CARGO_BIN_EXE_muster"))?;
    let kubectl = Kubectl::new(&muster.kubeconfig_path())?;
    // All that is shown as an example is accepted.
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let applied = kubectl.succeed(&["apply", "-f", &examples.to_string_lossy()])?;
    assert!(applied.contains("workloadscanconfiguration"), "{applied}");
    let condition = |expression: &str| {
        json!({"repositories": [{"name": "a", "matchConditions": [
            {"name": "first", "expression": "true"}, {"name": "bad", "expression": expression},
        ]}]})
    };
    let place = "spec.repositories[0].matchConditions[1].expression";
    let mut twice = condition("true");
    twice["repositories"][0]["matchConditions"][1]["name"] = json!("first");
    let labelled = json!({"repositories": [{"name": "a", "matchConditions": [
        {"name": "c", "expression": "true", "labels": {"sbomscanner.kubewarden.io/x": "y"}},
    ]}]});
    for (spec, words) in [
        (condition("tag =="), [place, "is no CEL expression"]),
        (condition("tag"), [place, "must yield bool and not string"]),
        (condition("semver(tag) > 1"), [place, "_>_(Semver, int)"]),
        (condition("[1].all(x, x > 0)"), [place, "no macros"]),
        (
            twice,
            ["spec.repositories[0].matchConditions[1]", "Duplicate"],
        ),
        (labelled, ["matchConditions[0].labels", "Forbidden"]),
        (
            json!({"catalogType": "NoCatalog"}),
            ["spec.repositories", "Required"],
        ),
        (
            json!({"catalogType": "Harbor"}),
            ["spec.catalogType", "Unsupported"],
        ),
        (
            json!({"scanInterval": "30s"}),
            ["spec.scanInterval", "at least 1m"],
        ),
        (
            json!({"platforms": [{"os": "linux", "arch": "x"}]}),
            ["spec.platforms[0].arch", "Unsupported"],
        ),
        (
            json!({"discoveryJob": {"cron": {"hour": 24}}}),
            ["spec.discoveryJob.cron.hour", "23"],
        ),
        (json!({"uri": "ghcr.io/team"}), ["spec.uri", "repositories"]),
        (
            json!({"authSecret": "a b"}),
            ["spec.authSecret", "RFC 1123"],
        ),
    ] {
        let object = registry("ghcr.io", spec);
        let refused = kubectl.fail(&["apply", "-f", "-"], &object.to_string())?;
        for word in words {
            assert!(refused.contains(word), "{word}: {refused}");
        }
    }
    // What is left out is filled in.
    kubectl.succeed_with(
        &["apply", "-f", "-"],
        &registry("ghcr.io", json!({"repositories": [{"name": "a"}]})).to_string(),
    )?;
    let kept = get(&kubectl, &["registry", "local"])?;
    assert_eq!(kept["spec"]["catalogType"], "OCIDistribution");
    assert_eq!(kept["spec"]["repositories"][0]["matchOperator"], "And");
    Ok(())
}
