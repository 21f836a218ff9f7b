use super::*;

const SHA: &str = "sha256:ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff";

#[test]
fn references_are_read_as_docker_reads_them() {
    for (text, whole, host, name) in [
        (
            "nginx",
            "docker.io/library/nginx:latest",
            "docker.io",
            "library/nginx",
        ),
        (
            "nginx:1.27",
            "docker.io/library/nginx:1.27",
            "docker.io",
            "library/nginx",
        ),
        (
            "docker.io/nginx",
            "docker.io/library/nginx:latest",
            "docker.io",
            "library/nginx",
        ),
        (
            "index.docker.io/nginx",
            "docker.io/library/nginx:latest",
            "docker.io",
            "library/nginx",
        ),
        (
            "registry-1.docker.io/library/nginx",
            "docker.io/library/nginx:latest",
            "docker.io",
            "library/nginx",
        ),
        (
            "bitnami/redis:7",
            "docker.io/bitnami/redis:7",
            "docker.io",
            "bitnami/redis",
        ),
        (
            "test.com:5000",
            "docker.io/library/test.com:5000",
            "docker.io",
            "library/test.com",
        ),
        ("localhost/app", "localhost/app:latest", "localhost", "app"),
        (
            "localhost:5000/app:Dev_1.x-y",
            "localhost:5000/app:Dev_1.x-y",
            "localhost:5000",
            "app",
        ),
        (
            "GHCR.io/team/app:V1",
            "ghcr.io/team/app:V1",
            "ghcr.io",
            "team/app",
        ),
        (
            "10.0.0.7:443/a/b/c:_",
            "10.0.0.7:443/a/b/c:_",
            "10.0.0.7:443",
            "a/b/c",
        ),
        ("[::1]:5000/app:1", "[::1]:5000/app:1", "[::1]:5000", "app"),
        (
            "[fd00::0001]/app",
            "[fd00::1]/app:latest",
            "[fd00::1]",
            "app",
        ),
        (
            "registry:5000/app",
            "registry:5000/app:latest",
            "registry:5000",
            "app",
        ),
        (
            "registry/app",
            "docker.io/registry/app:latest",
            "docker.io",
            "registry/app",
        ),
        (
            "ghcr.io/a/b__c-d.e:x",
            "ghcr.io/a/b__c-d.e:x",
            "ghcr.io",
            "a/b__c-d.e",
        ),
    ] {
        let reference = Reference::parse(text).expect(text);
        assert_eq!(reference.to_string(), whole, "{text}");
        assert_eq!(reference.host().as_str(), host, "{text}");
        assert_eq!(reference.repository().name(), name, "{text}");
        assert_eq!(
            Reference::parse(whole),
            Ok(reference),
            "the whole form means the same"
        );
    }
}

#[test]
fn a_digest_says_which_image_it_is_and_a_tag_beside_it_is_kept() {
    let both = Reference::parse(&format!("ghcr.io/a/b:1@{SHA}")).expect("a reference");
    assert_eq!((both.tag(), both.selector()), (Some("1"), SHA));
    assert_eq!(both.to_string(), format!("ghcr.io/a/b:1@{SHA}"));
    let alone = Reference::parse(&format!("nginx@{SHA}")).expect("a reference");
    assert_eq!(alone.tag(), None);
    assert_eq!(alone.to_string(), format!("docker.io/library/nginx@{SHA}"));
}

#[test]
fn what_no_registry_would_take_is_refused() {
    let long = format!("ghcr.io/{}", "a".repeat(300));
    let tag = format!("nginx:{}", "a".repeat(129));
    let loud = format!("nginx@{}", SHA.replace('f', "F"));
    for text in [
        "",
        ":tag",
        "nginx:",
        "nginx:tag:tag",
        "nginx@sha256:ff",
        "nginx@md5:ffffffffffffffffffffffffffffffff",
        loud.as_str(),
        "Nginx",
        "Team/app",
        "ghcr.io/Team/app",
        "ghcr.io/team/",
        "ghcr.io//app",
        "ghcr.io/../app",
        "https://ghcr.io/app",
        "nginx:größe",
        "nginx:a b",
        "nginx\n",
        "user@host/app",
        "ghcr.io:70000/app",
        "ghcr.io:0/app",
        "[::1]:/app",
        "[::1]x/app",
        "[::1]",
        "[zz]/app",
        long.as_str(),
        tag.as_str(),
        &"a".repeat(5000),
    ] {
        let refused = Reference::parse(text);
        assert!(refused.is_err(), "{text:?} was read as {refused:?}");
    }
}

#[test]
fn hosts_are_read_with_or_without_a_scheme() {
    for (text, host, address) in [
        ("https://ghcr.io", "ghcr.io", "ghcr.io"),
        ("http://localhost:5000/", "localhost:5000", "localhost:5000"),
        ("registry", "registry", "registry"),
        ("docker.io", "docker.io", "registry-1.docker.io"),
        ("index.docker.io", "docker.io", "registry-1.docker.io"),
        ("[::1]:5000", "[::1]:5000", "[::1]:5000"),
        ("[::1]", "[::1]", "[::1]"),
    ] {
        let parsed = Host::parse(text).expect(text);
        assert_eq!((parsed.as_str(), parsed.address()), (host, address));
    }
    for text in [
        "",
        "https://",
        "ghcr.io/team",
        "user:secret@ghcr.io",
        "a b",
        "ghcr.io:x",
    ] {
        assert!(Host::parse(text).is_err(), "{text:?}");
    }
}

#[test]
fn loopback_hosts_are_known() {
    for (text, loopback) in [
        ("localhost:5000", true),
        ("127.0.0.1:5000", true),
        ("127.1.2.3", true),
        ("[::1]:5000", true),
        ("10.0.0.1", false),
        ("localhost.example", false),
        ("[fd00::1]", false),
    ] {
        assert_eq!(
            Host::parse(text).expect(text).is_loopback(),
            loopback,
            "{text}"
        );
    }
}

#[test]
fn repositories_have_no_tag_and_keep_their_name_on_a_host() {
    assert_eq!(
        Repository::parse("nginx")
            .expect("a repository")
            .to_string(),
        "docker.io/library/nginx"
    );
    for text in [
        "nginx:latest",
        "nginx:1",
        "localhost:5000/a:1",
        &format!("nginx@{SHA}"),
    ] {
        assert!(Repository::parse(text).is_err(), "{text}");
    }
    let hub = Host::parse("docker.io").expect("a host");
    let short = Repository::on(&hub, "nginx").expect("a repository");
    assert_eq!(short.name(), "nginx");
    assert!(Repository::on(&hub, "a/../b").is_err());
    assert!(Repository::on(&hub, "a:1").is_err());
    assert!(short.tagged("1.0_x-Y").is_ok());
    for tag in ["", "-a", ".a", "a/b", "a b", "ä", &"a".repeat(129)] {
        assert!(short.tagged(tag).is_err(), "{tag:?}");
    }
}
