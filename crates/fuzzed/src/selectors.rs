//! Label and field selectors: whatever is parsed can be matched, and the same text means the same.

use muster_kind::selector::{FieldSelector, LabelSelector};
use std::collections::BTreeMap;

pub(crate) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let labels: BTreeMap<String, String> = [("a".to_owned(), "b".to_owned())].into();
    if let Ok(selector) = LabelSelector::parse(text) {
        let _ = selector.matches(&labels);
        let again = LabelSelector::parse(text).expect("parsed before");
        assert_eq!(
            again.matches(&BTreeMap::new()),
            selector.matches(&BTreeMap::new())
        );
    }
    if let Ok(selector) = FieldSelector::parse(text) {
        let _ = selector.matches(|field| (field == "metadata.name").then_some("a"));
        let _ = selector.requires("metadata.name");
    }
}
