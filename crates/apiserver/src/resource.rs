//! A request about a resource: find the kind, check that verb and place make sense, and tell the
//! story of the verb.

use crate::body::{self, RequestBody};
use crate::catalog::Served;
use crate::delete::{self, DeleteOptions, Deleted};
use crate::failure::store_failure;
use crate::identity::Identity;
use crate::negotiate::{self, Shape, View};
use crate::outgoing::{Halt, Outgoing};
use crate::query::{ListOptions, Query, Revision, WriteOptions, parse_revision};
use crate::render::{self, Form, Include, Shown};
use crate::request::{ResourcePath, Verb};
use crate::respond::{self, Answer};
use crate::server::Server;
use crate::store::{Key, Stored};
use crate::write::{Target, Writer, Written, manager, show_revision};
use crate::{compress, computed, discovery, list, watch};
use bytes::BytesMut;
use futures::StreamExt;
use http::request::Parts;
use http::{Method, StatusCode, header};
use muster_kind::selector::FieldTerm;
use muster_kind::status::About;
use muster_kind::{Object, Status, time};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::mpsc;

/// How many objects of a collection are deleted at once.
const DELETE_CONCURRENCY: usize = 16;

/// Answers a request about a resource.
pub(crate) async fn answer(
    server: &Arc<Server>,
    parts: &Parts,
    body: RequestBody,
    path: &ResourcePath,
    verb: Verb,
    query: &Query,
    who: &Identity,
) -> Result<Answer, Status> {
    let served = server
        .catalog
        .find(&path.group, &path.version, &path.resource)
        .ok_or_else(Status::no_such_path)?;
    if !check_place(served, path, verb)? {
        return Ok(respond::no_page());
    }
    let accept = parts
        .headers
        .get(header::ACCEPT)
        .and_then(|value| value.to_str().ok());
    let shape = match verb {
        Verb::List | Verb::DeleteCollection => Shape::List,
        Verb::Watch => Shape::Watch,
        _ => Shape::One,
    };
    let form = Form {
        view: negotiate::view(accept, shape)?,
        include: include(query)?,
        version: served
            .kind
            .versions
            .iter()
            .position(|v| *v == path.version)
            .unwrap_or(0),
        // What watchers see is computed once for all of them.
        brief: matches!(verb, Verb::Get | Verb::List) && query.get("computed") == "brief",
    };
    let namespace = (!path.namespace.is_empty()).then(|| path.namespace.clone());
    let target = Target {
        served: served.clone(),
        version: path.version.clone(),
        key: Key {
            namespace: path.namespace.clone(),
            name: path.name.clone(),
        },
        subresource: path.subresource.clone(),
    };
    match verb {
        Verb::Get => {
            let gzip = compress::is_accepted(&parts.headers);
            get(server, &target, query, form, gzip).await
        }
        Verb::List => {
            let options = ListOptions::read(query, &served.kind, false)?;
            let gzip = compress::is_accepted(&parts.headers);
            list::list(server, served, namespace, options, form, gzip).await
        }
        Verb::Watch => {
            let mut options = ListOptions::read(query, &served.kind, true)?;
            if !path.name.is_empty() {
                let field = "metadata.name".to_owned();
                options.fields.0.push(FieldTerm {
                    field,
                    value: path.name.clone(),
                    equal: true,
                });
            }
            watch::watch(server, served, namespace, options, form).await
        }
        Verb::Create | Verb::Update | Verb::Patch => {
            let call = Call {
                server,
                parts,
                query,
                who,
                target: &target,
                form,
            };
            call.write(verb, body).await
        }
        Verb::Delete => {
            let call = Call {
                server,
                parts,
                query,
                who,
                target: &target,
                form,
            };
            call.delete(body).await
        }
        Verb::DeleteCollection => {
            let call = Call {
                server,
                parts,
                query,
                who,
                target: &target,
                form,
            };
            call.delete_collection(body).await
        }
    }
}

/// The answer to a method that means nothing here.
pub(crate) fn unknown_method(served: &Served, parts: &Parts) -> Status {
    let kind = &served.kind;
    let about = About {
        group: &kind.group,
        resource: &kind.plural,
    };
    match parts.method {
        _ if kind.builtin => Status::method_not_allowed(),
        Method::PUT | Method::PATCH => Status::bad_request("name must be provided"),
        _ => Status::not_supported(about, ""),
    }
}

