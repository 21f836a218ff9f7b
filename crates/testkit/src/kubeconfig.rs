//! A kubeconfig: where a server is, whom it is trusted by and who we are. Read as `kubectl` reads
//! it, as far as our servers need; written as JSON, which is YAML too.

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use std::fs;
use std::path::Path;

/// What the current context of a kubeconfig says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kubeconfig {
    /// The server's URL, `https://127.0.0.1:6443`.
    pub server: String,
    /// The certificate authority, in PEM.
    pub authority: Option<Vec<u8>>,
    /// A bearer token.
    pub token: Option<String>,
    /// The client certificate and its key, in PEM.
    pub certificate: Option<(Vec<u8>, Vec<u8>)>,
}

impl Kubeconfig {
    /// Reads a kubeconfig file.
    pub fn read(path: &Path) -> Result<Kubeconfig> {
        let text = fs::read_to_string(path)
            .with_context(|| format!("cannot read kubeconfig {}", path.display()))?;
        Kubeconfig::parse(&text).with_context(|| format!("in kubeconfig {}", path.display()))
    }

    /// Reads the text of a kubeconfig.
    pub fn parse(text: &str) -> Result<Kubeconfig> {
        let file: File = serde_saphyr::from_str(text).context("not a kubeconfig")?;
        let context = named(&file.contexts, &file.current_context, |entry| &entry.name)?;
        let cluster = named(&file.clusters, &context.context.cluster, |entry| {
            &entry.name
        })?;
        let user = named(&file.users, &context.context.user, |entry| &entry.name)?;
        let certificate = contents(&user.user.certificate_data, &user.user.certificate)?;
        let key = contents(&user.user.key_data, &user.user.key)?;
        Ok(Kubeconfig {
            server: cluster.cluster.server.trim_end_matches('/').into(),
            authority: contents(&cluster.cluster.authority_data, &cluster.cluster.authority)?,
            token: user.user.token.clone(),
            certificate: certificate.zip(key),
        })
    }

    /// The text of a kubeconfig that says this.
    pub fn render(&self) -> String {
        let mut cluster = serde_json::json!({ "server": self.server });
        if let Some(authority) = &self.authority {
            cluster["certificate-authority-data"] = STANDARD.encode(authority).into();
        }
        let mut user = serde_json::json!({});
        if let Some(token) = &self.token {
            user["token"] = token.as_str().into();
        }
        if let Some((certificate, key)) = &self.certificate {
            user["client-certificate-data"] = STANDARD.encode(certificate).into();
            user["client-key-data"] = STANDARD.encode(key).into();
        }
        let file = serde_json::json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{ "name": "test", "cluster": cluster }],
            "users": [{ "name": "test", "user": user }],
            "contexts": [{
                "name": "test",
                "context": { "cluster": "test", "user": "test", "namespace": "default" },
            }],
            "current-context": "test",
        });
        format!("{file:#}\n")
    }
}

fn named<'a, T>(entries: &'a [T], name: &str, of: impl Fn(&T) -> &String) -> Result<&'a T> {
    entries
        .iter()
        .find(|entry| of(entry) == name)
        .with_context(|| format!("no entry is named {name:?}"))
}

/// The bytes of a field that is given inline in base64, or by the path of a file.
fn contents(data: &Option<String>, path: &Option<String>) -> Result<Option<Vec<u8>>> {
    match (data, path) {
        (Some(data), _) => Ok(Some(STANDARD.decode(data.trim())?)),
        (None, Some(path)) => Ok(Some(
            fs::read(path).with_context(|| format!("cannot read {path}"))?,
        )),
        (None, None) => Ok(None),
    }
}

#[derive(Deserialize)]
struct File {
    clusters: Vec<NamedCluster>,
    users: Vec<NamedUser>,
    contexts: Vec<NamedContext>,
    #[serde(rename = "current-context")]
    current_context: String,
}

#[derive(Deserialize)]
struct NamedCluster {
    name: String,
    cluster: Cluster,
}

#[derive(Deserialize)]
struct Cluster {
    server: String,
    #[serde(rename = "certificate-authority-data")]
    authority_data: Option<String>,
    #[serde(rename = "certificate-authority")]
    authority: Option<String>,
}

#[derive(Deserialize)]
struct NamedUser {
    name: String,
    user: User,
}

#[derive(Deserialize)]
struct User {
    token: Option<String>,
    #[serde(rename = "client-certificate-data")]
    certificate_data: Option<String>,
    #[serde(rename = "client-certificate")]
    certificate: Option<String>,
    #[serde(rename = "client-key-data")]
    key_data: Option<String>,
    #[serde(rename = "client-key")]
    key: Option<String>,
}

#[derive(Deserialize)]
struct NamedContext {
    name: String,
    context: Names,
}

#[derive(Deserialize)]
struct Names {
    cluster: String,
    user: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() -> Result<()> {
        let written = Kubeconfig {
            server: "https://127.0.0.1:1234".into(),
            authority: Some(b"authority".to_vec()),
            token: Some("secret".into()),
            certificate: Some((b"certificate".to_vec(), b"key".to_vec())),
        };
        assert_eq!(Kubeconfig::parse(&written.render())?, written);
        Ok(())
    }

    #[test]
    fn yaml_as_kubectl_writes_it_is_read() -> Result<()> {
        let text = "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts:\n- name: a\n  \
                    context:\n    cluster: b\n    user: c\nclusters:\n- name: b\n  cluster:\n    \
                    server: https://localhost:1/\nusers:\n- name: c\n  user:\n    token: t\n";
        let read = Kubeconfig::parse(text)?;
        assert_eq!(read.server, "https://localhost:1");
        assert_eq!(read.token.as_deref(), Some("t"));
        Ok(())
    }
}
