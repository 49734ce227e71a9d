//! The rules of the guard.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use haft_core::outcome::{CallError, ErrorCode};
use url::{Host, Url};

use super::address::special_range;
use super::client::Clients;
use super::pattern::{Pattern, Target, contains};

/// The destinations that tools may connect to.
#[derive(Debug, Clone, Default)]
pub struct EgressRules {
    /// Host patterns; empty means every public host.
    pub allowed_hosts: Vec<String>,
    /// Hosts, addresses or networks that may be private or loopback. An entry with a port holds for that port only: on
    /// other ports a name still reaches its public addresses. An address with a port is compared with the URL only; one
    /// without a port, or a network, also with the resolved addresses of a name.
    pub private_hosts: Vec<String>,
}

/// Why the guard could not be created.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    /// An entry of the configuration is not a host pattern.
    #[error("`egress.{setting}`: `{entry}` is not a host pattern: {reason}")]
    Pattern {
        /// `allowed_hosts` or `private_hosts`.
        setting: &'static str,
        /// The entry.
        entry: String,
        /// Why it is invalid.
        reason: &'static str,
    },
}

/// Why a destination was denied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EgressError {
    /// The host as the URL names it.
    host: String,
    reason: Reason,
    /// Whether a redirect led there.
    redirected: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Reason {
    Scheme(String),
    NoHost,
    Credentials,
    NotAllowed(u16),
    Special { address: IpAddr, range: &'static str },
    Body,
}

impl EgressError {
    fn new(host: &str, reason: Reason) -> Self {
        Self { host: host.to_owned(), reason, redirected: false }
    }

    /// Sets whether a redirect led to the destination.
    #[must_use]
    pub(super) fn by_redirect(self, redirected: bool) -> Self {
        Self { redirected, ..self }
    }

    /// Returns whether a redirect led to the destination: the error then names the redirecting request.
    pub(crate) fn is_by_redirect(&self) -> bool {
        self.redirected
    }

    pub(super) fn body(url: &Url) -> Self {
        Self::new(url.host_str().unwrap_or_default(), Reason::Body)
    }

    /// Returns why the address is not public, if that is why it was denied. Unlike the message it names no setting, for
    /// requests whose private addresses have a setting of their own.
    pub fn special_address(&self) -> Option<String> {
        match &self.reason {
            Reason::Special { address, range } => Some(special_address(&self.host, *address, range)),
            _ => None,
        }
    }

    /// Converts to a call error, without internal addresses for the model.
    pub fn to_error(&self) -> CallError {
        CallError::new(ErrorCode::EgressRefused, self.to_string())
            .for_model("the destination of the request is not allowed")
    }
}

impl fmt::Display for EgressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = &self.host;
        match &self.reason {
            Reason::Scheme(scheme) => {
                write!(f, "the scheme `{scheme}` is not supported: use `http` or `https`")
            }
            Reason::NoHost => f.write_str("the URL has no host"),
            Reason::Credentials => {
                write!(f, "the URL of `{host}` contains a user name or password: use `auth` instead")
            }
            Reason::NotAllowed(port) => write!(
                f,
                "`{host}` (port {port}) is not on the allow-list: add it to `egress.allowed_hosts` to allow it"
            ),
            Reason::Special { address, range } => {
                let reason = special_address(host, *address, range);
                if *host == address.to_string() {
                    write!(f, "{reason}: add it to `egress.private_hosts` to allow it")
                } else {
                    write!(f, "{reason}: add `{host}` or the address to `egress.private_hosts` to allow it")
                }
            }
            Reason::Body => write!(
                f,
                "a redirect to `{host}` would send the body to another origin: use that URL in the definition"
            ),
        }
    }
}

impl std::error::Error for EgressError {}

fn special_address(host: &str, address: IpAddr, range: &str) -> String {
    let article = article(range);
    if host == address.to_string() {
        format!("`{host}` is {article} {range} address")
    } else {
        format!("`{host}` resolves to {address}, {article} {range} address")
    }
}

/// The compiled rules.
#[derive(Debug)]
pub(super) struct Rules {
    allowed: Vec<Pattern>,
    private: Vec<Pattern>,
}

/// The guard with its HTTP clients.
#[derive(Debug, Clone)]
pub struct Egress {
    pub(super) rules: Arc<Rules>,
    clients: Arc<Clients>,
}

