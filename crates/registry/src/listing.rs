//! Lists that come in pages. The next page is where the registry's `Link` says, on the same host
//! and path; pages and items are bounded, and a registry that leads in circles is told so.

use crate::answer::Whole;
use crate::client::{Call, Client, Target};
use crate::error::Error;
use http::Method;
use http::header::LINK;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;
use std::collections::HashSet;

#[derive(Deserialize)]
struct Names {
    tags: Option<Vec<String>>,
    repositories: Option<Vec<String>>,
    #[serde(flatten)]
    _rest: BTreeMap<String, IgnoredAny>,
}

impl Client {
    /// All names of a list, each once, in the registry's order.
    pub(crate) async fn list(
        &self,
        attempt: &str,
        target: Target<'_>,
        field: &str,
    ) -> Result<Vec<String>, Error> {
        let limits = &self.inner.options.limits;
        let mut call = Call::new(attempt.into(), Method::GET, target);
        call.query = Some(format!("n={}", limits.page_items));
        let mut names: Vec<String> = Vec::new();
        let mut seen: HashSet<String> = HashSet::new();
        let mut pages: HashSet<String> = HashSet::new();
        loop {
            let answer = self.fetch(&call, limits.page).await?;
            let page: Names = serde_json::from_slice(&answer.body).map_err(|error| {
                Error::malformed(attempt, format!("no list of {field}: {error}"))
            })?;
            let page = if field == "tags" {
                page.tags
            } else {
                page.repositories
            };
            for name in page.unwrap_or_default() {
                if seen.insert(name.clone()) {
                    names.push(name);
                }
            }
            if names.len() > limits.items {
                let reason = format!("more than {} {field}", limits.items);
                return Err(Error::too_large(attempt, reason));
            }
            let Some(next) = next_page(attempt, &answer)? else {
                return Ok(names);
            };
            if !pages.insert(next.clone()) || pages.len() > limits.items {
                return Err(Error::malformed(attempt, "the pages lead in a circle"));
            }
            call.query = Some(next);
        }
    }
}

/// The query of the next page, if there is one.
fn next_page(attempt: &str, answer: &Whole) -> Result<Option<String>, Error> {
    let Some(link) = answer.header(&LINK) else {
        return Ok(None);
    };
    let Some(target) = next_link(link) else {
        return Ok(None);
    };
    let url = answer.url.join(target);
    // Only the query is taken from it, so a login cannot be led elsewhere; it must still be a
    // page of the same list.
    let query = url.ok().and_then(|url| {
        let same = url.path().trim_end_matches('/').ends_with("_catalog")
            || url.path().trim_end_matches('/').ends_with("/tags/list");
        same.then(|| url.query().map(String::from)).flatten()
    });
    match query {
        Some(query) if query.len() <= 4096 => Ok(Some(query)),
        _ => Err(Error::malformed(
            attempt,
            "the link to the next page makes no sense",
        )),
    }
}

/// The target of the link whose relation is `next`.
fn next_link(header: &str) -> Option<&str> {
    let mut rest = header;
    while let Some((_, after)) = rest.split_once('<') {
        let (target, after) = after.split_once('>')?;
        let parameters = after.split('<').next().unwrap_or(after);
        let next = parameters.split([';', ',']).any(|parameter| {
            let parameter: String = parameter
                .chars()
                .filter(|c| !c.is_whitespace() && *c != '"')
                .collect();
            parameter.eq_ignore_ascii_case("rel=next")
        });
        if next {
            return Some(target);
        }
        rest = after;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_link_is_found_among_others() {
        for (header, expected) in [
            (
                r#"</v2/_catalog?last=a&n=1>; rel="next""#,
                Some("/v2/_catalog?last=a&n=1"),
            ),
            (
                r#"<https://h/v2/a/tags/list?n=1>;rel=next"#,
                Some("https://h/v2/a/tags/list?n=1"),
            ),
            (r#"<a>; rel="prev", <b>; title="x"; rel="next""#, Some("b")),
            (r#"<a>; rel="prev""#, None),
            ("", None),
            ("<<<", None),
            (r#"<a; rel="next""#, None),
        ] {
            assert_eq!(next_link(header), expected, "{header}");
        }
    }
}
