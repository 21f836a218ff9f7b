//! What every store promises, over the trait alone: each function is a case, is given an empty
//! store, and is named by the promise. The cases are the ones Kubernetes' own storage tests find
//! worth checking, and the ones that only a store with a log of its own can get wrong.

pub(crate) mod blobs;
pub(crate) mod computed;
pub(crate) mod forgetting;
pub(crate) mod lists;
pub(crate) mod log;
pub(crate) mod objects;
pub(crate) mod past;

use bytes::Bytes;
use muster_apiserver::store::{
    Change, Expect, Index, Key, ListQuery, Resource, Store, StoreError, Stored, Write,
};
use muster_kind::selector::{FieldSelector, LabelSelector};
use muster_kind::{Body, Digest, FieldPath};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) type Shared = Arc<dyn Store>;

pub(crate) const THINGS: &str = "things.example.com";

pub(crate) fn resource(name: &str) -> Resource {
    name.into()
}

pub(crate) fn things() -> Resource {
    resource(THINGS)
}

pub(crate) fn key(namespace: &str, name: &str) -> Key {
    Key {
        namespace: namespace.into(),
        name: name.into(),
    }
}

/// An object to be written.
#[derive(Clone)]
pub(crate) struct Thing {
    pub(crate) resource: Resource,
    pub(crate) key: Key,
    pub(crate) index: Index,
    pub(crate) tree: Value,
    pub(crate) blobs: BTreeMap<Digest, Bytes>,
}

impl Thing {
    pub(crate) fn new(namespace: &str, name: &str) -> Self {
        let uid = format!("uid-{namespace}-{name}");
        let metadata = json!({"namespace": namespace, "name": name, "uid": uid});
        Thing {
            resource: things(),
            key: key(namespace, name),
            index: Index {
                uid,
                ..Index::default()
            },
            tree: json!({"kind": "Thing", "metadata": metadata, "n": 0}),
            blobs: BTreeMap::new(),
        }
    }

    pub(crate) fn of(mut self, resource: &str) -> Self {
        self.resource = resource.into();
        self
    }

    pub(crate) fn label(mut self, key: &str, value: &str) -> Self {
        self.index.labels.insert(key.into(), value.into());
        self.tree["metadata"]["labels"][key] = value.into();
        self
    }

    pub(crate) fn field(mut self, path: &str, value: &str) -> Self {
        self.index.fields.insert(path.into(), value.into());
        self
    }

    pub(crate) fn owner(mut self, uid: &str) -> Self {
        self.index.owners.push(uid.into());
        self
    }

    pub(crate) fn number(mut self, number: u64) -> Self {
        self.tree["n"] = number.into();
        self
    }

    pub(crate) fn blob(mut self, bytes: &Bytes) -> Self {
        let digest = Digest::of(bytes);
        self.tree["spdx"] = digest.to_string().into();
        self.blobs.insert(digest, bytes.clone());
        self
    }

    pub(crate) fn body(&self) -> Body {
        Body::encode(&self.tree, &[FieldPath::parse("spdx")])
    }

    pub(crate) fn write(&self, expect: Expect) -> Write {
        Write {
            resource: self.resource.clone(),
            key: self.key.clone(),
            expect,
            change: Change::Put {
                body: self.body(),
                index: self.index.clone(),
                blobs: self.blobs.clone(),
            },
        }
    }

    pub(crate) async fn create(&self, store: &Shared) -> u64 {
        store.write(self.write(Expect::Absent)).await.unwrap()
    }

    pub(crate) async fn update(&self, store: &Shared, revision: u64) -> u64 {
        store
            .write(self.write(Expect::Revision(revision)))
            .await
            .unwrap()
    }

    pub(crate) async fn try_delete(
        &self,
        store: &Shared,
        revision: u64,
    ) -> Result<u64, StoreError> {
        let change = Change::Delete { body: self.body() };
        let (resource, key) = (self.resource.clone(), self.key.clone());
        store
            .write(Write {
                resource,
                key,
                expect: Expect::Revision(revision),
                change,
            })
            .await
    }

    pub(crate) async fn delete(&self, store: &Shared, revision: u64) -> u64 {
        self.try_delete(store, revision).await.unwrap()
    }
}

/// All things; the fields narrow it.
pub(crate) fn all() -> ListQuery {
    ListQuery {
        resource: things(),
        namespace: None,
        labels: LabelSelector::default(),
        fields: FieldSelector::default(),
        at: None,
        after: None,
        limit: 10_000,
    }
}

pub(crate) fn labelled(selector: &str) -> ListQuery {
    ListQuery {
        labels: LabelSelector::parse(selector).unwrap(),
        ..all()
    }
}

pub(crate) fn fielded(selector: &str) -> ListQuery {
    ListQuery {
        fields: FieldSelector::parse(selector).unwrap(),
        ..all()
    }
}

/// `namespace/name` of what is listed, joined by spaces.
pub(crate) async fn names(store: &Shared, query: ListQuery) -> String {
    joined(&store.list(query).await.unwrap().items)
}

pub(crate) fn joined(items: &[Stored]) -> String {
    let paths = items
        .iter()
        .map(|item| format!("{}/{}", item.key.namespace, item.key.name));
    paths.collect::<Vec<_>>().join(" ")
}

pub(crate) fn number(body: &Body) -> u64 {
    body.tree(0)["n"].as_u64().unwrap()
}
