//! Which form of an answer a client takes: JSON of the object, a Table for people, or only the
//! metadata. JSON is the one encoding; a client that takes none of it is told so.

use muster_kind::Status;

/// The form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum View {
    /// The object itself.
    Object,
    /// A table of cells; the version is `v1` or `v1beta1`.
    Table(&'static str),
    /// Metadata only.
    Metadata,
}

/// What we offer, for the error.
pub const OFFERED: [&str; 1] = ["application/json"];

/// What is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One object.
    One,
    /// A list.
    List,
    /// A stream of events.
    Watch,
}

/// Chooses the first acceptable form.
pub fn view(accept: Option<&str>, shape: Shape) -> Result<View, Status> {
    let accept = accept.unwrap_or_default();
    if accept.trim().is_empty() {
        return Ok(View::Object);
    }
    let mut ranges: Vec<(f32, &str)> = accept.split(',').map(|r| (quality(r), r.trim())).collect();
    ranges.sort_by(|a, b| b.0.total_cmp(&a.0));
    ranges
        .into_iter()
        .filter(|(quality, _)| *quality > 0.0)
        .find_map(|(_, range)| Some((choose(range)?, range)))
        .ok_or_else(|| Status::not_acceptable(&OFFERED))
        .and_then(|(view, range)| match (parameter(range, "as"), shape) {
            (Some("PartialObjectMetadata"), Shape::List) => Err(Status::wrong_form(
                "you requested PartialObjectMetadata, but the requested object is a list (*unstructured.UnstructuredList)",
            )),
            (Some("PartialObjectMetadataList"), Shape::One) => {
                Err(Status::unexplained("content is not a list"))
            }
            _ => Ok(view),
        })
}

fn quality(range: &str) -> f32 {
    parameter(range, "q")
        .and_then(|q| q.parse().ok())
        .unwrap_or(1.0)
}

fn parameter<'a>(range: &'a str, key: &str) -> Option<&'a str> {
    range
        .split(';')
        .skip(1)
        .filter_map(|p| p.trim().split_once('='))
        .find(|(name, _)| name.trim() == key)
        .map(|(_, value)| value.trim())
}

fn choose(range: &str) -> Option<View> {
    let media = range.split(';').next().unwrap_or_default().trim();
    if !matches!(media, "application/json" | "*/*" | "application/*") {
        return None;
    }
    let Some(form) = parameter(range, "as") else {
        return Some(View::Object);
    };
    if parameter(range, "g") != Some("meta.k8s.io") {
        return None;
    }
    let version = match parameter(range, "v") {
        Some("v1") => "v1",
        Some("v1beta1") => "v1beta1",
        _ => return None,
    };
    match form {
        "Table" => Some(View::Table(version)),
        "PartialObjectMetadata" | "PartialObjectMetadataList" => Some(View::Metadata),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_acceptable_form_is_chosen() {
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        for (accept, view_) in [
            ("", View::Object),
            ("*/*", View::Object),
            (table, View::Table("v1")),
            (
                "application/vnd.kubernetes.protobuf,application/json",
                View::Object,
            ),
            (
                "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json",
                View::Metadata,
            ),
            (
                "application/json;q=0.1,application/json;as=Table;g=meta.k8s.io;v=v1;q=0.9",
                View::Table("v1"),
            ),
        ] {
            assert_eq!(view(Some(accept), Shape::List).unwrap(), view_, "{accept}");
        }
        for accept in [
            "text/html",
            "application/vnd.kubernetes.protobuf",
            "application/json;q=0",
        ] {
            assert_eq!(
                view(Some(accept), Shape::List).unwrap_err().code,
                406,
                "{accept}"
            );
        }
    }
}
