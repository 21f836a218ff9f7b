//! Licences in bills: an expression of identifiers that everybody knows is written as it is; any
//! other text gets an identifier of its own, with the text beside it.

use crate::digest::Digest;

/// Identifiers of the SPDX list that packages in images commonly state.
const KNOWN: &[&str] = &[
    "0BSD",
    "AFL-2.1",
    "AGPL-3.0-only",
    "AGPL-3.0-or-later",
    "Apache-1.1",
    "Apache-2.0",
    "Artistic-1.0-Perl",
    "Artistic-2.0",
    "BlueOak-1.0.0",
    "BSD-1-Clause",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSD-4-Clause",
    "BSL-1.0",
    "bzip2-1.0.6",
    "CC-BY-3.0",
    "CC-BY-4.0",
    "CC0-1.0",
    "CDDL-1.0",
    "CDDL-1.1",
    "CPL-1.0",
    "curl",
    "EPL-1.0",
    "EPL-2.0",
    "FTL",
    "GPL-1.0-or-later",
    "GPL-2.0-only",
    "GPL-2.0-or-later",
    "GPL-3.0-only",
    "GPL-3.0-or-later",
    "ISC",
    "LGPL-2.0-only",
    "LGPL-2.0-or-later",
    "LGPL-2.1-only",
    "LGPL-2.1-or-later",
    "LGPL-3.0-only",
    "LGPL-3.0-or-later",
    "MIT",
    "MIT-0",
    "MPL-1.1",
    "MPL-2.0",
    "NCSA",
    "OFL-1.1",
    "OpenSSL",
    "OLDAP-2.8",
    "PostgreSQL",
    "PSF-2.0",
    "Python-2.0",
    "Ruby",
    "Sleepycat",
    "TCL",
    "Unicode-3.0",
    "Unlicense",
    "Vim",
    "W3C",
    "WTFPL",
    "X11",
    "Zlib",
    "ZPL-2.1",
];

const EXCEPTIONS: &[&str] = &[
    "Autoconf-exception-3.0",
    "Bison-exception-2.2",
    "Classpath-exception-2.0",
    "GCC-exception-3.1",
    "LLVM-exception",
    "Linux-syscall-note",
    "OpenSSL-exception",
];

/// What stands in a bill for a stated licence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Licence {
    /// An expression of known identifiers.
    Expression(String),
    /// An identifier of our own for that text.
    Reference(String),
}

pub(crate) fn declared(text: &str) -> Licence {
    let spaced = text.replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_ascii_whitespace().collect();
    if is_expression(&words) {
        return Licence::Expression(words.join(" ").replace("( ", "(").replace(" )", ")"));
    }
    let digest = Digest::of(text.as_bytes());
    Licence::Reference(format!("LicenseRef-{}", &digest.digits()[..16]))
}

/// Identifiers and operators take turns, and parentheses match.
fn is_expression(words: &[&str]) -> bool {
    let (mut depth, mut wants_operand, mut wants_exception) = (0_i32, true, false);
    for word in words {
        match *word {
            "(" if wants_operand => depth += 1,
            ")" if !wants_operand && depth > 0 => depth -= 1,
            "AND" | "OR" if !wants_operand => wants_operand = true,
            "WITH" if !wants_operand => (wants_operand, wants_exception) = (true, true),
            word if wants_exception && EXCEPTIONS.contains(&word) => {
                (wants_operand, wants_exception) = (false, false);
            }
            word if wants_operand && !wants_exception && KNOWN.contains(&word) => {
                wants_operand = false;
            }
            _ => return false,
        }
    }
    depth == 0 && !wants_operand
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_expressions_that_everybody_knows_are_written_as_they_are() {
        for text in [
            "MIT",
            "(MIT OR Apache-2.0)",
            "GPL-2.0-only WITH Classpath-exception-2.0 AND MIT",
        ] {
            assert_eq!(declared(text), Licence::Expression(text.into()), "{text}");
        }
        for text in [
            "",
            "BSD",
            "MIT OR",
            "MIT MIT",
            "(MIT",
            "MIT)",
            "MIT WITH MIT",
            "see LICENSE",
        ] {
            assert!(matches!(declared(text), Licence::Reference(_)), "{text}");
        }
    }
}
