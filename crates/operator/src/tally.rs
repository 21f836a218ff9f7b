//! What came of listing. A digest that the Images of a tag are known by is answered for: no second
//! Images are made for it.

use crate::known::Images;
use crate::listing::spelled;
use muster_api::filter::Exact;
use muster_registry::Repository;
use std::collections::BTreeSet;

/// What came of listing.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// The names of the Images that are there now.
    pub(crate) made: BTreeSet<String>,
    /// The names of Images that may be there still.
    pub(crate) unsure: BTreeSet<String>,
    /// What could not be listed, and why.
    pub(crate) failures: Vec<String>,
    /// What a condition names and the registry does not have, as `repository:tag` or
    /// `repository@digest`.
    pub(crate) missing: BTreeSet<String>,
    /// What a condition names and the registry has.
    pub(crate) present: BTreeSet<String>,
    /// The digests that Images of tags are known by.
    pub(crate) answered: BTreeSet<String>,
}

impl Tally {
    pub(crate) fn add(&mut self, other: Tally) {
        self.made.extend(other.made);
        self.unsure.extend(other.unsure);
        self.failures.extend(other.failures);
        self.missing.extend(other.missing);
        self.present.extend(other.present);
        self.answered.extend(other.answered);
    }

    /// Notes what the Images of a tag are known by.
    pub(crate) fn found<'a>(&mut self, tag: Option<&str>, digests: impl Iterator<Item = &'a str>) {
        if tag.is_some() {
            self.answered.extend(digests.map(str::to_owned));
        }
    }

    /// Where a tag could not be looked at, its known Images stay, and answer as they did.
    pub(crate) fn unless_failed(mut self, known: &Images, tag: Option<&str>) -> Tally {
        if let (Some(tag), false) = (tag, self.failures.is_empty()) {
            let known = known.digests(tag, None).into_iter();
            self.answered.extend(known.map(str::to_owned));
        }
        self
    }

    /// Takes out the digests that Images of tags answer for.
    pub(crate) fn answer(&mut self, repository: &Repository, digests: &mut BTreeSet<Exact>) {
        digests.retain(|candidate| {
            let Exact::Digest(digest) = candidate else {
                return true;
            };
            let is_answered = self.answered.contains(digest);
            if is_answered {
                self.present.insert(spelled(repository, candidate));
            }
            !is_answered
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use muster_registry::Host;

    #[test]
    fn images_of_tags_answer_for_the_digests_they_are_known_by() {
        let host = Host::parse("registry.example").unwrap();
        let repository = Repository::on(&host, "app").unwrap();
        let mut tally = Tally::default();
        tally.found(Some("1"), ["i", "m", "c"].into_iter());
        tally.found(None, ["bare"].into_iter());
        let digest = |text: &str| Exact::Digest(text.to_owned());
        let mut digests: BTreeSet<Exact> = ["c", "m", "bare", "x"].map(digest).into();
        tally.answer(&repository, &mut digests);
        assert_eq!(digests, ["bare", "x"].map(digest).into());
        assert_eq!(tally.present, ["app@c", "app@m"].map(str::to_owned).into());
    }
}
