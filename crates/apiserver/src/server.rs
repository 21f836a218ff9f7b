//! The server: one value that answers requests. A request is authenticated, authorized, and handed
//! to the story its path and verb tell. The same value serves the network and, in process, any
//! client that calls it directly.

use crate::admission::Admission;
use crate::body::{ProtobufDecoder, RequestBody};
use crate::catalog::Catalog;
use crate::garbage::{self, Collector};
use crate::hub::Hubs;
use crate::identity::{Attributes, Authenticator, Authorizer, Decision, Identity, Refusal};
use crate::metrics::{Counters, Metrics, Raised, RequestLabels, VerbLabels};
use crate::page::{self, Page};
use crate::query::Query;
use crate::request::{self, ResourcePath, Verb};
use crate::respond::{self, Answer};
use crate::room::Room;
use crate::store::{Key, Resource, Store};
use crate::upkeep::{self, Upkeep};
use crate::{compress, fixed, impersonate, links, resource};
use futures::FutureExt;
use futures::future::BoxFuture;
use http::{HeaderValue, Request, header};
use muster_kind::status::About;
use muster_kind::{Kind, Status};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// What all request bodies together may take: two and a half of the largest.
const ROOM: usize = 256 * 1024 * 1024;

/// What a server is made of.
pub struct Parts {
    /// The kinds it serves.
    pub kinds: Vec<Kind>,
    /// Where it keeps them.
    pub store: Arc<dyn Store>,
    /// Who may tell who asks; the first that knows counts.
    pub authenticators: Vec<Box<dyn Authenticator>>,
    /// Who judges what may be done.
    pub authorizer: Arc<dyn Authorizer>,
    /// Rules beyond the kinds' own.
    pub admissions: Vec<Box<dyn Admission>>,
    /// Who answers paths that name no resource, beside the server itself.
    pub pages: Vec<Arc<dyn Page>>,
    /// How protobuf bodies of built-in kinds are read.
    pub protobuf: ProtobufDecoder,
    /// The version `/version` tells.
    pub version: serde_json::Value,
    /// How much of the past it keeps.
    pub upkeep: Upkeep,
    /// What must be fine for the server to be ready.
    pub checks: Vec<Check>,
    /// Who counts beside the server, on its page `/metrics`.
    pub counters: Option<Arc<dyn Counters>>,
}

/// Something without which a server is not ready.
pub struct Check {
    /// Its name on the page `/readyz?verbose`.
    pub name: &'static str,
    /// Whether it is fine now.
    pub is_fine: Box<dyn Fn() -> bool + Send + Sync>,
}

/// A Kubernetes-style API server.
pub struct Server {
    pub(crate) catalog: Catalog,
    pub(crate) store: Arc<dyn Store>,
    authenticators: Vec<Box<dyn Authenticator>>,
    pub(crate) authorizer: Arc<dyn Authorizer>,
    pub(crate) admissions: Vec<Box<dyn Admission>>,
    pages: Vec<Arc<dyn Page>>,
    pub(crate) protobuf: ProtobufDecoder,
    pub(crate) version: serde_json::Value,
    pub(crate) hubs: Hubs,
    pub(crate) room: Room,
    pub(crate) metrics: Metrics,
    pub(crate) collector: Collector,
    pub(crate) keeps_namespaces: bool,
    upkeep: Upkeep,
    pub(crate) checks: Vec<Check>,
    pub(crate) counters: Option<Arc<dyn Counters>>,
    pub(crate) tasks: TaskTracker,
    drain: CancellationToken,
    pub(crate) stop: CancellationToken,
}

impl Server {
    /// A server made of these parts. It answers requests; its duties run only if asked for.
    pub fn new(parts: Parts) -> Arc<Self> {
        let catalog = Catalog::new(parts.kinds);
        let keeps_namespaces = catalog.find("", "v1", "namespaces").is_some();
        Arc::new(Server {
            catalog,
            store: parts.store,
            authenticators: parts.authenticators,
            authorizer: parts.authorizer,
            admissions: parts.admissions,
            pages: parts.pages,
            protobuf: parts.protobuf,
            version: parts.version,
            hubs: Hubs::default(),
            room: Room::new(ROOM),
            metrics: Metrics::default(),
            collector: Collector::default(),
            keeps_namespaces,
            upkeep: parts.upkeep,
            checks: parts.checks,
            counters: parts.counters,
            tasks: TaskTracker::new(),
            drain: CancellationToken::new(),
            stop: CancellationToken::new(),
        })
    }

    /// Stores the links of objects that an older version stored without them. To be called before the first
    /// request: until then, what is computed from such objects is missing.
    pub async fn store_missing_links(&self) -> Result<(), Status> {
        let written = links::store_missing(self).await;
        let written = written.map_err(crate::failure::store_failure)?;
        if written > 0 {
            tracing::info!(objects = written, "stored the links of older objects");
        }
        Ok(())
    }

    /// Takes on what kube-controller-manager does elsewhere: garbage collection and the end of
    /// namespaces.
    pub fn start_controllers(self: &Arc<Self>) {
        self.tasks.spawn(garbage::run(self.clone()));
    }

