//! Lists of the present: order, namespaces, selectors and pages.

use super::*;

pub(crate) async fn a_list_is_in_order_of_namespace_and_name_by_bytes(store: Shared) {
    for (namespace, name) in [
        ("b", "z"),
        ("a-b", "m"),
        ("a", "y"),
        ("a", "x-1"),
        ("a", "x"),
        ("B", "q"),
        ("", "c"),
    ] {
        Thing::new(namespace, name).create(&store).await;
    }
    assert_eq!(names(&store, all()).await, "/c B/q a/x a/x-1 a/y a-b/m b/z");
    let page = store.list(all()).await.unwrap();
    assert_eq!((page.revision, page.more), (8, false));
}

pub(crate) async fn a_namespace_is_not_a_prefix(store: Shared) {
    for namespace in ["a", "a-b", "ab", "b"] {
        Thing::new(namespace, "x").create(&store).await;
    }
    let of = |namespace: &str| ListQuery {
        namespace: Some(namespace.into()),
        ..all()
    };
    assert_eq!(names(&store, of("a")).await, "a/x");
    assert_eq!(names(&store, of("a-b")).await, "a-b/x");
    assert_eq!(names(&store, of("")).await, "");
    assert_eq!(store.count(&things(), Some("a"), None).await.unwrap(), 1);
}

pub(crate) async fn a_list_of_what_was_never_written_is_empty(store: Shared) {
    let page = store.list(all()).await.unwrap();
    assert_eq!((page.revision, page.items.len(), page.more), (1, 0, false));
    assert_eq!(store.count(&things(), None, None).await.unwrap(), 0);
}

pub(crate) async fn a_list_has_only_its_resource(store: Shared) {
    Thing::new("a", "x").label("k", "v").create(&store).await;
    Thing::new("a", "y")
        .label("k", "v")
        .of("parts.example.com")
        .create(&store)
        .await;
    assert_eq!(names(&store, all()).await, "a/x");
    assert_eq!(names(&store, labelled("k=v")).await, "a/x");
    assert_eq!(names(&store, fielded("metadata.name=y")).await, "");
}

async fn five(store: &Shared) {
    Thing::new("a", "1")
        .label("tier", "web")
        .label("size", "3")
        .create(store)
        .await;
    Thing::new("a", "2")
        .label("tier", "db")
        .label("size", "10")
        .create(store)
        .await;
    Thing::new("a", "3").label("tier", "").create(store).await;
    Thing::new("b", "4").create(store).await;
    Thing::new("b", "5")
        .label("tier", "web")
        .field("spec.x", "q\"'\u{0}%")
        .create(store)
        .await;
}

pub(crate) async fn label_selectors_select_as_kubernetes_says(store: Shared) {
    five(&store).await;
    for (selector, selected) in [
        ("tier=web", "a/1 b/5"),
        ("tier!=web", "a/2 a/3 b/4"),
        ("tier in (web,db)", "a/1 a/2 b/5"),
        ("tier in (web,none)", "a/1 b/5"),
        ("tier notin (web,db)", "a/3 b/4"),
        ("tier", "a/1 a/2 a/3 b/5"),
        ("!tier", "b/4"),
        ("tier=", "a/3"),
        ("size>3", "a/2"),
        ("size<10", "a/1"),
        ("tier=web,size", "a/1"),
        ("tier,tier!=db,size!=3", "a/3 b/5"),
        ("absent=1", ""),
        ("absent!=1", "a/1 a/2 a/3 b/4 b/5"),
    ] {
        assert_eq!(
            names(&store, labelled(selector)).await,
            selected,
            "{selector}"
        );
        let in_b: Vec<_> = selected
            .split(' ')
            .filter(|path| path.starts_with('b'))
            .collect();
        let query = ListQuery {
            namespace: Some("b".into()),
            ..labelled(selector)
        };
        assert_eq!(
            names(&store, query).await,
            in_b.join(" "),
            "{selector} in b"
        );
    }
}

pub(crate) async fn field_selectors_select_by_name_namespace_and_field(store: Shared) {
    five(&store).await;
    for (selector, selected) in [
        ("metadata.name=1", "a/1"),
        ("metadata.name==5", "b/5"),
        ("metadata.name!=1", "a/2 a/3 b/4 b/5"),
        ("metadata.namespace=b", "b/4 b/5"),
        ("metadata.namespace!=b", "a/1 a/2 a/3"),
        ("metadata.name=1,metadata.namespace=b", ""),
        ("metadata.name=1,metadata.name=2", ""),
        ("spec.x=q\"'\u{0}%", "b/5"),
        ("spec.x=", "a/1 a/2 a/3 b/4"),
        ("spec.x!=", "b/5"),
        ("spec.x=q\"'", ""),
        ("spec.none=", "a/1 a/2 a/3 b/4 b/5"),
    ] {
        assert_eq!(
            names(&store, fielded(selector)).await,
            selected,
            "{selector}"
        );
    }
    let query = ListQuery {
        namespace: Some("a".into()),
        ..fielded("metadata.namespace=b")
    };
    assert_eq!(names(&store, query).await, "");
    let query = ListQuery {
        labels: LabelSelector::parse("tier").unwrap(),
        ..fielded("spec.x=")
    };
    assert_eq!(names(&store, query).await, "a/1 a/2 a/3");
}

