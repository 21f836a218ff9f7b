//! How a Registry is reached: its address, its certificates, and the credentials it refers to; and
//! what a refusal means for whoever wrote the Registry. No secret is in any message.

use crate::missing;
use crate::object::REGISTRY;
use crate::work::{Operator, Trouble};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ObjectMeta};
use kube::{Api, ResourceExt};
use muster_api::Platform;
use muster_api::guard::WORKLOAD_SCAN;
use muster_registry::{Client, Credentials, Error, Host, Options, Repository, Transport};
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};

/// What scanning needs of a Registry's spec.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Spec {
    pub(crate) uri: String,
    pub(crate) catalog_type: String,
    pub(crate) repositories: Vec<Filter>,
    auth_secret: String,
    ca_bundle: String,
    insecure: bool,
    platforms: Vec<Value>,
}

/// A repository, and which of its tags are wanted.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Filter {
    pub(crate) name: String,
    pub(crate) match_conditions: Vec<Condition>,
    pub(crate) match_operator: String,
}

/// A condition on tags and digests, and what the images that meet it are labelled with.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Condition {
    pub(crate) name: String,
    pub(crate) expression: String,
    pub(crate) labels: BTreeMap<String, String>,
}

impl Spec {
    /// Whether images of a platform are wanted.
    pub(crate) fn wants(&self, platform: &Platform) -> bool {
        let mut wanted = self.platforms.iter().filter_map(Platform::read);
        self.platforms.is_empty() || wanted.any(|wanted| platform.satisfies(&wanted))
    }

    /// The wanted platforms on one line, so that it can be told whether they are others by now.
    pub(crate) fn platforms(&self) -> String {
        platforms(&self.platforms)
    }
}

/// What no wish for platforms is called.
pub(crate) const ANY_PLATFORM: &str = "any platform";

/// Platforms on one line.
pub(crate) fn platforms(wanted: &[Value]) -> String {
    let all = wanted.iter().filter_map(Platform::read);
    let mut all: Vec<String> = all.map(|platform| platform.to_string()).collect();
    all.sort();
    all.dedup();
    match wanted.is_empty() {
        true => ANY_PLATFORM.into(),
        false => all.join(","),
    }
}

/// A Registry that can be asked.
pub(crate) struct Access {
    pub(crate) client: Client,
    pub(crate) host: Host,
    pub(crate) spec: Spec,
    pub(crate) name: String,
    pub(crate) uid: String,
    /// The labels that everything found through it has too.
    pub(crate) inherited: BTreeMap<String, String>,
    /// What was found missing before.
    pub(crate) missing: BTreeSet<String>,
    credentials: Credentials,
    /// The Secret with the credentials, as messages name it; none if they are those with which the
    /// namespace's own Pods pull.
    secret: Option<String>,
}

/// How many pull secrets of a ServiceAccount are looked at.
const MOST_PULL_SECRETS: usize = 32;

/// Opens a Registry; none if there is no such object.
pub(crate) async fn open(
    operator: &Operator,
    namespace: &str,
    name: &str,
) -> Result<Option<Access>, Trouble> {
    let api = REGISTRY.within(operator.client(), namespace);
    match api.get_opt(name).await? {
        Some(object) => Ok(Some(reach(operator, namespace, &object).await?)),
        None => Ok(None),
    }
}

/// When the Secrets with the credentials of a Registry, or what names them, were last written. A write
/// that leaves no trace in `managedFields` is not seen.
pub(crate) async fn written(
    operator: &Operator,
    object: &DynamicObject,
) -> Result<Option<Timestamp>, Trouble> {
    let namespace = object.namespace().unwrap_or_default();
    let api = |kind: &str, within: &str| -> Api<DynamicObject> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", kind));
        Api::namespaced_with(operator.client().clone(), within, &resource)
    };
    let named = object.data["spec"]["authSecret"].as_str();
    if let Some(name) = named.filter(|name| !name.is_empty()) {
        let within = match object
            .labels()
            .get(WORKLOAD_SCAN)
            .is_some_and(|is| is == "true")
        {
            true => operator.installation(),
            false => &namespace,
        };
        let secret = api("Secret", within).get_metadata_opt(name).await?;
        return Ok(secret.and_then(|secret| last_write(&secret.metadata)));
    }
    let Some(account) = api("ServiceAccount", &namespace).get_opt("default").await? else {
        return Ok(None);
    };
    let mut latest = last_write(&account.metadata);
    for name in names(&account) {
        let secret = api("Secret", &namespace).get_metadata_opt(name).await?;
        latest = latest.max(secret.and_then(|secret| last_write(&secret.metadata)));
    }
    Ok(latest)
}

