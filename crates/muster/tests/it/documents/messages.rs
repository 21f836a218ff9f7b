//! Messages that `docs/troubleshooting.md` quotes are messages that the code prints: what stands
//! between the ellipses is found, in order, in the texts of one source file.

use super::markdown::Page;
use anyhow::Result;

const PAGE: &str = "docs/troubleshooting.md";
/// What stands for a name of somebody's.
const ELLIPSIS: char = '…';

/// Whether a text has all parts of a message, in their order.
fn prints(source: &str, message: &str) -> bool {
    let parts = message.split(ELLIPSIS).map(str::trim);
    let mut rest = source;
    for part in parts.filter(|part| part.len() > 3) {
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    true
}

#[test]
fn every_message_that_is_quoted_is_in_the_source() -> Result<()> {
    let found = super::sources()?;
    let page = Page::read(PAGE)?;
    let blocks = page.blocks()?;
    let quotes = blocks.iter().filter(|block| block.language == "text");
    let quotes = quotes.flat_map(|block| block.lines.iter().map(|line| (block.line, line)));
    let mut count = 0;
    let mut unknown = Vec::new();
    for (line, message) in quotes {
        count += 1;
        let words = message.chars().filter(|one| one.is_alphabetic()).count();
        assert!(
            words >= 10,
            "{}: {message:?} could be anything",
            page.place(line)
        );
        if !found.iter().any(|source| prints(source, message)) {
            unknown.push(format!("{}: {message}", page.place(line)));
        }
    }
    assert!(
        unknown.is_empty(),
        "nobody prints this:\n{}",
        unknown.join("\n")
    );
    assert!(count > 30, "only {count} messages were found");
    Ok(())
}

#[test]
fn a_message_is_found_by_its_parts_in_order() {
    let source = r#"bail!("{name} is gone; look for {other} instead")"#;
    for (message, expected) in [
        ("… is gone; look for … instead", true),
        ("web is gone", false),
        ("… instead … is gone", false),
    ] {
        assert_eq!(prints(source, message), expected, "{message}");
    }
}
