//! The HTTP clients of the guard.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use rustls::{ClientConfig, RootCertStore};

use super::guard::Rules;

/// The timeout of a connection attempt.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long an idle connection is kept.
const IDLE_TIMEOUT: Duration = Duration::from_mins(1);

/// The clients of the guard. They differ in the addresses that a name may resolve to, because a resolver does not know
/// the port. Each client is created by its first request, because reading the root certificates would delay commands that
/// send none.
#[derive(Debug, Default)]
pub(super) struct Clients {
    /// For names that `private_hosts` allows on the port of the URL.
    trusting: OnceLock<Result<reqwest::Client, String>>,
    /// For all others.
    public: OnceLock<Result<reqwest::Client, String>>,
}

impl Clients {
    /// Returns a client; the error is the reason why it could not be created.
    pub(super) fn get(&self, rules: &Arc<Rules>, trusted: bool) -> Result<&reqwest::Client, String> {
        let cell = if trusted { &self.trusting } else { &self.public };
        let create = || {
            let tls = tls(Arc::clone(roots()))?;
            build(tls, GuardedResolver { rules: Arc::clone(rules), trusted })
        };
        cell.get_or_init(create).as_ref().map_err(Clone::clone)
    }
}

/// Creates a client without proxies and redirects, whose resolver applies the rules.
fn build(tls: ClientConfig, resolver: GuardedResolver) -> Result<reqwest::Client, String> {
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
        .map_err(|error| format!("the HTTP client cannot be created: {error}"))
}

/// Returns TLS with ring and these root certificates.
pub(crate) fn tls(roots: Arc<RootCertStore>) -> Result<ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS cannot be used: {error}"))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// Returns the root certificates of the system or, if there are none, the bundled ones. They are read once.
pub(crate) fn roots() -> &'static Arc<RootCertStore> {
    static ROOTS: OnceLock<Arc<RootCertStore>> = OnceLock::new();
    ROOTS.get_or_init(|| {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        }
        Arc::new(roots)
    })
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
