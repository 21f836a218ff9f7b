//! Red Hat's rules. One body of advisories serves all of its products, and each advisory lists
//! those that it is about. Which products an image is made of follows from the content sets and
//! the build that Red Hat's images name; where an image names none, from what its release has by
//! default. Of several fixes for one vulnerability the highest counts.

use super::unmatched::{Gap, Reason};
use crate::os::Os;
use crate::package::Package;
use crate::version::rpm;
use crate::vulnerability::{Advisory, Database, DatabaseError, Status};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// The stream of all advisories.
pub(super) const STREAM: &str = "Red Hat";

/// The indexes from names to products.
pub(super) const REPOSITORIES: &str = "repository";
pub(super) const BUILDS: &str = "nvr";

/// What a release has where its image does not say.
fn default_sets(release: &str) -> &'static [&'static str] {
    match release {
        "6" => &["rhel-6-server-rpms", "rhel-6-server-extras-rpms"],
        "7" => &["rhel-7-server-rpms", "rhel-7-server-extras-rpms"],
        "8" => &[
            "rhel-8-for-x86_64-baseos-rpms",
            "rhel-8-for-x86_64-appstream-rpms",
        ],
        "9" => &[
            "rhel-9-for-x86_64-baseos-rpms",
            "rhel-9-for-x86_64-appstream-rpms",
        ],
        "10" => &[
            "rhel-10-for-x86_64-baseos-rpms",
            "rhel-10-for-x86_64-appstream-rpms",
        ],
        _ => &[],
    }
}

/// The release that a version is of.
fn major(os: &Os) -> &str {
    os.version.split('.').next().unwrap_or_default()
}

/// Images name a set with the release behind it, which no index does.
fn set_name(set: &str) -> &str {
    match set.rsplit_once("__") {
        Some((name, release)) if is_number(release) => name,
        _ => set,
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// What is asked for the products of an image: an index and a name in it.
pub(super) fn questions(os: &Os) -> Vec<(&'static str, String)> {
    let Some(build) = &os.build else {
        let sets = default_sets(major(os)).iter();
        return sets.map(|set| (REPOSITORIES, (*set).to_owned())).collect();
    };
    let sets = build.content_sets.iter();
    let mut questions: Vec<_> = sets
        .map(|set| (REPOSITORIES, set_name(set).to_owned()))
        .collect();
    if let (Some(name), Some(architecture)) = (&build.nvr, &build.architecture) {
        questions.push((BUILDS, format!("{name}-{architecture}")));
    }
    questions
}

/// The products that an image is made of; a gap if the data does not know them.
pub(super) fn products(
    os: &Os,
    database: &dyn Database,
) -> Result<Result<Vec<u32>, Gap>, DatabaseError> {
    let mut products = Vec::new();
    for (index, name) in questions(os) {
        products.extend(database.products(index, &name)?);
    }
    products.sort_unstable();
    products.dedup();
    Ok(match products.is_empty() {
        true => Err(Gap::new(
            Reason::NoData,
            true,
            format!("the vulnerability data has no Red Hat products for {os}"),
        )),
        false => Ok(products),
    })
}

/// The places of the advisories that hit a package: for each vulnerability that with the highest
/// fix, if it does. And the place of one whose fixed version cannot be parsed.
pub(super) fn matched(
    package: &Package,
    products: &[u32],
    advisories: &[Advisory],
) -> (Vec<usize>, Option<usize>) {
    let architecture = package.architecture.as_deref();
    let mut best: BTreeMap<&str, usize> = BTreeMap::new();
    for (place, advisory) in advisories.iter().enumerate() {
        let made = |product: &u32| products.binary_search(product).is_ok();
        let limited = &advisory.architectures;
        let is_built_for = limited.is_empty()
            || architecture
                .is_none_or(|one| one == "noarch" || limited.iter().any(|other| other == one));
        if !advisory.products.iter().any(made) || !is_built_for {
            continue;
        }
        let held = best.entry(&advisory.id).or_insert(place);
        let held_version = &advisories[*held].fixed_version;
        if is_below(held_version, &advisory.fixed_version) == Some(true) {
            *held = place;
        }
    }
    let mut places: Vec<usize> = best.into_values().collect();
    let mut unclear = None;
    places.retain(|place| {
        let advisory = &advisories[*place];
        let fixed = advisory.fixed_version.as_str();
        let hits = match advisory.status {
            Status::NotAffected => Some(false),
            _ if fixed.is_empty() => Some(true),
            _ => is_below(&package.version, fixed),
        };
        if hits.is_none() {
            unclear = unclear.or(Some(*place));
        }
        hits == Some(true)
    });
    (places, unclear)
}

/// Whether a version is below another; nothing if one of them cannot be parsed.
fn is_below(version: &str, other: &str) -> Option<bool> {
    match (version, other) {
        ("", "") => Some(false),
        ("", _) => Some(true),
        _ => rpm::compare(version, other).map(Ordering::is_lt),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_behind_a_set_is_cut() {
        for (set, expected) in [
            (
                "rhel-8-for-x86_64-baseos-rpms__8",
                "rhel-8-for-x86_64-baseos-rpms",
            ),
            (
                "rhel-9-for-x86_64-baseos-eus-rpms__9_DOT_2",
                "rhel-9-for-x86_64-baseos-eus-rpms__9_DOT_2",
            ),
            (
                "rhel-8-for-x86_64-baseos-rpms",
                "rhel-8-for-x86_64-baseos-rpms",
            ),
            ("x__", "x__"),
        ] {
            assert_eq!(set_name(set), expected);
        }
    }
}