/// When an object was last written, its status aside.
fn last_write(metadata: &ObjectMeta) -> Option<Timestamp> {
    let fields = metadata.managed_fields.iter().flatten();
    let writes = fields.filter(|entry| entry.subresource.is_none());
    let times = writes.filter_map(|entry| entry.time.as_ref());
    let times = times.chain(&metadata.creation_timestamp);
    times.map(|time| time.0).max()
}

/// The pull secrets of a ServiceAccount.
fn names(account: &DynamicObject) -> impl Iterator<Item = &str> {
    let named = account.data["imagePullSecrets"].as_array();
    let names = named.into_iter().flatten();
    let names = names.filter_map(|secret| secret["name"].as_str());
    names.take(MOST_PULL_SECRETS)
}

/// The host of a Registry, if it names one.
pub(crate) fn host_of(object: &DynamicObject) -> Option<Host> {
    Host::parse(object.data["spec"]["uri"].as_str()?).ok()
}

/// Reaches a Registry as it is, or as it was when a copy was made of it.
pub(crate) async fn reach(
    operator: &Operator,
    namespace: &str,
    object: &DynamicObject,
) -> Result<Access, Trouble> {
    let spec: Spec = Deserialize::deserialize(&object.data["spec"]).map_err(Trouble::permanent)?;
    let host = Host::parse(&spec.uri).map_err(Trouble::permanent)?;
    let uid = object.uid().unwrap_or_default();
    let mut key = Sha256::new();
    for part in [&uid, &spec.ca_bundle, &spec.insecure.to_string()] {
        count(&mut key, part.as_bytes());
    }
    let labels = object.labels().iter();
    let inherited = labels.filter(|(key, value)| *key == WORKLOAD_SCAN && *value == "true");
    let inherited: BTreeMap<_, _> = inherited.map(|(k, v)| (k.clone(), v.clone())).collect();
    let (credentials, secret) = match spec.auth_secret.as_str() {
        "" => (pull_secrets(operator, namespace, &mut key).await?, None),
        name => {
            let within = match inherited.is_empty() {
                true => namespace,
                // Those of the workload scan are the administrator's, wherever it puts a Registry.
                false => operator.installation(),
            };
            (
                credentials(operator, within, name, &mut key).await?,
                Some(format!("Secret {within}/{name}")),
            )
        }
    };
    let options = Options {
        credentials: credentials.clone(),
        authorities: (!spec.ca_bundle.is_empty()).then(|| spec.ca_bundle.clone().into_bytes()),
        transport: match spec.insecure {
            true => Transport::Insecure,
            false => Transport::Verified,
        },
        // Those of the installation. Whoever writes a Registry names none: he could have others' images
        // looked for where he likes.
        mirrors: operator.mirrors().clone(),
        ..Options::default()
    };
    Ok(Access {
        client: operator.clients().get(key.finalize().into(), || {
            Client::new(options, operator.traffic())
        })?,
        host,
        spec,
        name: object.name_any(),
        uid,
        inherited,
        missing: missing::of(&object.metadata),
        credentials,
        secret,
    })
}

#[cfg(test)]
impl Access {
    /// A Registry that nobody asks.
    pub(crate) fn unasked(spec: Value) -> Access {
        let spec: Spec = serde_json::from_value(spec).expect("a spec");
        let traffic = muster_registry::Traffic::default();
        Access {
            client: Client::new(Options::default(), traffic).expect("a client"),
            host: Host::parse(&spec.uri).expect("a host"),
            spec,
            name: "local".into(),
            uid: String::new(),
            inherited: BTreeMap::new(),
            missing: BTreeSet::new(),
            credentials: Credentials::none(),
            secret: None,
        }
    }
}