pub(crate) async fn selectors_see_labels_that_changed(store: Shared) {
    let thing = Thing::new("a", "x");
    thing
        .clone()
        .label("k", "1")
        .label("same", "s")
        .create(&store)
        .await;
    thing
        .clone()
        .label("k", "2")
        .label("same", "s")
        .label("new", "n")
        .update(&store, 2)
        .await;
    for (selector, selected) in [
        ("k=1", ""),
        ("k=2", "a/x"),
        ("same", "a/x"),
        ("new=n", "a/x"),
    ] {
        assert_eq!(
            names(&store, labelled(selector)).await,
            selected,
            "{selector}"
        );
    }
    thing.update(&store, 3).await;
    for selector in ["k", "same=s", "new=n"] {
        assert_eq!(names(&store, labelled(selector)).await, "", "{selector}");
    }
    thing.delete(&store, 4).await;
    thing.clone().label("k", "1").create(&store).await;
    assert_eq!(names(&store, labelled("k=1")).await, "a/x");
}

/// Follows pages to the end; gives the paths of each page.
async fn pages(store: &Shared, query: ListQuery) -> Vec<String> {
    let mut pages = Vec::new();
    let mut query = query;
    loop {
        let page = store.list(query.clone()).await.unwrap();
        assert!(page.items.len() <= query.limit);
        pages.push(joined(&page.items));
        if !page.more {
            return pages;
        }
        query.at = Some(page.revision);
        query.after = page.items.last().map(|item| item.key.clone());
    }
}

pub(crate) async fn pages_are_full_and_the_last_one_knows_it_is(store: Shared) {
    for number in 0..6 {
        Thing::new(
            "abc".get(number / 2..=number / 2).unwrap(),
            &format!("x{number}"),
        )
        .label("odd", if number % 2 == 1 { "yes" } else { "no" })
        .create(&store)
        .await;
    }
    let limit = |limit, query: ListQuery| ListQuery { limit, ..query };
    assert_eq!(
        pages(&store, limit(2, all())).await,
        ["a/x0 a/x1", "b/x2 b/x3", "c/x4 c/x5"]
    );
    assert_eq!(
        pages(&store, limit(4, all())).await,
        ["a/x0 a/x1 b/x2 b/x3", "c/x4 c/x5"]
    );
    assert_eq!(pages(&store, limit(6, all())).await.len(), 1);
    assert_eq!(pages(&store, limit(usize::MAX, all())).await.len(), 1);
    for selector in ["odd=yes", "odd!=no", "odd in (yes,maybe)", "odd,odd!=no"] {
        let found = pages(&store, limit(2, labelled(selector))).await;
        assert_eq!(found, ["a/x1 b/x3", "c/x5"], "{selector}");
        assert_eq!(
            pages(&store, limit(3, labelled(selector))).await.len(),
            1,
            "{selector}"
        );
    }
    let in_b = ListQuery {
        namespace: Some("b".into()),
        ..limit(1, all())
    };
    assert_eq!(pages(&store, in_b).await, ["b/x2", "b/x3"]);
    let nothing = store.list(limit(0, all())).await.unwrap();
    assert_eq!((nothing.items.len(), nothing.more), (0, true));
}

pub(crate) async fn a_rare_object_is_found_behind_many_others(store: Shared) {
    for number in 0..300 {
        let thing = Thing::new("a", &format!("x{number:03}")).label("all", "yes");
        thing.create(&store).await;
    }
    Thing::new("a", "x300")
        .label("all", "yes")
        .label("rare", "yes")
        .create(&store)
        .await;
    for selector in [
        "rare=yes",
        "rare",
        "all=yes,rare=yes",
        "all=yes,rare notin (no),rare",
    ] {
        let query = ListQuery {
            limit: 1,
            ..labelled(selector)
        };
        let page = store.list(query).await.unwrap();
        assert_eq!(
            (joined(&page.items).as_str(), page.more),
            ("a/x300", false),
            "{selector}"
        );
    }
    let page = store
        .list(ListQuery {
            limit: 1,
            ..fielded("metadata.name=x300")
        })
        .await
        .unwrap();
    assert_eq!((joined(&page.items).as_str(), page.more), ("a/x300", false));
}

pub(crate) async fn what_lies_behind_a_key_is_counted(store: Shared) {
    for (namespace, name) in [("a", "x"), ("a", "y"), ("b", "x"), ("b", "z")] {
        Thing::new(namespace, name).create(&store).await;
    }
    for (namespace, after, count) in [
        (None, None, 4),
        (None, Some(key("a", "x")), 3),
        (None, Some(key("a", "zz")), 2),
        (Some("b"), None, 2),
        (Some("b"), Some(key("b", "x")), 1),
        (Some("b"), Some(key("a", "y")), 2),
        (Some("a"), Some(key("b", "x")), 0),
        (Some("none"), None, 0),
    ] {
        let found = store
            .count(&things(), namespace, after.as_ref())
            .await
            .unwrap();
        assert_eq!(found, count, "{namespace:?} {after:?}");
    }
}

pub(crate) async fn a_list_is_consistent_with_its_revision_while_others_write(store: Shared) {
    let writer = {
        let store = store.clone();
        tokio::spawn(async move {
            for number in 0..200u64 {
                Thing::new("a", &format!("x{number:03}"))
                    .create(&store)
                    .await;
            }
        })
    };
    // One object per revision behind the first: the revision says how many there are.
    let mut last = 1;
    while last < 201 {
        let page = store.list(all()).await.unwrap();
        assert_eq!(page.items.len() as u64 + 1, page.revision);
        assert!(page.revision >= last);
        last = page.revision;
    }
    writer.await.unwrap();
}
