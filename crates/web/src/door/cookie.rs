//! Cookies: read from a request, written so that no script sees them and no form of another site sends
//! them. A link of another site does, so that a view can be shared: what links ask for is only read.

use http::{HeaderMap, header};

/// The value of a cookie.
pub(crate) fn find<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let lines = headers.get_all(header::COOKIE).iter();
    let pairs = lines.filter_map(|line| line.to_str().ok());
    let mut pairs = pairs.flat_map(|line| line.split(';'));
    pairs.find_map(|pair| {
        let (key, value) = pair.split_once('=')?;
        (key.trim() == name).then(|| value.trim())
    })
}

/// A cookie for the pages and nothing else. Without a value it ends what was.
pub(crate) fn written(name: &str, value: &str, secure: bool) -> String {
    let age = match value {
        "" => 0,
        _ => super::STAY,
    };
    let secure = if secure { "; Secure" } else { "" };
    format!("{name}={value}; Path=/ui; Max-Age={age}; HttpOnly; SameSite=Lax{secure}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_found_by_its_whole_name() {
        let mut headers = HeaderMap::new();
        for line in ["a=1; muster-7=x=y", "muster=2"] {
            headers.append(header::COOKIE, line.parse().unwrap());
        }
        for (name, value) in [
            ("muster-7", Some("x=y")),
            ("muster", Some("2")),
            ("ter", None),
        ] {
            assert_eq!(find(&headers, name), value);
        }
    }
}
