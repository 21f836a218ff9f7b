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
use std::time::SystemTime;

/// Gives every case, by its module, to a macro that runs it over an engine.
macro_rules! every_case {
    ($run:ident) => {
        $run! {
            objects:
                a_created_object_is_read_back_as_it_was_written
                the_empty_state_is_revision_one_and_every_change_takes_the_next
                each_resource_has_its_own_clock
                creating_what_exists_is_refused_and_leaves_no_trace
                what_is_missing_is_none_and_cannot_be_changed
                an_update_of_another_revision_is_a_conflict
                a_delete_of_another_revision_is_a_conflict
                what_is_created_again_has_a_larger_revision
                concurrent_updates_of_one_object_lose_none
                large_and_odd_bodies_come_back_byte_for_byte
                owners_find_what_they_own_in_every_resource
                objects_dangle_when_one_of_their_owners_is_gone
                an_owner_named_twice_is_one_owner
                a_uid_exists_as_long_as_its_object;
            lists:
                a_list_is_in_order_of_namespace_and_name_by_bytes
                a_namespace_is_not_a_prefix
                a_list_of_what_was_never_written_is_empty
                a_list_has_only_its_resource
                label_selectors_select_as_kubernetes_says
                field_selectors_select_by_name_namespace_and_field
                selectors_see_labels_that_changed
                pages_are_full_and_the_last_one_knows_it_is
                a_rare_object_is_found_behind_many_others
                what_lies_behind_a_key_is_counted
                a_list_is_consistent_with_its_revision_while_others_write;
            past:
                every_past_revision_can_be_listed_exactly
                selectors_judge_the_past_by_its_own_labels
                pages_stay_at_their_revision_whatever_happens_between_them
                a_future_revision_is_refused;
            log:
                the_log_has_every_change_with_the_state_before
                the_log_is_read_from_any_revision_in_pieces
                a_delete_event_carries_the_revision_of_the_delete
                a_hint_follows_the_clock
                a_reader_behind_the_log_misses_nothing_under_many_writers;
            blobs:
                a_blob_is_found_by_its_digest_and_shared
                an_update_may_refer_to_a_stored_blob_without_its_bytes
                a_write_that_refers_to_unknown_bytes_is_refused
                many_blobs_are_read_at_once_as_far_as_they_fit
                a_blob_lives_while_object_or_log_refer_to_it;
            computed:
                a_report_follows_its_images_and_their_findings
                a_change_of_an_image_is_one_of_every_report_it_is_in
                findings_written_at_once_are_all_counted
                findings_of_another_shape_count_nothing
                what_has_to_be_mended_twice_counts_twice
                every_step_of_a_scan_is_an_event
                what_stands_in_the_way_of_a_scan_is_told_until_it_is_done
                a_change_reaches_any_number_of_reports_once
                objects_without_links_are_found_until_they_have_them;
            forgetting:
                a_compacted_revision_is_refused_and_later_ones_are_not
                what_is_young_is_kept_whatever_its_number
                the_newest_entries_are_kept_whatever_their_age
                objects_and_the_clock_survive_a_log_that_is_empty
                a_reader_and_writers_go_on_while_the_log_is_compacted;
        }
    };
}
pub(crate) use every_case;

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

/// A new incarnation began when the newest revision was `before`, that of `thing`: the log is
/// refused up to the jump, and everything goes on behind it.
pub(crate) async fn assert_jumped(store: &Shared, thing: &Thing, before: u64) {
    let now = store.revision(&things()).await.unwrap();
    assert_is_of_now(now);
    let refused = store.events(&things(), before, 10).await;
    assert!(
        matches!(refused, Err(StoreError::Compacted { compacted, .. }) if compacted == now),
        "{refused:?}"
    );
    let page = store.list(all()).await.unwrap();
    assert_eq!((page.revision, page.items[0].revision), (now, before));
    assert_eq!(thing.clone().number(9).update(store, before).await, now + 1);
    let events = store.events(&things(), now, 10).await.unwrap();
    assert_eq!((events.len(), events[0].revision), (1, now + 1));
    assert_eq!(*store.hint(&things()).borrow(), now + 1);
    // What lies before the jump goes with the next compaction.
    store.compact(0, 0).await.unwrap();
    assert_eq!(store.events(&things(), now + 1, 10).await.unwrap().len(), 0);
}

/// A revision at which a life began, a little while ago at most.
pub(crate) fn assert_is_of_now(origin: u64) {
    let now = seconds();
    assert!((now - 600..=now).contains(&(origin >> 20)), "{origin}");
    assert_eq!(origin % (1 << 20), 0, "{origin}");
}

/// Since 1970.
pub(crate) fn seconds() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap().as_secs()
}
