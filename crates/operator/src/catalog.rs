//! The first stage: which images there are. Every platform of every wanted tag becomes an Image,
//! owned by its Registry. How many there are is written down last, when all of them exist.

use crate::access::{self, Access};
use crate::message::{Job, JobKind};
use crate::object::{IMAGE, REGISTRY, is_absent, made_for};
use crate::work::{Operator, Trouble};
use crate::{name, progress};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kube::api::{DeleteParams, ListParams};
use muster_api::Platform;
use muster_registry::{Digest, ImageConfig, ImageManifest, Manifest, Repository};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Creates the Images of a job.
pub(crate) async fn create(operator: &Operator, job: &Job) -> Result<(), Trouble> {
    let Some(object) = progress::live(operator, job).await? else {
        return Ok(());
    };
    let registry = object.data["spec"]["registry"].as_str().unwrap_or_default();
    let Some(access) = access::open(operator, &job.namespace, registry).await? else {
        // The reconciler sees that too, and says so.
        return Ok(());
    };
    if !object.data["spec"]["repositories"]
        .as_array()
        .is_none_or(Vec::is_empty)
    {
        let why = "this version scans whole Registries; leave out spec.repositories";
        return Err(Trouble::permanent(why));
    }
    progress::begin(operator, job).await?;
    let mut listing = Listing::default();
    for repository in repositories(&access).await? {
        listing.read(&access, &repository).await?;
    }
    let mut made = BTreeSet::new();
    for image in &listing.found {
        let name = image.name(registry);
        let body = image.object(&name, registry, &access.uid, job);
        IMAGE
            .apply(operator.client(), &job.namespace, &name, &body)
            .await?;
        made.insert(name);
    }
    if job.kind == JobKind::ScanJob && listing.failures.is_empty() {
        forget(operator, &job.namespace, registry, &made).await?;
    }
    progress::listed(operator, job, made.len(), &listing.failures).await
}

/// Deletes the Images of a Registry that are there no longer, or mean something else by now.
async fn forget(
    operator: &Operator,
    namespace: &str,
    registry: &str,
    made: &BTreeSet<String>,
) -> Result<(), Trouble> {
    let client = operator.client();
    let selected = ListParams::default().fields(&format!("imageMetadata.registry={registry}"));
    for known in IMAGE.metadata(client, namespace, selected).await? {
        let name = known.name.unwrap_or_default();
        if made.contains(&name) {
            continue;
        }
        let api = IMAGE.within(client, namespace);
        match api.delete(&name, &DeleteParams::background()).await {
            Err(error) if !is_absent(&error) => return Err(error.into()),
            _ => {}
        }
    }
    Ok(())
}

async fn repositories(access: &Access) -> Result<Vec<Repository>, Trouble> {
    let spec = &access.spec;
    if spec.repositories.is_empty() {
        if spec.catalog_type == "NoCatalog" {
            let why = "the Registry has no catalog and lists no repositories";
            return Err(Trouble::permanent(why));
        }
        return Ok(access.client.catalog(&access.host).await?);
    }
    let wanted = spec.repositories.iter();
    if let Some(filter) = wanted
        .clone()
        .find(|filter| !filter.match_conditions.is_empty())
    {
        let why = format!(
            "repository {} has matchConditions, which this version does not evaluate; remove them to scan every tag",
            filter.name
        );
        return Err(Trouble::permanent(why));
    }
    wanted
        .map(|filter| Repository::on(&access.host, &filter.name).map_err(Trouble::permanent))
        .collect()
}

/// What was found, and what could not be listed: one bad tag or platform never stops the
/// others.
#[derive(Default)]
struct Listing {
    found: Vec<Found>,
    failures: Vec<String>,
}

impl Listing {
    async fn read(&mut self, access: &Access, repository: &Repository) -> Result<(), Trouble> {
        let tags = access.client.tags(repository).await;
        let Some(tags) = self.judge(tags.map_err(Into::into))? else {
            return Ok(());
        };
        for tag in tags {
            self.tag(access, repository, &tag).await?;
        }
        Ok(())
    }

