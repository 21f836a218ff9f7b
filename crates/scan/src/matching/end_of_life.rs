//! The days on which releases get their last fixes, as their vendors have announced them. A release
//! that is not listed may be newer than this list and is taken to live.

use super::distribution::{amazon, numeric};
use crate::os::{Family, Os};
use jiff::Timestamp;
use jiff::civil::Date;

/// A release whose vendor fixes nothing any more: what is found in it stays, and what is not found
/// may be there all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndOfLife {
    /// The release, as its vendor calls it.
    pub release: String,
    /// The last day on which it got fixes.
    pub date: Date,
}

/// Whether the release of an image had its last day before a time.
pub(super) fn of(os: &Os, now: Option<Timestamp>) -> Option<EndOfLife> {
    let release = match os.family {
        Family::Debian | Family::Alma | Family::Rocky | Family::Oracle | Family::RedHat => {
            numeric(os, 1).ok()?
        }
        Family::CentOs => match os.version.strip_prefix("stream ") {
            Some(stream) => format!("stream {}", stream.split('.').next()?),
            None => numeric(os, 1).ok()?,
        },
        Family::Amazon => amazon(os).ok()?,
        Family::Ubuntu => {
            let release = numeric(os, 2).ok()?;
            let extended = format!("{release}-ESM");
            match os.extended && is_listed(os.family.name(), &extended) {
                true => extended,
                false => release,
            }
        }
        Family::Alpine | Family::Photon => numeric(os, 2).ok()?,
        _ => os.version.clone(),
    };
    let date = last_day(os.family.name(), &release)?;
    let ended = has_ended(os.family.name(), &release, now)?;
    ended.then_some(EndOfLife { release, date })
}

pub(super) fn is_listed(family: &str, release: &str) -> bool {
    last_day(family, release).is_some()
}

/// Whether the last day of a release is before a time; nothing where either is not known.
pub(super) fn has_ended(family: &str, release: &str, now: Option<Timestamp>) -> Option<bool> {
    let last = last_day(family, release)?;
    let today = now?.to_zoned(jiff::tz::TimeZone::UTC).date();
    Some(today > last)
}

fn last_day(family: &str, release: &str) -> Option<Date> {
    let (_, releases) = LAST_DAYS.iter().find(|(name, _)| *name == family)?;
    let (_, day) = releases.iter().find(|(name, _)| *name == release)?;
    day.parse().ok()
}

type Releases = &'static [(&'static str, &'static str)];

