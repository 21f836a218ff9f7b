//! Which platforms of an image are wanted, and which of those it has that are.

use muster_api::Platform;

/// Which platforms are wanted.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Platforms {
    /// Linux on this machine's processor; where an image has only one platform, that.
    #[default]
    Default,
    /// This one.
    One(Platform),
    /// All that there are.
    All,
}

impl Platforms {
    /// The places of those that are wanted; where none is, what was looked for. An image that does
    /// not say its platform suits everybody, if it is the only one.
    pub(crate) fn choose(&self, have: &[Option<Platform>]) -> Result<Vec<usize>, Platform> {
        let wanted = match self {
            Platforms::All => return Ok((0..have.len()).collect()),
            Platforms::Default if have.len() == 1 => return Ok(vec![0]),
            Platforms::Default => machine(),
            Platforms::One(_) if have == [None] => return Ok(vec![0]),
            Platforms::One(platform) => platform.clone(),
        };
        let suits = |platform: &Option<Platform>| {
            let platform = platform.as_ref();
            platform.is_some_and(|platform| platform.satisfies(&wanted))
        };
        have.iter()
            .position(suits)
            .map(|place| vec![place])
            .ok_or(wanted)
    }
}

/// Linux on this machine's processor, as image indexes name it.
fn machine() -> Platform {
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "x86" => "386",
        "aarch64" => "arm64",
        "powerpc64" if cfg!(target_endian = "little") => "ppc64le",
        "loongarch64" => "loong64",
        other => other,
    };
    Platform {
        os: "linux".into(),
        architecture: architecture.into(),
        variant: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_platform_that_is_wanted_is_chosen() {
        let of = |text: &str| Platform::parse(text);
        let other = || {
            Some(Platform {
                os: "other".into(),
                ..machine()
            })
        };
        let own = || Some(machine());
        let one = |text: &str| Platforms::One(Platform::parse(text).unwrap());
        for (platforms, have, chosen) in [
            (Platforms::Default, vec![other(), own()], Ok(vec![1])),
            (Platforms::Default, vec![other()], Ok(vec![0])),
            (Platforms::Default, vec![None], Ok(vec![0])),
            (Platforms::Default, vec![other(), other()], Err(machine())),
            (Platforms::All, vec![other(), None], Ok(vec![0, 1])),
            (Platforms::All, vec![], Ok(vec![])),
            (
                one("linux/arm"),
                vec![of("linux/arm/v6"), of("linux/arm/v7")],
                Ok(vec![0]),
            ),
            (
                one("linux/arm/v7"),
                vec![of("linux/arm/v6"), of("linux/arm/v7")],
                Ok(vec![1]),
            ),
            (one("linux/arm"), vec![None], Ok(vec![0])),
            (
                one("linux/arm"),
                vec![other()],
                Err(of("linux/arm").unwrap()),
            ),
        ] {
            assert_eq!(platforms.choose(&have), chosen, "{platforms:?} of {have:?}");
        }
    }
}
