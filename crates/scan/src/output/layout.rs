//! Text in columns that fits a terminal. What is shown comes from images, clusters and databases that
//! nobody vouches for, so nothing of it reaches the terminal but plain characters.

use crate::vulnerability::Severity;
use std::fmt::Write;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// How a table is drawn.
#[derive(Clone, Copy, Debug, Default)]
pub struct Style {
    /// Columns of the terminal; as many as needed where it is none.
    pub width: Option<usize>,
    /// Whether severities have colours.
    pub colour: bool,
    /// Whether suppressed findings are listed, or only counted.
    pub suppressed: bool,
}

/// The last column, if it would get fewer than these, is left out.
const NARROWEST_LAST: usize = 16;
const GAP: usize = 2;

/// The cells of a line.
pub type Row = Vec<(String, Option<Paint>)>;

/// Lays rows out in columns, the titles first. Columns that hold nothing but their title are left
/// out; the last one is cut to what is left of the width.
pub fn draw(text: &mut String, mut rows: Vec<Row>, style: Style) {
    let columns = rows.first().map_or(0, Vec::len);
    let used: Vec<bool> = (0..columns)
        .map(|column| rows.iter().skip(1).any(|row| !row[column].0.is_empty()))
        .collect();
    for row in &mut rows {
        let mut column = 0;
        row.retain(|_| {
            column += 1;
            used[column - 1]
        });
    }
    let columns = rows.first().map_or(0, Vec::len);
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            rows.iter()
                .map(|row| row[column].0.width())
                .max()
                .unwrap_or(0)
        })
        .collect();
    let has_last = used.last() == Some(&true);
    let fixed: usize = match has_last {
        true => widths[..columns - 1].iter().map(|width| width + GAP).sum(),
        false => 0,
    };
    let room = style.width.map(|width| width.saturating_sub(fixed));
    for row in rows {
        let mut line = String::new();
        for (column, (cell, paint)) in row.iter().enumerate() {
            let cell = match room {
                Some(room) if has_last && column == columns - 1 => match room {
                    0..NARROWEST_LAST => continue,
                    room => cut(cell, room),
                },
                _ => cell.clone(),
            };
            let _ = write!(line, "{}", painted(&cell, *paint, style));
            if column + 1 < columns {
                let fill = widths[column].saturating_sub(cell.width()) + GAP;
                line.extend(std::iter::repeat_n(' ', fill));
            }
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
}

/// Without anything that a terminal would obey.
pub fn plain(text: &str) -> String {
    let line = text.split(['\n', '\r', '\t']).collect::<Vec<_>>().join(" ");
    line.chars()
        .map(|one| match one {
            // Marks that turn the direction of writing may make text look like another.
            '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                '\u{fffd}'
            }
            one if one.is_control() => '\u{fffd}',
            one => one,
        })
        .collect()
}

/// At most so many columns wide.
pub fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut taken = 1;
    for one in text.chars() {
        taken += one.width().unwrap_or(0);
        if taken > width {
            break;
        }
        kept.push(one);
    }
    kept.push('…');
    kept
}

/// How a piece of text stands out.
#[derive(Clone, Copy, Debug)]
pub enum Paint {
    /// Headings.
    Bold,
    /// Titles of columns.
    Dim,
    /// High severity.
    Red,
    /// Critical severity.
    BrightRed,
    /// Medium severity.
    Yellow,
    /// Low severity.
    Blue,
}

impl Paint {
    /// The colour of a severity.
    pub fn of(severity: Severity) -> Self {
        match severity {
            Severity::Critical => Paint::BrightRed,
            Severity::High => Paint::Red,
            Severity::Medium => Paint::Yellow,
            Severity::Low => Paint::Blue,
            Severity::Unknown => Paint::Dim,
        }
    }
}

/// In its colour, where there are colours.
pub fn painted(text: &str, paint: Option<Paint>, style: Style) -> String {
    let code = match paint {
        Some(paint) if style.colour && !text.is_empty() => match paint {
            Paint::Bold => "1",
            Paint::Dim => "2",
            Paint::Red => "31",
            Paint::BrightRed => "1;31",
            Paint::Yellow => "33",
            Paint::Blue => "34",
        },
        _ => return text.to_owned(),
    };
    format!("\u{1b}[{code}m{text}\u{1b}[0m")
}
