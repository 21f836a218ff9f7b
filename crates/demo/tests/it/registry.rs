//! The registry, asked as clients ask.

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, Uri};
use muster_demo::image::{INDEX, MANIFEST, digest};
use muster_demo::images;
use muster_demo::site::Site;
use serde_json::{Value, json};

fn site() -> Site {
    let address = "127.0.0.1:5000".parse().unwrap();
    Site::new(images::all().unwrap(), address).unwrap()
}

fn ask(method: Method, path: &str) -> (StatusCode, HeaderMap, Bytes) {
    let uri: Uri = path.parse().unwrap();
    let (parts, body) = site().answer(&method, &uri).into_parts();
    (parts.status, parts.headers, body)
}

#[test]
fn it_lists_repositories_and_tags() {
    let json = |path: &str| -> Value { serde_json::from_slice(&ask(Method::GET, path).2).unwrap() };
    assert_eq!(json("/v2/"), json!({}));
    let repositories = json("/v2/_catalog?n=1000");
    let repositories = repositories["repositories"].as_array().unwrap();
    assert_eq!(repositories.len(), 7);
    let tags = json("/v2/shop/cart/tags/list");
    assert_eq!(
        tags,
        json!({"name": "shop/cart", "tags": ["1.8.0", "1.9.0"]})
    );
}

#[test]
fn what_it_hands_out_is_what_its_digest_says() {
    for image in site().images() {
        let path = format!("/v2/{}/manifests/{}", image.repository, image.tag);
        let (status, headers, body) = ask(Method::GET, &path);
        assert_eq!(status, StatusCode::OK);
        assert_eq!(headers["docker-content-digest"], digest(&body));
        let kind = if image.builds.len() > 1 {
            INDEX
        } else {
            MANIFEST
        };
        assert_eq!(headers["content-type"], kind);
        let (status, headed, _) = ask(Method::HEAD, &path);
        assert_eq!((status, &headed), (StatusCode::OK, &headers));
        let by_digest = format!("/v2/{}/manifests/{}", image.repository, image.digest());
        assert_eq!(ask(Method::GET, &by_digest).2, body);
        for layer in image.builds.iter().flat_map(|build| &build.layers) {
            let path = format!("/v2/{}/blobs/{}", image.repository, layer.blob().digest);
            let (status, _, body) = ask(Method::GET, &path);
            assert_eq!(status, StatusCode::OK);
            assert_eq!(digest(&body), layer.blob().digest);
        }
    }
}

#[test]
fn what_there_is_not_is_unknown_and_nothing_can_be_pushed() {
    let none = digest(b"");
    for (method, path, status, code) in [
        (
            Method::GET,
            "/v2/no/tags/list".to_owned(),
            404,
            "NAME_UNKNOWN",
        ),
        (
            Method::GET,
            "/v2/no/manifests/1".to_owned(),
            404,
            "NAME_UNKNOWN",
        ),
        (
            Method::HEAD,
            "/v2/shop/cart/manifests/2".to_owned(),
            404,
            "MANIFEST_UNKNOWN",
        ),
        (
            Method::GET,
            format!("/v2/shop/cart/blobs/{none}"),
            404,
            "BLOB_UNKNOWN",
        ),
        (
            Method::GET,
            format!("/v2/shop/cart/referrers/{none}"),
            404,
            "NOT_FOUND",
        ),
        (
            Method::POST,
            "/v2/shop/cart/blobs/uploads/".to_owned(),
            405,
            "UNSUPPORTED",
        ),
        (
            Method::PUT,
            "/v2/shop/cart/manifests/2".to_owned(),
            405,
            "UNSUPPORTED",
        ),
        (
            Method::DELETE,
            "/v2/shop/cart/manifests/1.8.0".to_owned(),
            405,
            "UNSUPPORTED",
        ),
    ] {
        let (answered, _, body) = ask(method, &path);
        assert_eq!(answered, status, "{path}");
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body["errors"][0]["code"], code, "{path}");
    }
    for path in ["/", "/v2", "/vex.zip"] {
        assert_eq!(ask(Method::GET, path).0, StatusCode::NOT_FOUND, "{path}");
    }
    assert_eq!(ask(Method::PUT, "/vex.tar.gz").0, StatusCode::NOT_FOUND);
}

#[test]
fn an_image_is_told_by_name_and_tag() {
    let site = site();
    let id = site.image_id("127.0.0.1:5000/shop/cart:1.8.0").unwrap();
    let (name, said) = id.split_once('@').unwrap();
    assert_eq!(name, "127.0.0.1:5000/shop/cart");
    let image = site.images().iter().find(|one| one.tag == "1.8.0").unwrap();
    assert_eq!(said, image.digest());
    for unknown in [
        "127.0.0.1:5000/shop/cart:2",
        "docker.io/shop/cart:1.8.0",
        "",
    ] {
        assert_eq!(site.image_id(unknown), None, "{unknown}");
    }
}
