//! Pages as the tests read them: fenced blocks with what their fence says, links, and the anchors that
//! links may lead to. Only the Markdown that our pages use is understood.

use super::root;
use anyhow::{Context, Result, bail, ensure};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A page of documentation.
#[derive(Clone, Debug)]
pub(super) struct Page {
    /// Its path from the root of the repository.
    pub(super) path: PathBuf,
    text: String,
}

/// A fenced block.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Block {
    /// The line of its fence, from 1.
    pub(super) line: usize,
    /// What it is written in; empty where the fence does not say.
    pub(super) language: String,
    /// What else the fence says: `file="web.yaml"`.
    pub(super) attributes: BTreeMap<String, String>,
    /// What is between the fences.
    pub(super) lines: Vec<String>,
}

impl Block {
    pub(super) fn text(&self) -> String {
        self.lines.iter().map(|line| format!("{line}\n")).collect()
    }
}

impl Page {
    pub(super) fn read(path: &str) -> Result<Page> {
        let text =
            fs::read_to_string(root().join(path)).with_context(|| format!("reading {path}"))?;
        let path = path.into();
        Ok(Page { path, text })
    }

    /// Every page there is.
    pub(super) fn all() -> Result<Vec<Page>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(root())? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name.ends_with(".md") {
                found.push(name);
            }
        }
        for directory in ["docs", "examples", "charts", "deploy"] {
            collect(directory, &mut found)?;
        }
        found.sort();
        found.iter().map(|path| Page::read(path)).collect()
    }

    pub(super) fn name(&self) -> String {
        self.path.to_string_lossy().into_owned()
    }

    /// Where something on the page is, for messages.
    pub(super) fn place(&self, line: usize) -> String {
        format!("{}:{line}", self.path.display())
    }

    pub(super) fn blocks(&self) -> Result<Vec<Block>> {
        let mut blocks = Vec::new();
        let mut open: Option<Block> = None;
        for (at, line) in self.text.lines().enumerate() {
            let fence = line.strip_prefix("```");
            match (&mut open, fence) {
                (None, Some(info)) => {
                    let (language, attributes) = said(info).with_context(|| self.place(at + 1))?;
                    open = Some(Block {
                        line: at + 1,
                        language,
                        attributes,
                        lines: Vec::new(),
                    });
                }
                (Some(_), Some("")) => blocks.extend(open.take()),
                (Some(block), _) => block.lines.push(line.to_owned()),
                (None, None) => {}
            }
        }
        ensure!(
            open.is_none(),
            "{}: a block has no end",
            self.path.display()
        );
        Ok(blocks)
    }

    /// The lines that are no part of a block, with their numbers.
    fn prose(&self) -> impl Iterator<Item = (usize, &str)> {
        let mut is_inside = false;
        let lines = self.text.lines().enumerate();
        lines.filter_map(move |(at, line)| {
            let is_fence = line.starts_with("```");
            is_inside ^= is_fence;
            (!is_inside && !is_fence).then_some((at + 1, line))
        })
    }

    /// What links and pictures lead to, with the line.
    pub(super) fn links(&self) -> Vec<(usize, String)> {
        let mut found = Vec::new();
        for (at, line) in self.prose() {
            let line = without_code(line);
            let mut rest = line.as_str();
            while let Some((_, after)) = rest.split_once("](") {
                let end = after.find([')', ' ']).unwrap_or(after.len());
                found.push((at, after[..end].to_owned()));
                rest = &after[end..];
            }
        }
        found
    }

    pub(super) fn headings(&self) -> Vec<String> {
        let headings = self.prose().filter_map(|(_, line)| {
            let text = line.trim_start_matches('#');
            (text.len() < line.len() && text.starts_with(' ')).then(|| text.trim().to_owned())
        });
        headings.collect()
    }

    /// The anchors of its headings, as code hosts make them.
    pub(super) fn anchors(&self) -> BTreeSet<String> {
        let mut anchors = BTreeSet::new();
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        for heading in self.headings() {
            let anchor = anchor(&heading);
            let before = seen.entry(anchor.clone()).or_default();
            anchors.insert(match *before {
                0 => anchor,
                times => format!("{anchor}-{times}"),
            });
            *before += 1;
        }
        anchors
    }

    /// Whether a text is anywhere on the page.
    pub(super) fn says(&self, text: &str) -> bool {
        self.text.contains(text)
    }
}

