//! Links of objects that an older version stored without them. What is computed from an object is found by its
//! links, so an object without them would count as one that does not exist.

use crate::catalog::Served;
use crate::index::index;
use crate::server::Server;
use crate::store::{Change, Expect, Key, StoreError, Write};
use std::collections::BTreeMap;

/// Writes every such object once more, as it is, and returns how many there were. The store then keeps
/// its links and counts its findings. An object that a client writes meanwhile gets its links from that. One that
/// cannot be written stays as it is and is tried again at the next start: it must not keep the others from being
/// served. Older versions that keep no links cannot work with this schema, so no such object is added later.
pub(crate) async fn store_missing(server: &Server) -> Result<u64, StoreError> {
    let mut written = 0;
    let kinds = server.catalog.kinds().iter();
    for served in kinds.filter(|served| served.kind.linker.is_some()) {
        for key in server.store.unlinked(&served.resource).await? {
            match write_again(server, served, &key).await {
                Ok(is_written) => written += u64::from(is_written),
                Err(
                    error
                    @ (StoreError::Unavailable { .. } | StoreError::Full | StoreError::Closed),
                ) => {
                    return Err(error);
                }
                Err(error) => tracing::error!(
                    resource = &*served.resource, namespace = key.namespace, name = key.name, %error,
                    "failed to store the links of an object; it counts as not scanned"
                ),
            }
        }
    }
    Ok(written)
}

/// Writes one object once more, unless it has no links in any version, as the report of a workload without
/// containers, or a client has written it meanwhile.
async fn write_again(server: &Server, served: &Served, key: &Key) -> Result<bool, StoreError> {
    let Some(stored) = server.store.get(&served.resource, key).await? else {
        return Ok(false);
    };
    let index = index(&served.tree(&stored.body, stored.revision), served);
    if index.links.is_empty() {
        return Ok(false);
    }
    let write = Write {
        resource: served.resource.clone(),
        key: key.clone(),
        expect: Expect::Revision(stored.revision),
        change: Change::Put {
            body: stored.body,
            index,
            blobs: BTreeMap::new(),
        },
    };
    match server.store.write(write).await {
        Ok(_) => Ok(true),
        Err(StoreError::Conflict | StoreError::Missing) => Ok(false),
        Err(error) => Err(error),
    }
}
