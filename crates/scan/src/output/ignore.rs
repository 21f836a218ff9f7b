//! Files of findings that somebody has decided to live with. Two forms are read, which other
//! scanners have made common: a line for each identifier, and a list in YAML that may limit an
//! entry to packages and files. A decision may lapse on a day.

use crate::purl::Purl;
use crate::report::ReportFinding;
use crate::vex::covers;
use serde::Deserialize;
use std::collections::HashMap;

/// Larger files are not read.
const LARGEST: usize = 16 * 1024 * 1024;

/// What is ignored.
#[derive(Clone, Debug, Default)]
pub struct Ignored {
    entries: HashMap<String, Vec<Entry>>,
}

#[derive(Clone, Debug, Default)]
struct Entry {
    packages: Vec<Purl>,
    paths: Vec<String>,
    expires: Option<String>,
}

/// Why a file cannot be followed.
#[derive(Debug, thiserror::Error)]
#[error("reading {file}: {problem}")]
pub struct IgnoreError {
    file: String,
    problem: String,
}

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    vulnerabilities: Vec<Written>,
}

#[derive(Deserialize)]
struct Written {
    id: String,
    #[serde(default)]
    paths: Vec<String>,
    #[serde(default)]
    purls: Vec<String>,
    #[serde(default, alias = "expires")]
    expired_at: Option<String>,
}

impl Ignored {
    /// Reads a file; the ending of its name tells the form.
    pub fn read(name: &str, bytes: &[u8]) -> Result<Ignored, IgnoreError> {
        let wrong = |problem: String| IgnoreError {
            file: name.into(),
            problem,
        };
        if bytes.len() > LARGEST {
            return Err(wrong(format!("it has more than {LARGEST} bytes")));
        }
        let text = std::str::from_utf8(bytes).map_err(|error| wrong(error.to_string()))?;
        let is_yaml = name.ends_with(".yaml") || name.ends_with(".yml");
        match is_yaml {
            true => from_yaml(text),
            false => from_lines(text),
        }
        .map_err(wrong)
    }

