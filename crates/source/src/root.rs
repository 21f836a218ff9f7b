//! A root file system on disk. It is made into the archive that a layer of it would be, on the fly,
//! and read as one: so the same tree has the same packages, however it is met.

use crate::error::Error;
use crate::feed::Watched;
use crate::options::Options;
use crate::tree::Tree;
use muster_scan::image::merge;
use muster_scan::layer::{self, LayerError};
use muster_scan::sbom::{Bill, Subject};
use std::path::Path;
use std::sync::Arc;

/// Scans the tree below a directory.
pub(crate) async fn bill(root: &Path, options: &Options) -> Result<Bill, Error> {
    let awaited = Arc::new(());
    let (watch, limits) = (Arc::downgrade(&awaited), options.limits);
    let (root, progress) = (root.to_owned(), options.progress.clone());
    let read = move || {
        let name = root.display().to_string();
        let attempt = format!("reading the root file system {name}");
        let mut tree = Tree::new(&root, limits).map_err(|error| Error::file(attempt, error))?;
        progress.layer_started(&name, None);
        let watched = Watched::new(&mut tree, name.clone(), progress.clone(), watch);
        let layer = layer::read(watched, &limits).map_err(|source| Error::Layer {
            layer: "the tree".into(),
            image: name.clone(),
            source,
        })?;
        progress.layer_done(&name, false);
        let contents = merge([(&layer.diff_id, &layer.inventory)]);
        let mut contents = contents.map_err(|exceeded| Error::Layer {
            layer: "the tree".into(),
            image: name.clone(),
            source: LayerError::Limit(exceeded),
        })?;
        for component in &mut contents.components {
            component.layer = None;
        }
        contents.incomplete.extend(tree.into_incomplete());
        contents.incomplete.sort();
        let is_recognised = contents.os.is_some() || !contents.components.is_empty();
        if !is_recognised && contents.incomplete.is_empty() {
            return Err(Error::NothingRecognised(root));
        }
        let subject = Subject {
            name,
            ..Subject::default()
        };
        Ok(Bill::new(subject, contents))
    };
    tokio::task::spawn_blocking(read).await?
}
