//! Stores of the first schema, which kept no links and counted no findings.

use super::{Fixture, IDLE, MUSTER, assert_served, is_aggregated};
use anyhow::Result;
use muster_testkit::kubectl::Kubectl;
use muster_testkit::muster::Muster;
use muster_testkit::postgres::Postgres;
use muster_testkit::storage::{Cluster, Options};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection};
use std::path::Path;

/// Takes away what later schemas have added to the first.
const SQLITE: &str = "
DROP TABLE finding;
DROP TABLE tally;
DROP TABLE pending;
DELETE FROM field WHERE key = '.link';
UPDATE body SET facts = json_remove(facts, '$.k') WHERE facts IS NOT NULL;
UPDATE meta SET value = 1 WHERE key = 'schema';";

const POSTGRES: &str = "
DROP TABLE finding;
DROP TABLE tally;
DROP TABLE pending;
DROP TABLE layer;
DROP FUNCTION touch_1, touch_some_1, touch_2, touch_more_1;
DROP TRIGGER begin_clock ON clock;
DROP TRIGGER begin_life ON incarnation;
DROP FUNCTION begin_clock_1, begin_life_1;
ALTER TABLE incarnation DROP COLUMN origin;
DELETE FROM field WHERE key = '.link';
UPDATE body SET facts = (facts::JSONB - 'k')::TEXT WHERE facts IS NOT NULL;
UPDATE schema_version SET version = 1, minimum = 1;";

/// Makes a data directory one of the first schema.
fn downgrade(data: &Path) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let options = SqliteConnectOptions::new().filename(data.join("state.db"));
        let mut connection = options.connect().await?;
        sqlx::raw_sql(SQLITE).execute(&mut connection).await?;
        connection.close().await?;
        Ok(())
    })
}

#[test]
fn a_data_directory_of_the_first_schema_counts_what_it_holds() -> Result<()> {
    for fixture in Fixture::all()? {
        let mut muster = Muster::start_on(MUSTER, &IDLE, |data| {
            fixture.unpack(data)?;
            downgrade(data)
        })?;
        let kubectl = Kubectl::new(&muster.kubeconfig_path())?;
        assert_served(&kubectl, &fixture, |_| true)?;
        // What was stored then is not stored again with every start.
        let revisions = ["get", "images,vulnerabilityreports", "-A", "-o"];
        let revisions = [
            &revisions[..],
            &["jsonpath={.items[*].metadata.resourceVersion}"],
        ]
        .concat();
        let before = kubectl.succeed(&revisions)?;
        muster.restart()?;
        let kubectl = Kubectl::new(&muster.kubeconfig_path())?;
        assert_eq!(kubectl.succeed(&revisions)?, before);
    }
    Ok(())
}

#[test]
fn a_database_of_the_first_schema_counts_what_it_holds() -> Result<()> {
    let postgres = Postgres::shared()?;
    for fixture in Fixture::all()? {
        let database = fixture.load(postgres)?;
        postgres.sql(&database, POSTGRES)?;
        let options = Options {
            reports: true,
            ..Options::on(postgres.url(&database))
        };
        let cluster = Cluster::start(MUSTER, &options)?;
        assert_served(&cluster.kubectl()?, &fixture, is_aggregated)?;
    }
    Ok(())
}
