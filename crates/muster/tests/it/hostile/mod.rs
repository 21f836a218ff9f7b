//! Bad input: for each the error Kubernetes gives, memory that does not grow, and a server that
//! answers as before.

mod bodies;
mod crowds;
mod large;
mod memory;
mod questions;
mod strangers;

use anyhow::{Context, Result};
use http::Method;
use muster_testkit::http::{Client, Request, Response};
use muster_testkit::muster::Muster;

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const REGISTRIES: &str = "/apis/sbomscanner.kubewarden.io/v1alpha1/namespaces/default/registries";
const JSON: &str = "application/json";

/// A server and its owner.
struct Victim {
    muster: Muster,
    client: Client,
}

impl Victim {
    fn start() -> Result<Victim> {
        let muster = Muster::start_idle(env!("CARGO_BIN_EXE_muster"))?;
        let client = Client::new(muster.kubeconfig())?;
        Ok(Victim { muster, client })
    }

    async fn send(
        &self,
        method: Method,
        target: &str,
        kind: &str,
        body: impl Into<bytes::Bytes>,
    ) -> Result<Response> {
        let request = Request::new(method, target).body(kind, body)?;
        self.client.send(request).await
    }

    /// Everything still works: an object is made, read and removed.
    async fn still_answers(&mut self) -> Result<()> {
        let body = r#"{"metadata":{"name":"proof"}}"#;
        let made = self.send(Method::POST, CONFIG_MAPS, JSON, body).await?;
        assert_eq!(made.status, 201);
        let proof = format!("{CONFIG_MAPS}/proof");
        assert_eq!(self.client.get(&proof).await?.status, 200);
        let gone = self
            .client
            .send(Request::new(Method::DELETE, proof))
            .await?;
        assert_eq!(gone.status, 200);
        assert!(self.muster.process_mut().exit_status()?.is_none());
        Ok(())
    }
}

/// Asserts that an answer is a Kubernetes error of this code and reason.
fn assert_refused(what: &str, answer: &Response, code: u16, reason: &str) -> Result<()> {
    let shown = &answer.body[..answer.body.len().min(2000)];
    let shown = String::from_utf8_lossy(shown);
    let status = answer.json().with_context(|| what.to_owned())?;
    assert_eq!(answer.status, code, "{what}: {shown}");
    assert_eq!(status["kind"], "Status", "{what}: {shown}");
    assert_eq!(status["status"], "Failure", "{what}: {shown}");
    assert_eq!(status["code"], code, "{what}: {shown}");
    assert_eq!(status["reason"], reason, "{what}: {shown}");
    assert!(
        status["message"]
            .as_str()
            .is_some_and(|text| text.len() < 100_000),
        "{what}: {shown}"
    );
    Ok(())
}
