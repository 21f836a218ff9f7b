//! Versions as Kubernetes' CEL library has them: `semver(text)`, which takes a whole version only,
//! and `semver(text, true)`, which puts `v1.2` right first.

use super::{DeclarationError, Env, ExecutionError};
use cel::common::types::{CelBool, CelInt, CelString, Type};
use cel::common::value::{StaticVal, Val};
use semver::Version;
use std::any::Any;
use std::cmp::Ordering;

/// A version as a value of CEL.
#[derive(Clone, Debug)]
struct Semver(Version);

static SEMVER: Type = Type::new_unspecified_type("kubernetes.Semver");

impl Val for Semver {
    fn get_type(&self) -> &Type {
        &SEMVER
    }

    fn cel_type() -> &'static Type {
        &SEMVER
    }

    fn equals(&self, other: &dyn Val) -> bool {
        let other = other.downcast_ref::<Semver>();
        other.is_some_and(|other| self.order(other) == Ordering::Equal)
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl StaticVal for Semver {}

impl Semver {
    /// What it was built with does not count.
    fn order(&self, other: &Semver) -> Ordering {
        self.0.cmp_precedence(&other.0)
    }
}

/// Adds the functions on versions.
pub(super) fn extension(env: &mut Env) -> Result<(), DeclarationError> {
    cel::add_overload!(env, fn semver: (CelString) -> Result<Semver>)?;
    cel::add_overload!(env, fn normalized: (CelString, CelBool) -> Result<Semver>, name = "semver")?;
    cel::add_overload!(env, fn is_semver: (CelString) -> CelBool)?;
    cel::add_overload!(env, fn is_normalized: (CelString, CelBool) -> CelBool, name = "isSemver")?;
    cel::add_member_overload!(env, fn is_less_than: (Semver, Semver) -> CelBool)?;
    cel::add_member_overload!(env, fn is_greater_than: (Semver, Semver) -> CelBool)?;
    cel::add_member_overload!(env, fn compare_to: (Semver, Semver) -> CelInt)?;
    cel::add_member_overload!(env, fn major: (Semver) -> CelInt)?;
    cel::add_member_overload!(env, fn minor: (Semver) -> CelInt)?;
    cel::add_member_overload!(env, fn patch: (Semver) -> CelInt)?;
    Ok(())
}

fn parse(text: &str, normalize: bool) -> Option<Semver> {
    let version = match normalize {
        true => Version::parse(&put_right(text)?),
        false => Version::parse(text),
    };
    version.ok().map(Semver)
}

/// Takes a leading `v` and leading zeros away, and adds the numbers that a short version lacks. A
/// short version with more behind it could mean several things and is none.
fn put_right(text: &str) -> Option<String> {
    let text = text.trim();
    let text = text.strip_prefix('v').unwrap_or(text);
    let mut parts: Vec<String> = text
        .splitn(3, '.')
        .map(|part| {
            let digits = part.trim_start_matches('0');
            match digits.starts_with(|c: char| c.is_ascii_digit()) {
                true => digits.to_owned(),
                false if digits.len() < part.len() => format!("0{digits}"),
                false => digits.to_owned(),
            }
        })
        .collect();
    if parts.len() < 3 && parts.last()?.contains(['+', '-']) {
        return None;
    }
    parts.resize(3, "0".into());
    Some(parts.join("."))
}

fn semver(text: &CelString<'_>) -> Result<Semver, ExecutionError> {
    parse(text.inner(), false).ok_or_else(|| no_version(text))
}

fn normalized(text: &CelString<'_>, normalize: &CelBool) -> Result<Semver, ExecutionError> {
    parse(text.inner(), *normalize.inner()).ok_or_else(|| no_version(text))
}

fn no_version(text: &CelString<'_>) -> ExecutionError {
    ExecutionError::function_error("semver", format!("{:?} is no version", text.inner()))
}

fn is_semver(text: &CelString<'_>) -> CelBool {
    parse(text.inner(), false).is_some().into()
}

fn is_normalized(text: &CelString<'_>, normalize: &CelBool) -> CelBool {
    parse(text.inner(), *normalize.inner()).is_some().into()
}

fn is_less_than(this: &Semver, other: &Semver) -> CelBool {
    this.order(other).is_lt().into()
}

fn is_greater_than(this: &Semver, other: &Semver) -> CelBool {
    this.order(other).is_gt().into()
}

fn compare_to(this: &Semver, other: &Semver) -> CelInt {
    (this.order(other) as i64).into()
}

fn major(this: &Semver) -> CelInt {
    number(this.0.major)
}

fn minor(this: &Semver) -> CelInt {
    number(this.0.minor)
}

fn patch(this: &Semver) -> CelInt {
    number(this.0.patch)
}

fn number(part: u64) -> CelInt {
    i64::try_from(part).unwrap_or(i64::MAX).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_put_right_as_kubernetes_does() {
        for (text, strict, normalized) in [
            ("1.2.3", Some("1.2.3"), Some("1.2.3")),
            ("v1.2.3", None, Some("1.2.3")),
            ("1.2", None, Some("1.2.0")),
            ("v1", None, Some("1.0.0")),
            ("01.002.0003", None, Some("1.2.3")),
            ("0.0.0", Some("0.0.0"), Some("0.0.0")),
            ("00.0.0-rc.1", None, Some("0.0.0-rc.1")),
            ("1.2.3-rc.1+b", Some("1.2.3-rc.1+b"), Some("1.2.3-rc.1+b")),
            ("1.2-rc.1", None, None),
            ("1-alpine", None, None),
            ("1.2.3.4", None, None),
            ("20240101", None, Some("20240101.0.0")),
            ("99999999999999999999", None, None),
            ("latest", None, None),
            ("v", None, None),
            ("", None, None),
            ("...", None, None),
            ("é", None, None),
        ] {
            let shown = |normalize| parse(text, normalize).map(|version| version.0.to_string());
            assert_eq!(shown(false).as_deref(), strict, "{text}");
            assert_eq!(shown(true).as_deref(), normalized, "{text}");
        }
    }
}
