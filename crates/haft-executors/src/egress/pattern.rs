//! Host patterns: `api.example.com`, `*.example.com`, an address, or a network; all but networks with an optional port.

use std::net::IpAddr;

use ipnet::IpNet;
use url::Host;

/// One compiled entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pattern {
    pub(super) target: Target,
    pub(super) port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    /// `*`.
    Any,
    /// A name, in lower case and ASCII.
    Name(String),
    /// `*.NAME`: every subdomain, at any depth; stored with the leading dot.
    Below(String),
    Network(IpNet),
}

impl Pattern {
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        let text = text.trim();
        if text.is_empty() {
            return Err("empty");
        }
        if text.contains("://") {
            return Err("remove the scheme");
        }
        if let Ok(network) = text.parse::<IpNet>() {
            return Ok(Self { target: Target::Network(network.trunc()), port: None });
        }
        if text.contains('/') {
            return Err("neither a host nor a network such as `10.0.0.0/8`");
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self { target: Target::Network(address.into()), port: None });
        }
        let (host, port) = split_port(text)?;
        Ok(Self { target: target(host)?, port })
    }

    pub(super) fn matches_port(&self, port: u16) -> bool {
        self.port.is_none_or(|own| own == port)
    }

    pub(super) fn matches_host(&self, host: &Host<&str>) -> bool {
        match (&self.target, host) {
            (Target::Any, _) => true,
            (Target::Network(network), Host::Ipv4(address)) => network.contains(&IpAddr::from(*address)),
            (Target::Network(network), Host::Ipv6(address)) => contains(network, IpAddr::from(*address)),
            (Target::Name(_) | Target::Below(_), Host::Domain(name)) => self.matches_name(name),
            (Target::Network(_), Host::Domain(_)) | (Target::Name(_) | Target::Below(_), _) => false,
        }
    }

    pub(super) fn matches_name(&self, name: &str) -> bool {
        let name = name.strip_suffix('.').unwrap_or(name);
        match &self.target {
            Target::Any => true,
            Target::Name(own) => own.eq_ignore_ascii_case(name),
            Target::Below(suffix) => {
                let split = name.len().checked_sub(suffix.len()).filter(|rest| *rest > 0);
                split.and_then(|at| name.get(at..)).is_some_and(|tail| tail.eq_ignore_ascii_case(suffix))
            }
            Target::Network(_) => false,
        }
    }
}

/// Returns whether a network contains an address or the IPv4 address that is mapped in it.
pub(super) fn contains(network: &IpNet, address: IpAddr) -> bool {
    network.contains(&address) || network.contains(&address.to_canonical())
}

fn split_port(text: &str) -> Result<(&str, Option<u16>), &'static str> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (inside, after) = rest.split_once(']').ok_or("unclosed `[`")?;
            (
                inside,
                if after.is_empty() {
                    None
                } else {
                    Some(after.strip_prefix(':').ok_or("expected `:` after `]`")?)
                },
            )
        }
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let port = port.map(|port| port.parse::<u16>().map_err(|_| "the port must be a number from 0 to 65535"));
    Ok((host, port.transpose()?))
}

fn target(host: &str) -> Result<Target, &'static str> {
    if host == "*" {
        return Ok(Target::Any);
    }
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(Target::Network(address.into()));
    }
    let (wild, name) = match host.strip_prefix("*.") {
        Some(name) => (true, name),
        None => (false, host),
    };
    if name.contains('*') {
        return Err("`*` is allowed only as the first label, as in `*.example.com`");
    }
    match Host::parse(name.strip_suffix('.').unwrap_or(name)) {
        Ok(Host::Domain(name)) if wild => Ok(Target::Below(format!(".{name}"))),
        Ok(Host::Domain(name)) => Ok(Target::Name(name)),
        Ok(Host::Ipv4(address)) if !wild => Ok(Target::Network(IpAddr::from(address).into())),
        _ => Err("not a host name, an address or a network"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_match_hosts() {
        for (entry, host, expected) in [
            ("api.example.com", "api.example.com", true),
            ("API.example.com.", "api.EXAMPLE.com", true),
            ("api.example.com", "api.example.com.", true),
            ("api.example.com", "x.api.example.com", false),
            ("api.example.com", "api.example.com.evil.test", false),
            ("*.example.com", "a.example.com", true),
            ("*.example.com", "a.b.example.com", true),
            ("*.example.com", "example.com", false),
            ("*.example.com", "evilexample.com", false),
            ("*.example.com", ".example.com", false),
            ("bücher.test", "xn--bcher-kva.test", true),
            ("*", "anything.test", true),
            ("10.0.0.0/8", "10.1.2.3", true),
            ("10.0.0.0/8", "11.1.2.3", false),
            ("127.0.0.1", "127.0.0.1", true),
            ("127.0.0.1", "::ffff:127.0.0.1", true),
            ("[::1]:80", "::1", true),
            ("::1", "::1", true),
            ("fd00::/8", "fd12::1", true),
            ("10.0.0.0/8", "ten.test", false),
        ] {
            let pattern = Pattern::parse(entry).unwrap();
            let host = match host.parse::<IpAddr>() {
                Ok(IpAddr::V4(address)) => Host::Ipv4(address),
                Ok(IpAddr::V6(address)) => Host::Ipv6(address),
                Err(_) => Host::Domain(host),
            };
            assert_eq!(pattern.matches_host(&host), expected, "{entry} {host:?}");
        }
    }

    #[test]
    fn ports() {
        let port = |entry| Pattern::parse(entry).map(|pattern| pattern.port);
        assert_eq!(port("localhost:8080"), Ok(Some(8080)));
        assert_eq!(port("[::1]:8080"), Ok(Some(8080)));
        assert_eq!(port("[::1]"), Ok(None));
        assert!(Pattern::parse("h:1").unwrap().matches_port(1));
        assert!(!Pattern::parse("h:1").unwrap().matches_port(2));
        assert!(Pattern::parse("h").unwrap().matches_port(2));
    }

    #[test]
    fn bad_entries() {
        for entry in [
            "",
            "  ",
            "https://x.test",
            "x.test/path",
            "10.0.0.0/33",
            "a.*.test",
            "*a.test",
            "x.test:http",
            "x.test:99999",
            "[::1",
            "[::1]x",
            "a b",
            "*.127.0.0.1",
            "x.test:",
            "a:b:c",
        ] {
            assert!(Pattern::parse(entry).is_err(), "{entry}");
        }
    }
}
