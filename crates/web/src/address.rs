//! Addresses: which page a path means, and what of it its query asks to see. Everything that changes what
//! is seen is in the address, so that a view can be shared; writing what was read gives the same address.

use crate::audit::Family;
use form_urlencoded::Serializer;
use muster_scan::vulnerability::Severity;
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

/// What all addresses begin with.
pub const ROOT: &str = "/ui";
/// The longest text that is searched for.
const TEXT: usize = 200;
/// What must not stand in a segment of a path as it is.
const SEGMENT: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'/')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'\\')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}')
    .add(b'\'');

/// A page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    Overview,
    Workloads,
    Workload { namespace: String, name: String },
    Images,
    Image { namespace: String, name: String },
    Vulnerabilities,
    Vulnerability(String),
    Policies,
    Policy { family: Family, id: String },
    Registries,
    Search,
    SignIn,
    SignOut,
    Style,
    Script,
    Icon,
}

impl Route {
    /// The page that a path means, if it means one.
    pub(crate) fn read(path: &str) -> Option<Route> {
        let rest = path.strip_prefix(ROOT)?;
        if !rest.is_empty() && !rest.starts_with('/') {
            return None;
        }
        let words = rest.split('/').filter(|word| !word.is_empty());
        let words: Option<Vec<String>> = words
            .map(|word| Some(percent_decode_str(word).decode_utf8().ok()?.into_owned()))
            .collect();
        let words = words?;
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let route = match words.as_slice() {
            [] => Route::Overview,
            ["workloads"] => Route::Workloads,
            ["workloads", namespace, name] if is_name(namespace) && is_name(name) => {
                Route::Workload {
                    namespace: (*namespace).into(),
                    name: (*name).into(),
                }
            }
            ["images"] => Route::Images,
            ["images", namespace, name] if is_name(namespace) && is_name(name) => Route::Image {
                namespace: (*namespace).into(),
                name: (*name).into(),
            },
            ["vulnerabilities"] => Route::Vulnerabilities,
            ["vulnerabilities", id] if id.len() <= TEXT => Route::Vulnerability((*id).into()),
            ["policies"] => Route::Policies,
            ["policies", "policy", id] if id.len() <= 2 * TEXT => Route::Policy {
                family: Family::Policy,
                id: (*id).into(),
            },
            ["policies", "check", id] if id.len() <= 2 * TEXT => Route::Policy {
                family: Family::Check,
                id: (*id).into(),
            },
            ["registries"] => Route::Registries,
            ["search"] => Route::Search,
            ["sign-in"] => Route::SignIn,
            ["sign-out"] => Route::SignOut,
            ["style.css"] => Route::Style,
            ["script.js"] => Route::Script,
            ["icon.svg"] => Route::Icon,
            _ => return None,
        };
        Some(route)
    }

    /// Whether it is something to look at.
    pub(crate) fn is_page(&self) -> bool {
        !matches!(
            self,
            Route::SignIn | Route::SignOut | Route::Style | Route::Script | Route::Icon
        )
    }

    /// The path of the page.
    pub(crate) fn path(&self) -> String {
        let word = |text: &str| utf8_percent_encode(text, SEGMENT).to_string();
        let rest = match self {
            Route::Overview => return ROOT.into(),
            Route::Workloads => "workloads".into(),
            Route::Workload { namespace, name } => {
                format!("workloads/{}/{}", word(namespace), word(name))
            }
            Route::Images => "images".into(),
            Route::Image { namespace, name } => {
                format!("images/{}/{}", word(namespace), word(name))
            }
            Route::Vulnerabilities => "vulnerabilities".into(),
            Route::Vulnerability(id) => format!("vulnerabilities/{}", word(id)),
            Route::Policies => "policies".into(),
            Route::Policy { family, id } => format!("policies/{}/{}", family.word(), word(id)),
            Route::Registries => "registries".into(),
            Route::Search => "search".into(),
            Route::SignIn => "sign-in".into(),
            Route::SignOut => "sign-out".into(),
            Route::Style => "style.css".into(),
            Route::Script => "script.js".into(),
            Route::Icon => "icon.svg".into(),
        };
        format!("{ROOT}/{rest}")
    }
}

/// Whether a text could be the name of an object; what could not has no place in a path.
fn is_name(text: &str) -> bool {
    let is_sound = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.';
    let is_end = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
    text.len() <= 253
        && text.bytes().all(is_sound)
        && is_end(text.bytes().next())
        && is_end(text.bytes().last())
}

/// What of a page is to be seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    pub(crate) namespace: Option<String>,
    /// At least so bad.
    pub(crate) severity: Option<Severity>,
    pub(crate) text: String,
    /// Only what can be mended.
    pub(crate) fixable: bool,
    /// The column to sort by; the page's own order without one.
    pub(crate) sort: String,
    /// From 0.
    pub(crate) page: usize,
    /// The part of a page that has several.
    pub(crate) show: String,
}