/// Verb, namespace and subresource must make sense for the kind; `false` if there is no such page.
fn check_place(served: &Served, path: &ResourcePath, verb: Verb) -> Result<bool, Status> {
    let kind = &served.kind;
    let about = About {
        group: &kind.group,
        resource: &kind.plural,
    };
    let namespaced = !path.namespace.is_empty();
    let nowhere = || {
        if kind.builtin {
            Err(Status::no_such_path())
        } else {
            Ok(false)
        }
    };
    if namespaced && !kind.is_namespaced() {
        return nowhere();
    }
    let across = kind.is_namespaced() && !namespaced;
    if across && !path.name.is_empty() {
        return nowhere();
    }
    if across && !matches!(verb, Verb::List | Verb::Watch) {
        return if kind.builtin {
            Err(Status::method_not_allowed())
        } else {
            Ok(false)
        };
    }
    match path.subresource.as_str() {
        "" => {}
        "status" if kind.status => {}
        "finalize" if discovery::is_namespace(kind) => {}
        _ if kind.builtin => return Err(Status::no_such_path()),
        _ => return Err(Status::not_found(about, &path.name)),
    }
    let fits = match verb {
        // A custom object may be created under its own name.
        Verb::Create => path.name.is_empty() || (!kind.builtin && path.subresource.is_empty()),
        Verb::Delete => path.subresource.is_empty(),
        Verb::DeleteCollection => !discovery::is_namespace(kind),
        Verb::Get | Verb::Patch => path.subresource != "finalize",
        _ => true,
    };
    match fits {
        true => Ok(true),
        false if kind.builtin => Err(Status::method_not_allowed()),
        false => Err(Status::not_supported(about, verb.as_str())),
    }
}

fn include(query: &Query) -> Result<Include, Status> {
    match query.get("includeObject") {
        "" | "Metadata" => Ok(Include::Metadata),
        "Object" => Ok(Include::Object),
        "None" => Ok(Include::None),
        other => Err(Status::bad_request(format!(
            "Unable to convert to Table as requested: includeObject: Invalid value: {other:?}: must be 'Metadata', 'Object', 'None', or empty"
        ))),
    }
}

async fn get(
    server: &Server,
    target: &Target,
    query: &Query,
    form: Form,
    gzip: bool,
) -> Result<Answer, Status> {
    if let Some(asked) = parse_revision(query.get("resourceVersion"))
        .map_err(Status::unexplained)?
        .filter(|r| *r > 0)
    {
        let current = server.store.revision(&target.served.resource).await;
        let current = current.map_err(|error| target.failure(error))?;
        if asked > current {
            return Err(Status::future_revision(asked, current));
        }
    }
    let stored = server.store.get(&target.served.resource, &target.key).await;
    let stored = stored
        .map_err(|e| target.failure(e))?
        .ok_or_else(|| target.not_found())?;
    show(server, &target.served, form, StatusCode::OK, stored, gzip).await
}

/// Shows a stored object: in one piece with its length, or, if it is large, while it is made.
async fn show(
    server: &Server,
    served: &Arc<Served>,
    form: Form,
    code: StatusCode,
    mut stored: Stored,
    gzip: bool,
) -> Result<Answer, Status> {
    let objects = std::slice::from_mut(&mut stored);
    let completed = computed::complete(&*server.store, served, form, objects).await;
    completed.map_err(store_failure)?;
    let object = (stored.revision, &stored.body);
    let shown = render::one(&*server.store, served, form, object, true, ("", "")).await?;
    let mut opaque = match shown {
        Shown::Whole(bytes) => return Ok(respond::answer(code, form.content_type(), bytes)),
        Shown::Large(opaque) => opaque,
    };
    let (sender, receiver) = mpsc::channel(2);
    let (store, served) = (server.store.clone(), served.clone());
    server.tasks.spawn(async move {
        let mut out = Outgoing::new(sender.clone(), BytesMut::new(), gzip);
        let object = (stored.revision, &stored.body);
        let sent = render::send(&*store, &served, form, object, &mut opaque, &mut out).await;
        let sent = match sent {
            Ok(()) => out.finish().await,
            Err(halt) => Err(halt),
        };
        if let Err(Halt::Failed(status)) = sent {
            // The status line is out; all that is left is to break off, which every client sees.
            let _ = sender.send(Err(status.into())).await;
        }
    });
    Ok(respond::streamed(code, form.content_type(), receiver, gzip))
}

