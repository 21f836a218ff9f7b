use super::*;
use proptest::prelude::*;

fn links(links: &[&str]) -> BTreeSet<String> {
    links.iter().map(|link| (*link).to_owned()).collect()
}

fn owned(links: &[&str]) -> Vec<String> {
    links.iter().map(|link| (*link).to_owned()).collect()
}

fn named(index: &mut Index) -> Vec<(String, Vec<String>)> {
    let mut named = Vec::new();
    for correction in corrections(index) {
        let reports = correction.reports.iter();
        let reports = reports.map(|report| format!("{}/{}", report.namespace, report.name));
        named.push((correction.image.name.to_string(), reports.collect()));
        index.written(correction);
    }
    named
}

fn corrections(index: &mut Index) -> Vec<Correction> {
    let round = index.round();
    let corrections = round.iter().filter_map(|name| index.correction(name));
    corrections.collect()
}

const TAG: &str = "a/workload-scan-x/app:1";
const DIGEST: &str = "a/workload-scan-x/app@sha256:1";

#[test]
fn an_image_names_the_reports_that_ask_for_any_of_its_links_and_is_written_once() {
    let mut index = Index::default();
    index.complete();
    let image = |index: &mut Index| {
        let name = Name::new("a", "image");
        index.image(name, owned(&[TAG, DIGEST]), Vec::new(), By::Watch);
    };
    image(&mut index);
    assert!(named(&mut index).is_empty());
    index.report(Name::new("b", "two"), links(&[DIGEST]));
    index.report(Name::new("b", "one"), links(&[TAG, DIGEST]));
    index.report(Name::new("c", "other"), links(&["a/workload-scan-x/app:2"]));
    let expected = [("image".to_owned(), owned(&["b/one", "b/two"]))];
    assert_eq!(named(&mut index), expected);
    assert!(named(&mut index).is_empty());
    index.report(Name::new("b", "one"), links(&[TAG]));
    assert!(named(&mut index).is_empty(), "it asks for it still");
    index.report(Name::new("b", "one"), links(&[]));
    let expected = [("image".to_owned(), owned(&["b/two"]))];
    assert_eq!(named(&mut index), expected);
    index.lost(&Name::new("a", "image"));
    index.report(Name::new("b", "two"), links(&[]));
    index.report(Name::new("c", "other"), links(&[]));
    assert!(!index.has_work() && index.links.is_empty() && index.reports.is_empty());
}

#[test]
fn nothing_is_taken_from_a_list_until_all_reports_are_told() {
    let mut index = Index::default();
    let told = vec![Name::new("b", "late"), Name::new("b", "gone")];
    index.image(Name::new("a", "image"), owned(&[TAG]), told, By::Watch);
    index.report(Name::new("b", "new"), links(&[TAG]));
    let expected = owned(&["b/gone", "b/late", "b/new"]);
    assert_eq!(named(&mut index), [("image".to_owned(), expected)]);
    index.report(Name::new("b", "late"), links(&[TAG]));
    assert!(named(&mut index).is_empty());
    index.complete();
    let expected = owned(&["b/late", "b/new"]);
    assert_eq!(named(&mut index), [("image".to_owned(), expected)]);
}

#[test]
fn images_of_other_registries_are_looked_for_and_forgotten_when_nobody_needs_them() {
    let mut index = Index::default();
    index.complete();
    let link = "a/hub/app:1";
    index.report(Name::new("b", "one"), links(&[link, TAG]));
    let places = index.searches();
    assert_eq!(places.len(), 1, "managed ones are watched");
    let place = places.first().unwrap();
    let image = |index: &mut Index, name: &str, told: Vec<Name>| {
        index.image(Name::new("a", name), owned(&[link]), told, By::Search);
    };
    image(&mut index, "old", Vec::new());
    image(&mut index, "image", Vec::new());
    assert_eq!(named(&mut index).len(), 2);
    index.search_again();
    assert_eq!(&index.searches(), &places);
    index.only_at(place, &HashSet::from([Name::new("a", "image")]));
    assert_eq!(index.images.len(), 1, "the other is gone");

    index.report(Name::new("b", "one"), links(&[]));
    let expected = [("image".to_owned(), Vec::new())];
    assert_eq!(named(&mut index), expected);
    assert!(index.images.is_empty() && index.found.is_empty() && index.links.is_empty());
}

#[test]
fn a_list_has_an_end() {
    let mut index = Index::default();
    index.complete();
    for number in 0..MOST + 10 {
        let name = Name::new("b", &format!("{number:05}"));
        index.report(name, links(&[TAG]));
    }
    index.image(
        Name::new("a", "image"),
        owned(&[TAG]),
        Vec::new(),
        By::Watch,
    );
    let written = corrections(&mut index).pop().unwrap();
    assert_eq!(written.reports.len(), MOST);
    index.written(written);
    index.again(vec![Arc::new(Name::new("a", "image"))], Vec::new());
    assert!(corrections(&mut index).is_empty());
}

