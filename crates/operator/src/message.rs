//! The messages between the stages. Each names its job and what it is about, and has an id, so
//! that sending it again while it waits changes nothing.

use crate::object::{DISCOVERY, Kind, SCAN_JOB};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Find the images of a job.
pub(crate) const CATALOG: &str = "sbomscanner.catalog.create";
/// Write the bill of an image.
pub(crate) const GENERATE: &str = "sbomscanner.sbom.generate";
/// Match the bill of an image.
pub(crate) const SCAN: &str = "sbomscanner.sbom.scan";

/// Match the bill of an image with other data.
pub(crate) const REMATCH: &str = "sbomscanner.sbom.rematch";

/// Which image's report was made with older data.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Rematch {
    pub(crate) namespace: String,
    pub(crate) image: String,
}

/// What kinds of job there are. A ScanJob goes through all stages, a RegistryDiscovery ends with
/// the bills.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub(crate) enum JobKind {
    ScanJob,
    RegistryDiscovery,
}

/// Which job it is for.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Job {
    pub(crate) kind: JobKind,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
}

impl JobKind {
    /// The kind as the API has it.
    pub(crate) fn object(self) -> Kind {
        match self {
            JobKind::ScanJob => SCAN_JOB,
            JobKind::RegistryDiscovery => DISCOVERY,
        }
    }
}

/// For people: `ScanJob default/nightly`.
impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind.object().kind;
        write!(f, "{kind} {}/{}", self.namespace, self.name)
    }
}

/// Which job, and which of its images; none for the job itself.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Message {
    pub(crate) job: Job,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) image: Option<String>,
    /// The span in which it was sent, if spans are kept. It is no part of the id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) traceparent: Option<String>,
}

impl Message {
    pub(crate) fn new(job: &Job, image: Option<String>) -> Self {
        Message {
            job: job.clone(),
            image,
            traceparent: None,
        }
    }

    pub(crate) fn id(&self, stage: &str) -> String {
        let uid = &self.job.uid;
        match &self.image {
            None => format!("{stage}/{uid}"),
            Some(image) => format!("{stage}/{uid}/{image}"),
        }
    }

    pub(crate) fn encode(&self) -> Result<Bytes, serde_json::Error> {
        serde_json::to_vec(self).map(Bytes::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_the_same_whichever_span_sent_it() {
        // As it was written before spans were kept.
        let old = r#"{"job":{"kind":"ScanJob","namespace":"a","name":"b","uid":"c"},"image":"d"}"#;
        let mut message: Message = serde_json::from_str(old).unwrap();
        assert_eq!(message.encode().unwrap(), old);
        let id = message.id("scanSBOM");
        message.traceparent = Some("00-1-2-01".into());
        assert_eq!(message.id("scanSBOM"), id);
        let again: Message = serde_json::from_slice(&message.encode().unwrap()).unwrap();
        assert_eq!(again.traceparent, message.traceparent);
    }
}