impl Access {
    /// A repository as the Registry names it, where Docker Hub's `busybox` is `library/busybox`.
    pub(crate) fn repository(&self, name: &str) -> Result<Repository, Trouble> {
        let whole = match self.host.is_docker_hub() && !name.contains('/') {
            true => format!("library/{name}"),
            false => name.to_owned(),
        };
        Repository::on(&self.host, &whole).map_err(Trouble::permanent)
    }

    /// Whether a refusal is about everything there, and no other door need be knocked at: then the
    /// trouble that says what is wrong with the Registry.
    pub(crate) async fn explain(&self, error: Error) -> Result<Error, Trouble> {
        let host = &self.host;
        match error {
            Error::Untrusted { .. } => Err(Trouble::permanent(format!(
                "the certificate of the registry {host} is not trusted; put that of its authority into spec.caBundle: {error}"
            ))),
            // A login that is good for the registry may still not be good for a repository.
            Error::Unauthorized { .. } if !self.is_let_in().await => {
                Err(Trouble::permanent(self.refused(&error).await))
            }
            error => Ok(error),
        }
    }

    async fn is_let_in(&self) -> bool {
        let asked = self.client.ping(&self.host).await;
        matches!(asked, Ok(muster_registry::Access::Open))
    }

    async fn refused(&self, error: &Error) -> String {
        let host = &self.host;
        let logins = self.credentials.logins(host, None).await;
        let has_one = logins.is_ok_and(|logins| !logins.is_empty());
        let what = match (&self.secret, has_one) {
            (None, false) => format!(
                "the registry {host} wants a login; name a Secret that has one in spec.authSecret"
            ),
            (None, true) => format!(
                "the registry {host} refuses the pull secrets of the ServiceAccount default; name a Secret with another login in spec.authSecret"
            ),
            (Some(secret), false) => format!("the {secret} has no login for the registry {host}"),
            (Some(secret), true) => {
                format!("the registry {host} refuses the login of the {secret}")
            }
        };
        format!("{what}: {error}")
    }
}

/// Adds a part to what a client is told apart by; where one ends is told apart too.
fn count(key: &mut Sha256, part: &[u8]) {
    key.update((part.len() as u64).to_le_bytes());
    key.update(part);
}

/// The logins with which the Pods of a namespace pull where nothing else is said: those of the
/// ServiceAccount `default`. One that cannot be used is no reason to do without the others.
async fn pull_secrets(
    operator: &Operator,
    namespace: &str,
    key: &mut Sha256,
) -> Result<Credentials, Trouble> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "ServiceAccount"));
    let client = operator.client().clone();
    let api: Api<DynamicObject> = Api::namespaced_with(client, namespace, &resource);
    let mut all = Credentials::none();
    let Some(account) = api.get_opt("default").await? else {
        return Ok(all);
    };
    for name in names(&account) {
        match credentials(operator, namespace, name, key).await {
            Ok(one) => all = all.and(one),
            Err(Trouble::Permanent(why)) => tracing::debug!(why, "a pull secret is left out"),
            Err(trouble) => return Err(trouble),
        }
    }
    Ok(all)
}

async fn credentials(
    operator: &Operator,
    namespace: &str,
    name: &str,
    key: &mut Sha256,
) -> Result<Credentials, Trouble> {
    // The type kubernetes.io/dockerconfigjson has the first, the older kubernetes.io/dockercfg the
    // second.
    const FIELDS: [&str; 2] = [".dockerconfigjson", ".dockercfg"];
    let wrong = |why: &str| Trouble::permanent(format!("the Secret {namespace}/{name} {why}"));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Secret"));
    let client = operator.client().clone();
    let api: Api<DynamicObject> = Api::namespaced_with(client, namespace, &resource);
    let Some(secret) = api.get_opt(name).await? else {
        return Err(wrong("does not exist"));
    };
    let data = &secret.data["data"];
    let Some((field, encoded)) = FIELDS
        .iter()
        .find_map(|field| Some((field, data[field].as_str()?)))
    else {
        return Err(wrong(
            "has no .dockerconfigjson; it must be of the type kubernetes.io/dockerconfigjson",
        ));
    };
    let bytes = STANDARD
        .decode(encoded)
        .map_err(|_| wrong(&format!("has a {field} that is not base64")))?;
    count(key, &bytes);
    Credentials::from_secret(&bytes).map_err(|error| wrong(&format!("cannot be used: {error}")))
}
