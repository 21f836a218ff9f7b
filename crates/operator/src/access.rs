//! How a Registry is reached: its address, its certificates, and the credentials it refers to.

use crate::object::REGISTRY;
use crate::work::{Operator, Trouble};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use muster_api::Platform;
use muster_registry::{Client, Credentials, Host, Options, Transport};
use serde::Deserialize;
use serde_json::Value;

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
    pub(crate) match_conditions: Vec<Value>,
}

impl Spec {
    /// Whether images of a platform are wanted.
    pub(crate) fn wants(&self, platform: &Platform) -> bool {
        let mut wanted = self.platforms.iter().filter_map(Platform::read);
        self.platforms.is_empty() || wanted.any(|wanted| platform.satisfies(&wanted))
    }
}

/// A Registry that can be asked.
pub(crate) struct Access {
    pub(crate) client: Client,
    pub(crate) host: Host,
    pub(crate) spec: Spec,
    pub(crate) uid: String,
}

/// Opens a Registry; none if there is no such object.
pub(crate) async fn open(
    operator: &Operator,
    namespace: &str,
    name: &str,
) -> Result<Option<Access>, Trouble> {
    let api = REGISTRY.within(operator.client(), namespace);
    let Some(object) = api.get_opt(name).await? else {
        return Ok(None);
    };
    let spec: Spec = Deserialize::deserialize(&object.data["spec"]).map_err(Trouble::permanent)?;
    let credentials = match spec.auth_secret.as_str() {
        "" => Credentials::none(),
        secret => credentials(operator, namespace, secret).await?,
    };
    let options = Options {
        credentials,
        authorities: (!spec.ca_bundle.is_empty()).then(|| spec.ca_bundle.clone().into_bytes()),
        transport: match spec.insecure {
            true => Transport::Insecure,
            false => Transport::Verified,
        },
        ..Options::default()
    };
    Ok(Some(Access {
        client: Client::new(options, operator.traffic())?,
        host: Host::parse(&spec.uri).map_err(Trouble::permanent)?,
        spec,
        uid: object.metadata.uid.unwrap_or_default(),
    }))
}

async fn credentials(
    operator: &Operator,
    namespace: &str,
    name: &str,
) -> Result<Credentials, Trouble> {
    const KEY: &str = ".dockerconfigjson";
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Secret"));
    let client = operator.client().clone();
    let api: Api<DynamicObject> = Api::namespaced_with(client, namespace, &resource);
    let Some(secret) = api.get_opt(name).await? else {
        let why = format!("the Secret {namespace}/{name} does not exist");
        return Err(Trouble::permanent(why));
    };
    let encoded = secret.data["data"][KEY].as_str().unwrap_or_default();
    let bytes = STANDARD.decode(encoded).map_err(|_| {
        Trouble::permanent(format!(
            "{KEY} of the Secret {namespace}/{name} is not base64"
        ))
    })?;
    Ok(Credentials::from_secret(&bytes)?)
}
