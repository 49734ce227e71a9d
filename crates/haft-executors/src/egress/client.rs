//! The HTTP clients of the guard.

use std::sync::Arc;
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use rustls::{ClientConfig, RootCertStore};

use super::guard::{Rules, RulesError};

/// The timeout of a connection attempt.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long an idle connection is kept.
const IDLE_TIMEOUT: Duration = Duration::from_mins(1);

/// The clients of the guard. They differ in the addresses that a name may resolve to, because a resolver does not know
/// the port.
#[derive(Debug, Clone)]
pub(super) struct Clients {
    /// For names that `private_hosts` allows on the port of the URL.
    pub(super) trusting: reqwest::Client,
    /// For all others.
    pub(super) public: reqwest::Client,
}

impl Clients {
    pub(super) fn new(rules: &Arc<Rules>) -> Result<Self, RulesError> {
        let tls = tls().map_err(|error| RulesError::Client(error.to_string()))?;
        let client = |trusted| build(tls.clone(), GuardedResolver { rules: Arc::clone(rules), trusted });
        Ok(Self { trusting: client(true)?, public: client(false)? })
    }
}

/// Creates a client without proxies and redirects, whose resolver applies the rules.
fn build(tls: ClientConfig, resolver: GuardedResolver) -> Result<reqwest::Client, RulesError> {
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .tcp_nodelay(true)
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(IDLE_TIMEOUT)
        .user_agent(concat!("haft/", env!("CARGO_PKG_VERSION")))
        .dns_resolver(Arc::new(resolver))
        .build()
        .map_err(|error| RulesError::Client(error.to_string()))
}

/// TLS with ring and the certificates of the system or, if there are none, the bundled root certificates.
fn tls() -> Result<ClientConfig, rustls::Error> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// Resolves names and returns only allowed addresses, to which the client then connects.
struct GuardedResolver {
    rules: Arc<Rules>,
    trusted: bool,
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (rules, trusted) = (Arc::clone(&self.rules), self.trusted);
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let kept: Addrs = Box::new(rules.filter(name.as_str(), trusted, found)?.into_iter());
            Ok(kept)
        })
    }
}