/// Something that happens.
#[derive(Clone, Debug)]
enum Step {
    Report(u8, BTreeSet<u8>),
    Image(u8, BTreeSet<u8>),
    Lost(u8),
    Relist(BTreeSet<u8>),
    Complete,
    Write(usize),
    /// Somebody else empties the list of an Image.
    Spoil(u8),
}

fn step() -> impl Strategy<Value = Step> {
    let some = || proptest::collection::btree_set(0..6_u8, 0..4);
    prop_oneof![
        4 => (0..6_u8, some()).prop_map(|(report, links)| Step::Report(report, links)),
        4 => (0..5_u8, some()).prop_map(|(image, links)| Step::Image(image, links)),
        1 => (0..5_u8).prop_map(Step::Lost),
        1 => some().prop_map(Step::Relist),
        1 => Just(Step::Complete),
        2 => (1..4_usize).prop_map(Step::Write),
        1 => (0..5_u8).prop_map(Step::Spoil),
    ]
}

/// The same, kept as it comes and computed anew every time.
#[derive(Default)]
struct Model {
    reports: HashMap<Name, BTreeSet<String>>,
    images: HashMap<Name, (Vec<String>, Vec<Name>)>,
}

impl Model {
    fn wanted(&self, image: &Name) -> Vec<Name> {
        let links = &self.images[image].0;
        let asks = |asked: &BTreeSet<String>| links.iter().any(|link| asked.contains(link));
        let reports = self.reports.iter().filter(|(_, asked)| asks(asked));
        let reports: BTreeSet<Name> = reports.map(|(name, _)| name.clone()).collect();
        reports.into_iter().collect()
    }

    fn write(&mut self, index: &mut Index, most: usize) -> bool {
        let round = index.round();
        let (now, later) = round.split_at(most.min(round.len()));
        index.again(later.to_vec(), Vec::new());
        for name in now {
            let Some(correction) = index.correction(name) else {
                continue;
            };
            let list = correction.reports.iter().map(|name| (**name).clone());
            self.images.get_mut(&*correction.image).unwrap().1 = list.collect();
            index.written(correction);
        }
        !now.is_empty()
    }

    fn tell(&self, index: &mut Index, image: &Name) {
        let (links, told) = self.images[image].clone();
        index.image(image.clone(), links, told, By::Watch);
    }
}

fn text(links: &BTreeSet<u8>) -> Vec<String> {
    let text = links
        .iter()
        .map(|link| format!("a/workload-scan-x/app:{link}"));
    text.collect()
}

proptest! {
    #[test]
    fn whatever_happens_the_lists_come_to_what_the_naive_model_says(
        steps in proptest::collection::vec(step(), 0..60),
    ) {
        let (mut index, mut model) = (Index::default(), Model::default());
        let image = |number: u8| Name::new("a", &number.to_string());
        for step in steps {
            match step {
                Step::Report(number, links) => {
                    let name = Name::new("b", &number.to_string());
                    let links: BTreeSet<String> = text(&links).into_iter().collect();
                    model.reports.insert(name.clone(), links.clone());
                    index.report(name, links);
                }
                Step::Image(number, links) => {
                    let name = image(number);
                    let known = model.images.entry(name.clone()).or_default();
                    known.0 = text(&links);
                    model.tell(&mut index, &name);
                }
                Step::Lost(number) => {
                    model.images.remove(&image(number));
                    index.lost(&image(number));
                }
                Step::Relist(kept) => {
                    let kept: HashSet<Name> = kept.into_iter().map(image).collect();
                    model.images.retain(|name, _| kept.contains(name));
                    index.only(&kept);
                }
                Step::Complete => index.complete(),
                Step::Write(most) => {
                    model.write(&mut index, most);
                }
                Step::Spoil(number) => {
                    let name = image(number);
                    if let Some(known) = model.images.get_mut(&name) {
                        known.1.clear();
                        model.tell(&mut index, &name);
                    }
                }
            }
        }
        while model.write(&mut index, 3) {}
        for (name, (_, told)) in &model.images {
            let wanted = model.wanted(name);
            prop_assert!(wanted.iter().all(|report| told.contains(report)));
        }
        index.complete();
        while model.write(&mut index, 3) {}
        for (name, (_, told)) in &model.images {
            prop_assert_eq!(told, &model.wanted(name));
        }
        // What leads nowhere is not kept.
        let all = |images: &HashMap<Name, (Vec<String>, Vec<Name>)>| {
            let answered = images.values().flat_map(|(links, _)| links.iter());
            let asked = model.reports.values().flatten();
            answered.chain(asked).cloned().collect::<BTreeSet<_>>().len()
        };
        prop_assert_eq!(index.links.len(), all(&model.images));
    }
}
