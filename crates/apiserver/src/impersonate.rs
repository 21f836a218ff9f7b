//! Asking as somebody else: whoever may impersonate a user is that user for one request, with
//! exactly the rights of that user. Headers that cannot be honoured are refused, because whoever
//! sent them expects fewer rights than their own.

use crate::identity::{Attributes, Identity};
use http::HeaderMap;
use muster_kind::Status;
use percent_encoding::percent_decode_str;
use std::collections::BTreeMap;

const PREFIX: &str = "impersonate-";
const EXTRA: &str = "impersonate-extra-";
const REVIEWS: &str = "authentication.k8s.io";
const ACCOUNT: &str = "system:serviceaccount:";

/// Somebody to be, and all that must be allowed for it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Wish {
    pub(crate) identity: Identity,
    pub(crate) needs: Vec<Attributes>,
}

/// Whom a request wants to be; nothing if it is content with itself.
pub(crate) fn wish(headers: &HeaderMap) -> Result<Option<Wish>, Status> {
    let mut user = String::new();
    let mut uid = String::new();
    let mut groups = Vec::new();
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut wished = false;
    for (name, value) in headers {
        let Some(about) = name.as_str().strip_prefix(PREFIX) else {
            continue;
        };
        wished = true;
        let value = std::str::from_utf8(value.as_bytes())
            .map_err(|_| Status::bad_request(format!("the header {name} is no text")))?
            .to_owned();
        match about {
            "user" => user = value,
            "uid" => uid = value,
            "group" => groups.push(value),
            _ => {
                let Some(key) = name.as_str().strip_prefix(EXTRA) else {
                    return Err(Status::bad_request(format!(
                        "the header {name} says nothing about whom to impersonate"
                    )));
                };
                let key = percent_decode_str(key).decode_utf8_lossy().to_lowercase();
                extra.entry(key).or_default().push(value);
            }
        }
    }
    if !wished {
        return Ok(None);
    }
    if user.is_empty() {
        return Err(Status::bad_request(
            "groups, a UID or extras are to be impersonated without a user",
        ));
    }
    let needs = needs(&user, &uid, &groups, &extra);
    let groups = completed(&user, groups);
    Ok(Some(Wish {
        identity: Identity {
            user,
            uid,
            groups,
            extra,
        },
        needs,
    }))
}

fn needs(
    user: &str,
    uid: &str,
    groups: &[String],
    extra: &BTreeMap<String, Vec<String>>,
) -> Vec<Attributes> {
    let need = |group: &str, resource: &str, name: &str| Attributes {
        verb: "impersonate".into(),
        group: group.into(),
        version: "v1".into(),
        resource: resource.into(),
        name: name.into(),
        ..Attributes::default()
    };
    let mut needs = vec![match account(user) {
        Some((namespace, name)) => Attributes {
            namespace: namespace.into(),
            ..need("", "serviceaccounts", name)
        },
        None => need("", "users", user),
    }];
    needs.extend(groups.iter().map(|group| need("", "groups", group)));
    for (key, values) in extra {
        needs.extend(values.iter().map(|value| Attributes {
            subresource: key.clone(),
            ..need(REVIEWS, "userextras", value)
        }));
    }
    if !uid.is_empty() {
        needs.push(need(REVIEWS, "uids", uid));
    }
    needs
}

/// The namespace and name of a service account.
fn account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(ACCOUNT)?.split_once(':')?;
    (!namespace.is_empty() && !name.is_empty() && !name.contains(':')).then_some((namespace, name))
}

/// The groups that such a user is in anyway.
fn completed(user: &str, mut groups: Vec<String>) -> Vec<String> {
    if let Some((namespace, _)) = account(user).filter(|_| groups.is_empty()) {
        groups.push("system:serviceaccounts".into());
        groups.push(format!("system:serviceaccounts:{namespace}"));
    }
    let known = |group: &String| {
        ["system:authenticated", "system:unauthenticated"].contains(&group.as_str())
    };
    if !groups.iter().any(known) {
        groups.push(match user {
            "system:anonymous" => "system:unauthenticated".into(),
            _ => "system:authenticated".into(),
        });
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, http::HeaderValue::from_static(value));
        }
        headers
    }

    fn asked(pairs: &[(&'static str, &'static str)]) -> (Identity, Vec<String>) {
        let Wish { identity, needs } = wish(&headers(pairs)).unwrap().unwrap();
        let needs = needs.iter().map(|need| {
            let Attributes {
                namespace,
                resource,
                subresource,
                name,
                ..
            } = need;
            format!("{namespace}/{resource}/{subresource}/{name}")
        });
        (identity, needs.collect())
    }

    #[test]
    fn a_user_is_impersonated_with_what_is_said_and_nothing_more() {
        let (identity, needs) = asked(&[
            ("impersonate-user", "jane"),
            ("impersonate-group", "developers"),
            ("impersonate-uid", "7"),
            ("impersonate-extra-scopes", "view"),
        ]);
        assert_eq!(identity.user, "jane");
        assert_eq!(identity.groups, ["developers", "system:authenticated"]);
        assert_eq!(
            needs,
            [
                "/users//jane",
                "/groups//developers",
                "/userextras/scopes/view",
                "/uids//7"
            ]
        );
    }

    #[test]
    fn a_service_account_brings_its_groups() {
        let (identity, needs) = asked(&[("impersonate-user", "system:serviceaccount:a:b")]);
        assert_eq!(
            identity.groups,
            [
                "system:serviceaccounts",
                "system:serviceaccounts:a",
                "system:authenticated"
            ]
        );
        assert_eq!(needs, ["a/serviceaccounts//b"]);
    }

    #[test]
    fn nobody_is_impersonated_without_a_name() {
        assert_eq!(wish(&headers(&[("accept", "x")])), Ok(None));
        for pair in [
            ("impersonate-group", "system:masters"),
            ("impersonate-me", "x"),
        ] {
            assert_eq!(wish(&headers(&[pair])).unwrap_err().code, 400, "{pair:?}");
        }
    }
}