    /// Keeps the store small.
    pub fn start_upkeep(self: &Arc<Self>) {
        self.tasks.spawn(upkeep::run(self.clone(), self.upkeep));
    }

    /// Says that the server will end soon: it is not ready any more, and still answers.
    pub fn drain(&self) {
        self.drain.cancel();
    }

    /// Ends watches and duties, and waits until they have.
    pub async fn shut_down(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Whether the server is ending, or will soon.
    pub fn is_stopping(&self) -> bool {
        self.stop.is_cancelled() || self.drain.is_cancelled()
    }

    /// Whether an object is there; for whoever sets up a server.
    pub async fn exists(&self, resource: &str, key: &Key) -> Result<bool, Status> {
        let found = self.store.get(&Resource::from(resource), key).await;
        Ok(found.map_err(crate::failure::store_failure)?.is_some())
    }

    /// Answers a request. Its identity is the extension [`Identity`] if the caller, in process,
    /// has set one; else whatever the authenticators find. (Boxed, it is compiled once and not with
    /// every binary that awaits it.)
    pub fn handle(self: &Arc<Self>, request: Request<RequestBody>) -> BoxFuture<'_, Answer> {
        Box::pin(self.respond(request))
    }

    async fn respond(self: &Arc<Self>, request: Request<RequestBody>) -> Answer {
        let start = Instant::now();
        let (parts, body) = request.into_parts();
        let audit = parts
            .headers
            .get("audit-id")
            .cloned()
            .or_else(|| HeaderValue::from_str(&uuid::Uuid::new_v4().to_string()).ok());
        let path = request::resource_path(parts.uri.path());
        let query = Query::parse(parts.uri.query().unwrap_or_default());
        let verb = path
            .as_ref()
            .and_then(|p| request::verb(&parts.method, p, query.flag("watch")));
        let counted = Raised::new(&self.metrics.in_flight);
        let result = self.answer(&parts, body, path.as_ref(), verb, &query);
        let result = AssertUnwindSafe(result).catch_unwind().await;
        let result = result.unwrap_or_else(|_| {
            tracing::error!(path = parts.uri.path(), "a request panicked");
            Err(Status::internal("the request panicked"))
        });
        drop(counted);
        let mut response = result.unwrap_or_else(|status| respond::error(&status));
        if compress::is_accepted(&parts.headers) {
            response = compress::whole(response).await;
        }
        let known = path.as_ref().filter(|p| {
            self.catalog
                .find(&p.group, &p.version, &p.resource)
                .is_some()
        });
        let page = page::find(&self.pages, parts.uri.path());
        let verb = match page {
            Some(_) => page::verb(&parts.method),
            None => verb.map_or("other", Verb::as_str),
        };
        let verb = verb.to_owned();
        let resource = match page {
            Some(page) => page.root().into(),
            None => known.map(|p| p.resource.clone()).unwrap_or_default(),
        };
        self.metrics
            .requests
            .get_or_create(&RequestLabels {
                verb: verb.clone(),
                group: known.map(|p| p.group.clone()).unwrap_or_default(),
                resource,
                code: response.status().as_u16(),
            })
            .inc();
        if verb != "watch" {
            let seconds = start.elapsed().as_secs_f64();
            self.metrics
                .seconds
                .get_or_create(&VerbLabels { verb })
                .observe(seconds);
        }
        let headers = response.headers_mut();
        headers
            .entry(header::CACHE_CONTROL)
            .or_insert(HeaderValue::from_static("no-cache, private"));
        if let Some(audit) = audit {
            headers.insert("audit-id", audit);
        }
        response
    }

    async fn answer(
        self: &Arc<Self>,
        parts: &http::request::Parts,
        body: RequestBody,
        path: Option<&ResourcePath>,
        verb: Option<Verb>,
        query: &Query,
    ) -> Result<Answer, Status> {
        let who = self
            .impersonated(self.identify(parts).await?, parts)
            .await?;
        let Some(path) = path else {
            self.allow(&who, &path_attributes(parts)).await?;
            return match page::find(&self.pages, parts.uri.path()) {
                Some(page) => page::answer(self, page, parts, query, body).await,
                None => fixed::answer(self, parts, query).await,
            };
        };
        let Some(served) = self
            .catalog
            .find(&path.group, &path.version, &path.resource)
        else {
            return self.unserved(parts, body, path, &who).await;
        };
        // A custom object is not watched under its name; such a request reads it.
        let verb = match verb {
            Some(Verb::Watch) if !path.name.is_empty() && !served.kind.builtin => Some(Verb::Get),
            verb => verb,
        };
        let Some(verb) = verb else {
            return Err(resource::unknown_method(served, parts));
        };
        self.allow(&who, &resource_attributes(path, verb, query))
            .await?;
        resource::answer(self, parts, body, path, verb, query, &who).await
    }