    /// Finds the images behind a tag.
    async fn tag(
        &mut self,
        access: &Access,
        repository: &Repository,
        tag: &str,
    ) -> Result<(), Trouble> {
        let Some(reference) = self.judge(repository.tagged(tag).map_err(Trouble::permanent))?
        else {
            return Ok(());
        };
        let fetched = access.client.manifest(&reference).await;
        let Some(fetched) = self.judge(fetched.map_err(Into::into))? else {
            return Ok(());
        };
        let index = match fetched.manifest {
            Manifest::Image(manifest) => {
                let place = (repository, tag, None);
                return self
                    .image(access, place, fetched.digest, None, manifest)
                    .await;
            }
            Manifest::Index(index) => index,
        };
        for entry in index.images() {
            let unwanted = |platform| !access.spec.wants(platform);
            if entry.platform.as_ref().is_some_and(unwanted) {
                continue;
            }
            let child = access.client.manifest(&repository.at(&entry.digest)).await;
            let child = self.judge(child.map_err(Into::into))?;
            if let Some((digest, Manifest::Image(manifest))) = child.map(|c| (c.digest, c.manifest))
            {
                let place = (repository, tag, Some(&fetched.digest));
                self.image(access, place, digest, entry.platform.clone(), manifest)
                    .await?;
            }
        }
        Ok(())
    }

    /// Notes an image that is wanted; what is none (a chart, a signature) is passed over.
    async fn image(
        &mut self,
        access: &Access,
        (repository, tag, index): (&Repository, &str, Option<&Digest>),
        digest: Digest,
        platform: Option<Platform>,
        manifest: ImageManifest,
    ) -> Result<(), Trouble> {
        if !manifest.is_image() {
            return Ok(());
        }
        let config = access.client.config(repository, &manifest.config).await;
        let Some(config) = self.judge(config.map_err(Into::into))? else {
            return Ok(());
        };
        let platform = platform.or_else(|| config.platform.clone());
        if platform
            .as_ref()
            .is_none_or(|platform| access.spec.wants(platform))
        {
            self.found.push(Found {
                repository: repository.clone(),
                tag: tag.to_owned(),
                digest,
                index: index.cloned(),
                platform,
                manifest,
                config,
            });
        }
        Ok(())
    }

    /// Notes what will not get better; the rest is tried again as a whole.
    fn judge<T>(&mut self, outcome: Result<T, Trouble>) -> Result<Option<T>, Trouble> {
        match outcome {
            Ok(value) => Ok(Some(value)),
            // Who is not let in need not knock at every door.
            Err(Trouble::Registry(
                error @ (muster_registry::Error::Unauthorized { .. }
                | muster_registry::Error::Untrusted { .. }),
            )) => Err(error.into()),
            Err(trouble) if trouble.is_permanent() => {
                self.failures.push(trouble.to_string());
                Ok(None)
            }
            Err(trouble) => Err(trouble),
        }
    }
}

/// One platform of a tag.
struct Found {
    repository: Repository,
    tag: String,
    digest: Digest,
    index: Option<Digest>,
    platform: Option<Platform>,
    manifest: ImageManifest,
    config: ImageConfig,
}

impl Found {
    fn platform(&self) -> String {
        self.platform
            .as_ref()
            .map(Platform::to_string)
            .unwrap_or_default()
    }

    fn name(&self, registry: &str) -> String {
        let reference = format!("{}:{}", self.repository.name(), self.tag);
        name::image(
            registry,
            &reference,
            &self.platform(),
            &self.digest.to_string(),
        )
    }

    fn object(&self, name: &str, registry: &str, uid: &str, job: &Job) -> Value {
        let mut metadata = json!({
            "registry": registry, "registryURI": self.repository.host().as_str(),
            "repository": self.repository.name(), "tag": self.tag,
            "digest": self.digest.to_string(),
        });
        if let Some(index) = &self.index {
            metadata["indexDigest"] = json!(index.to_string());
        }
        if let Some(platform) = &self.platform {
            metadata["platform"] =
                json!({"os": platform.os, "architecture": platform.architecture});
            if let Some(variant) = &platform.variant {
                metadata["platform"]["variant"] = json!(variant);
            }
        }
        json!({
            "apiVersion": IMAGE.api_version(), "kind": IMAGE.kind,
            "metadata": made_for(job, name, REGISTRY, registry, uid),
            "imageMetadata": metadata,
            "layers": self.layers(),
        })
    }

    /// The layers with the build steps that made them; steps that made none are left out.
    fn layers(&self) -> Vec<Value> {
        let mut steps = self.config.history.iter().filter(|step| !step.empty_layer);
        let layers = self.manifest.layers.iter().zip(&self.config.diff_ids);
        layers
            .map(|(layer, diff)| {
                let command = steps.next().map(|step| STANDARD.encode(&step.created_by));
                json!({
                    "digest": layer.digest.to_string(), "diffID": diff.to_string(),
                    "command": command.unwrap_or_default(),
                })
            })
            .collect()
    }
}
