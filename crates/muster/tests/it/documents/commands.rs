//! Every command of the pages is executed, on a machine without a network, and shows what the page
//! shows. What is not executed is listed here.

use super::console::commands;
use super::desk::Desk;
use super::markdown::{Block, Page};
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::time::Instant;

/// The pages that are followed from the first command to the last.
const FOLLOWED: [&str; 21] = [
    "README.md",
    "charts/muster/README.md",
    "docs/air-gap.md",
    "docs/audit-command.md",
    "docs/audit.md",
    "docs/backup.md",
    "docs/coming-from.md",
    "docs/config-audit.md",
    "docs/demo.md",
    "docs/install.md",
    "docs/operations.md",
    "docs/outside.md",
    "docs/pages.md",
    "docs/plugin.md",
    "docs/policies.md",
    "docs/quick-start.md",
    "docs/scanning.md",
    "docs/schedules.md",
    "docs/vex.md",
    "docs/why.md",
    "docs/workloads.md",
];

/// Why blocks of pages say themselves that they are not executed.
const SKIPPED: [&str; 7] = [
    "a file is put into a pod by a kubelet",
    "a forwarded port needs a kubelet",
    "is what runs these very tests",
    "needs a cluster with NATS",
    "needs a cluster with PostgreSQL",
    "needs a container engine",
    "needs a registry with a login",
];

/// Why a block is not executed, if it says so.
fn skipped(block: &Block) -> Option<&String> {
    block.attributes.get("skip-reason")
}

fn consoles(page: &Page) -> Result<Vec<Block>> {
    let blocks = page.blocks()?.into_iter();
    Ok(blocks.filter(|block| block.language == "console").collect())
}

/// Follows a page: writes the files that it shows, and does what it says.
async fn follow(path: &str) -> Result<()> {
    let page = Page::read(path)?;
    let mut desk = Desk::new(&page).await?;
    super::stages::set(&mut desk, path)?;
    for block in page.blocks()? {
        if let Some(file) = block.attributes.get("file") {
            desk.write(file, desk.here(&block.text()))?;
        }
        if block.language != "console" || skipped(&block).is_some() {
            continue;
        }
        for command in commands(&block).with_context(|| page.name())? {
            let place = page.place(command.line);
            super::stages::before(&mut desk, path, &command.text)?;
            let start = Instant::now();
            desk.follow(&command)
                .with_context(|| format!("{place}: $ {}", command.text))?;
            // For whoever wants to know how long a reader waits (--nocapture); nothing depends on it.
            let took = start.elapsed().as_secs_f64();
            eprintln!("{place}: {took:.1} s: $ {}", command.text);
        }
    }
    Ok(())
}

macro_rules! pages {
    ($($name:ident: $path:literal,)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() -> Result<()> {
                follow($path).await
            }
        )*

        #[test]
        fn every_page_of_the_list_is_followed() {
            assert_eq!(FOLLOWED, [$($path),*]);
        }
    };
}

pages! {
    the_first_page_can_be_followed: "README.md",
    the_page_of_the_chart_can_be_followed: "charts/muster/README.md",
    the_air_gap_can_be_followed: "docs/air-gap.md",
    the_audit_command_can_be_followed: "docs/audit-command.md",
    the_policy_audit_can_be_followed: "docs/audit.md",
    backup_can_be_followed: "docs/backup.md",
    coming_from_can_be_followed: "docs/coming-from.md",
    the_configuration_audit_can_be_followed: "docs/config-audit.md",
    the_demonstration_can_be_followed: "docs/demo.md",
    installing_can_be_followed: "docs/install.md",
    operations_can_be_followed: "docs/operations.md",
    looking_from_outside_can_be_followed: "docs/outside.md",
    the_web_pages_can_be_followed: "docs/pages.md",
    the_plugin_can_be_followed: "docs/plugin.md",
    policies_can_be_followed: "docs/policies.md",
    the_quick_start_can_be_followed: "docs/quick-start.md",
    scanning_can_be_followed: "docs/scanning.md",
    schedules_can_be_followed: "docs/schedules.md",
    vex_can_be_followed: "docs/vex.md",
    why_can_be_followed: "docs/why.md",
    workloads_can_be_followed: "docs/workloads.md",
}

#[test]
fn every_page_with_commands_is_followed_and_what_is_not_executed_is_listed() -> Result<()> {
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    let mut unfollowed = Vec::new();
    for page in Page::all()? {
        let name = page.name();
        let blocks = consoles(&page)?;
        let open = blocks.iter().filter(|block| skipped(block).is_none());
        let is_followed = FOLLOWED.contains(&name.as_str());
        if open.count() > 0 && !is_followed {
            unfollowed.push(name.clone());
        }
        for reason in blocks.iter().filter_map(skipped) {
            *reasons.entry(reason.clone()).or_default() += 1;
        }
    }
    assert!(unfollowed.is_empty(), "nobody follows {unfollowed:?}");
    let unlisted: Vec<_> = reasons
        .keys()
        .filter(|reason| !SKIPPED.contains(&reason.as_str()))
        .collect();
    assert!(
        unlisted.is_empty(),
        "{unlisted:?} are not listed as reasons"
    );
    for (reason, blocks) in reasons {
        println!("not executed: {blocks} blocks: {reason}");
    }
    Ok(())
}
