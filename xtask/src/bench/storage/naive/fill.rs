//! Filling the naive layout, with the very objects that the server was given.

use crate::bench::storage::world::{ARTIFACTS, Place, World};
use anyhow::{Context, Result};
use sqlx::{Connection, PgConnection};
use std::sync::Arc;

/// Connections that fill the table.
const FILLERS: usize = 2;
/// Text that goes out at once.
const PIECE: usize = 1 << 20;

const TABLE: &str = "
CREATE TABLE naive (
    kind TEXT NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    object JSONB NOT NULL,
    PRIMARY KEY (kind, namespace, name)
)";

/// Makes the table and fills it.
pub(super) async fn fill(url: &str, world: &Arc<World>) -> Result<()> {
    let mut connection = PgConnection::connect(url).await?;
    sqlx::raw_sql(TABLE).execute(&mut connection).await?;
    let fillers: Vec<_> = (0..FILLERS)
        .map(|own| tokio::spawn(copy(url.to_owned(), world.clone(), own)))
        .collect();
    for filler in fillers {
        filler.await.context("filling the naive layout")??;
    }
    Ok(())
}

/// Copies every so many of all objects.
async fn copy(url: String, world: Arc<World>, own: usize) -> Result<()> {
    let mut connection = PgConnection::connect(&url).await?;
    let mut copy = connection.copy_in_raw("COPY naive FROM STDIN").await?;
    let mut text = String::with_capacity(2 * PIECE);
    let mut add = |kind: &str, namespace: &str, name: &str, object: &str| {
        // The objects have neither tabs nor line ends in them.
        let object = object.replace('\\', "\\\\");
        text.push_str(&format!("{kind}\t{namespace}\t{name}\t{object}\n"));
        match text.len() < PIECE {
            true => None,
            false => Some(std::mem::take(&mut text)),
        }
    };
    for number in (own..world.scanned()).step_by(FILLERS) {
        let name = world.place_of_scanned(number).name;
        let image = world.image(number).to_string();
        for piece in [
            add("Image", ARTIFACTS, &name, &image),
            add(
                "VulnerabilityReport",
                ARTIFACTS,
                &name,
                &world.report(number, 0),
            ),
        ]
        .into_iter()
        .flatten()
        {
            copy.send(piece.into_bytes()).await?;
        }
    }
    for number in (own..world.population().workloads).step_by(FILLERS) {
        let Place { namespace, name } = world.place_of_workload(number);
        let object = world.workload(number).to_string();
        if let Some(piece) = add("WorkloadScanReport", &namespace, &name, &object) {
            copy.send(piece.into_bytes()).await?;
        }
    }
    copy.send(text.into_bytes()).await?;
    copy.finish().await?;
    Ok(())
}
