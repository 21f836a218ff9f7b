//! Lists of a past revision, and pages pinned to one.

use super::*;

/// Creates, changes and deletes; after each step the list as it was then.
async fn history(store: &Shared) -> Vec<(u64, String)> {
    let mut states = vec![(0, String::new()), (1, String::new())];
    let (a, b, c) = (
        Thing::new("a", "x"),
        Thing::new("a", "y"),
        Thing::new("b", "x"),
    );
    let snap = async |states: &mut Vec<_>, revision| {
        states.push((revision, described(store, all()).await));
    };
    let steps: [(&Thing, Option<u64>, &str); 9] = [
        (&a, Some(2), "new"),
        (&b, Some(3), "new"),
        (&c, Some(4), "new"),
        (&a, Some(5), "change"),
        (&b, None, "delete"),
        (&b, Some(7), "new"),
        (&a, Some(8), "change"),
        (&c, None, "delete"),
        (&a, None, "delete"),
    ];
    let mut revisions = std::collections::HashMap::new();
    for (thing, value, verb) in steps {
        let stage = value.map(|value| format!("s{value}")).unwrap_or_default();
        let next = thing
            .clone()
            .number(value.unwrap_or(0))
            .label("stage", &stage);
        let known = revisions.get(&thing.key).copied().unwrap_or(0);
        let revision = match verb {
            "new" => next.create(store).await,
            "change" => next.update(store, known).await,
            _ => thing.delete(store, known).await,
        };
        revisions.insert(thing.key.clone(), revision);
        snap(&mut states, revision).await;
    }
    states
}

/// Paths with revision and content.
async fn described(store: &Shared, query: ListQuery) -> String {
    let page = store.list(query).await.unwrap();
    let of = |item: &Stored| {
        let Stored {
            key: Key { namespace, name },
            revision,
            body,
        } = item;
        format!("{namespace}/{name}@{revision}={}", number(body))
    };
    page.items.iter().map(of).collect::<Vec<_>>().join(" ")
}

pub(crate) async fn every_past_revision_can_be_listed_exactly(store: Shared) {
    let states = history(&store).await;
    for (revision, state) in states {
        let page = store
            .list(ListQuery {
                at: Some(revision),
                ..all()
            })
            .await
            .unwrap();
        assert_eq!(page.revision, revision);
        let found = described(
            &store,
            ListQuery {
                at: Some(revision),
                ..all()
            },
        )
        .await;
        assert_eq!(found, state, "at {revision}");
    }
}

pub(crate) async fn selectors_judge_the_past_by_its_own_labels(store: Shared) {
    history(&store).await;
    for (revision, selector, expected) in [
        (4, "stage=s2", "a/x@2=2"),
        (5, "stage=s2", ""),
        (5, "stage=s5", "a/x@5=5"),
        (5, "stage in (s3,s5)", "a/x@5=5 a/y@3=3"),
        (9, "stage", "a/x@8=8 a/y@7=7"),
        (9, "stage!=s7", "a/x@8=8"),
        (10, "stage", "a/y@7=7"),
        (1, "stage", ""),
        (0, "stage", ""),
    ] {
        let query = ListQuery {
            at: Some(revision),
            ..labelled(selector)
        };
        assert_eq!(
            described(&store, query).await,
            expected,
            "{selector} at {revision}"
        );
    }
    let query = ListQuery {
        at: Some(6),
        ..fielded("metadata.name=x")
    };
    assert_eq!(described(&store, query).await, "a/x@5=5 b/x@4=4");
    let query = ListQuery {
        at: Some(6),
        namespace: Some("b".into()),
        ..all()
    };
    assert_eq!(described(&store, query).await, "b/x@4=4");
}

pub(crate) async fn pages_stay_at_their_revision_whatever_happens_between_them(store: Shared) {
    for name in ["b", "d", "f", "h"] {
        Thing::new("n", name).label("k", "v").create(&store).await;
    }
    for selector in ["", "k=v", "k", "other!=x"] {
        let first = store
            .list(ListQuery {
                limit: 1,
                ..labelled(selector)
            })
            .await
            .unwrap();
        assert_eq!(joined(&first.items), "n/b", "{selector}");
        assert!(first.more);
        // Behind the page: one comes, one changes and leaves the selector, one goes.
        let now = async |name| {
            let found = store.get(&things(), &key("n", name)).await.unwrap();
            found.map_or(0, |found| found.revision)
        };
        Thing::new("n", "c").label("k", "v").create(&store).await;
        Thing::new("n", "d")
            .number(9)
            .update(&store, now("d").await)
            .await;
        Thing::new("n", "f").delete(&store, now("f").await).await;
        Thing::new("n", "z").label("k", "v").create(&store).await;
        let pinned = ListQuery {
            limit: 2,
            at: Some(first.revision),
            after: Some(first.items[0].key.clone()),
            ..labelled(selector)
        };
        let second = store.list(pinned.clone()).await.unwrap();
        assert_eq!(
            (joined(&second.items).as_str(), second.more),
            ("n/d n/f", true),
            "{selector}"
        );
        assert_eq!(
            (number(&second.items[0].body), second.revision),
            (0, first.revision)
        );
        let after = Some(key("n", "f"));
        let third = store.list(ListQuery { after, ..pinned }).await.unwrap();
        assert_eq!(
            (joined(&third.items).as_str(), third.more),
            ("n/h", false),
            "{selector}"
        );
        // Back to how it was.
        Thing::new("n", "c").delete(&store, now("c").await).await;
        Thing::new("n", "d")
            .label("k", "v")
            .update(&store, now("d").await)
            .await;
        Thing::new("n", "f").label("k", "v").create(&store).await;
        Thing::new("n", "z").delete(&store, now("z").await).await;
    }
}

pub(crate) async fn a_future_revision_is_refused(store: Shared) {
    Thing::new("a", "x").create(&store).await;
    for at in [3, u64::MAX] {
        let refused = store
            .list(ListQuery {
                at: Some(at),
                ..all()
            })
            .await;
        assert!(
            matches!(refused, Err(StoreError::Future { asked, current: 2 }) if asked == at),
            "{refused:?}"
        );
        let refused = store.events(&things(), at, 10).await;
        assert!(
            matches!(refused, Err(StoreError::Future { current: 2, .. })),
            "{refused:?}"
        );
    }
    assert_eq!(
        names(
            &store,
            ListQuery {
                at: Some(2),
                ..all()
            }
        )
        .await,
        "a/x"
    );
}
