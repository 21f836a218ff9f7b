//! Addresses and networks. As in Kubernetes, an IPv4 address within IPv6 is none, and neither is one
//! with a zone or with leading zeros.

use super::quantity::short;
use super::{Function, Run, either, global, member, mismatch};
use crate::cel::evaluate::Answer;
use crate::cel::meter::failed;
use crate::cel::value::Value;
use std::fmt;
use std::net::IpAddr;

/// The longest text that is a network.
const LENGTH: usize = 64;

/// A network: an address, and how many of its bits count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cel) struct Network {
    address: IpAddr,
    bits: u8,
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

impl Network {
    fn parse(text: &str) -> Option<Network> {
        let (address, bits) = text.split_once('/')?;
        let address = parse(address)?;
        let plain = bits.bytes().all(|digit| digit.is_ascii_digit());
        let plain = plain && (bits == "0" || !bits.starts_with('0'));
        let bits: u8 = bits.parse().ok().filter(|_| plain)?;
        (bits <= width(address)).then_some(Network { address, bits })
    }

    fn masked(self) -> Network {
        let Network { address, bits } = self;
        let address = match address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(bits));
                IpAddr::V4((u32::from(address) & mask.unwrap_or(0)).into())
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(bits));
                IpAddr::V6((u128::from(address) & mask.unwrap_or(0)).into())
            }
        };
        Network { address, bits }
    }

    fn contains(self, other: Network) -> bool {
        let within = Network {
            bits: self.bits,
            ..other
        };
        width(self.address) == width(other.address)
            && self.bits <= other.bits
            && self.masked() == within.masked()
    }
}

fn width(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

fn parse(text: &str) -> Option<IpAddr> {
    let address = (text.len() <= LENGTH).then(|| text.parse().ok())??;
    match address {
        IpAddr::V6(address) if address.to_ipv4_mapped().is_some() => None,
        address => Some(address),
    }
}

pub(super) static FUNCTIONS: [Function; 15] = [
    either("ip", 1, |_, values| match values {
        [Value::Text(text)] => match parse(text.as_str()) {
            Some(address) => Ok(Value::Address(address)),
            None => failed(format!("{:?} is no IP address", short(text))),
        },
        [Value::Network(network)] => Ok(Value::Address(network.address)),
        _ => mismatch("ip", values),
    }),
    global("isIP", 1, |_, values| match values {
        [Value::Text(text)] => Ok(Value::Bool(parse(text.as_str()).is_some())),
        _ => mismatch("isIP", values),
    }),
    global("ip.isCanonical", 1, |_, values| match values {
        [Value::Text(text)] => match parse(text.as_str()) {
            Some(address) => Ok(Value::Bool(address.to_string() == text.as_str())),
            None => failed(format!("{:?} is no IP address", short(text))),
        },
        _ => mismatch("ip.isCanonical", values),
    }),
    member("family", 0, 0, |_, values| match values {
        [Value::Address(address)] => Ok(Value::Int(match address {
            IpAddr::V4(_) => 4,
            IpAddr::V6(_) => 6,
        })),
        _ => mismatch("family", values),
    }),
    member("isUnspecified", 0, 0, |_, values| {
        is("isUnspecified", values, IpAddr::is_unspecified)
    }),
    member("isLoopback", 0, 0, |_, values| {
        is("isLoopback", values, IpAddr::is_loopback)
    }),
    member("isLinkLocalMulticast", 0, 0, |_, values| {
        is("isLinkLocalMulticast", values, |address| match address {
            IpAddr::V4(address) => address.octets().starts_with(&[224, 0, 0]),
            IpAddr::V6(address) => address.octets()[0] == 0xff && address.octets()[1] & 0xf == 2,
        })
    }),
    member("isLinkLocalUnicast", 0, 0, |_, values| {
        is("isLinkLocalUnicast", values, is_local)
    }),
    member("isGlobalUnicast", 0, 0, |_, values| {
        is("isGlobalUnicast", values, |address| {
            let broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
            let special = address.is_unspecified() || address.is_loopback();
            !(broadcast || special || address.is_multicast() || is_local(address))
        })
    }),
    global("cidr", 1, |_, values| match values {
        [Value::Text(text)] => match Network::parse(text.as_str()) {
            Some(network) => Ok(Value::Network(network)),
            None => failed(format!("{:?} is no network", short(text))),
        },
        _ => mismatch("cidr", values),
    }),
    global("isCIDR", 1, |_, values| match values {
        [Value::Text(text)] => Ok(Value::Bool(Network::parse(text.as_str()).is_some())),
        _ => mismatch("isCIDR", values),
    }),
    member("containsIP", 1, 1, CONTAINS),
    member("containsCIDR", 1, 1, CONTAINS),
    member("masked", 0, 0, |_, values| match values {
        [Value::Network(network)] => Ok(Value::Network(network.masked())),
        _ => mismatch("masked", values),
    }),
    member("prefixLength", 0, 0, |_, values| match values {
        [Value::Network(network)] => Ok(Value::Int(network.bits.into())),
        _ => mismatch("prefixLength", values),
    }),
];

const CONTAINS: Run = |_, values| {
    let [Value::Network(network), part] = values else {
        return mismatch("contains", values);
    };
    let whole = |address: IpAddr| Network {
        address,
        bits: width(address),
    };
    let part = match part {
        Value::Network(part) => Some(*part),
        Value::Address(address) => Some(whole(*address)),
        Value::Text(text) => Network::parse(text.as_str()).or(parse(text.as_str()).map(whole)),
        _ => return mismatch("contains", values),
    };
    match part {
        Some(part) => Ok(Value::Bool(network.contains(part))),
        None => failed("a text is neither an address nor a network"),
    }
};

fn is<'a>(name: &str, values: &[Value<'a>], holds: fn(&IpAddr) -> bool) -> Answer<'a> {
    match values {
        [Value::Address(address)] => Ok(Value::Bool(holds(address))),
        _ => mismatch(name, values),
    }
}

fn is_local(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.segments()[0] & 0xffc0 == 0xfe80,
    }
}
