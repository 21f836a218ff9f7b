//! Network addresses: the host of a registry, the address of a hub.

use std::net::{Ipv4Addr, Ipv6Addr};

/// What is wrong with `[http[s]://]host[:port][/]`.
pub(super) fn registry_uri(uri: &str) -> Option<&'static str> {
    let rest = match uri.split_once("://") {
        Some(("http" | "https", rest)) => rest,
        Some(_) => return Some("the scheme must be http or https, or left out"),
        None => uri,
    };
    let authority = rest.strip_suffix('/').unwrap_or(rest);
    if authority.contains('/') {
        return Some("must end with the host and port; repositories go to spec.repositories");
    }
    authority_fault(authority)
}

/// What is wrong with `http[s]://host[:port][/path]`.
pub(super) fn http_url(url: &str) -> Option<&'static str> {
    let Some(("http" | "https", rest)) = url.split_once("://") else {
        return Some("must be an http or https address");
    };
    if url.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Some("must not contain blanks");
    }
    authority_fault(rest.split(['/', '?', '#']).next().unwrap_or_default())
}

fn authority_fault(authority: &str) -> Option<&'static str> {
    if authority.contains('@') {
        return Some("must not contain credentials");
    }
    let (host, port) = match authority
        .strip_prefix('[')
        .and_then(|rest| rest.split_once(']'))
    {
        Some((host, rest)) => {
            if host.parse::<Ipv6Addr>().is_err() {
                return Some("must have a valid IPv6 address between brackets");
            }
            match (rest.is_empty(), rest.strip_prefix(':')) {
                (true, _) => (host, None),
                (false, Some(port)) => (host, Some(port)),
                (false, None) => return Some("must have nothing but a port after the brackets"),
            }
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    if !host.contains(':') && !is_host(host) {
        return Some("must have a host name or an IP address");
    }
    let is_port = |port: &str| {
        port.bytes().all(|b| b.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|port| port > 0)
    };
    match port {
        Some(port) if !is_port(port) => Some("must have a port from 1 to 65535"),
        _ => None,
    }
}

/// Host names are compared without regard to case, and some registries live under names with `_`.
fn is_host(host: &str) -> bool {
    let label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
    };
    let numeric = host
        .rsplit('.')
        .next()
        .is_some_and(|last| !last.is_empty() && last.bytes().all(|b| b.is_ascii_digit()));
    if numeric && host.contains('.') {
        return host.parse::<Ipv4Addr>().is_ok();
    }
    host.len() <= 253 && host.split('.').all(label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registry_is_a_host_with_an_optional_port_and_scheme() {
        for uri in [
            "ghcr.io",
            "https://registry-1.docker.io",
            "http://localhost:5000/",
            "registry.sbomscanner.svc.cluster.local:5000",
            "10.0.0.1:5000",
            "[::1]:5000",
            "my_registry",
        ] {
            assert_eq!(registry_uri(uri), None, "{uri}");
        }
        for uri in [
            "",
            "https://",
            "oci://ghcr.io",
            "ghcr.io/kubewarden",
            "user:secret@ghcr.io",
            "ghcr.io:0",
            "ghcr.io:65536",
            "ghcr.io:+5",
            "ghcr.io:",
            "300.1.1.1",
            "-ghcr.io",
            "gh cr.io",
            "[::1",
            "[::g]",
            "[::1]5000",
            "a..b",
        ] {
            assert!(registry_uri(uri).is_some(), "{uri}");
        }
    }

    #[test]
    fn a_hub_is_reached_over_http() {
        for url in [
            "https://github.com/aquasecurity/vexhub",
            "http://10.0.0.1:8080/?a=b",
        ] {
            assert_eq!(http_url(url), None, "{url}");
        }
        for url in [
            "",
            "github.com/a",
            "file:///etc/passwd",
            "https://",
            "https://a b/c",
            "http://u@h",
        ] {
            assert!(http_url(url).is_some(), "{url}");
        }
    }
}
