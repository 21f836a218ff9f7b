//! `cargo xtask bench storage`: the reports of a large cluster, read and watched as clients do it,
//! over HTTPS, with every acknowledged write synced. Beside each figure stands what the same
//! question costs in a naive layout in the same PostgreSQL.

mod events;
mod figures;
mod load;
mod naive;
mod reads;
mod server;
mod world;

use anyhow::{Result, bail, ensure};
use figures::{Aim, Figure};
use muster_testkit::etcd::Durability;
use muster_testkit::http::Client;
use muster_testkit::postgres::Postgres;
use naive::{Extent, Join, Layout};
use reads::View;
use server::{Engine, Server};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use world::{Place, Population, World};

const API_VERSION: &str = "storage.sbomscanner.kubewarden.io/v1alpha1";
const API: &str = "/apis/storage.sbomscanner.kubewarden.io/v1alpha1";

fn collection(namespace: &str, resource: &str) -> String {
    format!("{API}/namespaces/{namespace}/{resource}")
}

/// How much is stored and how often it is asked for.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    population: Population,
    /// Reports read one by one.
    reads: usize,
    /// Rows of a page.
    page: usize,
    /// Pages read as a table, and whole.
    tables: usize,
    wholes: usize,
    /// Findings rewritten that few workloads depend on.
    changes: usize,
    /// The same of the image that many workloads run.
    shared_changes: usize,
    /// Reports whose answers are compared.
    compared: usize,
    /// How long one answer of the naive layout may take.
    patience: Duration,
}

const FULL: Sizes = Sizes {
    population: Population {
        workloads: 10_000,
        images: 5_000,
        findings: 300,
        sharing: 1_000,
    },
    reads: 1_000,
    page: 500,
    tables: 100,
    wholes: 10,
    changes: 300,
    shared_changes: 10,
    compared: 3,
    patience: Duration::from_secs(60),
};

/// To try it out.
const SMALL: Sizes = Sizes {
    population: Population {
        workloads: 400,
        images: 200,
        findings: 300,
        sharing: 40,
    },
    reads: 200,
    page: 100,
    tables: 20,
    wholes: 5,
    changes: 50,
    shared_changes: 5,
    compared: 3,
    patience: Duration::from_secs(20),
};

/// How often the naive layout is asked the same; it is slow, and pages in full are asked for once.
const NAIVE: usize = 3;

const ONE_REPORT: Aim = Aim::Median(Duration::from_millis(5));
const TABLE: Aim = Aim::Median(Duration::from_millis(50));
const EVENT: Aim = Aim::Almost(Duration::from_millis(200));

/// Measures and prints.
pub(crate) fn run(options: &[&str]) -> Result<()> {
    let (mut sizes, mut engine) = (FULL, Engine::Shared);
    for option in options {
        match *option {
            "--small" => sizes = SMALL,
            "--embedded" => engine = Engine::Embedded,
            other => bail!("bench storage knows --small and --embedded, not {other}"),
        }
    }
    if engine == Engine::Shared {
        muster_testkit::binaries::ensure_kubernetes()?;
    }
    let bench = Bench::start(engine, &super::build()?, Durability::Synced, sizes)?;
    super::runtime()?.block_on(bench.run())
}

struct Bench {
    engine: Engine,
    server: Server,
    client: Client,
    postgres: Postgres,
    world: Arc<World>,
    sizes: Sizes,
}

impl Bench {
    fn start(engine: Engine, binary: &Path, durability: Durability, sizes: Sizes) -> Result<Self> {
        let postgres = Postgres::start(durability)?;
        let server = Server::start(engine, binary, &postgres)?;
        Ok(Bench {
            engine,
            client: server.client()?,
            server,
            postgres,
            world: Arc::new(World::new(sizes.population)),
            sizes,
        })
    }