    /// How many decisions there are.
    pub fn len(&self) -> usize {
        self.entries.values().map(Vec::len).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether somebody has decided to live with a finding, and still does today.
    pub fn covers(&self, finding: &ReportFinding, today: &str) -> bool {
        let entries = self.entries.get(&finding.cve).into_iter().flatten();
        entries.into_iter().any(|entry| {
            // Dates of this form sort as text.
            let lapsed = entry.expires.as_deref().is_some_and(|last| last < today);
            !lapsed && entry.is_about(finding)
        })
    }

    fn add(&mut self, id: &str, entry: Entry) {
        self.entries.entry(id.into()).or_default().push(entry);
    }
}

impl Entry {
    fn is_about(&self, finding: &ReportFinding) -> bool {
        let package = Purl::parse(&finding.purl);
        let of_package = self.packages.is_empty()
            || package.is_some_and(|package| self.packages.iter().any(|one| covers(one, &package)));
        let path = finding.package_path.as_str();
        let of_path = self.paths.is_empty() || self.paths.iter().any(|one| matches(one, path));
        of_package && of_path
    }
}

/// One identifier a line, which may be followed by `exp:2026-01-31`; what follows `#` is a comment.
fn from_lines(text: &str) -> Result<Ignored, String> {
    let mut ignored = Ignored::default();
    for (place, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_whitespace();
        let Some(id) = words.next() else { continue };
        let mut entry = Entry::default();
        for word in words {
            let day = word.strip_prefix("exp:").ok_or_else(|| {
                format!(
                    "line {}: {word:?} is neither a comment nor exp:DATE",
                    place + 1
                )
            })?;
            let day = date(day).map_err(|problem| format!("line {}: {problem}", place + 1))?;
            entry.expires = Some(day);
        }
        ignored.add(id, entry);
    }
    Ok(ignored)
}

fn from_yaml(text: &str) -> Result<Ignored, String> {
    let file: File = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
    let mut ignored = Ignored::default();
    for written in file.vulnerabilities {
        let packages: Result<Vec<Purl>, String> = written
            .purls
            .iter()
            .map(|text| Purl::parse(text).ok_or_else(|| format!("{text:?} is no package URL")))
            .collect();
        let entry = Entry {
            packages: packages?,
            paths: written.paths,
            expires: written.expired_at.as_deref().map(date).transpose()?,
        };
        ignored.add(&written.id, entry);
    }
    Ok(ignored)
}

fn date(text: &str) -> Result<String, String> {
    let date: Result<jiff::civil::Date, _> = text.parse();
    let date = date.map_err(|_| format!("{text:?} is no date such as 2026-01-31"))?;
    Ok(date.to_string())
}

/// Whether a path matches a pattern in which `*` stands for anything but a slash, and `**` for
/// anything.
fn matches(pattern: &str, path: &str) -> bool {
    let (pattern, path) = (pattern.as_bytes(), path.as_bytes());
    // Where to go on when the text after the last star does not match: one byte further.
    let (mut place, mut at) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    let mut wide: Option<(usize, usize)> = None;
    loop {
        if pattern[place..].starts_with(b"**") {
            place += 2;
            wide = Some((place, at));
            star = None;
            continue;
        }
        if pattern.get(place) == Some(&b'*') {
            place += 1;
            star = Some((place, at));
            continue;
        }
        let same = match (pattern.get(place), path.get(at)) {
            (None, None) => return true,
            (Some(one), Some(other)) => one == other,
            _ => false,
        };
        if same {
            place += 1;
            at += 1;
            continue;
        }
        if let Some((after, from)) = star
            && path.get(from).is_some_and(|byte| *byte != b'/')
        {
            star = Some((after, from + 1));
            (place, at) = (after, from + 1);
            continue;
        }
        match wide {
            Some((after, from)) if from < path.len() => {
                wide = Some((after, from + 1));
                star = None;
                (place, at) = (after, from + 1);
            }
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(cve: &str, purl: &str, path: &str) -> ReportFinding {
        ReportFinding {
            cve: cve.into(),
            purl: purl.into(),
            package_path: path.into(),
            ..ReportFinding::default()
        }
    }

    #[test]
    fn lines_name_what_is_ignored_and_until_when() {
        let text = "# known\nCVE-1\n\nCVE-2 exp:2026-01-31 # until then\n";
        let ignored = Ignored::read(".musterignore", text.as_bytes()).unwrap();
        assert_eq!(ignored.len(), 2);
        for (cve, today, expected) in [
            ("CVE-1", "2026-12-31", true),
            ("CVE-2", "2026-01-31", true),
            ("CVE-2", "2026-02-01", false),
            ("CVE-3", "2026-01-01", false),
        ] {
            let finding = finding(cve, "pkg:deb/debian/a@1", "");
            assert_eq!(ignored.covers(&finding, today), expected, "{cve} {today}");
        }
    }

    #[test]
    fn a_list_may_be_limited_to_packages_and_files() {
        let text = "
vulnerabilities:
  - id: CVE-1
    purls: [pkg:npm/lodash]
    statement: not reachable
  - id: CVE-2
    paths: ['app/**/package.json']
    expired_at: 2026-01-31
";
        let ignored = Ignored::read("ignore.yaml", text.as_bytes()).unwrap();
        for (cve, purl, path, expected) in [
            ("CVE-1", "pkg:npm/lodash@4.17.15", "app/package.json", true),
            ("CVE-1", "pkg:npm/axios@0.21.0", "app/package.json", false),
            (
                "CVE-2",
                "pkg:npm/a@1",
                "app/node_modules/a/package.json",
                true,
            ),
            (
                "CVE-2",
                "pkg:npm/a@1",
                "srv/node_modules/a/package.json",
                false,
            ),
        ] {
            let finding = finding(cve, purl, path);
            assert_eq!(
                ignored.covers(&finding, "2026-01-01"),
                expected,
                "{cve} {path}"
            );
        }
    }

    #[test]
    fn what_cannot_be_followed_is_named() {
        for (file, text, expected) in [
            (
                "i",
                "CVE-1 soon",
                "reading i: line 1: \"soon\" is neither a comment nor exp:DATE",
            ),
            (
                "i",
                "\nCVE-1 exp:soon",
                "reading i: line 2: \"soon\" is no date such as 2026-01-31",
            ),
            (
                "i.yaml",
                "vulnerabilities: [{id: a, purls: [lodash]}]",
                "reading i.yaml: \"lodash\" is no package URL",
            ),
        ] {
            let error = Ignored::read(file, text.as_bytes()).unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn stars_stand_for_names_and_two_of_them_for_paths() {
        for (pattern, path, expected) in [
            ("a/b", "a/b", true),
            ("a/*", "a/b", true),
            ("a/*", "a/b/c", false),
            ("a/**", "a/b/c", true),
            ("**/c", "a/b/c", true),
            ("**/*.jar", "a/b/c.jar", true),
            ("*.jar", "a/c.jar", false),
            ("a*c*", "abcd", true),
            ("a/*/c", "a/b/b/c", false),
            ("a/**/c", "a/b/b/c", true),
            ("", "a", false),
            ("**", "", true),
        ] {
            assert_eq!(matches(pattern, path), expected, "{pattern} {path}");
        }
    }
}
