//! Creating: a body becomes an object with a name, a UID and a first revision.

use crate::identity::Attributes;
use crate::metadata;
use crate::request::Verb;
use crate::store::StoreError;
use crate::write::{Writer, Written};
use muster_kind::object::{meta, metadata_mut};
use muster_kind::{Object, Status};
use serde_json::{Value, json};

/// How many generated names are tried before the client is asked to try again.
const NAME_TRIES: usize = 8;

impl Writer<'_> {
    /// Makes a new object. `own` is false where an apply has settled the ownership already.
    pub(crate) async fn create(
        &mut self,
        mut object: Object,
        own: bool,
    ) -> Result<Written, Status> {
        self.check_place(&object.tree)?;
        let sent = meta(&object.tree, "resourceVersion");
        if !matches!(sent, "" | "0") {
            return Err(Status::unexplained(
                "resourceVersion should not be set on objects to be created",
            ));
        }
        let target = self.target;
        let kind = &target.served.kind;
        if kind.status
            && let Some(root) = object.tree.as_object_mut()
        {
            root.remove("status");
            if kind.builtin && kind.schema.properties.contains_key("status") {
                root.insert("status".into(), json!({}));
            }
        }
        metadata::prepare_create(&mut object.tree, kind, &target.key.namespace, &self.now);
        let prefix = meta(&object.tree, "generateName").to_owned();
        let generated = !prefix.is_empty() && meta(&object.tree, "name").is_empty();
        for attempt in 1.. {
            let mut object = object.clone();
            if generated {
                let name = metadata::generate_name(&prefix);
                metadata_mut(&mut object.tree).insert("name".into(), json!(name));
            }
            if attempt == 1 {
                self.warnings.extend(metadata::warnings(&object.tree, kind));
            }
            self.admit(Verb::Create, Some(&mut object), None).await?;
            self.validate(&mut object, None)?;
            if own {
                self.own(None, &mut object)?;
            }
            self.check_size(&object, None)?;
            let name = meta(&object.tree, "name").to_owned();
            match self.place(object).await {
                Err(StoreError::Exists) if generated && attempt < NAME_TRIES => {}
                Err(StoreError::Exists) if generated => {
                    let mut status = Status::already_exists(target.about(), &name);
                    status.message = format!(
                        "{}, the server was not able to generate a unique name for the object",
                        status.message
                    );
                    return Err(status);
                }
                Err(StoreError::Exists) => {
                    return Err(Status::already_exists(target.about(), &name));
                }
                Err(error) => return Err(target.failure(error)),
                Ok(written) => return Ok(written),
            }
        }
        unreachable!("invariant: the last attempt returns")
    }

    /// Whoever may change an object may not therefore make it.
    pub(crate) async fn may_create(&self) -> Result<(), Status> {
        let (target, kind) = (self.target, &self.target.served.kind);
        let what = Attributes {
            verb: Verb::Create.as_str().into(),
            namespace: target.key.namespace.clone(),
            group: kind.group.clone(),
            version: target.version.clone(),
            resource: kind.plural.clone(),
            name: target.key.name.clone(),
            ..Attributes::default()
        };
        self.server.allow(self.who, &what).await
    }

    /// A dry run must still say that a name is taken.
    async fn place(&self, object: Object) -> Result<Written, StoreError> {
        if self.options.dry_run {
            let key = crate::store::Key {
                name: meta(&object.tree, "name").into(),
                ..self.target.key.clone()
            };
            if self
                .server
                .store
                .get(&self.target.served.resource, &key)
                .await?
                .is_some()
            {
                return Err(StoreError::Exists);
            }
        }
        self.store(object, None).await
    }

    /// The body must not name another place than the path does.
    pub(crate) fn check_place(&self, tree: &Value) -> Result<(), Status> {
        let namespace = meta(tree, "namespace");
        let key = &self.target.key;
        let namespaced = self.target.served.kind.is_namespaced();
        if namespaced && !namespace.is_empty() && namespace != key.namespace {
            return Err(Status::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        let name = meta(tree, "name");
        if !key.name.is_empty() && !name.is_empty() && name != key.name {
            return Err(Status::bad_request(format!(
                "the name of the object ({name}) does not match the name on the URL ({})",
                key.name
            )));
        }
        Ok(())
    }
}