fn collect(directory: &str, found: &mut Vec<String>) -> Result<()> {
    let place = root().join(directory);
    if !place.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(&place).with_context(|| format!("listing {directory}"))? {
        let entry = entry?;
        let path = format!("{directory}/{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            collect(&path, found)?;
        } else if Path::new(&path).extension().is_some_and(|one| one == "md") {
            found.push(path);
        }
    }
    Ok(())
}

/// What a fence says: a language, then `name="value"` pairs.
fn said(info: &str) -> Result<(String, BTreeMap<String, String>)> {
    let (language, mut rest) = info.split_once(' ').unwrap_or((info, ""));
    let mut attributes = BTreeMap::new();
    while !rest.trim().is_empty() {
        let pair = rest.trim_start().split_once("=\"");
        let pair = pair.and_then(|(name, after)| Some((name, after.split_once('"')?)));
        let Some((name, (value, after))) = pair else {
            bail!("the fence says {rest:?}, and not name=\"value\"");
        };
        attributes.insert(name.to_owned(), value.to_owned());
        rest = after;
    }
    Ok((language.trim().to_owned(), attributes))
}

/// A line with nothing in its code spans, where what looks like a link is none.
fn without_code(line: &str) -> String {
    let parts = line.split('`').enumerate();
    let outside = parts.filter(|(at, _)| at % 2 == 0).map(|(_, part)| part);
    outside.collect::<Vec<_>>().join("``")
}

fn anchor(heading: &str) -> String {
    let text = match heading.split_once("](") {
        Some((before, _)) => before.replace('[', ""),
        None => heading.to_owned(),
    };
    let kept = text.chars().filter_map(|one| match one {
        ' ' => Some('-'),
        '-' | '_' => Some(one),
        one => one.is_alphanumeric().then_some(one),
    });
    kept.collect::<String>().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &str) -> Page {
        Page {
            path: "a.md".into(),
            text: text.into(),
        }
    }

    #[test]
    fn blocks_have_what_their_fence_says() -> Result<()> {
        let blocks = page("a\n```yaml file=\"b.yaml\"\nc: 1\n```\n```\nd\n```\n").blocks()?;
        assert_eq!(blocks.len(), 2);
        assert_eq!(blocks[0].language, "yaml");
        assert_eq!(blocks[0].attributes["file"], "b.yaml");
        assert_eq!((blocks[0].line, blocks[0].text().as_str()), (2, "c: 1\n"));
        assert_eq!(blocks[1].language, "");
        for wrong in ["```yaml\na\n", "```yaml file=b\n```\n"] {
            assert!(page(wrong).blocks().is_err(), "{wrong}");
        }
        Ok(())
    }

    #[test]
    fn links_are_found_outside_of_code() {
        let text = "[a](b.md) and [`c`](d.md#e)\n`[f](g)`\n```\n[h](i)\n```\n![j](k.svg)\n";
        let links: Vec<String> = page(text).links().into_iter().map(|(_, to)| to).collect();
        assert_eq!(links, ["b.md", "d.md#e", "k.svg"]);
    }

    #[test]
    fn anchors_are_those_of_code_hosts() {
        let text = "# `muster up`: one, two\n## What there is not\n## A [link](b.md)\n## What there is not\n";
        let anchors: Vec<String> = page(text).anchors().into_iter().collect();
        assert_eq!(
            anchors,
            [
                "a-link",
                "muster-up-one-two",
                "what-there-is-not",
                "what-there-is-not-1"
            ]
        );
    }
}
