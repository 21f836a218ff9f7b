//! Reading the server's objects, page by page, of which only what an answer needs is kept. Whoever reads
//! says how much at most and until when; what was left unread is told, never hidden.

use crate::finding::Findings;
use crate::workload::{Place, Workload};
use kube::api::{ListMeta, ListParams};
use kube::{Client, Error};
use muster_api::storage;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;
use tokio::time::Instant;

/// Findings are large, and come a few reports at a time.
const FINDINGS_AT_ONCE: u32 = 8;
/// What workloads run is small, and so are rows.
const ROWS_AT_ONCE: u32 = 500;
/// How a table is asked for.
const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";

/// Something could not be read.
#[derive(Debug, thiserror::Error)]
#[error("reading {what}")]
pub struct ReadError {
    /// What was to be read.
    pub what: String,
    /// Why it could not be.
    #[source]
    pub source: Error,
}

impl ReadError {
    /// What the server answered, if it did.
    pub fn code(&self) -> Option<u16> {
        match &self.source {
            Error::Api(status) => Some(status.code),
            _ => None,
        }
    }
}

/// How much is read at most.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// So many objects.
    pub most: usize,
    /// Until then.
    pub until: Option<Instant>,
}

impl Limits {
    /// All of it, however long it takes.
    pub const NONE: Limits = Limits {
        most: usize::MAX,
        until: None,
    };

    pub(crate) fn is_over(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }
}

/// A kind as paths name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Resource {
    pub(crate) group: &'static str,
    pub(crate) version: &'static str,
    pub(crate) plural: &'static str,
}

const fn ours(plural: &'static str) -> Resource {
    Resource {
        group: storage::GROUP,
        version: storage::VERSION,
        plural,
    }
}

pub(crate) const WORKLOADS: Resource = ours("workloadscanreports");
pub(crate) const FINDINGS: Resource = ours("vulnerabilityreports");
pub(crate) const IMAGES: Resource = ours("images");
pub(crate) const BILLS: Resource = ours("sboms");
pub(crate) const HISTORIES: Resource = ours("findinghistories");

impl Resource {
    /// The path of the collection in a namespace, or in all.
    pub(crate) fn path(&self, namespace: Option<&str>) -> String {
        let Resource {
            group,
            version,
            plural,
        } = self;
        let root = match *group {
            "" => format!("/api/{version}"),
            group => format!("/apis/{group}/{version}"),
        };
        match namespace {
            Some(namespace) => format!("{root}/namespaces/{namespace}/{plural}"),
            None => format!("{root}/{plural}"),
        }
    }
}

/// Reads all workloads of a namespace, or of all, without their findings. Says whether it was all.
pub async fn workloads(
    client: &Client,
    namespace: Option<&str>,
    limits: Limits,
    see: impl FnMut(Workload),
) -> Result<bool, ReadError> {
    let path = WORKLOADS.path(namespace);
    let parameters = ListParams::default().limit(ROWS_AT_ONCE);
    each(client, &path, "computed=brief", parameters, limits, see).await
}

/// Reads one workload with its findings; none if it is gone.
pub async fn workload(
    client: &Client,
    namespace: &str,
    name: &str,
) -> Result<Option<Workload>, ReadError> {
    get(client, WORKLOADS, Some(namespace), name).await
}

/// Reads the findings of all images there are.
pub async fn all_findings(client: &Client, see: impl FnMut(Findings)) -> Result<(), ReadError> {
    let parameters = ListParams::default().limit(FINDINGS_AT_ONCE);
    let path = FINDINGS.path(None);
    let all = each(client, &path, "", parameters, Limits::NONE, see).await;
    all.map(|_| ())
}

/// Reads the findings of the images of a place.
pub async fn findings_at(
    client: &Client,
    place: &Place,
    see: impl FnMut(Findings),
) -> Result<(), ReadError> {
    let escaped = |text: &str| {
        text.replace('\\', "\\\\")
            .replace(',', "\\,")
            .replace('=', "\\=")
    };
    let selector = format!(
        "imageMetadata.registry={},imageMetadata.repository={}",
        escaped(&place.registry),
        escaped(&place.repository)
    );
    let parameters = ListParams::default()
        .limit(FINDINGS_AT_ONCE)
        .fields(&selector);
    let path = FINDINGS.path(Some(&place.namespace));
    let all = each(client, &path, "", parameters, Limits::NONE, see).await;
    all.map(|_| ())
}

/// Reads one object; none if there is none.
pub(crate) async fn get<T: DeserializeOwned>(
    client: &Client,
    resource: Resource,
    namespace: Option<&str>,
    name: &str,
) -> Result<Option<T>, ReadError> {
    let path = format!("{}/{name}", resource.path(namespace));
    let failed = |source| ReadError {
        what: format!("one of {}", resource.plural),
        source,
    };
    let request = http::Request::get(&path).body(Vec::new());
    let request = request.map_err(|error| failed(Error::HttpError(error)))?;
    match client.request(request).await {
        Ok(object) => Ok(Some(object)),
        Err(Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(failed(error)),
    }
}

/// Reads whole objects, a page at a time.
pub(crate) async fn objects<T: DeserializeOwned>(
    client: &Client,
    resource: Resource,
    namespace: Option<&str>,
    labels: &str,
    limits: Limits,
    see: impl FnMut(T),
) -> Result<bool, ReadError> {
    let mut parameters = ListParams::default().limit(ROWS_AT_ONCE);
    if !labels.is_empty() {
        parameters = parameters.labels(labels);
    }
    let path = resource.path(namespace);
    each(client, &path, "", parameters, limits, see).await
}

/// An object as a table shows it.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) revision: String,
    columns: Arc<[String]>,
    cells: Vec<Value>,
}

