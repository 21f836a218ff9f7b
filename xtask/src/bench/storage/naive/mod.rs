//! The layout to compare with: one table of whole objects as JSONB, no index beside the primary
//! key, and a workload's report computed when it is asked for by joining all Images and
//! VulnerabilityReports with its containers. The questions are the same and so are the answers. It
//! gets what helps it: fresh statistics, parallel workers, memory, a connection that is kept, and
//! no HTTP around it.

mod fill;
mod question;

pub(super) use question::{Extent, Join};

use super::figures::{Naive, Times};
use super::world::{Place, World};
use anyhow::{Context, Result};
use muster_testkit::postgres::Postgres;
use serde_json::Value;
use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, Connection, PgConnection, Row};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a statement was stopped with for taking too long.
const CANCELED: &str = "57014";

/// The workers may share any scan: the rows are few, but what they refer to is large.
const SETTINGS: &str = "
SET max_parallel_workers_per_gather = 2;
SET min_parallel_table_scan_size = 0;
SET min_parallel_index_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET work_mem = '256MB'";

/// A database in this layout.
pub(super) struct Layout {
    connection: PgConnection,
}

impl Layout {
    /// Makes and fills it with the same objects.
    pub(super) async fn fill(postgres: &Postgres, world: &Arc<World>) -> Result<Layout> {
        let url = postgres.url(&postgres.database()?);
        let mut connection = PgConnection::connect(&url).await?;
        fill::fill(&url, world).await?;
        for statement in ["VACUUM ANALYZE naive", SETTINGS] {
            sqlx::raw_sql(statement).execute(&mut connection).await?;
        }
        Ok(Layout { connection })
    }

    /// Asks for reports; gives the rows.
    pub(super) async fn reports(
        &mut self,
        join: Join,
        which: &[Place],
        extent: Extent,
    ) -> Result<Vec<PgRow>, sqlx::Error> {
        let statement = AssertSqlSafe(question::statement(join, which, extent));
        sqlx::raw_sql(statement)
            .fetch_all(&mut self.connection)
            .await
    }

    /// One report, whole.
    pub(super) async fn report(&mut self, place: &Place) -> Result<Value> {
        let which = std::slice::from_ref(place);
        let rows = self
            .reports(Join::Containment, which, Extent::Whole)
            .await?;
        let row = rows
            .first()
            .context("the naive layout has no such report")?;
        Ok(serde_json::from_str(row.try_get(2)?)?)
    }

    /// Asks again and again, or until one answer takes longer than the limit.
    pub(super) async fn ask(
        &mut self,
        join: Join,
        extent: Extent,
        limit: Duration,
        questions: &[Vec<Place>],
    ) -> Result<Naive> {
        self.limit(limit).await?;
        let mut times = Times::default();
        for which in questions {
            let start = Instant::now();
            match self.reports(join, which, extent).await {
                Ok(_) => times.add(start.elapsed()),
                Err(error) if is_canceled(&error) => return Ok(Naive::Stopped(limit)),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Naive::Took(times))
    }

    /// The first page of a list.
    pub(super) async fn page(&mut self, rows: usize) -> Result<Vec<Place>> {
        let statement = format!(
            "SELECT namespace, name FROM naive WHERE kind = 'WorkloadScanReport'
            ORDER BY namespace, name LIMIT {rows}"
        );
        self.places(statement).await
    }

    /// Writes new findings of an image and computes the reports of all workloads that run it: what
    /// a watcher of this layout would wait for, without the waiting.
    pub(super) async fn change(
        &mut self,
        world: &World,
        image: usize,
        round: usize,
        join: Join,
        extent: Extent,
        limit: Duration,
    ) -> Result<Naive> {
        self.limit(limit).await?;
        let number = World::first_platform(image);
        let (place, object) = (world.place_of_scanned(number), world.report(number, round));
        let start = Instant::now();
        sqlx::query(
            "UPDATE naive SET object = $3::JSONB
            WHERE kind = 'VulnerabilityReport' AND namespace = $1 AND name = $2",
        )
        .bind(&place.namespace)
        .bind(&place.name)
        .bind(&object)
        .execute(&mut self.connection)
        .await?;
        let affected = format!(
            "SELECT w.namespace, w.name
            FROM naive v
            JOIN naive w ON w.kind = 'WorkloadScanReport' AND w.object @> jsonb_build_object(
                'spec', jsonb_build_object('containers', jsonb_build_array(jsonb_build_object(
                    'imageRef', jsonb_build_object(
                        'namespace', v.namespace,
                        'registry', v.object #> '{{imageMetadata,registry}}',
                        'repository', v.object #> '{{imageMetadata,repository}}',
                        'tag', v.object #> '{{imageMetadata,tag}}'
            )))))
            WHERE v.kind = 'VulnerabilityReport' AND v.namespace = '{}' AND v.name = '{}'",
            place.namespace, place.name
        );
        let which = self.places(affected).await?;
        match self.reports(join, &which, extent).await {
            Ok(rows) => anyhow::ensure!(
                rows.len() == world.runs(image),
                "the naive layout finds {} workloads and not {}",
                rows.len(),
                world.runs(image)
            ),
            Err(error) if is_canceled(&error) => return Ok(Naive::Stopped(limit)),
            Err(error) => return Err(error.into()),
        }
        let mut times = Times::default();
        times.add(start.elapsed());
        Ok(Naive::Took(times))
    }

    async fn places(&mut self, statement: String) -> Result<Vec<Place>> {
        let rows = sqlx::raw_sql(AssertSqlSafe(statement))
            .fetch_all(&mut self.connection)
            .await?;
        let place = |row: &PgRow| {
            anyhow::Ok(Place {
                namespace: row.try_get(0)?,
                name: row.try_get(1)?,
            })
        };
        rows.iter().map(place).collect()
    }

    async fn limit(&mut self, limit: Duration) -> Result<()> {
        let statement = format!("SET statement_timeout = '{}ms'", limit.as_millis());
        let set = sqlx::raw_sql(AssertSqlSafe(statement));
        set.execute(&mut self.connection).await?;
        Ok(())
    }
}

fn is_canceled(error: &sqlx::Error) -> bool {
    let error = error.as_database_error();
    error.and_then(|error| error.code()).as_deref() == Some(CANCELED)
}