struct Call<'a> {
    server: &'a Arc<Server>,
    parts: &'a Parts,
    query: &'a Query,
    who: &'a Identity,
    target: &'a Target,
    form: Form,
}

impl<'a> Call<'a> {
    fn writer(&self, options: WriteOptions) -> Writer<'a> {
        Writer {
            server: self.server,
            target: self.target,
            who: self.who,
            manager: manager(&options, &self.parts.headers),
            options,
            now: time::now(),
            warnings: Vec::new(),
            tree_bytes: 0,
        }
    }

    async fn write(&self, verb: Verb, body: RequestBody) -> Result<Answer, Status> {
        let options = WriteOptions::read(
            self.query,
            match verb {
                Verb::Create => "CreateOptions",
                Verb::Patch => "PatchOptions",
                _ => "UpdateOptions",
            },
        )?;
        let mut writer = self.writer(options);
        let headers = &self.parts.headers;
        let bytes = body::read(
            body,
            headers,
            self.target.served.kind.size_limit,
            &self.server.room,
        )
        .await?;
        let answer = match self.tell(verb, &mut writer, &bytes).await {
            Ok((written, made)) => {
                let code = if made {
                    StatusCode::CREATED
                } else {
                    StatusCode::OK
                };
                self.show_written(code, written).await?
            }
            Err(status) => respond::error(&status),
        };
        Ok(respond::with_warnings(answer, &writer.warnings))
    }

    async fn tell(
        &self,
        verb: Verb,
        writer: &mut Writer<'a>,
        bytes: &bytes::Bytes,
    ) -> Result<(Written, bool), Status> {
        let headers = &self.parts.headers;
        // The tree and its copies have room of their own until the request is answered.
        let room = &self.server.room;
        match verb {
            Verb::Create => {
                let object = writer.decode(bytes, headers)?;
                let _room = room.for_tree(writer.tree_bytes)?;
                Ok((writer.create(object, true).await?, true))
            }
            Verb::Update => {
                let object = writer.decode(bytes, headers)?;
                let _room = room.for_tree(writer.tree_bytes)?;
                writer.update(object).await
            }
            _ => {
                let patch = writer.read_patch(bytes, headers)?;
                let _room = room.for_tree(writer.tree_bytes)?;
                writer.patch(patch).await
            }
        }
    }

    async fn show_written(&self, code: StatusCode, written: Written) -> Result<Answer, Status> {
        let (served, gzip) = (
            &self.target.served,
            compress::is_accepted(&self.parts.headers),
        );
        let (object, revision) = match written {
            Written::Object(stored) => {
                return show(self.server, served, self.form, code, stored, gzip).await;
            }
            Written::Dry(object, Some(revision))
                if !self.target.served.kind.computed.is_empty() =>
            {
                let stored = Stored {
                    key: self.target.key.clone(),
                    revision,
                    body: self.target.served.body(&object),
                };
                return show(self.server, served, self.form, code, stored, gzip).await;
            }
            Written::Dry(object, revision) => (object, revision),
        };
        let Object { mut tree, blobs } = object;
        tree["apiVersion"] = json!(self.target.api_version());
        tree["kind"] = json!(self.target.served.kind.kind);
        show_revision(&mut tree, revision);
        let served = &self.target.served;
        let value = match self.form.view {
            View::Metadata => render::partial(&tree),
            View::Table(version) => {
                let rows = vec![render::row(served, self.form, &tree)];
                render::table(version, render::columns(served), rows, json!({}))
            }
            View::Object => {
                for path in &served.kind.opaque {
                    unseal(&mut tree, path, &blobs);
                }
                tree
            }
        };
        Ok(respond::json(code, &value))
    }

    async fn delete(&self, body: RequestBody) -> Result<Answer, Status> {
        let (options, mut writer) = self.deleting(body).await?;
        let target = self.target;
        match writer.delete(&options).await? {
            Deleted::Gone(uid) => {
                let success = delete::success(&target.served.kind, &target.key.name, &uid);
                Ok(respond::json(StatusCode::OK, &success))
            }
            Deleted::Waiting(written) => self.show_written(StatusCode::OK, written).await,
        }
    }

    async fn deleting(&self, body: RequestBody) -> Result<(DeleteOptions, Writer<'a>), Status> {
        let headers = &self.parts.headers;
        let bytes = body::read(
            body,
            headers,
            muster_kind::kind::SIZE_LIMIT,
            &self.server.room,
        )
        .await?;
        let options = DeleteOptions::read(self.query, &bytes, headers, self.server.protobuf)?;
        let write = WriteOptions {
            dry_run: options.dry_run,
            manager: String::new(),
            validation: crate::query::FieldValidation::Ignore,
            force: false,
        };
        Ok((options, self.writer(write)))
    }

    /// Deletes what a list would show, and shows it.
    async fn delete_collection(&self, body: RequestBody) -> Result<Answer, Status> {
        let (options, _) = self.deleting(body).await?;
        let served = &self.target.served;
        let mut list_options = ListOptions::read(self.query, &served.kind, false)?;
        list_options.revision = Revision::Newest;
        let namespace = Some(self.target.key.namespace.clone()).filter(|n| !n.is_empty());
        let mut query = list::query(self.server, served, namespace, &list_options).await?;
        let mut shown: Vec<Value> = Vec::new();
        let mut revision = 0;
        loop {
            let page = self.server.store.list(query.clone()).await;
            let page = page.map_err(|error| self.target.failure(error))?;
            if revision == 0 {
                revision = page.revision;
            }
            let last = page.items.last().map(|stored| stored.key.clone());
            let deletions = page
                .items
                .into_iter()
                .map(|stored| self.delete_one(stored, &options));
            let mut outcomes = futures::stream::iter(deletions).buffered(DELETE_CONCURRENCY);
            while let Some(outcome) = outcomes.next().await {
                shown.extend(outcome?);
            }
            if !page.more {
                break;
            }
            query.after = last;
        }
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if !served.kind.builtin {
            metadata["continue"] = json!("");
        }
        Ok(respond::json(
            StatusCode::OK,
            &json!({
                "apiVersion": self.target.api_version(),
                "kind": format!("{}List", served.kind.kind),
                "metadata": metadata,
                "items": shown,
            }),
        ))
    }

    async fn delete_one(
        &self,
        stored: Stored,
        options: &DeleteOptions,
    ) -> Result<Option<Value>, Status> {
        let target = Target {
            served: self.target.served.clone(),
            version: self.target.version.clone(),
            key: stored.key.clone(),
            subresource: String::new(),
        };
        let write = WriteOptions {
            dry_run: options.dry_run,
            manager: String::new(),
            validation: crate::query::FieldValidation::Ignore,
            force: false,
        };
        let mut writer = Writer {
            target: &target,
            ..self.writer(write)
        };
        match writer.delete(options).await {
            Ok(_) => {
                let mut tree = target.served.tree(&stored.body, stored.revision);
                tree["apiVersion"] = json!(self.target.api_version());
                if let Some(root) = tree.as_object_mut().filter(|_| target.served.kind.builtin) {
                    root.retain(|key, _| key != "apiVersion" && key != "kind");
                }
                Ok(Some(tree))
            }
            // Somebody else deleted it first.
            Err(status) if status.code == 404 => Ok(None),
            Err(status) => Err(status),
        }
    }
}

fn unseal(
    tree: &mut Value,
    path: &muster_kind::FieldPath,
    blobs: &std::collections::BTreeMap<muster_kind::Digest, bytes::Bytes>,
) {
    let mut value = Some(tree);
    for name in path.names() {
        value = value.and_then(|value| value.get_mut(name));
    }
    if let Some(value) = value
        && let Some(bytes) = value
            .as_str()
            .and_then(muster_kind::Digest::parse)
            .and_then(|digest| blobs.get(&digest))
        && let Ok(plain) = serde_json::from_slice(bytes)
    {
        *value = plain;
    }
}
