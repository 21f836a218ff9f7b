//! Where a policy is judged: `spec.policyServer` names a PolicyServer. One with an address is asked
//! there; one without is one that somebody deploys for admission, and then Muster judges by itself what
//! that server would, with the code from the same places. `default` need not exist: it is Muster.

use crate::logins::{Sources, field};
use crate::prepare::PrepareError;
use crate::tls::{self, Identity, Trust};
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use muster_api::policies::{GROUP, VERSION};
use muster_policy::load::LoadError;
use muster_policy::request;
use serde_json::Value;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The server that need not exist.
pub const DEFAULT: &str = "default";
/// Until a connection to a server stands.
const CONNECT: Duration = Duration::from_secs(5);
/// How many connections to a server are kept for reuse.
const IDLE: usize = 32;
/// How long an unused one is kept.
const KEPT: Duration = Duration::from_secs(60);
/// How many clients are kept; nobody has more servers.
const MOST: usize = 64;

/// Where PolicyServers and their Secrets are.
#[derive(Clone)]
pub enum Objects {
    /// In a cluster.
    Cluster(kube::Client),
    /// In manifests.
    Written(Arc<Vec<Value>>),
}

impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Objects::Cluster(_) => "Cluster",
            Objects::Written(_) => "Written",
        })
    }
}

/// Where a policy is judged.
#[derive(Clone, Debug)]
pub enum Server {
    /// Here, with code from these sources.
    Here(Sources),
    /// On a policy server.
    Remote {
        /// Where it answers.
        address: String,
        /// How it is called.
        client: reqwest::Client,
    },
}

/// The PolicyServers there are.
#[derive(Debug)]
pub struct Servers {
    objects: Objects,
    /// Where Secrets are, the first place that has one first.
    namespaces: Vec<String>,
    authorities: Option<Vec<u8>>,
    /// Clients by what they were made from, so that policies of one server share its connections.
    clients: Mutex<HashMap<u64, reqwest::Client>>,
}

impl Servers {
    /// Reads them from `objects`; their Secrets are in the first of `namespaces` that has them.
    /// `authorities` are trusted beside the system's where a server names none, in PEM.
    pub fn new(objects: Objects, namespaces: &[&str], authorities: Option<Vec<u8>>) -> Servers {
        let mut places: Vec<String> = Vec::new();
        for name in namespaces.iter().filter(|name| !name.is_empty()) {
            if !places.iter().any(|place| place == name) {
                places.push((*name).to_owned());
            }
        }
        Servers {
            objects,
            namespaces: places,
            authorities,
            clients: Mutex::default(),
        }
    }

    /// The server of this name, as it is now.
    pub async fn find(&self, name: &str) -> Result<Server, PrepareError> {
        let Some(object) = self.policy_server(name).await? else {
            if name == DEFAULT {
                return Ok(Server::Here(Sources::default()));
            }
            let why = format!("the PolicyServer {name:?} does not exist");
            return Err(LoadError::Source(why).into());
        };
        let spec = &object["spec"];
        let named = |field: &str| spec[field].as_str().filter(|text| !text.is_empty());
        let wrong = |why: String| PrepareError::Later(format!("the PolicyServer {name:?}: {why}"));
        let Some(address) = named("address") else {
            let secret = match named("imagePullSecret") {
                Some(secret) => Some(self.secret(secret).await?),
                None => None,
            };
            let found = secret.as_ref().map(|(_, object)| object);
            let sources = Sources::read(spec, found).map_err(|why| {
                let secret = secret.as_ref().map_or("", |(name, _)| name);
                wrong(format!("the Secret {secret} {why}"))
            })?;
            return Ok(Server::Here(sources));
        };
        let secret = match named("clientSecret") {
            Some(secret) => Some(self.secret(secret).await?.1),
            None => None,
        };
        let client = self.client(secret.as_ref()).map_err(wrong)?;
        let address = address.to_owned();
        Ok(Server::Remote { address, client })
    }

