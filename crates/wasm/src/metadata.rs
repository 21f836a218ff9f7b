//! What a module says of itself: the custom section that Kubewarden's tools add to policies. Only the
//! outline of the file is read here, so that it is known before anything is compiled.

use crate::error::Error;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The section.
const SECTION: &[u8] = b"io.kubewarden.metadata";
/// The largest section that is read.
const LARGEST: usize = 1 << 20;

/// What a module says of itself. Nothing of it has been checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// The version of the protocol: `v1`.
    pub protocol_version: Option<String>,
    /// Whether it may change what it judges.
    pub mutating: bool,
    /// Whether it can judge objects that are already there.
    pub background_audit: bool,
    /// How it is spoken to: `kubewarden-wapc`, `wasi`, `opa` or `gatekeeper`.
    pub execution_mode: Option<String>,
    /// What it judges: `kubernetes` or `raw`.
    pub policy_type: Option<String>,
    /// What it reads of the cluster: API versions and kinds.
    pub context_aware_resources: Vec<(String, String)>,
    /// Which host capabilities it uses.
    pub host_capabilities: Vec<String>,
    /// Title, description and so on.
    pub annotations: BTreeMap<String, String>,
    /// The oldest Kubewarden it runs on.
    pub minimum_kubewarden_version: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    protocol_version: Option<String>,
    mutating: Option<bool>,
    background_audit: Option<bool>,
    execution_mode: Option<String>,
    policy_type: Option<String>,
    context_aware_resources: Option<Vec<WrittenKind>>,
    host_capabilities: Option<Vec<String>>,
    annotations: Option<BTreeMap<String, String>>,
    minimum_kubewarden_version: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WrittenKind {
    api_version: String,
    kind: String,
}

impl Metadata {
    /// What the module in `bytes` says of itself; none if it says nothing. A module that cannot be
    /// understood is refused: whether it judges objects at all is written there.
    pub(crate) fn of(bytes: &[u8]) -> Result<Option<Metadata>, Error> {
        let Some(section) = sections(bytes).find_map(own) else {
            return Ok(None);
        };
        if section.len() > LARGEST {
            return Err(Error::Metadata("they are too large".into()));
        }
        let written: Written = serde_json::from_slice(section)
            .map_err(|error| Error::Metadata(format!("they are not as expected: {error}")))?;
        let kinds = written.context_aware_resources.unwrap_or_default();
        Ok(Some(Metadata {
            protocol_version: written.protocol_version,
            mutating: written.mutating.unwrap_or_default(),
            background_audit: written.background_audit.unwrap_or(true),
            execution_mode: written.execution_mode,
            policy_type: written.policy_type,
            context_aware_resources: kinds
                .into_iter()
                .map(|kind| (kind.api_version, kind.kind))
                .collect(),
            host_capabilities: written.host_capabilities.unwrap_or_default(),
            annotations: written.annotations.unwrap_or_default(),
            minimum_kubewarden_version: written.minimum_kubewarden_version,
        }))
    }
}

/// The custom sections of a module, up to the first that does not make sense. That one the compiler
/// will complain about.
fn sections(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes.get(8..).unwrap_or_default();
    let next = move || {
        let (id, after) = rest.split_first()?;
        let (length, after) = number(after)?;
        let section = after.get(..length)?;
        rest = after.get(length..)?;
        Some((*id, section))
    };
    std::iter::from_fn(next).filter_map(|(id, section)| (id == 0).then_some(section))
}

/// The content of a custom section, if it is the one with the metadata.
fn own(section: &[u8]) -> Option<&[u8]> {
    let (length, after) = number(section)?;
    (after.get(..length)? == SECTION).then(|| after.get(length..))?
}

/// A number of up to 32 bits in LEB128, and what follows it.
fn number(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut number = 0u64;
    for (at, byte) in bytes.iter().take(5).enumerate() {
        number |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            let number = u32::try_from(number).ok()?;
            return Some((usize::try_from(number).ok()?, bytes.get(at + 1..)?));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(sections: &[(&str, &[u8])]) -> Vec<u8> {
        let mut module = b"\0asm\x01\0\0\0".to_vec();
        for (name, content) in sections {
            let length = 1 + name.len() + content.len();
            module.push(0);
            let mut rest = length;
            while rest > 0x7f {
                module.push(u8::try_from(rest & 0x7f).unwrap() | 0x80);
                rest >>= 7;
            }
            module.push(u8::try_from(rest).unwrap());
            module.push(u8::try_from(name.len()).unwrap());
            module.extend_from_slice(name.as_bytes());
            module.extend_from_slice(content);
        }
        module
    }

    #[test]
    fn the_section_is_found_among_others_and_read() {
        let written = br#"{"protocolVersion": "v1", "rules": [{"apiGroups": 7}], "mutating": true,
            "executionMode": "wasi", "policyType": "raw", "annotations": {"a": "b"},
            "contextAwareResources": [{"apiVersion": "apps/v1", "kind": "Deployment"}],
            "hostCapabilities": ["oci/*"], "minimumKubewardenVersion": "1.2.3"}"#;
        let module = module(&[("name", b"x"), ("io.kubewarden.metadata", written)]);
        let metadata = Metadata::of(&module).unwrap().unwrap();
        assert_eq!(
            metadata,
            Metadata {
                protocol_version: Some("v1".into()),
                mutating: true,
                background_audit: true,
                execution_mode: Some("wasi".into()),
                policy_type: Some("raw".into()),
                context_aware_resources: vec![("apps/v1".into(), "Deployment".into())],
                host_capabilities: vec!["oci/*".into()],
                annotations: BTreeMap::from([("a".into(), "b".into())]),
                minimum_kubewarden_version: Some("1.2.3".into()),
            }
        );
    }

    #[test]
    fn what_is_cut_off_or_wrong_never_panics() {
        let whole = module(&[("a", b"b"), ("io.kubewarden.metadata", b"{}")]);
        for end in 0..whole.len() {
            let _ = Metadata::of(&whole[..end]);
        }
        for endless in [
            &[0xff; 20][..],
            &[0; 20],
            b"\0asm\x01\0\0\0\0\xff\xff\xff\xff\x0f",
        ] {
            assert_eq!(Metadata::of(endless).unwrap(), None);
        }
        let large = vec![b' '; LARGEST + 1];
        for wrong in [&b"{"[..], b"[]", br#"{"mutating": "yes"}"#, &large] {
            let module = module(&[("io.kubewarden.metadata", wrong)]);
            assert!(matches!(Metadata::of(&module), Err(Error::Metadata(_))));
        }
    }
}
