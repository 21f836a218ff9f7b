//! Addresses of the web, taken apart. As in Kubernetes, one is absolute: it has a scheme, or it is a
//! path that begins with a slash.

use super::quantity::short;
use super::{Function, global, member, mismatch};
use crate::cel::evaluate::Answer;
use crate::cel::meter::{Meter, failed};
use crate::cel::value::{Key, Map, PLACE, Value};
use std::collections::BTreeMap;
use std::rc::Rc;

/// The longest address, in bytes.
const LENGTH: usize = 8192;

/// The parts of an address.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::cel) struct Url {
    scheme: String,
    host: String,
    path: String,
    query: String,
}

impl Url {
    fn parse(text: &str) -> Option<Url> {
        let plain = text.bytes().all(|byte| byte > b' ' && byte != 0x7f);
        if text.is_empty() || text.len() > LENGTH || !plain {
            return None;
        }
        let (text, _) = text.split_once('#').unwrap_or((text, ""));
        let (text, query) = text.split_once('?').unwrap_or((text, ""));
        let (scheme, rest) = match text.strip_prefix('/') {
            Some(_) => ("", text),
            None => text.split_once(':')?,
        };
        let mut letters = scheme.chars();
        let begins = letters.next().is_none_or(|c| c.is_ascii_alphabetic());
        let goes_on = letters.all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
        if !begins || !goes_on || !escapes(rest) {
            return None;
        }
        let (host, path) = match rest.strip_prefix("//").filter(|_| !scheme.is_empty()) {
            Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
            None => ("", rest),
        };
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
        let url = Url {
            scheme: scheme.to_ascii_lowercase(),
            host: host.to_owned(),
            path: path.to_owned(),
            query: query.to_owned(),
        };
        let port = url.port();
        port.bytes()
            .all(|digit| digit.is_ascii_digit())
            .then_some(url)
    }

    /// The host without its port, and the port.
    fn split(&self) -> (&str, &str) {
        match self
            .host
            .strip_prefix('[')
            .and_then(|rest| rest.split_once(']'))
        {
            Some((name, rest)) => (name, rest.strip_prefix(':').unwrap_or(rest)),
            None => self.host.rsplit_once(':').unwrap_or((&self.host, "")),
        }
    }

    fn port(&self) -> &str {
        self.split().1
    }
}

/// Whether every percent sign begins an escape.
fn escapes(text: &str) -> bool {
    text.split('%').skip(1).all(|after| {
        let mut digits = after.bytes().take(2);
        digits.len() == 2 && digits.all(|digit| digit.is_ascii_hexdigit())
    })
}

pub(super) static FUNCTIONS: [Function; 8] = [
    global("url", 1, |meter, values| match values {
        [Value::Text(text)] => {
            meter.take(text.as_str().len().min(LENGTH) + PLACE)?;
            match Url::parse(text.as_str()) {
                Some(url) => Ok(Value::Url(Rc::new(url))),
                None => failed(format!("{:?} is no URL", short(text))),
            }
        }
        _ => mismatch("url", values),
    }),
    global("isURL", 1, |meter, values| match values {
        [Value::Text(text)] => {
            meter.take(text.as_str().len().min(LENGTH) + PLACE)?;
            Ok(Value::Bool(Url::parse(text.as_str()).is_some()))
        }
        _ => mismatch("isURL", values),
    }),
    member("getScheme", 0, 0, |meter, values| {
        part(meter, "getScheme", values, |url| url.scheme.as_str())
    }),
    member("getHost", 0, 0, |meter, values| {
        part(meter, "getHost", values, |url| url.host.as_str())
    }),
    member("getHostname", 0, 0, |meter, values| {
        part(meter, "getHostname", values, |url| url.split().0)
    }),
    member("getPort", 0, 0, |meter, values| {
        part(meter, "getPort", values, Url::port)
    }),
    member("getEscapedPath", 0, 0, |meter, values| {
        part(meter, "getEscapedPath", values, |url| url.path.as_str())
    }),
    member("getQuery", 0, 0, query),
];

fn part<'a>(meter: &Meter, name: &str, values: &[Value<'a>], of: fn(&Url) -> &str) -> Answer<'a> {
    match values {
        [Value::Url(url)] => Value::text(meter, of(url)),
        _ => mismatch(name, values),
    }
}

/// The query: for each key, all its values.
fn query<'a>(meter: &Meter, values: &[Value<'a>]) -> Answer<'a> {
    let [Value::Url(url)] = values else {
        return mismatch("getQuery", values);
    };
    let mut all: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for pair in url.query.split('&').filter(|pair| !pair.is_empty()) {
        meter.take(2 * PLACE + pair.len())?;
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = Value::text(meter, &decoded(value))?;
        all.entry(decoded(key)).or_default().push(value);
    }
    let mut map = BTreeMap::new();
    for (key, values) in all {
        map.insert(Key::Text(key.into()), Value::list(meter, values)?);
    }
    Ok(Value::Map(Map::Owned(Rc::new(map))))
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let mut ahead = rest.clone();
        let mut digit = || {
            ahead
                .next()
                .and_then(|digit| char::from(digit).to_digit(16))
        };
        match (byte, byte == b'%') {
            (b'+', _) => bytes.push(b' '),
            (_, true) => match (digit(), digit()) {
                (Some(high), Some(low)) => {
                    bytes.push((high * 16 + low) as u8);
                    rest = ahead;
                }
                _ => bytes.push(byte),
            },
            _ => bytes.push(byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
