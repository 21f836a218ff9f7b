//! Which reports an Image should name: those that ask for one of the links it answers to. Two
//! indexes meet in each link, so a change costs as much as there are reports and Images that share
//! a link with it, however many others there are. Pure: it is told what is, and asked what to do.

use super::place::Place;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::mem::take;
use std::sync::Arc;

/// So many reports are named at most: the list is part of an object, and objects are limited.
pub(super) const MOST: usize = 5_000;

/// The name of a report, or of an Image.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Name {
    pub(super) namespace: Box<str>,
    pub(super) name: Box<str>,
}

impl Name {
    pub(super) fn new(namespace: &str, name: &str) -> Self {
        Name {
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

/// How an Image came to be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// It is watched: whatever becomes of it is told.
    Watch,
    /// It was looked for, and is forgotten when nobody needs it.
    Search,
}

/// All links, with the reports and the Images that share them.
#[derive(Debug, Default)]
pub(super) struct Index {
    reports: HashMap<Arc<Name>, Links>,
    images: HashMap<Arc<Name>, Image>,
    links: HashMap<Arc<str>, Ends>,
    /// Images whose list may not be what it should be.
    doubtful: BTreeSet<Arc<Name>>,
    /// Where to look for Images that are not watched.
    sought: BTreeSet<Place>,
    /// Those that were found there.
    found: BTreeMap<Place, BTreeSet<Arc<Name>>>,
    is_complete: bool,
}

type Links = Box<[Arc<str>]>;

#[derive(Debug, Default)]
struct Ends {
    reports: BTreeSet<Arc<Name>>,
    images: BTreeSet<Arc<Name>>,
}

#[derive(Debug)]
struct Image {
    links: Links,
    /// The reports that it names.
    told: Box<[Arc<Name>]>,
    by: By,
}

/// A list that is to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Correction {
    pub(super) image: Arc<Name>,
    pub(super) reports: Vec<Arc<Name>>,
}

impl Index {
    /// Whether there is anything to write or to look for.
    pub(super) fn has_work(&self) -> bool {
        !self.doubtful.is_empty() || !self.sought.is_empty()
    }

    pub(super) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// A report asks for these links now; one that asks for none need not be known.
    pub(super) fn report(&mut self, name: Name, links: BTreeSet<String>) {
        let known = self.reports.remove_entry(&name);
        let (name, before) = known.unwrap_or_else(|| (Arc::new(name), Links::default()));
        for link in before.iter().filter(|link| !links.contains(&***link)) {
            if let Some(ends) = self.links.get_mut(link) {
                ends.reports.remove(&name);
                self.doubtful.extend(ends.images.iter().cloned());
            }
            self.tidy(link);
        }
        let mut after = Vec::with_capacity(links.len());
        for link in links {
            let link = self.intern(&link);
            let ends = self.links.entry(link.clone()).or_default();
            if ends.reports.insert(name.clone()) {
                self.doubtful.extend(ends.images.iter().cloned());
                self.sought.extend(Place::unwatched(&link));
            }
            after.push(link);
        }
        if !after.is_empty() {
            self.reports.insert(name, after.into());
        }
    }

    /// Every report there is has been told: from now on lists are shortened too.
    pub(super) fn complete(&mut self) {
        if !self.is_complete {
            self.is_complete = true;
            self.doubtful.extend(self.images.keys().cloned());
        }
    }

    /// An Image answers to these links now and names these reports.
    pub(super) fn image(&mut self, name: Name, links: Vec<String>, told: Vec<Name>, by: By) {
        let known = self.images.remove_entry(&name);
        let by = match &known {
            Some((_, known)) if known.by == By::Watch => By::Watch,
            _ => by,
        };
        let (name, before) = match known {
            Some((name, known)) => (name, known.links),
            None => (Arc::new(name), Links::default()),
        };
        let links: Links = links.iter().map(|link| self.intern(link)).collect();
        for link in &links {
            let ends = self.links.entry(link.clone()).or_default();
            ends.images.insert(name.clone());
        }
        for link in before.iter().filter(|link| !links.contains(link)) {
            self.part(link, &name);
        }
        let told = told.into_iter().map(|told| {
            let known = self.reports.get_key_value(&told);
            known.map_or_else(|| Arc::new(told), |(name, _)| name.clone())
        });
        let told = told.collect();
        self.doubtful.insert(name.clone());
        if let (By::Search, Some(place)) = (by, place(&links)) {
            self.found.entry(place).or_default().insert(name.clone());
        }
        self.images.insert(name, Image { links, told, by });
    }

