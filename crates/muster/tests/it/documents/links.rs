//! Every link leads somewhere. Addresses on the internet are only read, never asked.

use super::markdown::Page;
use super::root;
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// A path without `.` and `..`; none if it leads out of the repository.
fn plain(path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => plain.push(name),
            Component::CurDir => {}
            Component::ParentDir => plain.pop().then_some(())?,
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(plain)
}

/// What is wrong with a link, if anything is.
fn fault(
    page: &Page,
    to: &str,
    anchors: &BTreeMap<PathBuf, BTreeSet<String>>,
) -> Option<&'static str> {
    if let Some((scheme, rest)) = to.split_once("://") {
        let host = rest.split(['/', '#', '?']).next().unwrap_or_default();
        let is_address = ["http", "https"].contains(&scheme) && host.contains('.');
        return (!is_address).then_some("is no address");
    }
    let (path, anchor) = to.split_once('#').unwrap_or((to, ""));
    let target = match path {
        "" => Some(page.path.clone()),
        path => plain(&page.path.parent().unwrap_or(Path::new("")).join(path)),
    };
    let Some(target) = target else {
        return Some("leads out of the repository");
    };
    if !root().join(&target).exists() {
        return Some("leads to nothing");
    }
    let has_anchor = |known: &BTreeSet<String>| known.contains(anchor);
    let is_found = anchor.is_empty() || anchors.get(&target).is_some_and(has_anchor);
    (!is_found).then_some("leads to no heading")
}

#[test]
fn every_link_leads_somewhere() -> Result<()> {
    let pages = Page::all()?;
    let anchors = pages.iter().map(|page| (page.path.clone(), page.anchors()));
    let anchors: BTreeMap<_, _> = anchors.collect();
    let mut links = 0;
    let mut faults = Vec::new();
    for page in &pages {
        for (line, to) in page.links() {
            links += 1;
            if let Some(fault) = fault(page, &to, &anchors) {
                faults.push(format!("{}: {to} {fault}", page.place(line)));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(links > 100, "only {links} links were found");
    Ok(())
}

#[test]
fn every_page_is_found_from_the_index() -> Result<()> {
    let index = Page::read("docs/README.md")?;
    let listed = index.links().into_iter();
    let listed: BTreeSet<String> = listed.map(|(_, to)| format!("docs/{to}")).collect();
    let of_docs = |page: &Page| page.path.parent() == Some(Path::new("docs"));
    let pages = Page::all()?.into_iter().filter(of_docs);
    let missing: Vec<String> = pages
        .map(|page| page.name())
        .filter(|name| name != "docs/README.md" && !listed.contains(name))
        .collect();
    assert!(missing.is_empty(), "{missing:?} are not in docs/README.md");
    Ok(())
}

#[test]
fn every_picture_can_be_read_aloud() -> Result<()> {
    let mut pictures = 0;
    for entry in fs::read_dir(root().join("docs/pictures"))? {
        let path = entry?.path();
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        for part in [
            "<title id=\"title\">",
            "<desc id=\"desc\">",
            "role=\"img\"",
            "prefers-color-scheme: dark",
        ] {
            assert!(text.contains(part), "{} has no {part}", path.display());
        }
        pictures += 1;
    }
    assert!(pictures >= 6);
    Ok(())
}
