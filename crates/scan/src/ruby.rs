//! Installed gems, each with a specification that is a piece of Ruby. It is not run: the lines
//! that assign a name and a version as plain text are enough, and that is how RubyGems writes them.

use crate::package::{Package, Reading};

/// Reads a `.gemspec` below `specifications`.
pub fn specification(contents: &[u8]) -> Reading {
    let text = String::from_utf8_lossy(contents);
    let value = |field: &str| {
        text.lines().find_map(|line| {
            let (variable, value) = line.trim().split_once('=')?;
            let (_, name) = variable.trim().split_once('.')?;
            (name == field).then(|| quoted(value)).flatten()
        })
    };
    let mut reading = Reading::default();
    match (value("name"), value("version")) {
        (Some(name), Some(version)) => reading.packages.push(Package {
            licence: value("licenses").or_else(|| value("license")),
            ..Package::new(name, version)
        }),
        _ => reading
            .problems
            .push("no name or no version as plain text".into()),
    }
    reading
}

/// The first text in quotes.
fn quoted(value: &str) -> Option<String> {
    let start = value.find(['"', '\''])?;
    let quote = value[start..].chars().next()?;
    let rest = &value[start + 1..];
    let end = rest.find(quote)?;
    let text = &rest[..end];
    (!text.is_empty() && !text.contains("#{")).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_assignments_are_read() {
        let reading = specification(
            b"# -*- encoding: utf-8 -*-\n# stub: rack 2.2.3 ruby lib\nGem::Specification.new do |s|\n  \
              s.name = \"rack\".freeze\n  s.version = \"2.2.3\"\n  s.licenses = [\"MIT\".freeze]\n  \
              s.required_ruby_version = Gem::Requirement.new(\">= 2.3\")\nend\n",
        );
        let package = &reading.packages[0];
        assert_eq!(
            (package.name.as_str(), package.version.as_str()),
            ("rack", "2.2.3")
        );
        assert_eq!(package.licence.as_deref(), Some("MIT"));
        assert_eq!(specification(b"s.name = NAME\n").problems.len(), 1);
        let computed = b"s.name = 'a'\ns.version = \"#{V}\"\n";
        assert_eq!(specification(computed).problems.len(), 1);
    }
}