impl Filter {
    pub(crate) fn read(query: &str) -> Filter {
        let mut filter = Filter::default();
        for (key, value) in form_urlencoded::parse(query.as_bytes()) {
            let word = || {
                let is_word = |c: char| c.is_ascii_lowercase() || c == '-';
                let fits = value.len() <= 20 && value.chars().all(is_word);
                if fits {
                    value.to_string()
                } else {
                    String::new()
                }
            };
            match &*key {
                "namespace" => {
                    filter.namespace = Some(value.trim().to_owned()).filter(|name| is_name(name));
                }
                "severity" => filter.severity = Severity::named(&value),
                "q" => filter.text = value.trim().chars().take(TEXT).collect(),
                "fixable" => filter.fixable = value == "yes",
                "sort" => filter.sort = word(),
                "show" => filter.show = word(),
                "page" => {
                    let page = value.parse::<usize>().unwrap_or(1).clamp(1, 1_000_000);
                    filter.page = page - 1;
                }
                _ => {}
            }
        }
        filter
    }

    /// The query that asks for this, with its question mark.
    pub(crate) fn query(&self) -> String {
        let mut query = Serializer::new(String::new());
        if let Some(namespace) = &self.namespace {
            query.append_pair("namespace", namespace);
        }
        if let Some(severity) = self.severity {
            query.append_pair("severity", &severity.name().to_lowercase());
        }
        for (key, value) in [
            ("q", &self.text),
            ("sort", &self.sort),
            ("show", &self.show),
        ] {
            if !value.is_empty() {
                query.append_pair(key, value);
            }
        }
        if self.fixable {
            query.append_pair("fixable", "yes");
        }
        if self.page > 0 {
            query.append_pair("page", &(self.page + 1).to_string());
        }
        match query.finish() {
            query if query.is_empty() => query,
            query => format!("?{query}"),
        }
    }

    /// The same namespace, and nothing else of it.
    pub(crate) fn namespace_only(&self) -> Filter {
        Filter {
            namespace: self.namespace.clone(),
            ..Filter::default()
        }
    }

    /// Whether anything is left out on purpose.
    pub(crate) fn is_narrow(&self) -> bool {
        self.namespace.is_some() || self.severity.is_some() || !self.text.is_empty() || self.fixable
    }

    /// Whether one of these texts has what is searched for.
    pub(crate) fn finds(&self, texts: &[&str]) -> bool {
        if self.text.is_empty() {
            return true;
        }
        let wanted = self.text.to_lowercase();
        let mut texts = texts.iter();
        texts.any(|text| text.to_lowercase().contains(&wanted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_read_as_it_was_written() {
        for query in [
            "",
            "?namespace=shop",
            "?namespace=shop&severity=high&q=a+%26+b&sort=name&fixable=yes&page=3",
            "?q=%3Cscript%3E&show=packages",
        ] {
            let filter = Filter::read(query.trim_start_matches('?'));
            assert_eq!(filter.query(), query);
        }
    }

    #[test]
    fn what_a_filter_cannot_mean_is_left_out() {
        for (query, expected) in [
            ("namespace=../../x&severity=worst", ""),
            ("page=0", ""),
            ("page=-1&page=x", ""),
            ("sort=%3Cb%3E&show=A", ""),
            ("fixable=no&unknown=1", ""),
            ("severity=HIGH", "?severity=high"),
        ] {
            assert_eq!(Filter::read(query).query(), expected, "{query}");
        }
    }

    #[test]
    fn a_path_means_one_page_and_is_written_as_it_was_read() {
        for path in [
            "/ui",
            "/ui/workloads",
            "/ui/workloads/shop/deployment-web",
            "/ui/images/default/a.b-1",
            "/ui/vulnerabilities/CVE-2024-1",
            "/ui/policies/policy/clusterwide-no%2Fslash",
            "/ui/policies/check/KSV-0001",
            "/ui/search",
            "/ui/sign-in",
            "/ui/style.css",
        ] {
            let route = Route::read(path);
            assert_eq!(route.map(|route| route.path()).as_deref(), Some(path));
        }
        for path in [
            "/",
            "/uix",
            "/ui/other",
            "/ui/workloads/shop",
            "/ui/workloads/shop/..",
            "/ui/workloads/a%2Fb/c",
            "/ui/workloads/%FF/c",
            "/apis",
        ] {
            assert_eq!(Route::read(path), None, "{path}");
        }
        assert_eq!(Route::read("/ui/"), Some(Route::Overview));
    }
}
