//! Alpine's package database: paragraphs of `X:value` lines, one for each package, with its files
//! below it.

use crate::package::{Package, Reading, Source};

/// Reads `lib/apk/db/installed`.
pub fn installed(contents: &[u8]) -> Reading {
    let text = String::from_utf8_lossy(contents);
    let mut reading = Reading::default();
    let mut paragraph = Paragraph::default();
    for line in text.lines().chain([""]) {
        if line.is_empty() {
            std::mem::take(&mut paragraph).finish(&mut reading);
            continue;
        }
        let Some((field, value)) = line.split_once(':') else {
            continue;
        };
        match field {
            "P" => paragraph.name = value,
            "V" => paragraph.version = value,
            "A" => paragraph.architecture = value,
            "o" => paragraph.origin = value,
            "L" => paragraph.licence = value,
            "m" => paragraph.maintainer = value,
            "F" => paragraph.folder = value,
            "R" if paragraph.folder.is_empty() => reading.owned.insert(value),
            "R" => reading
                .owned
                .insert(&format!("{}/{value}", paragraph.folder)),
            _ => {}
        }
    }
    reading.owned.seal();
    reading
}

#[derive(Default)]
struct Paragraph<'a> {
    name: &'a str,
    version: &'a str,
    architecture: &'a str,
    origin: &'a str,
    licence: &'a str,
    maintainer: &'a str,
    folder: &'a str,
}

impl Paragraph<'_> {
    fn finish(self, reading: &mut Reading) {
        if self.name.is_empty() {
            return;
        }
        if self.version.is_empty() {
            let problem = format!("the installed package {:?} has no version", self.name);
            reading.problems.push(problem);
            return;
        }
        let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        reading.packages.push(Package {
            name: self.name.into(),
            version: self.version.into(),
            architecture: given(self.architecture),
            source: Some(Source {
                name: given(self.origin).unwrap_or_else(|| self.name.into()),
                version: self.version.into(),
            }),
            vendor: given(self.maintainer),
            licence: given(self.licence),
            ..Package::default()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_and_their_files_are_read() {
        let reading = installed(
            b"C:Q1abc=\nP:musl\nV:1.2.5-r0\nA:x86_64\nL:MIT\no:musl\nm:A <a@b>\nF:lib\nR:ld-musl.so.1\n\
              a:0:0:755\nZ:Q1x=\n\nP:ssl_client\nV:1.36.1-r29\nA:x86_64\no:busybox\nF:\nR:top\n\nP:broken\n",
        );
        let read: Vec<_> = reading
            .packages
            .iter()
            .map(|package| {
                (
                    package.name.as_str(),
                    package.version.as_str(),
                    package.source_name(),
                )
            })
            .collect();
        assert_eq!(
            read,
            [
                ("musl", "1.2.5-r0", "musl"),
                ("ssl_client", "1.36.1-r29", "busybox")
            ]
        );
        assert_eq!(reading.packages[0].licence.as_deref(), Some("MIT"));
        assert!(reading.owned.contains("lib/ld-musl.so.1") && reading.owned.contains("top"));
        assert_eq!(
            reading.problems,
            ["the installed package \"broken\" has no version"]
        );
    }
}