const LAST_DAYS: &[(&str, Releases)] = &[
    (
        "alma",
        &[
            ("8", "2029-03-01"),
            ("9", "2032-05-31"),
            ("10", "2035-05-31"),
        ],
    ),
    (
        "alpine",
        &[
            ("2.0", "2012-04-01"),
            ("2.1", "2012-11-01"),
            ("2.2", "2013-05-01"),
            ("2.3", "2013-11-01"),
            ("2.4", "2014-05-01"),
            ("2.5", "2014-11-01"),
            ("2.6", "2015-05-01"),
            ("2.7", "2015-11-01"),
            ("3.0", "2016-05-01"),
            ("3.1", "2016-11-01"),
            ("3.2", "2017-05-01"),
            ("3.3", "2017-11-01"),
            ("3.4", "2018-05-01"),
            ("3.5", "2018-11-01"),
            ("3.6", "2019-05-01"),
            ("3.7", "2019-11-01"),
            ("3.8", "2020-05-01"),
            ("3.9", "2020-11-01"),
            ("3.10", "2021-05-01"),
            ("3.11", "2021-11-01"),
            ("3.12", "2022-05-01"),
            ("3.13", "2022-11-01"),
            ("3.14", "2023-05-01"),
            ("3.15", "2023-11-01"),
            ("3.16", "2024-05-23"),
            ("3.17", "2024-11-22"),
            ("3.18", "2025-05-09"),
            ("3.19", "2025-11-01"),
            ("3.20", "2026-04-01"),
            ("3.21", "2026-12-05"),
            ("3.22", "2027-04-30"),
            ("3.23", "2027-11-01"),
        ],
    ),
    (
        "amazon",
        &[
            ("1", "2023-12-31"),
            ("2", "2026-06-30"),
            ("2023", "2028-03-15"),
        ],
    ),
    (
        "centos",
        &[
            ("3", "2010-10-31"),
            ("4", "2012-02-29"),
            ("5", "2017-03-31"),
            ("6", "2020-11-30"),
            ("7", "2024-06-30"),
            ("8", "2021-12-31"),
            ("stream 8", "2024-05-31"),
            ("stream 9", "2027-05-31"),
        ],
    ),
    (
        "debian",
        &[
            ("1", "1999-03-09"),
            ("2", "2003-07-30"),
            ("3", "2008-03-30"),
            ("4", "2010-02-15"),
            ("5", "2012-02-06"),
            ("6", "2016-02-29"),
            ("7", "2018-05-31"),
            ("8", "2020-06-30"),
            ("9", "2022-06-30"),
            ("10", "2024-06-30"),
            ("11", "2026-08-14"),
            ("12", "2028-06-10"),
        ],
    ),
    (
        "opensuse-leap",
        &[
            ("42.1", "2017-05-17"),
            ("42.2", "2018-01-26"),
            ("42.3", "2019-06-30"),
            ("15.0", "2019-12-03"),
            ("15.1", "2020-11-30"),
            ("15.2", "2021-11-30"),
            ("15.3", "2022-11-30"),
            ("15.4", "2023-11-30"),
            ("15.5", "2024-12-31"),
            ("15.6", "2025-12-31"),
            ("16.0", "2027-10-31"),
        ],
    ),
    (
        "oracle",
        &[
            ("3", "2011-12-31"),
            ("4", "2013-12-31"),
            ("5", "2017-12-31"),
            ("6", "2021-03-21"),
            ("7", "2024-12-31"),
            ("8", "2029-07-18"),
            ("9", "2032-07-18"),
        ],
    ),
    (
        "photon",
        &[
            ("1.0", "2022-02-28"),
            ("2.0", "2022-12-31"),
            ("3.0", "2024-03-31"),
            ("4.0", "2026-03-31"),
        ],
    ),
    (
        "redhat",
        &[
            ("4", "2017-05-31"),
            ("5", "2020-11-30"),
            ("6", "2024-06-30"),
        ],
    ),
    ("rocky", &[("8", "2029-05-31"), ("9", "2032-05-31")]),
    (
        "slem",
        &[
            ("5.0", "2022-03-31"),
            ("5.1", "2025-10-31"),
            ("5.2", "2026-04-30"),
            ("5.3", "2026-10-30"),
            ("5.4", "2027-04-30"),
            ("5.5", "2027-10-31"),
            ("6.0", "2028-06-30"),
            ("6.1", "2028-11-30"),
        ],
    ),
    (
        "suse linux enterprise server",
        &[
            ("10", "2007-12-31"),
            ("10.1", "2008-11-30"),
            ("10.2", "2010-04-11"),
            ("10.3", "2011-10-11"),
            ("10.4", "2013-07-31"),
            ("11", "2010-12-31"),
            ("11.1", "2012-08-31"),
            ("11.2", "2014-01-31"),
            ("11.3", "2016-01-31"),
            ("11.4", "2019-03-31"),
            ("12", "2016-06-30"),
            ("12.1", "2017-05-31"),
            ("12.2", "2018-03-31"),
            ("12.3", "2019-01-30"),
            ("12.4", "2020-06-30"),
            ("12.5", "2024-10-31"),
            ("15", "2019-12-31"),
            ("15.1", "2021-01-31"),
            ("15.2", "2021-12-31"),
            ("15.3", "2022-12-31"),
            ("15.4", "2023-12-31"),
            ("15.5", "2024-12-31"),
            ("15.6", "2025-12-31"),
            ("15.7", "2031-07-31"),
            ("16.0", "2027-11-30"),
            ("16.1", "2028-11-30"),
        ],
    ),
    (
        "ubuntu",
        &[
            ("4.10", "2006-04-30"),
            ("5.04", "2006-10-31"),
            ("5.10", "2007-04-13"),
            ("6.06", "2011-06-01"),
            ("6.10", "2008-04-25"),
            ("7.04", "2008-10-19"),
            ("7.10", "2009-04-18"),
            ("8.04", "2013-05-09"),
            ("8.10", "2010-04-30"),
            ("9.04", "2010-10-23"),
            ("9.10", "2011-04-29"),
            ("10.04", "2015-04-29"),
            ("10.10", "2012-04-10"),
            ("11.04", "2012-10-28"),
            ("11.10", "2013-05-09"),
            ("12.04", "2019-04-26"),
            ("12.04-ESM", "2019-04-28"),
            ("12.10", "2014-05-16"),
            ("13.04", "2014-01-27"),
            ("13.10", "2014-07-17"),
            ("14.04", "2022-04-25"),
            ("14.04-ESM", "2024-04-25"),
            ("14.10", "2015-07-23"),
            ("15.04", "2016-01-23"),
            ("15.10", "2016-07-22"),
            ("16.04", "2021-04-21"),
            ("16.04-ESM", "2026-04-29"),
            ("16.10", "2017-07-20"),
            ("17.04", "2018-01-13"),
            ("17.10", "2018-07-19"),
            ("18.04", "2023-05-31"),
            ("18.04-ESM", "2028-03-31"),
            ("18.10", "2019-07-18"),
            ("19.04", "2020-01-18"),
            ("19.10", "2020-07-17"),
            ("20.04", "2025-05-31"),
            ("20.04-ESM", "2030-04-30"),
            ("20.10", "2021-07-22"),
            ("21.04", "2022-01-20"),
            ("21.10", "2022-07-14"),
            ("22.04", "2027-04-23"),
            ("22.10", "2023-07-20"),
            ("23.04", "2024-01-20"),
            ("23.10", "2024-06-30"),
            ("24.04", "2034-03-31"),
            ("24.10", "2025-07-09"),
            ("25.04", "2026-01-16"),
            ("25.10", "2026-07-01"),
            ("26.04", "2031-05-31"),
        ],
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn at(time: &str) -> Option<Timestamp> {
        Some(time.parse().unwrap())
    }

    #[test]
    fn a_release_lives_to_the_end_of_its_last_day() {
        let debian = Os::new(Family::Debian, "11.9");
        assert_eq!(of(&debian, at("2026-08-14T23:59:59Z")), None);
        let ended = of(&debian, at("2026-08-15T00:00:00Z")).unwrap();
        assert_eq!(ended.release, "11");
        assert_eq!(ended.date.to_string(), "2026-08-14");
        assert_eq!(of(&debian, None), None);
    }

    #[test]
    fn each_distribution_names_its_releases_in_its_own_way() {
        let extended = |version: &str| Os {
            extended: true,
            ..Os::new(Family::Ubuntu, version)
        };
        for (os, expected) in [
            (Os::new(Family::Alpine, "3.19.4"), Some("3.19")),
            (Os::new(Family::Alpine, "3.22.1"), None),
            (Os::new(Family::Ubuntu, "18.04"), Some("18.04")),
            (extended("18.04"), None),
            (extended("16.04"), Some("16.04-ESM")),
            (Os::new(Family::CentOs, "7.9.2009"), Some("7")),
            (Os::new(Family::CentOs, "stream 8"), Some("stream 8")),
            (Os::new(Family::RedHat, "8.10"), None),
            (Os::new(Family::Amazon, "2018.03"), Some("1")),
            (Os::new(Family::Amazon, "2023.5"), None),
            (Os::new(Family::Photon, "3.0"), Some("3.0")),
            (Os::new(Family::SuseEnterprise, "12.5"), Some("12.5")),
            (Os::new(Family::OpenSuseTumbleweed, ""), None),
            (Os::new(Family::Wolfi, "20230201"), None),
            (Os::new(Family::Other("arch".into()), ""), None),
        ] {
            let ended = of(&os, at("2026-11-16T00:00:00Z"));
            let ended = ended.as_ref().map(|ended| ended.release.as_str());
            assert_eq!(ended, expected, "{os}");
        }
    }

    #[test]
    fn every_day_is_one() {
        for (family, releases) in LAST_DAYS {
            for (release, day) in *releases {
                assert!(day.parse::<Date>().is_ok(), "{family} {release} {day}");
            }
        }
    }
}