    async fn run(&self) -> Result<()> {
        let Population {
            workloads,
            images,
            findings,
            sharing,
        } = self.sizes.population;
        figures::line(match self.engine {
            Engine::Shared => "muster storage on PostgreSQL, one replica, every write synced",
            Engine::Embedded => "muster up on SQLite, every write synced",
        });
        figures::line(&format!(
            "{workloads} workloads ({sharing} of them with the same sidecar), {images} images for 2 \
             platforms each, {findings} findings of each, {} kB a VulnerabilityReport",
            self.world.report(0, 0).len() / 1000
        ));
        self.resources("at the start")?;
        eprintln!("filling the server");
        load::namespaces(&self.server.front()?).await?;
        load::fill(&self.client, &self.world).await?;
        self.resources("after filling")?;
        eprintln!("filling the naive layout");
        let mut naive = Layout::fill(&self.postgres, &self.world).await?;
        self.compare(&mut naive).await?;
        self.resources("after filling the naive layout")?;
        let mut figures = self.reads(&mut naive).await?;
        figures.extend(self.events(&mut naive).await?);
        figures::line("");
        figures::print(&figures);
        figures::line(&format!(
            "naive: the median of {NAIVE}; pages in full once; events once: write, find and compute, \
             without HTTP and without waiting; stopped after {:?}",
            self.sizes.patience
        ));
        Ok(())
    }

    /// Tells what has been used so far.
    fn resources(&self, when: &str) -> Result<()> {
        let (now, peak) = self.server.memory()?;
        let used = self.server.usage(&self.postgres)?;
        figures::line(&format!(
            "{when}: server {now:.0} MB resident (peak {peak:.0} MB), {:.1} s of processor time; \
             PostgreSQL {:.1} s",
            used.server, used.database
        ));
        Ok(())
    }

    /// Both must say the same, or they were asked different questions.
    async fn compare(&self, naive: &mut Layout) -> Result<()> {
        for round in 0..self.sizes.compared {
            // The first has a sidecar, most others have none.
            let number = reads::pick(round, self.world.population().workloads);
            let place = self.world.place_of_workload(number);
            let ours = reads::report(&self.client, &place).await?;
            let theirs = naive.report(&place).await?;
            for field in ["summary", "status", "containers"] {
                ensure!(
                    ours[field] == theirs[field] && !ours[field].is_null(),
                    "{place:?}: {field} is {} and in the naive layout {}",
                    ours[field],
                    theirs[field]
                );
            }
        }
        figures::line(&format!(
            "{} reports compared: both layouts say the same",
            self.sizes.compared
        ));
        Ok(())
    }

    async fn reads(&self, naive: &mut Layout) -> Result<Vec<Figure>> {
        let (sizes, client, world) = (self.sizes, &self.client, &*self.world);
        eprintln!("reading");
        let (times, bytes) = reads::single(client, world, View::Whole, sizes.reads).await?;
        let what = format!("one report ({} kB)", bytes / 1000);
        let one = Figure::new(what, times, Some(ONE_REPORT));
        let (times, _) = reads::single(client, world, View::Table, sizes.reads).await?;
        let row = Figure::new("one report as a table", times, None);
        let (times, bytes) = reads::page(client, View::Table, sizes.page, sizes.tables).await?;
        let what = format!("{} as a table ({} kB)", sizes.page, bytes / 1000);
        let table = Figure::new(what, times, Some(TABLE));
        let (times, bytes) = reads::page(client, View::Whole, sizes.page, sizes.wholes).await?;
        let what = format!("{} in full ({} MB)", sizes.page, bytes / 1_000_000);
        let whole = Figure::new(what, times, None);

        self.resources("after reading")?;

        eprintln!("asking the naive layout");
        let question = |round| {
            let number = reads::pick(round, sizes.population.workloads);
            vec![world.place_of_workload(number)]
        };
        let questions: Vec<Vec<Place>> = (0..NAIVE).map(question).collect();
        let page = vec![naive.page(sizes.page).await?];
        let pages = vec![page[0].clone(); NAIVE];
        let limit = sizes.patience;
        let mut ask =
            async |join, extent, questions| naive.ask(join, extent, limit, questions).await;
        let by_containment = Join::Containment;
        Ok(vec![
            one.beside(ask(by_containment, Extent::Whole, &questions).await?),
            row.beside(ask(by_containment, Extent::Counts, &questions).await?),
            table
                .clone()
                .beside(ask(by_containment, Extent::Counts, &pages).await?),
            table
                .called("  beside naive with a hash join")
                .beside(ask(Join::Equality, Extent::Counts, &pages).await?),
            whole
                .clone()
                .beside(ask(by_containment, Extent::Whole, &page).await?),
            whole
                .called("  beside naive with a hash join")
                .beside(ask(Join::Equality, Extent::Whole, &page).await?),
        ])
    }