impl Row {
    /// Namespace and name.
    pub(crate) fn place(&self) -> (String, String) {
        (self.namespace.clone(), self.name.clone())
    }

    /// A row without cells.
    #[cfg(test)]
    pub(crate) fn bare(namespace: &str, name: &str, uid: &str) -> Row {
        Row {
            namespace: namespace.into(),
            name: name.into(),
            uid: uid.into(),
            revision: "1".into(),
            columns: Arc::default(),
            cells: Vec::new(),
        }
    }

    fn cell(&self, column: &str) -> &Value {
        let at = self.columns.iter().position(|name| name == column);
        at.and_then(|at| self.cells.get(at)).unwrap_or(&Value::Null)
    }

    pub(crate) fn text(&self, column: &str) -> &str {
        self.cell(column).as_str().unwrap_or_default()
    }

    /// None where the column is empty, or not there at all.
    pub(crate) fn number(&self, column: &str) -> Option<usize> {
        let number = self.cell(column).as_u64()?;
        usize::try_from(number).ok()
    }
}

/// Reads the rows of a table.
pub(crate) async fn rows(
    client: &Client,
    resource: Resource,
    namespace: Option<&str>,
    limits: Limits,
    mut see: impl FnMut(Row),
) -> Result<bool, ReadError> {
    let parameters = ListParams::default().limit(ROWS_AT_ONCE);
    let path = resource.path(namespace);
    let mut columns: Arc<[String]> = Arc::default();
    let take = |table: Table| {
        if !table.column_definitions.is_empty() {
            let names = table.column_definitions.into_iter();
            columns = names.map(|column| column.name).collect();
        }
        let count = table.rows.len();
        for row in table.rows {
            let metadata = row.object.metadata;
            see(Row {
                namespace: metadata.namespace,
                name: metadata.name,
                uid: metadata.uid,
                revision: metadata.resource_version,
                columns: columns.clone(),
                cells: row.cells,
            });
        }
        (count, table.metadata)
    };
    pages(client, &path, Some(TABLE), "", parameters, limits, take).await
}

/// Asks for one row, to learn whether there could be more.
pub(crate) async fn first(
    client: &Client,
    resource: Resource,
    namespace: Option<&str>,
) -> Result<(), ReadError> {
    let parameters = ListParams::default().limit(1);
    let path = resource.path(namespace);
    let one = Limits {
        most: 1,
        until: None,
    };
    let take = |table: Table| (table.rows.len(), table.metadata);
    let asked = pages(client, &path, Some(TABLE), "", parameters, one, take).await;
    asked.map(|_| ())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Table {
    #[serde(default)]
    metadata: ListMeta,
    #[serde(default)]
    column_definitions: Vec<ColumnDefinition>,
    #[serde(default)]
    rows: Vec<TableRow>,
}

#[derive(Deserialize)]
struct ColumnDefinition {
    name: String,
}

#[derive(Deserialize)]
struct TableRow {
    #[serde(default)]
    cells: Vec<Value>,
    object: Shown,
}

#[derive(Deserialize)]
struct Shown {
    metadata: Identified,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Identified {
    namespace: String,
    name: String,
    uid: String,
    resource_version: String,
}

#[derive(Deserialize)]
#[serde(bound = "T: DeserializeOwned")]
struct Page<T> {
    #[serde(default)]
    metadata: ListMeta,
    items: Vec<T>,
}

async fn each<T: DeserializeOwned>(
    client: &Client,
    path: &str,
    option: &str,
    parameters: ListParams,
    limits: Limits,
    mut see: impl FnMut(T),
) -> Result<bool, ReadError> {
    let take = |page: Page<T>| {
        let count = page.items.len();
        page.items.into_iter().for_each(&mut see);
        (count, page.metadata)
    };
    pages(client, path, None, option, parameters, limits, take).await
}

/// Asks for one page after the other. Says whether the last of them was read.
async fn pages<P: DeserializeOwned>(
    client: &Client,
    path: &str,
    accept: Option<&'static str>,
    option: &str,
    mut parameters: ListParams,
    limits: Limits,
    mut take: impl FnMut(P) -> (usize, ListMeta),
) -> Result<bool, ReadError> {
    let what = path.rsplit('/').next().unwrap_or_default();
    let failed = |source| ReadError {
        what: what.to_owned(),
        source,
    };
    let mut seen = 0;
    loop {
        let request = kube::core::Request::new(path).list(&parameters);
        let mut request = request.map_err(|error| failed(Error::BuildRequest(error)))?;
        if !option.is_empty() {
            let asked = format!("{}&{option}", request.uri()).parse();
            *request.uri_mut() = asked
                .map_err(|error: http::uri::InvalidUri| failed(Error::HttpError(error.into())))?;
        }
        if let Some(accept) = accept {
            let accept = http::HeaderValue::from_static(accept);
            request.headers_mut().insert(http::header::ACCEPT, accept);
        }
        let page: P = client.request(request).await.map_err(failed)?;
        let (count, metadata) = take(page);
        seen += count;
        match metadata.continue_.filter(|token| !token.is_empty()) {
            None => return Ok(true),
            Some(_) if seen >= limits.most || limits.is_over() => return Ok(false),
            Some(token) => parameters = parameters.continue_token(&token),
        }
    }
}
