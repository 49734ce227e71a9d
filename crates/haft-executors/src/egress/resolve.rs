//! Resolves hosts for protocols other than HTTP, with the same rules.

use std::net::{IpAddr, SocketAddr};

use haft_core::problem::excerpt;
use url::Host;

use super::guard::Egress;
use super::send::SendError;

impl Egress {
    /// Resolves a host and returns the allowed addresses. The caller must connect to these and not to the name, which
    /// could resolve to another address a moment later.
    pub async fn resolve(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, SendError> {
        let host = match host.parse::<IpAddr>() {
            Ok(IpAddr::V6(address)) => Host::Ipv6(address),
            // Other notations of an address, such as `127.1`, are parsed as in URLs.
            _ => Host::parse(host)
                .map_err(|_| SendError::Connect(format!("invalid host name `{}`", excerpt(host, 100))))?,
        };
        let borrowed = match &host {
            Host::Domain(name) => Host::Domain(name.as_str()),
            Host::Ipv4(address) => Host::Ipv4(*address),
            Host::Ipv6(address) => Host::Ipv6(*address),
        };
        self.rules.check_host(&borrowed, port).map_err(SendError::Denied)?;
        match borrowed {
            Host::Ipv4(address) => Ok(vec![SocketAddr::new(IpAddr::V4(address), port)]),
            Host::Ipv6(address) => Ok(vec![SocketAddr::new(IpAddr::V6(address), port)]),
            Host::Domain(name) => {
                let found = tokio::net::lookup_host((name, port)).await;
                let found = found
                    .map_err(|error| SendError::Connect(format!("failed to resolve `{name}`: {error}")))?;
                let trusted = self.rules.trusts_name(name, port);
                self.rules.filter(name, trusted, found).map_err(SendError::Denied)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::egress::EgressRules;

    #[tokio::test]
    async fn destinations_follow_the_same_rules_as_urls() {
        let resolve = async |allowed: &[&str], private: &[&str], host: &str| {
            let own = |entries: &[&str]| entries.iter().map(|entry| (*entry).to_owned()).collect();
            let rules = EgressRules { allowed_hosts: own(allowed), private_hosts: own(private) };
            match Egress::new(&rules).unwrap().resolve(host, 25).await {
                Ok(found) => found.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
                Err(SendError::Denied(error)) => error.to_string(),
                Err(other) => format!("{other:?}"),
            }
        };
        for (allowed, private, host, expected) in [
            (&[][..], &[][..], "8.8.8.8", "8.8.8.8:25"),
            (&[], &["127.0.0.1:25"], "127.0.0.1", "127.0.0.1:25"),
            (&[], &["::1"], "::1", "[::1]:25"),
            (
                &[],
                &[],
                "127.1",
                "`127.0.0.1` is a loopback address: add it to `egress.private_hosts` to allow it",
            ),
            (
                &[],
                &["127.0.0.1:26"],
                "127.0.0.1",
                "`127.0.0.1` is a loopback address: add it to `egress.private_hosts` to allow it",
            ),
            (
                &["x.test"],
                &[],
                "8.8.8.8",
                "`8.8.8.8` (port 25) is not on the allow-list: add it to `egress.allowed_hosts` to allow it",
            ),
            (&[], &[], "a b", "Connect(\"invalid host name `a b`\")"),
            (&[], &[], "", "Connect(\"invalid host name ``\")"),
        ] {
            assert_eq!(resolve(allowed, private, host).await, expected, "{host}");
        }
        assert!(resolve(&[], &[], "localhost").await.contains("a loopback address"));
        assert!(resolve(&[], &["localhost:25"], "localhost").await.ends_with(":25"));
    }
}