    /// A path below a group that names no kind of ours: a review, or nothing.
    async fn unserved(
        self: &Arc<Self>,
        parts: &http::request::Parts,
        body: RequestBody,
        path: &ResourcePath,
        who: &Identity,
    ) -> Result<Answer, Status> {
        self.allow(
            who,
            &resource_attributes(path, Verb::Create, &Query::default()),
        )
        .await?;
        if let Some(review) = fixed::review(self, parts, path, who) {
            return review.answer(body).await;
        }
        let builtin = path.group.is_empty()
            || self
                .catalog
                .of(&path.group, &path.version)
                .any(|s| s.kind.builtin);
        if builtin {
            Err(Status::no_such_path())
        } else {
            Ok(respond::no_page())
        }
    }

    async fn identify(&self, parts: &http::request::Parts) -> Result<Identity, Status> {
        if let Some(identity) = parts.extensions.get::<Identity>() {
            return Ok(identity.clone());
        }
        for authenticator in &self.authenticators {
            match authenticator.authenticate(parts).await {
                Ok(Some(mut identity)) => {
                    // A proxy in front tells us of anonymous users too.
                    let anonymous = identity.user == "system:anonymous"
                        || identity.is_in("system:unauthenticated");
                    if !anonymous && !identity.is_in("system:authenticated") {
                        identity.groups.push("system:authenticated".into());
                    }
                    return Ok(identity);
                }
                Ok(None) => {}
                Err(Refusal::Bad(why)) => {
                    tracing::debug!(why, "bad credentials");
                    return Err(Status::unauthorized());
                }
                Err(Refusal::Unavailable(why)) => {
                    tracing::warn!(why, "authenticating");
                    return Err(again(
                        "nobody can tell now whether the credentials are right",
                    ));
                }
            }
        }
        // Credentials that nobody recognises are bad ones, not none.
        if parts.headers.contains_key(header::AUTHORIZATION) {
            return Err(Status::unauthorized());
        }
        Ok(Identity::anonymous())
    }

    /// Whoever the request wants to be, if its sender may.
    async fn impersonated(
        &self,
        who: Identity,
        parts: &http::request::Parts,
    ) -> Result<Identity, Status> {
        let Some(wish) = impersonate::wish(&parts.headers)? else {
            return Ok(who);
        };
        for need in &wish.needs {
            self.allow(&who, need).await?;
        }
        Ok(wish.identity)
    }

    pub(crate) async fn allow(&self, who: &Identity, what: &Attributes) -> Result<(), Status> {
        match self.authorizer.authorize(who, what).await {
            Decision::Allowed => Ok(()),
            Decision::Denied(reason) => Err(forbidden(who, what, &reason)),
            Decision::Unknown(why) => {
                tracing::warn!(why, "authorizing");
                Err(again("nobody can tell now whether this is allowed"))
            }
        }
    }
}

/// The client can do nothing about it but come again.
fn again(why: &str) -> Status {
    let mut status = Status::unavailable(why);
    status.retry_after = Some(1);
    status
}

fn forbidden(who: &Identity, what: &Attributes, reason: &str) -> Status {
    let user = &who.user;
    let mut why = if what.resource.is_empty() {
        format!("User {user:?} cannot {} path {:?}", what.verb, what.path)
    } else {
        let mut resource = what.resource.clone();
        if !what.subresource.is_empty() {
            resource = format!("{resource}/{}", what.subresource);
        }
        let place = if what.namespace.is_empty() {
            "at the cluster scope".to_owned()
        } else {
            format!("in the namespace {:?}", what.namespace)
        };
        format!(
            "User {user:?} cannot {} resource {resource:?} in API group {:?} {place}",
            what.verb, what.group
        )
    };
    if !reason.is_empty() {
        why = format!("{why}: {reason}");
    }
    Status::forbidden(
        About {
            group: &what.group,
            resource: &what.resource,
        },
        &what.name,
        &why,
    )
}

fn path_attributes(parts: &http::request::Parts) -> Attributes {
    Attributes {
        verb: parts.method.as_str().to_lowercase(),
        path: parts.uri.path().into(),
        ..Attributes::default()
    }
}

fn resource_attributes(path: &ResourcePath, verb: Verb, query: &Query) -> Attributes {
    let mut name = path.name.clone();
    if name.is_empty() && matches!(verb, Verb::List | Verb::Watch | Verb::DeleteCollection) {
        // A collection narrowed to one name is a question about that name.
        let fields = muster_kind::selector::FieldSelector::parse(query.get("fieldSelector"));
        name = fields
            .ok()
            .and_then(|f| f.requires("metadata.name").map(Into::into))
            .unwrap_or_default();
    }
    let collection = path.name.is_empty() && verb != Verb::Create;
    let selector = |parameter: &str| match collection {
        true => query.get(parameter).to_owned(),
        false => String::new(),
    };
    let namespace = match (path.group.as_str(), path.resource.as_str()) {
        ("", "namespaces") => path.name.clone(),
        _ => path.namespace.clone(),
    };
    Attributes {
        verb: verb.as_str().into(),
        namespace,
        group: path.group.clone(),
        version: path.version.clone(),
        resource: path.resource.clone(),
        subresource: path.subresource.clone(),
        name,
        path: String::new(),
        label_selector: selector("labelSelector"),
        field_selector: selector("fieldSelector"),
    }
}
