use super::*;

fn password(username: &str, password: &str) -> Login {
    Login::Password {
        username: username.into(),
        password: Secret::new(password),
    }
}

async fn logins(credentials: &Credentials, host: &str, repository: Option<&str>) -> Vec<Login> {
    let host = Host::parse(host).expect("a host");
    credentials.logins(&host, repository).await.expect("logins")
}

#[tokio::test]
async fn every_form_of_an_entry_is_read() {
    let auth = BASE64_STANDARD.encode("anna:p:ss\0\0");
    let text = format!(
        r#"{{"auths": {{
            "https://index.docker.io/v1/": {{"auth": "{auth}"}},
            "a.example": {{"username": "bert", "password": "two"}},
            "b.example:5000": {{"identitytoken": "three", "auth": "{auth}"}},
            "c.example": {{"registrytoken": "four"}},
            "d.example": {{}},
            "e.example": {{"auth": "{}"}}
        }}}}"#,
        BASE64_STANDARD.encode("<token>:five")
    );
    let credentials = Credentials::from_secret(text.as_bytes()).expect("read");
    for (host, expected) in [
        ("docker.io", vec![password("anna", "p:ss")]),
        ("a.example", vec![password("bert", "two")]),
        (
            "b.example:5000",
            vec![Login::Identity(Secret::new("three"))],
        ),
        ("b.example", vec![]),
        ("c.example", vec![Login::Bearer(Secret::new("four"))]),
        ("d.example", vec![]),
        ("e.example", vec![Login::Identity(Secret::new("five"))]),
        ("f.example", vec![]),
    ] {
        assert_eq!(
            logins(&credentials, host, Some("x")).await,
            expected,
            "{host}"
        );
    }
}

#[tokio::test]
async fn the_old_form_without_auths_is_read() {
    let text = r#"{"a.example": {"username": "u", "password": "p", "email": "x"}}"#;
    let credentials = Credentials::from_secret(text.as_bytes()).expect("read");
    assert_eq!(
        logins(&credentials, "a.example", None).await,
        [password("u", "p")]
    );
    let empty = Credentials::from_secret(b"{}").expect("read");
    assert!(logins(&empty, "a.example", None).await.is_empty());
}

#[tokio::test]
async fn the_most_specific_key_comes_first_and_the_others_after_it() {
    let text = r#"{"auths": {
        "*.example": {"username": "glob", "password": "x"},
        "a.example": {"username": "host", "password": "x"},
        "a.example/team": {"username": "team", "password": "x"},
        "https://a.example/team/app/": {"username": "app", "password": "x"},
        "reg-*.example": {"username": "half", "password": "x"}
    }}"#;
    let credentials = Credentials::from_secret(text.as_bytes()).expect("read");
    for (host, repository, expected) in [
        (
            "a.example",
            Some("team/app"),
            vec!["app", "team", "host", "glob"],
        ),
        (
            "a.example",
            Some("team/app/x"),
            vec!["app", "team", "host", "glob"],
        ),
        (
            "a.example",
            Some("team/apple"),
            vec!["team", "host", "glob"],
        ),
        ("a.example", Some("teams"), vec!["host", "glob"]),
        ("a.example", None, vec!["host", "glob"]),
        ("reg-7.example", None, vec!["glob", "half"]),
        ("x.a.example", None, vec![]),
        ("a.example:5000", None, vec![]),
    ] {
        let names: Vec<String> = logins(&credentials, host, repository)
            .await
            .into_iter()
            .map(|login| match login {
                Login::Password { username, .. } => username,
                other => format!("{other:?}"),
            })
            .collect();
        assert_eq!(names, expected, "{host} {repository:?}");
    }
}

#[test]
fn secrets_are_never_printed() {
    let text = r#"{"auths": {"a.example": {"username": "u", "password": "hunter2"},
        "b.example": {"identitytoken": "hunter2"}}}"#;
    let credentials = Credentials::from_secret(text.as_bytes()).expect("read");
    let printed = format!("{credentials:?} {credentials:#?}");
    assert!(!printed.contains("hunter2"), "{printed}");
    for broken in [
        r#"{"auths": {"a.example": {"password": hunter2}}}"#,
        r#"{"auths": {"a.example": {"auth": "hunter2!"}}}"#,
        r#"{"auths": {"a.example": {"auth": ["hunter2"]}}}"#,
        r#"{"auths": "hunter2"}"#,
        "hunter2",
    ] {
        let error = Credentials::from_secret(broken.as_bytes()).expect_err(broken);
        assert!(
            !format!("{error} {error:?}").contains("hunter2"),
            "{error:?}"
        );
        assert!(!error.is_transient());
    }
}

#[tokio::test]
async fn a_secret_cannot_start_a_program() {
    let text = r#"{"credsStore": "evil", "credHelpers": {"a.example": "../../bin/sh"}}"#;
    let credentials = Credentials::from_secret(text.as_bytes()).expect("read");
    assert!(logins(&credentials, "a.example", None).await.is_empty());
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("config.json");
    std::fs::write(&path, text).expect("written");
    let error = Credentials::from_file(&path).expect_err("no path may be a helper");
    assert!(error.to_string().contains("../../bin/sh"), "{error}");
}
