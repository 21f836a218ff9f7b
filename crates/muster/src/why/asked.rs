//! What somebody asks about: vulnerabilities by their identifiers, or one workload by kind and name.

use super::read::Owner;
use anyhow::{Result, bail};

/// What is asked about.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// Identifiers, in upper case.
    Vulnerabilities(Vec<String>),
    Workload(Wanted),
}

/// A workload as people call it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    /// In lower case; none where only the name is said.
    kind: Option<String>,
    name: String,
}

/// The short names of kinds that own pods.
const SHORT: [(&str, &str); 9] = [
    ("po", "pod"),
    ("deploy", "deployment"),
    ("sts", "statefulset"),
    ("ds", "daemonset"),
    ("rs", "replicaset"),
    ("rc", "replicationcontroller"),
    ("cj", "cronjob"),
    ("ro", "rollout"),
    ("ksvc", "service"),
];

impl Asked {
    pub(super) fn parse(words: &[String]) -> Result<Asked> {
        if words.iter().all(|word| is_identifier(word)) {
            let mut ids: Vec<String> = words.iter().map(|word| word.to_uppercase()).collect();
            ids.sort();
            ids.dedup();
            return Ok(Asked::Vulnerabilities(ids));
        }
        let [word] = words else {
            bail!(
                "asking about {}: give either identifiers of vulnerabilities, such as CVE-2024-1234, or one workload, such as deployment/app",
                words.join(" ")
            );
        };
        let (kind, name) = match word.split_once('/') {
            Some((kind, name)) => (Some(kind.to_lowercase()), name),
            None => (None, word.as_str()),
        };
        if name.is_empty() || name.contains('/') || kind.as_deref() == Some("") {
            bail!("asking about {word}: a workload is called KIND/NAME, such as deployment/app");
        }
        Ok(Asked::Workload(Wanted {
            kind,
            name: name.into(),
        }))
    }
}

/// Whether a word looks like the identifier of a vulnerability: letters, a dash, and a number behind
/// it that goes on (`CVE-2024-1`, `DSA-5432-1`, `RHSA-2024:1`), or the groups of a GHSA.
fn is_identifier(word: &str) -> bool {
    let Some((source, rest)) = word.split_once('-') else {
        return false;
    };
    let is_plain = word
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "-:.".contains(c));
    if !is_plain || !source.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return false;
    }
    if ["GHSA", "CGA"]
        .iter()
        .any(|known| source.eq_ignore_ascii_case(known))
    {
        let mut groups = rest.split('-');
        return rest.split('-').count() == 3 && groups.all(|group| group.len() == 4);
    }
    let digits = rest.chars().take_while(char::is_ascii_digit).count();
    let goes_on = rest
        .get(digits..)
        .is_some_and(|rest| rest.len() > 1 && rest.starts_with(['-', ':']));
    let is_known = [
        "CVE", "DSA", "DLA", "USN", "GO", "RUSTSEC", "PYSEC", "MAL", "OSV", "TEMP",
    ];
    let is_known = is_known
        .iter()
        .any(|known| source.eq_ignore_ascii_case(known));
    // Workloads are written small; sources that nobody knows yet are not.
    let is_large = !source.chars().any(|c| c.is_ascii_lowercase());
    goes_on && (is_large && digits >= 4 || is_known && digits > 0)
}

impl Wanted {
    /// Whether this is what is asked about.
    pub(super) fn is(&self, owner: &Owner) -> bool {
        owner.name == self.name && self.kind.as_deref().is_none_or(|kind| is_kind(kind, owner))
    }

    /// Whether only a name is known, and the name of a report would do as well.
    pub(super) fn is_report(&self, name: &str) -> bool {
        self.kind.is_none() && self.name == name
    }
}

fn is_kind(word: &str, owner: &Owner) -> bool {
    let (word, group) = match word.split_once('.') {
        Some((word, group)) => (word, Some(group)),
        None => (word, None),
    };
    let kind = owner.kind.to_lowercase();
    let short = SHORT.iter().find(|(short, _)| *short == word);
    let word = short.map_or(word, |(_, long)| long);
    let of_group = owner
        .api_version
        .split_once('/')
        .map_or("", |(group, _)| group);
    let plurals = [kind.clone(), format!("{kind}s"), format!("{kind}es")];
    plurals.iter().any(|plural| plural == word)
        && group.is_none_or(|group| group.eq_ignore_ascii_case(of_group))
}

impl std::fmt::Display for Wanted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.kind {
            Some(kind) => write!(f, "{kind}/{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn identifiers_are_told_from_workloads() {
        for id in [
            "CVE-2024-1234",
            "cve-1999-1",
            "GHSA-jfh8-c2jp-5v3q",
            "RHSA-2024:0001",
            "DSA-543-1",
            "GO-2024-2687",
            "TEMP-0290435-0B57B5",
            "ALAS2-2023-2100",
        ] {
            let asked = Asked::parse(&words(&[id])).unwrap();
            assert_eq!(
                asked,
                Asked::Vulnerabilities(vec![id.to_uppercase()]),
                "{id}"
            );
        }
        for name in [
            "app",
            "go-server",
            "web-1",
            "node-18-build",
            "cve-2024",
            "release-2024-11",
            "ghsa-api",
            "deployment/CVE-2024-1",
        ] {
            let asked = Asked::parse(&words(&[name])).unwrap();
            assert!(matches!(asked, Asked::Workload(_)), "{name}");
        }
        for refused in [
            words(&["deployment/"]),
            words(&["/app"]),
            words(&["a/b/c"]),
            words(&["deployment/a", "deployment/b"]),
            words(&["CVE-2024-1", "app"]),
        ] {
            assert!(Asked::parse(&refused).is_err(), "{refused:?}");
        }
    }

    #[test]
    fn a_kind_is_known_by_all_its_names() {
        let deployment = Owner {
            api_version: "apps/v1".into(),
            kind: "Deployment".into(),
            name: "app".into(),
            ..Owner::default()
        };
        for (word, meant) in [
            ("deployment/app", true),
            ("Deployments/app", true),
            ("deploy/app", true),
            ("deployment.apps/app", true),
            ("deployment.example.org/app", false),
            ("app", true),
            ("sts/app", false),
            ("deployment/other", false),
        ] {
            let Ok(Asked::Workload(wanted)) = Asked::parse(&words(&[word])) else {
                panic!("{word} is a workload");
            };
            assert_eq!(wanted.is(&deployment), meant, "{word}");
        }
    }
}
