//! Maven's versions: numbers and words in lists within lists, where a dash or a change between
//! digits and letters opens a list. What says nothing at the end of a list does not count.

use super::numbers;
use std::cmp::Ordering;

/// Dashes open lists; beyond this many a text is no version.
const MAX_DEPTH: usize = 100;

/// The words that have a place, in order. The empty one is the release itself.
const WORDS: [&str; 7] = ["alpha", "beta", "milestone", "rc", "snapshot", "", "sp"];
const RELEASE: usize = 5;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Item {
    Number(String),
    Word(String),
    List(Vec<Item>),
}

/// Compares two versions; nothing where one of them is none.
pub fn compare(left: &str, right: &str) -> Option<Ordering> {
    Some(lists(&parse(left)?, &parse(right)?))
}

fn parse(text: &str) -> Option<Vec<Item>> {
    let text = text.trim().to_lowercase();
    if text.is_empty() || text.contains(char::is_whitespace) {
        return None;
    }
    // The lists that are open, the innermost last.
    let mut open: Vec<Vec<Item>> = vec![Vec::new()];
    let mut token = String::new();
    let push = |open: &mut Vec<Vec<Item>>, item: Item| {
        if let Some(list) = open.last_mut() {
            list.push(item);
        }
    };
    let is_empty = |open: &[Vec<Item>]| open.last().is_none_or(Vec::is_empty);
    let is_number = |token: &str| token.starts_with(|first: char| first.is_ascii_digit());
    for letter in text.chars() {
        match letter {
            '.' | '-' => {
                let item = match token.is_empty() {
                    true => Item::Number("0".into()),
                    false => item(&token, false),
                };
                push(&mut open, item);
                token.clear();
                if letter == '-' {
                    open.push(Vec::new());
                }
            }
            letter => {
                if !token.is_empty() && is_number(&token) != letter.is_ascii_digit() {
                    // A word before digits stands in a list of its own.
                    if letter.is_ascii_digit() && !is_empty(&open) {
                        open.push(Vec::new());
                    }
                    push(&mut open, item(&token, letter.is_ascii_digit()));
                    token.clear();
                    open.push(Vec::new());
                }
                token.push(letter);
            }
        }
        if open.len() > MAX_DEPTH {
            return None;
        }
    }
    if !token.is_empty() {
        // So does one at the end.
        if !is_number(&token) && !is_empty(&open) {
            open.push(Vec::new());
        }
        push(&mut open, item(&token, false));
    }
    // Each list closes into the one around it, once it has lost its empty end.
    let mut inner: Option<Vec<Item>> = None;
    while let Some(mut list) = open.pop() {
        list.extend(inner.take().map(Item::List));
        trim(&mut list);
        inner = Some(list);
    }
    inner
}

fn item(token: &str, before_digit: bool) -> Item {
    if token.starts_with(|first: char| first.is_ascii_digit()) {
        return Item::Number(token.into());
    }
    let word = match token {
        "a" if before_digit => "alpha",
        "b" if before_digit => "beta",
        "m" if before_digit => "milestone",
        "ga" | "final" | "release" => "",
        "cr" => "rc",
        word => word,
    };
    Item::Word(word.into())
}

/// Takes away what says nothing, up to the last thing that does. Lists are passed over.
fn trim(list: &mut Vec<Item>) {
    for place in (0..list.len()).rev() {
        if list[place].is_nothing() {
            list.remove(place);
        } else if !matches!(list[place], Item::List(_)) {
            break;
        }
    }
}

impl Item {
    fn is_nothing(&self) -> bool {
        match self {
            Item::Number(digits) => digits.bytes().all(|digit| digit == b'0'),
            Item::Word(word) => word.is_empty(),
            Item::List(list) => list.is_empty(),
        }
    }

    /// How it compares to nothing at all.
    fn to_nothing(&self) -> Ordering {
        match self {
            Item::Number(_) if self.is_nothing() => Ordering::Equal,
            Item::Number(_) => Ordering::Greater,
            Item::Word(word) => rank(word).cmp(&(RELEASE, "")),
            Item::List(list) => list
                .iter()
                .map(Item::to_nothing)
                .find(|order| *order != Ordering::Equal)
                .unwrap_or(Ordering::Equal),
        }
    }
}

/// Words without a place come after those that have one, in the order of letters.
fn rank(word: &str) -> (usize, &str) {
    match WORDS.iter().position(|known| *known == word) {
        Some(place) => (place, ""),
        None => (WORDS.len(), word),
    }
}

fn lists(left: &[Item], right: &[Item]) -> Ordering {
    for place in 0..left.len().max(right.len()) {
        let order = match (left.get(place), right.get(place)) {
            (Some(left), Some(right)) => items(left, right),
            (Some(left), None) => left.to_nothing(),
            (None, Some(right)) => right.to_nothing().reverse(),
            (None, None) => Ordering::Equal,
        };
        if order != Ordering::Equal {
            return order;
        }
    }
    Ordering::Equal
}

/// A word is below a list, and a list below a number.
fn items(left: &Item, right: &Item) -> Ordering {
    match (left, right) {
        (Item::Number(left), Item::Number(right)) => numbers(left.as_bytes(), right.as_bytes()),
        (Item::Word(left), Item::Word(right)) => rank(left).cmp(&rank(right)),
        (Item::List(left), Item::List(right)) => lists(left, right),
        (Item::Number(_), _) | (Item::List(_), Item::Word(_)) => Ordering::Greater,
        (_, Item::Number(_)) | (Item::Word(_), Item::List(_)) => Ordering::Less,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_maven_orders_them() {
        let ascending = [
            "1-alpha2",
            "1-alpha-123",
            "1-beta2",
            "1-m1",
            "1-rc1",
            "1-snapshot",
            "1",
            "1-sp",
            "1-abc",
            "1-1",
            "1.1",
            "1.2.3",
            "1.10",
            "2.0-rc1",
            "2.0",
            "20240101",
        ];
        for (place, left) in ascending.iter().enumerate() {
            for (other, right) in ascending.iter().enumerate() {
                assert_eq!(
                    compare(left, right),
                    Some(place.cmp(&other)),
                    "{left} {right}"
                );
            }
        }
        for (left, right) in [
            ("1", "1.0.0"),
            ("1-ga", "1"),
            ("1.0-FINAL", "1"),
            ("1-cr1", "1-rc1"),
            ("1a1", "1-alpha-1"),
        ] {
            assert_eq!(
                compare(left, right),
                Some(Ordering::Equal),
                "{left} {right}"
            );
        }
        for wrong in ["", "1 2", &"-".repeat(500)] {
            assert_eq!(compare(wrong, "1"), None);
        }
    }
}