    async fn events(&self, naive: &mut Layout) -> Result<Vec<Figure>> {
        let (sizes, client, world) = (self.sizes, &self.client, &*self.world);
        let views = [
            (View::Table, Extent::Counts, "as a table"),
            (View::Whole, Extent::Whole, "in full"),
        ];
        let mut seen = Vec::new();
        let mut round = 1;
        for (view, _, shown) in views {
            eprintln!("watching {shown}");
            let few = events::few(client, world, view, sizes.changes, round).await?;
            round += sizes.changes;
            let many = events::many(client, world, view, sizes.shared_changes, round).await?;
            round += sizes.shared_changes;
            let what = format!("event {shown}, from the acknowledgement");
            let last = format!("the last of {} events {shown}", sizes.population.sharing);
            seen.push([
                Figure::new(what, few.acknowledged, Some(EVENT)),
                Figure::new("  from sending the write", few.sent, None),
                Figure::new(last, many.acknowledged, None),
                Figure::new("  from sending the write", many.sent, None),
            ]);
        }
        self.resources("after watching")?;

        eprintln!("changing the naive layout");
        let limit = sizes.patience;
        let mut figures = Vec::new();
        for ((_, extent, _), [few, few_sent, many, many_sent]) in views.into_iter().zip(seen) {
            let (one, shared) = (reads::pick(0, world.applications()), world.sidecar());
            let other = naive.change(world, one, round, Join::Containment, extent, limit);
            figures.extend([few, few_sent.beside(other.await?)]);
            let other = naive.change(world, shared, round, Join::Equality, extent, limit);
            figures.extend([many, many_sent.beside(other.await?)]);
            round += 1;
        }
        Ok(figures)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sqlx::Row;

    const TINY: Sizes = Sizes {
        population: Population {
            workloads: 10,
            images: 6,
            findings: 70,
            sharing: 3,
        },
        changes: 3,
        shared_changes: 2,
        compared: 10,
        ..SMALL
    };

    /// The binary that cargo builds with all tests of the workspace.
    fn binary() -> std::path::PathBuf {
        let own = std::env::current_exe().unwrap();
        let binary = own.parent().unwrap().with_file_name("muster");
        assert!(
            binary.exists(),
            "no muster beside us: cargo build --release"
        );
        binary
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn both_layouts_say_the_same_before_and_after_findings_change() -> Result<()> {
        let bench = Bench::start(Engine::Embedded, &binary(), Durability::Unsynced, TINY)?;
        let (client, world) = (&bench.client, &*bench.world);
        load::namespaces(&bench.server.front()?).await?;
        load::fill(client, &bench.world).await?;
        let mut naive = Layout::fill(&bench.postgres, &bench.world).await?;
        bench.compare(&mut naive).await?;
        let all = naive.page(10).await?;
        for extent in [Extent::Whole, Extent::Counts] {
            let mut answers = Vec::new();
            for join in [Join::Containment, Join::Equality] {
                let rows = naive.reports(join, &all, extent).await?;
                let last = |row: &sqlx::postgres::PgRow| row.get::<String, _>(row.len() - 1);
                answers.push(rows.iter().map(last).collect::<Vec<String>>());
            }
            assert_eq!(answers[0].len(), 10);
            assert_eq!(answers[0], answers[1]);
        }
        events::few(client, world, View::Table, TINY.changes, 1).await?;
        events::many(client, world, View::Whole, TINY.shared_changes, 1).await?;
        let changed = (0..TINY.changes).map(|at| (reads::pick(at, world.applications()), at));
        let shared = (0..TINY.shared_changes).map(|at| (world.sidecar(), at));
        for (image, at) in changed.chain(shared) {
            let limit = TINY.patience;
            let change = naive.change(
                world,
                image,
                1 + at,
                Join::Containment,
                Extent::Whole,
                limit,
            );
            change.await?;
        }
        bench.compare(&mut naive).await
    }
}