impl Egress {
    /// Compiles the rules.
    pub fn new(rules: &EgressRules) -> Result<Self, RulesError> {
        let rules = Arc::new(Rules {
            allowed: compile("allowed_hosts", &rules.allowed_hosts)?,
            private: compile("private_hosts", &rules.private_hosts)?,
        });
        Ok(Self { rules, clients: Arc::default() })
    }

    /// Checks a URL as far as possible before its name is resolved.
    pub fn check(&self, url: &Url) -> Result<(), EgressError> {
        self.rules.check(url)
    }

    /// Returns whether a tool may connect to an address directly. Only addresses and networks in the rules count, not
    /// names.
    pub fn allows(&self, address: SocketAddr) -> bool {
        self.rules.allows(address)
    }

    /// Returns the client for a URL. It checks resolved addresses; the URL must pass [`Egress::check`] first.
    pub(super) fn client(&self, url: &Url) -> Result<&reqwest::Client, String> {
        self.clients.get(&self.rules, self.rules.trusts(url))
    }
}

/// Checks an entry of `allowed_hosts` or `private_hosts`.
pub fn check_host(entry: &str) -> Result<(), &'static str> {
    Pattern::parse(entry).map(|_| ())
}

fn compile(setting: &'static str, entries: &[String]) -> Result<Vec<Pattern>, RulesError> {
    entries
        .iter()
        .map(|entry| {
            Pattern::parse(entry).map_err(|reason| RulesError::Pattern {
                setting,
                entry: entry.clone(),
                reason,
            })
        })
        .collect()
}

impl Rules {
    fn check(&self, url: &Url) -> Result<(), EgressError> {
        let name = url.host_str().unwrap_or_default();
        if !matches!(url.scheme(), "http" | "https") {
            return Err(EgressError::new(name, Reason::Scheme(url.scheme().to_owned())));
        }
        let (Some(host), Some(port)) = (url.host(), url.port_or_known_default()) else {
            return Err(EgressError::new(name, Reason::NoHost));
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(EgressError::new(name, Reason::Credentials));
        }
        self.check_host(&host, port)
    }

    /// Checks a destination as far as possible before its name is resolved.
    pub(super) fn check_host(&self, host: &Host<&str>, port: u16) -> Result<(), EgressError> {
        let listed = |pattern: &Pattern| pattern.matches_host(host) && pattern.matches_port(port);
        if !self.allowed.is_empty() && !self.allowed.iter().any(listed) {
            return Err(EgressError::new(&host.to_string(), Reason::NotAllowed(port)));
        }
        match host {
            // Its addresses are checked when the connection is made.
            Host::Domain(_) => Ok(()),
            Host::Ipv4(address) => self.check_literal(host, IpAddr::V4(*address), port),
            Host::Ipv6(address) => self.check_literal(host, IpAddr::V6(*address), port),
        }
    }

    fn allows(&self, address: SocketAddr) -> bool {
        let (ip, port) = (address.ip(), address.port());
        let host: Host<&str> = match ip {
            IpAddr::V4(ip) => Host::Ipv4(ip),
            IpAddr::V6(ip) => Host::Ipv6(ip),
        };
        let listed = |pattern: &Pattern| pattern.matches_host(&host) && pattern.matches_port(port);
        (self.allowed.is_empty() || self.allowed.iter().any(listed))
            && self.check_literal(&host, ip, port).is_ok()
    }

    /// Returns whether the name of a URL may be private on its port.
    fn trusts(&self, url: &Url) -> bool {
        match (url.host(), url.port_or_known_default()) {
            (Some(Host::Domain(name)), Some(port)) => self.trusts_name(name, port),
            _ => false,
        }
    }

    /// Returns whether a name may be private on a port.
    pub(super) fn trusts_name(&self, name: &str, port: u16) -> bool {
        self.private.iter().any(|pattern| pattern.matches_name(name) && pattern.matches_port(port))
    }

    fn check_literal(&self, host: &Host<&str>, address: IpAddr, port: u16) -> Result<(), EgressError> {
        let Some(range) = special_range(address) else { return Ok(()) };
        let named = |pattern: &Pattern| pattern.matches_host(host) && pattern.matches_port(port);
        if self.private.iter().any(named) {
            return Ok(());
        }
        Err(EgressError::new(&address.to_string(), Reason::Special { address, range }))
    }

