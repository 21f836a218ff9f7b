//! What a `console` block says: commands after `$`, and what they show. In what is shown `…` stands for
//! anything in a line, or, alone, for any lines. A command that is shown with nothing has only to end well;
//! `# ends with 3` behind one says how it ends if not with 0.

use super::markdown::Block;
use anyhow::{Context, Result, ensure};

/// What stands for anything.
const ELLIPSIS: &str = "…";

/// A command of a page.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Command {
    /// As it is typed, continuation lines included.
    pub(super) text: String,
    /// Its line on the page.
    pub(super) line: usize,
    /// How it has to end.
    pub(super) code: i32,
    /// What it shows.
    pub(super) shown: Vec<String>,
}

/// Whether a command goes on until it is stopped.
pub(super) fn is_server(text: &str) -> bool {
    let mut servers = ["muster up", "muster demo"].iter();
    servers.any(|server| text.starts_with(server)) && !text.contains("--until-ready")
}

/// Whether asking again changes nothing, so that one may ask until the answer is there.
pub(super) fn is_question(text: &str) -> bool {
    ["kubectl get", "kubectl describe", "muster why"]
        .iter()
        .any(|question| text.starts_with(question))
}

/// The commands of a block.
pub(super) fn commands(block: &Block) -> Result<Vec<Command>> {
    let mut commands: Vec<Command> = Vec::new();
    let mut is_continued = false;
    for (at, line) in block.lines.iter().enumerate() {
        let line_number = block.line + 1 + at;
        match (line.strip_prefix("$ "), commands.last_mut()) {
            (Some(text), _) => {
                commands.push(Command {
                    text: text.to_owned(),
                    line: line_number,
                    code: 0,
                    shown: Vec::new(),
                });
                is_continued = continues(line);
            }
            (None, Some(command)) if is_continued => {
                command.text += &format!("\n{line}");
                is_continued = continues(line);
            }
            (None, Some(command)) => command.shown.push(line.clone()),
            (None, None) if line.is_empty() => {}
            (None, None) => anyhow::bail!("line {line_number}: no command shows this"),
        }
    }
    for command in &mut commands {
        let comment = command.text.rsplit_once(" # ").map(|(_, comment)| comment);
        if let Some((_, code)) = comment.and_then(|comment| comment.split_once("ends with ")) {
            command.code = code.trim().parse().context("how a command ends")?;
        }
        // An empty line sets commands apart and is shown by none.
        while command.shown.last().is_some_and(String::is_empty) {
            command.shown.pop();
        }
    }
    ensure!(!commands.is_empty(), "line {}: no command", block.line);
    Ok(commands)
}

fn continues(line: &str) -> bool {
    let before_comment = line.split(" # ").next().unwrap_or_default().trim_end();
    before_comment.ends_with('\\') || before_comment.ends_with('|')
}

/// Whether a command said what is shown. Runs of spaces are all the same, and empty lines at the end
/// do not count.
pub(super) fn is_shown(shown: &[String], said: &str) -> bool {
    let lines = |text: &mut dyn Iterator<Item = &str>| -> Vec<String> {
        let mut lines: Vec<String> = text.map(squeezed).collect();
        while lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        lines
    };
    let shown = lines(&mut shown.iter().map(String::as_str));
    let said = lines(&mut said.lines());
    is_like(&shown, &said)
}

fn squeezed(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn is_like(shown: &[String], said: &[String]) -> bool {
    match shown.split_first() {
        None => said.is_empty(),
        Some((line, rest)) if line == ELLIPSIS => {
            (0..=said.len()).any(|skipped| is_like(rest, &said[skipped..]))
        }
        Some((line, rest)) => match said.split_first() {
            Some((first, more)) => is_line_like(line, first) && is_like(rest, more),
            None => false,
        },
    }
}

fn is_line_like(shown: &str, said: &str) -> bool {
    let parts: Vec<&str> = shown.split(ELLIPSIS).map(str::trim).collect();
    let (Some(first), Some(last)) = (parts.first(), parts.last()) else {
        return false;
    };
    if parts.len() == 1 {
        return shown == said;
    }
    let Some(mut rest) = said.strip_prefix(first) else {
        return false;
    };
    for part in &parts[1..parts.len() - 1] {
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(text: &str) -> Block {
        Block {
            line: 1,
            language: "console".into(),
            attributes: Default::default(),
            lines: text.lines().map(str::to_owned).collect(),
        }
    }

    #[test]
    fn commands_have_their_lines_their_ends_and_what_they_show() -> Result<()> {
        let text = "$ a \\\n  b\nshown\n\n$ c |   # first\n    d\n$ e   # ends with 3\n";
        let commands = commands(&block(text))?;
        let texts: Vec<&str> = commands.iter().map(|one| one.text.as_str()).collect();
        assert_eq!(
            texts,
            ["a \\\n  b", "c |   # first\n    d", "e   # ends with 3"]
        );
        assert_eq!(commands[0].shown, ["shown"]);
        assert_eq!(
            (commands[0].line, commands[2].line, commands[2].code),
            (2, 8, 3)
        );
        assert!(super::commands(&block("no command")).is_err());
        Ok(())
    }

    #[test]
    fn an_ellipsis_stands_for_anything_and_everything_else_for_itself() {
        for (shown, said, expected) in [
            ("a b", "a   b\n\n", true),
            ("a b", "a c", false),
            ("a … c", "a b c", true),
            ("…b…", "abc", true),
            ("a … c", "a b", false),
            ("a\n…", "a\nb\nc", true),
            ("a\n…", "b", false),
            ("…\nc", "a\nb\nc", true),
            ("…\nc", "a\nc\nd", false),
            ("a", "a\nb", false),
        ] {
            let shown: Vec<String> = shown.lines().map(str::to_owned).collect();
            assert_eq!(is_shown(&shown, said), expected, "{shown:?} {said:?}");
        }
    }
}