    /// An Image is gone.
    pub(super) fn lost(&mut self, name: &Name) {
        if let Some((name, image)) = self.images.remove_entry(name) {
            self.doubtful.remove(&name);
            for link in &image.links {
                self.part(link, &name);
            }
            if let Some(place) = place(&image.links)
                && let Some(found) = self.found.get_mut(&place)
            {
                found.remove(&name);
                if found.is_empty() {
                    self.found.remove(&place);
                }
            }
        }
    }

    /// Of the Images that are watched, there are only these.
    pub(super) fn only(&mut self, seen: &HashSet<Name>) {
        let watched = self.images.iter();
        let watched = watched.filter(|(_, image)| image.by == By::Watch);
        let lost: Vec<_> = watched
            .filter(|(name, _)| !seen.contains(&***name))
            .map(|(name, _)| name.clone())
            .collect();
        for name in lost {
            self.lost(&name);
        }
    }

    /// Of the Images of this place that were looked for, there are only these.
    pub(super) fn only_at(&mut self, place: &Place, seen: &HashSet<Name>) {
        let known = self.found.get(place).into_iter().flatten();
        let known = known.filter(|name| !seen.contains(&***name));
        let lost: Vec<_> = known.cloned().collect();
        for name in lost {
            self.lost(&name);
        }
    }

    /// The Images whose lists are to be looked at now; what changes from here on is for the next round.
    pub(super) fn round(&mut self) -> Vec<Arc<Name>> {
        take(&mut self.doubtful).into_iter().collect()
    }

    /// What the list of an Image should be, if it is another one.
    pub(super) fn correction(&mut self, name: &Arc<Name>) -> Option<Correction> {
        let image = self.images.get(name)?;
        let reports = self.wanted(image);
        if reports.iter().eq(image.told.iter()) {
            self.tidy_image(name);
            return None;
        }
        let image = name.clone();
        Some(Correction { image, reports })
    }

    /// A list was written.
    pub(super) fn written(&mut self, correction: Correction) {
        let Correction { image, reports } = correction;
        if let Some(known) = self.images.get_mut(&image) {
            known.told = reports.into();
            self.tidy_image(&image);
        }
    }

    /// An Image that was looked for, and that nobody asks for any more, is forgotten.
    fn tidy_image(&mut self, name: &Arc<Name>) {
        let is_idle = |image: &Image| {
            image.by == By::Search && image.told.is_empty() && self.wanted(image).is_empty()
        };
        if self.images.get(name).is_some_and(is_idle) {
            self.lost(name);
        }
    }

    /// What could not be done is to be done again.
    pub(super) fn again(&mut self, images: Vec<Arc<Name>>, places: Vec<Place>) {
        self.doubtful.extend(images);
        self.sought.extend(places);
    }

    /// Where to look for Images, each place once.
    pub(super) fn searches(&mut self) -> BTreeSet<Place> {
        take(&mut self.sought)
    }

    /// Has all Images that are not watched looked for again.
    pub(super) fn search_again(&mut self) {
        let asked = self.links.iter();
        let asked = asked.filter(|(_, ends)| !ends.reports.is_empty());
        let places = asked.filter_map(|(link, _)| Place::unwatched(link));
        self.sought.extend(places);
    }

    /// The reports that an Image should name.
    fn wanted(&self, image: &Image) -> Vec<Arc<Name>> {
        let ends = image.links.iter().filter_map(|link| self.links.get(link));
        let mut wanted: BTreeSet<&Arc<Name>> = ends.flat_map(|ends| &ends.reports).collect();
        if !self.is_complete {
            wanted.extend(image.told.iter());
        }
        wanted.into_iter().take(MOST).cloned().collect()
    }

    /// A link loses an Image.
    fn part(&mut self, link: &Arc<str>, image: &Name) {
        if let Some(ends) = self.links.get_mut(link) {
            ends.images.remove(image);
        }
        self.tidy(link);
    }

    /// A link that leads nowhere is forgotten.
    fn tidy(&mut self, link: &Arc<str>) {
        let is_idle = |ends: &Ends| ends.reports.is_empty() && ends.images.is_empty();
        if self.links.get(link).is_some_and(is_idle) {
            self.links.remove(link);
        }
    }

    /// The one copy of a link's text.
    fn intern(&self, link: &str) -> Arc<str> {
        let known = self.links.get_key_value(link);
        known.map_or_else(|| link.into(), |(link, _)| link.clone())
    }
}

/// Where an Image that is not watched lies.
fn place(links: &[Arc<str>]) -> Option<Place> {
    links.first().and_then(|link| Place::unwatched(link))
}

#[cfg(test)]
mod tests;
