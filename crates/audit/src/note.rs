//! What a report was made from, in an annotation of the report itself: hashes of the object and of
//! each policy, and how each pair ended. As long as they are the same nothing needs to be judged
//! again, not even after a restart; and they can be read without reading the report. An object has one
//! hash, that of the version that is watched: what policies see of it in another version follows from it.

use muster_policy::{Outcome, Verdict, request};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The annotation.
pub const INPUTS: &str = "audit.kubewarden.io/inputs";
/// The annotation of a report that may be old, or lacks the result of a policy: why.
pub use muster_checks::report::STALE;
/// More pairs than this are not believed: nobody has so many policies.
const MOST: usize = 10_000;

/// Which policy, whatever it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(u64);

impl Key {
    /// Of the policy with this identity.
    pub fn of(uid: &str) -> Key {
        Key(request::hash(uid.as_bytes()))
    }
}

/// What a policy was when it judged: what is written in it, and which code ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    written: u32,
    code: u32,
}

impl Stamp {
    /// Of nothing that ever judged.
    pub const NONE: Stamp = Stamp {
        written: 0,
        code: 0,
    };

    /// Of what is written, and of the code.
    pub fn new(written: u64, code: u64) -> Stamp {
        // Half of a hash each: they are only ever compared with those of the same policy.
        Stamp {
            written: (written >> 32) as u32,
            code: (code >> 32) as u32,
        }
    }

    /// Whether the same is written in the policy, whichever code ran.
    pub fn says_the_same(self, other: Stamp) -> bool {
        self.written == other.written
    }
}

/// How a pair ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mark {
    /// The object keeps the policy.
    Pass,
    /// It does not.
    Fail,
    /// Nobody knows.
    Error,
    /// It keeps the policy, but would be changed.
    Mutated,
    /// The policy is not asked about what is there.
    Skip,
    /// Its conditions do not hold, so it says nothing.
    Unmet,
}

impl Mark {
    /// All of them.
    pub const ALL: [Mark; 6] = [
        Mark::Pass,
        Mark::Fail,
        Mark::Error,
        Mark::Mutated,
        Mark::Skip,
        Mark::Unmet,
    ];

    /// Of a verdict; none if the conditions of the policy do not hold.
    pub fn of(verdict: Option<&Verdict>) -> Mark {
        let Some(verdict) = verdict else {
            return Mark::Unmet;
        };
        match verdict.outcome {
            Outcome::Pass if verdict.patch.is_some() => Mark::Mutated,
            Outcome::Pass => Mark::Pass,
            Outcome::Fail => Mark::Fail,
            Outcome::Error => Mark::Error,
        }
    }

    fn letter(self) -> char {
        match self {
            Mark::Pass => 'p',
            Mark::Fail => 'f',
            Mark::Error => 'e',
            Mark::Mutated => 'm',
            Mark::Skip => 's',
            Mark::Unmet => 'u',
        }
    }

    fn read(letter: &str) -> Option<Mark> {
        Mark::ALL
            .into_iter()
            .find(|mark| letter == mark.letter().to_string())
    }

    /// Whether it is a line of the report.
    pub fn is_said(self) -> bool {
        !matches!(self, Mark::Skip | Mark::Unmet)
    }
}

/// One policy and how it judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// What the policy was.
    pub stamp: Stamp,
    /// How it ended.
    pub mark: Mark,
}

/// What a report was made from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Note {
    /// The hash of the object; none if it has to be judged again whatever it is.
    pub object: Option<u64>,
    /// The revision of the object that has this hash; 0 if that is not known. Later ones may have it too.
    pub revision: u64,
    /// The policies.
    pub pairs: BTreeMap<Key, Pair>,
}

impl Note {
    /// How many policies were not asked.
    pub fn skipped(&self) -> usize {
        let pairs = self.pairs.values();
        pairs.filter(|pair| pair.mark == Mark::Skip).count()
    }

    /// Whether there is nothing to report.
    pub fn is_silent(&self) -> bool {
        !self.pairs.values().any(|pair| pair.mark.is_said())
    }

    /// As an annotation: `<hash>@<revision> <policy>:<stamp>:<letter> …`.
    pub fn write(&self) -> String {
        let mut text = format!("{:016x}", self.object.unwrap_or_default());
        if self.revision > 0 {
            // Writing to a String cannot fail.
            let _ = write!(text, "@{}", self.revision);
        }
        for (key, pair) in &self.pairs {
            let Stamp { written, code } = pair.stamp;
            let letter = pair.mark.letter();
            // Writing to a String cannot fail.
            let _ = write!(text, " {:016x}:{written:08x}{code:08x}:{letter}", key.0);
        }
        text
    }

    /// Reads an annotation; what somebody else wrote there is no note.
    pub fn read(text: &str) -> Option<Note> {
        let mut words = text.split(' ');
        let (object, revision) = match words.next()?.split_once('@') {
            Some((object, revision)) => (object, revision.parse().ok()?),
            None => (text.split(' ').next()?, 0),
        };
        let mut note = Note {
            object: Some(hexadecimal(object)?),
            revision,
            pairs: BTreeMap::new(),
        };
        for word in words {
            let mut parts = word.splitn(3, ':');
            let key = Key(hexadecimal(parts.next()?)?);
            let stamp = hexadecimal(parts.next()?)?;
            let stamp = Stamp {
                written: (stamp >> 32) as u32,
                code: stamp as u32,
            };
            let mark = Mark::read(parts.next()?)?;
            note.pairs.insert(key, Pair { stamp, mark });
        }
        (note.pairs.len() <= MOST).then_some(note)
    }
}

fn hexadecimal(text: &str) -> Option<u64> {
    let hexadecimal = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    hexadecimal.then(|| u64::from_str_radix(text, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_read_as_it_was_written() {
        let mut note = Note {
            object: Some(0xfedc_ba98_7654_3210),
            revision: 0,
            pairs: BTreeMap::new(),
        };
        assert_eq!(Note::read(&note.write()), Some(note.clone()));
        note.revision = u64::MAX;
        assert_eq!(Note::read(&note.write()), Some(note.clone()));
        for (uid, mark) in ["a", "b", "c", "d", "e", "f"].into_iter().zip(Mark::ALL) {
            let stamp = Stamp::new(request::hash(uid.as_bytes()), u64::MAX);
            note.pairs.insert(Key::of(uid), Pair { stamp, mark });
        }
        assert_eq!(Note::read(&note.write()), Some(note.clone()));
        assert_eq!(note.skipped(), 1);
        assert!(!note.is_silent());
    }

    #[test]
    fn what_somebody_else_wrote_is_no_note() {
        for text in [
            "",
            "v1",
            "12",
            "+000000000000001",
            "0000000000000001 x",
            "0000000000000001 0000000000000001:0000000000000001:x",
            "0000000000000001 0000000000000001:0000000000000001",
            "0000000000000001  ",
            "0000000000000001@",
            "0000000000000001@x",
            "@1",
        ] {
            assert_eq!(Note::read(text), None, "{text}");
        }
    }

    #[test]
    fn a_stamp_tells_what_is_written_from_what_ran() {
        let (a, b) = (1 << 32, 2 << 32);
        assert_eq!(Stamp::new(a, b), Stamp::new(a, b));
        assert!(Stamp::new(a, b).says_the_same(Stamp::new(a, a)));
        assert!(!Stamp::new(a, b).says_the_same(Stamp::new(b, b)));
    }
}