    fn client(&self, secret: Option<&Value>) -> Result<reqwest::Client, String> {
        let part = |name: &str| secret.and_then(|secret| field(secret, name));
        let (certificate, key) = (part("tls.crt"), part("tls.key"));
        let authority = part("ca.crt");
        let covered = request::hash(format!("{certificate:?}{key:?}{authority:?}").as_bytes());
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&covered) {
            return Ok(client.clone());
        }
        let identity = match (&certificate, &key) {
            (Some(certificate), Some(key)) => Some(Identity { certificate, key }),
            (None, None) => None,
            _ => return Err("the client Secret has only one of tls.crt and tls.key".into()),
        };
        let own = [self.authorities.as_deref().unwrap_or_default()];
        let trust = match &authority {
            // Whoever names an authority means this one, and not every one of the system.
            Some(authority) => Trust::Only(authority),
            None => Trust::SystemAnd(&own),
        };
        let tls = tls::configuration(trust, identity)
            .map_err(|why| format!("the client Secret cannot be used: {why}"))?;
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT)
            .pool_max_idle_per_host(IDLE)
            .pool_idle_timeout(KEPT)
            .user_agent(concat!("muster/", env!("CARGO_PKG_VERSION")))
            // A server is called by its address; it is inside the cluster or near it.
            .no_proxy()
            .build()
            .map_err(|error| error.without_url().to_string())?;
        if clients.len() >= MOST {
            clients.clear();
        }
        clients.insert(covered, client.clone());
        Ok(client)
    }

    async fn policy_server(&self, name: &str) -> Result<Option<Value>, PrepareError> {
        match &self.objects {
            Objects::Written(objects) => Ok(written(objects, "PolicyServer", name, None)),
            Objects::Cluster(client) => {
                let kind = GroupVersionKind::gvk(GROUP, VERSION, "PolicyServer");
                let resource = ApiResource::from_gvk_with_plural(&kind, "policyservers");
                let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
                get(&api, name, format!("the PolicyServer {name:?}")).await
            }
        }
    }

    /// A Secret, and its namespace with its name.
    async fn secret(&self, name: &str) -> Result<(String, Value), PrepareError> {
        for namespace in &self.namespaces {
            let place = format!("{namespace}/{name}");
            let found = match &self.objects {
                Objects::Written(objects) => written(objects, "Secret", name, Some(namespace)),
                Objects::Cluster(client) => {
                    let secrets = GroupVersionKind::gvk("", "v1", "Secret");
                    let resource = ApiResource::from_gvk(&secrets);
                    let client = client.clone();
                    let api: Api<DynamicObject> =
                        Api::namespaced_with(client, namespace, &resource);
                    get(&api, name, format!("the Secret {place}")).await?
                }
            };
            if let Some(found) = found {
                return Ok((place, found));
            }
        }
        // It may be made at any time.
        let places = self.namespaces.iter();
        let places: Vec<String> = places.map(|one| format!("{one}/{name}")).collect();
        let why = format!("the Secret {} does not exist", places.join(" or "));
        Err(PrepareError::Later(why))
    }
}

async fn get(
    api: &Api<DynamicObject>,
    name: &str,
    what: String,
) -> Result<Option<Value>, PrepareError> {
    match api.get_opt(name).await {
        Ok(object) => Ok(object.map(|object| object.data)),
        Err(error) => Err(PrepareError::Later(format!(
            "{what} cannot be read: {error}"
        ))),
    }
}