    /// Returns the allowed addresses of a name. The resolver does not know the port, so the caller passes whether the name
    /// is trusted on it.
    pub(super) fn filter(
        &self,
        name: &str,
        trusted: bool,
        addresses: impl Iterator<Item = SocketAddr>,
    ) -> Result<Vec<SocketAddr>, EgressError> {
        let trusted = trusted && self.private.iter().any(|pattern| pattern.matches_name(name));
        let (mut kept, mut denied) = (Vec::new(), None);
        for address in addresses {
            match special_range(address.ip()) {
                Some(range) if !trusted && !self.names_address(address.ip()) => {
                    denied.get_or_insert(Reason::Special { address: address.ip(), range });
                }
                _ => kept.push(address),
            }
        }
        match denied {
            Some(reason) if kept.is_empty() => Err(EgressError::new(name, reason)),
            _ => Ok(kept),
        }
    }

    fn names_address(&self, address: IpAddr) -> bool {
        self.private.iter().any(|pattern| match &pattern.target {
            Target::Network(network) => pattern.port.is_none() && contains(network, address),
            Target::Any | Target::Name(_) | Target::Below(_) => false,
        })
    }
}

fn article(word: &str) -> &'static str {
    if word.starts_with(['a', 'e', 'i', 'o', 'u', 'I']) { "an" } else { "a" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(allowed: &[&str], private: &[&str]) -> EgressRules {
        let own = |entries: &[&str]| entries.iter().map(|entry| (*entry).to_owned()).collect();
        EgressRules { allowed_hosts: own(allowed), private_hosts: own(private) }
    }

    fn check(allowed: &[&str], private: &[&str], url: &str) -> String {
        let egress = Egress::new(&rules(allowed, private)).unwrap();
        match egress.check(&Url::parse(url).unwrap()) {
            Ok(()) => "ok".to_owned(),
            Err(refused) => refused.to_string(),
        }
    }

    #[test]
    fn loopback_in_every_notation() {
        for url in [
            "http://127.0.0.1/",
            "http://127.1/",
            "http://2130706433/",
            "http://0x7f000001/",
            "http://0x7f.0.0.1/",
            "http://0177.0.0.1/",
            "http://017700000001/",
            "http://127.0.0.1./",
            "http://%31%32%37.0.0.1/",
            "http://①②⑦.0.0.1/",
            "http://127。0。0。1/",
            "https://[::1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://[::ffff:7f00:1]/",
            "http://[::127.0.0.1]/",
            "http://[64:ff9b::7f00:1]/",
            "http://[2002:7f00:1::]/",
            "http://0.0.0.0/",
            "http://0/",
            "http://[::]/",
            "http://169.254.169.254/latest/meta-data",
            "http://0xa9fea9fe/",
            "http://10.0.0.1:8080/",
            "http://[fd00::1]/",
            "http://[fe80::1]/",
        ] {
            assert!(
                check(&[], &[], url).contains("`egress.private_hosts`"),
                "{url}: {}",
                check(&[], &[], url)
            );
        }
    }

    #[test]
    fn addresses_without_a_url() {
        for (allowed, private, address, expected) in [
            (&[][..], &[][..], "8.8.8.8:53", true),
            (&[], &[], "127.0.0.1:80", false),
            (&[], &[], "169.254.169.254:80", false),
            (&[], &[], "[::ffff:8.8.8.8]:80", false),
            (&[], &["127.0.0.1:80"], "127.0.0.1:80", true),
            (&[], &["127.0.0.1:80"], "127.0.0.1:81", false),
            (&[], &["10.0.0.0/8"], "10.1.2.3:5432", true),
            (&[], &["localhost"], "127.0.0.1:80", false),
            (&["example.com"], &[], "8.8.8.8:443", false),
            (&["8.8.0.0/16"], &[], "8.8.8.8:443", true),
            (&["8.8.0.0/16"], &["127.0.0.1"], "127.0.0.1:80", false),
        ] {
            let egress = Egress::new(&rules(allowed, private)).unwrap();
            assert_eq!(
                egress.allows(address.parse().unwrap()),
                expected,
                "{allowed:?} {private:?} {address}"
            );
        }
    }

    #[test]
    fn urls() {
        for (allowed, private, url, expected) in [
            (&[][..], &[][..], "https://api.example.com/", "ok"),
            (&[], &[], "https://8.8.8.8/", "ok"),
            (&["api.example.com"], &[], "https://api.example.com:8443/", "ok"),
            (&["api.example.com:443"], &[], "https://api.example.com/", "ok"),
            (
                &["api.example.com:443"],
                &[],
                "http://api.example.com/",
                "`api.example.com` (port 80) is not on the allow-list: add it to `egress.allowed_hosts` to allow it",
            ),
            (&["*.example.com", "8.8.0.0/16"], &[], "https://8.8.4.4/", "ok"),
            (
                &["*.example.com"],
                &[],
                "https://example.org/",
                "`example.org` (port 443) is not on the allow-list: add it to `egress.allowed_hosts` to allow it",
            ),
            (&[], &["127.0.0.1"], "http://127.0.0.1:9/", "ok"),
            (&[], &["127.0.0.1:9"], "http://0x7f.1:9/", "ok"),
            (
                &[],
                &["127.0.0.1:9"],
                "http://127.0.0.1:10/",
                "`127.0.0.1` is a loopback address: add it to `egress.private_hosts` to allow it",
            ),
            (&[], &["localhost:9"], "http://localhost:9/", "ok"),
            (&[], &["api.example.com:9"], "https://api.example.com/", "ok"),
            (
                &["x.test"],
                &["127.0.0.1"],
                "http://127.0.0.1/",
                "`127.0.0.1` (port 80) is not on the allow-list: add it to `egress.allowed_hosts` to allow it",
            ),
            (&[], &[], "ftp://x.test/", "the scheme `ftp` is not supported: use `http` or `https`"),
            (&[], &[], "file:///etc/passwd", "the scheme `file` is not supported: use `http` or `https`"),
            (
                &[],
                &[],
                "http://u:p@x.test/",
                "the URL of `x.test` contains a user name or password: use `auth` instead",
            ),
        ] {
            assert_eq!(check(allowed, private, url), expected, "{allowed:?} {private:?} {url}");
        }
    }

    #[test]
    fn resolved_addresses() {
        let check = |private: &[&str], host: &str, addresses: &[&str]| {
            let rules = Rules {
                allowed: Vec::new(),
                private: compile("private_hosts", &self::rules(&[], private).private_hosts).unwrap(),
            };
            let addresses = addresses.iter().map(|address| SocketAddr::new(address.parse().unwrap(), 0));
            let url = Url::parse(&format!("http://{host}/")).unwrap();
            match rules.filter(url.host_str().unwrap(), rules.trusts(&url), addresses) {
                Ok(kept) => kept.iter().map(|address| address.ip().to_string()).collect::<Vec<_>>().join(" "),
                Err(refused) => refused.to_string(),
            }
        };
        assert_eq!(check(&[], "a.test", &["8.8.8.8", "2606:4700::1"]), "8.8.8.8 2606:4700::1");
        assert_eq!(check(&[], "a.test", &["10.0.0.1", "8.8.8.8"]), "8.8.8.8");
        assert_eq!(
            check(&[], "a.test", &["10.0.0.1"]),
            "`a.test` resolves to 10.0.0.1, a private address: add `a.test` or the address to `egress.private_hosts` to allow it"
        );
        assert_eq!(check(&["a.test"], "a.test", &["10.0.0.1"]), "10.0.0.1");
        assert_eq!(check(&["10.0.0.0/8"], "a.test", &["10.0.0.1", "127.0.0.1"]), "10.0.0.1");
        assert_eq!(check(&["10.0.0.0/8"], "a.test", &["::ffff:10.0.0.1"]), "::ffff:10.0.0.1");
        assert!(check(&["10.0.0.1:80"], "a.test", &["10.0.0.1"]).starts_with("`a.test` resolves"));
        assert_eq!(check(&[], "a.test", &[]), "");
        // An entry with a port allows private addresses on that port only.
        assert_eq!(check(&["a.test:81"], "a.test:81", &["10.0.0.1", "8.8.8.8"]), "10.0.0.1 8.8.8.8");
        assert_eq!(check(&["a.test:81"], "a.test", &["10.0.0.1", "8.8.8.8"]), "8.8.8.8");
        assert!(check(&["a.test:81"], "a.test", &["10.0.0.1"]).starts_with("`a.test` resolves"));
    }

    #[test]
    fn invalid_entries_are_reported() {
        let error = Egress::new(&rules(&["ok.test"], &["http://x"])).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`egress.private_hosts`: `http://x` is not a host pattern: remove the scheme"
        );
    }

    #[test]
    fn the_model_gets_no_address() {
        let egress = Egress::new(&EgressRules::default()).unwrap();
        let error = egress.check(&Url::parse("http://10.1.2.3/").unwrap()).unwrap_err().to_error();
        assert_eq!(error.code, ErrorCode::EgressRefused);
        assert!(error.message.contains("10.1.2.3"));
        assert_eq!(error.model_text(), "Tool call failed: the destination of the request is not allowed");
    }
}