fn written(objects: &[Value], kind: &str, name: &str, namespace: Option<&str>) -> Option<Value> {
    let text = |object: &Value, at: &str| {
        let found = object.pointer(at).and_then(Value::as_str);
        found.map(str::to_owned)
    };
    let here = |object: &Value| match text(object, "/metadata/namespace") {
        Some(own) => namespace.is_none_or(|namespace| namespace == own),
        None => true,
    };
    let mut all = objects.iter().filter(|object| {
        object["kind"] == kind && text(object, "/metadata/name").as_deref() == Some(name)
    });
    all.find(|object| here(object)).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_testkit::certificates::Certificates;
    use serde_json::json;

    async fn find(objects: Vec<Value>, name: &str) -> Result<Server, PrepareError> {
        let objects = Objects::Written(Arc::new(objects));
        Servers::new(objects, &["muster", "", "muster"], None)
            .find(name)
            .await
    }

    fn server(name: &str, spec: Value) -> Value {
        json!({"kind": "PolicyServer", "metadata": {"name": name}, "spec": spec})
    }

    fn secret(namespace: &str, data: Value) -> Value {
        json!({"kind": "Secret", "metadata": {"name": "s", "namespace": namespace},
            "stringData": data})
    }

    #[tokio::test]
    async fn a_policy_is_judged_here_unless_its_server_has_an_address() {
        let objects = vec![
            server("deployed", json!({"image": "i", "insecureSources": ["h"]})),
            server("remote", json!({"address": "https://h:1"})),
        ];
        let here = find(objects.clone(), "default").await.unwrap();
        assert!(matches!(here, Server::Here(_)));
        let Server::Here(sources) = find(objects.clone(), "deployed").await.unwrap() else {
            panic!("not here");
        };
        assert!(sources.is_insecure("h"));
        let remote = find(objects.clone(), "remote").await.unwrap();
        assert!(matches!(remote, Server::Remote { address, .. } if address == "https://h:1"));
        let missing = find(objects, "other").await.unwrap_err();
        assert_eq!(
            missing.to_string(),
            "the PolicyServer \"other\" does not exist"
        );
        assert!(matches!(missing, PrepareError::Load(_)));
    }

    #[tokio::test]
    async fn what_a_server_refers_to_may_be_put_right_later() {
        let good = Certificates::generate().unwrap();
        let pull = json!({"imagePullSecret": "s"});
        let remote = json!({"address": "https://h:1", "clientSecret": "s"});
        let pair = json!({"tls.crt": good.client, "tls.key": good.client_key,
            "ca.crt": good.authority});
        for (spec, secret, problem) in [
            (&pull, None, Some("the Secret muster/s does not exist")),
            (
                &pull,
                Some(secret("elsewhere", json!({".dockerconfigjson": "{}"}))),
                Some("the Secret muster/s does not exist"),
            ),
            (
                &pull,
                Some(secret("muster", json!({}))),
                Some("has no .dockerconfigjson"),
            ),
            (
                &pull,
                Some(secret("muster", json!({".dockerconfigjson": "{}"}))),
                None,
            ),
            (&remote, None, Some("the Secret muster/s does not exist")),
            (&remote, Some(secret("muster", pair)), None),
            (&remote, Some(secret("muster", json!({}))), None),
            (
                &remote,
                Some(secret("muster", json!({"tls.crt": good.client}))),
                Some("only one of tls.crt and tls.key"),
            ),
            (
                &remote,
                Some(secret("muster", json!({"ca.crt": "x"}))),
                Some("there is no authority's certificate in it"),
            ),
        ] {
            let objects = [Some(server("a", spec.clone())), secret];
            let found = find(objects.into_iter().flatten().collect(), "a").await;
            match (found, problem) {
                (Ok(_), None) => {}
                (Err(PrepareError::Later(why)), Some(problem)) => {
                    assert!(why.contains(problem), "{why}");
                    assert!(!why.contains("BEGIN"), "{why}");
                }
                (found, problem) => panic!("{found:?} and {problem:?}"),
            }
        }
    }

    #[tokio::test]
    async fn a_secret_is_looked_for_beside_the_servers_and_then_beside_muster() {
        let key = |namespaces: &'static [&'static str], having: &'static [&'static str]| async move {
            let mut objects = vec![server("a", json!({"imagePullSecret": "s"}))];
            for namespace in having {
                let login = json!({"auths": {*namespace: {}}}).to_string();
                objects.push(secret(namespace, json!({".dockerconfigjson": login})));
            }
            let objects = Objects::Written(Arc::new(objects));
            let servers = Servers::new(objects, namespaces, None);
            match servers.find("a").await.map_err(|error| error.to_string())? {
                Server::Here(sources) => Ok(sources.key()),
                Server::Remote { .. } => Err("not here".to_owned()),
            }
        };
        let both = &["kubewarden", "muster"];
        let own = key(&["kubewarden"], &["kubewarden"]).await.unwrap();
        let fallback = key(&["muster"], &["muster"]).await.unwrap();
        assert_ne!(own, fallback);
        assert_eq!(key(both, &["muster", "kubewarden"]).await, Ok(own));
        assert_eq!(key(both, &["muster"]).await, Ok(fallback));
        let missing = key(both, &[]).await.unwrap_err();
        assert!(
            missing.contains("the Secret kubewarden/s or muster/s does not exist"),
            "{missing}"
        );
    }

    #[tokio::test]
    async fn policies_of_one_server_share_its_connections() {
        let objects = Objects::Written(Arc::new(vec![
            server("a", json!({"address": "https://h:1"})),
            server("b", json!({"address": "https://h:2"})),
        ]));
        let servers = Servers::new(objects, &["muster", "", "muster"], None);
        for name in ["a", "b", "a"] {
            servers.find(name).await.unwrap();
        }
        assert_eq!(servers.clients.lock().unwrap().len(), 1);
    }
}
