//! Requests to Vault: one connection pool, one retry, no redirects, and responses within a limit.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use haft_core::problem::excerpt;
use haft_core::secret::{ExternalSecretError, Secret};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::Value;
use tokio::io::AsyncReadExt as _;
use tokio::sync::OnceCell;
use url::Url;

use super::settings::{SourceSettingsError, VaultSettings};
use crate::egress::{roots, tls};

/// The maximum size of a response in bytes.
const MAX_RESPONSE_BYTES: usize = 1024 * 1024;
/// The maximum size of a file with a credential or certificates in bytes.
const MAX_FILE_BYTES: u64 = 1024 * 1024;
/// How long a connection attempt may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The pause before the second attempt.
const RETRY_PAUSE: Duration = Duration::from_millis(200);

/// A client of one Vault.
pub(super) struct VaultClient {
    base: Url,
    namespace: Option<HeaderValue>,
    ca_file: Option<PathBuf>,
    timeout: Duration,
    /// Created by the first request, because that reads the root certificates.
    http: OnceCell<reqwest::Client>,
}

/// A response that says something about the request: success, or a status such as 403.
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) body: Value,
}

struct Request<'a> {
    method: Method,
    url: Url,
    token: Option<&'a Secret>,
    body: Option<Bytes>,
}

impl VaultClient {
    pub(super) fn new(settings: &VaultSettings) -> Result<Self, SourceSettingsError> {
        let base = Url::parse(&settings.address).map_err(|_| SourceSettingsError::Address)?;
        let is_plain = base.username().is_empty()
            && base.password().is_none()
            && base.query().is_none()
            && base.fragment().is_none();
        if !matches!(base.scheme(), "http" | "https") || base.host().is_none() || !is_plain {
            return Err(SourceSettingsError::Address);
        }
        let namespace = Some(&settings.namespace).filter(|namespace| !namespace.is_empty());
        let namespace = namespace.map(|namespace| HeaderValue::from_str(namespace)).transpose();
        let namespace = namespace.map_err(|_| SourceSettingsError::Path {
            setting: "namespace",
            reason: "it has characters that a header cannot carry",
        })?;
        Ok(Self {
            base,
            namespace,
            ca_file: settings.ca_file.clone(),
            timeout: settings.timeout,
            http: OnceCell::new(),
        })
    }

    /// Returns whether requests are encrypted or stay on this machine.
    pub(super) fn is_private(&self) -> bool {
        let is_loopback = match self.base.host() {
            Some(url::Host::Domain(name)) => name == "localhost",
            Some(url::Host::Ipv4(address)) => address.is_loopback(),
            Some(url::Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        };
        self.base.scheme() == "https" || is_loopback
    }

    /// Reads a path, which is given in parts.
    pub(super) async fn get(&self, path: &[&str], token: &Secret) -> Result<Reply, ExternalSecretError> {
        let request = Request { method: Method::GET, url: self.url(path), token: Some(token), body: None };
        self.exchange(&request).await
    }

    /// Writes to a path without a token, which is how one logs in.
    pub(super) async fn post(&self, path: &[&str], body: &Value) -> Result<Reply, ExternalSecretError> {
        let body = Some(Bytes::from(body.to_string()));
        let request = Request { method: Method::POST, url: self.url(path), token: None, body };
        self.exchange(&request).await
    }

    fn url(&self, path: &[&str]) -> Url {
        let mut url = self.base.clone();
        // Every HTTP URL has segments.
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().push("v1");
            segments.extend(path.iter().flat_map(|part| part.split('/')));
        }
        url
    }

    /// Sends a request, and once more if there was no response.
    async fn exchange(&self, request: &Request<'_>) -> Result<Reply, ExternalSecretError> {
        match self.attempt(request).await {
            Err(error) if is_transient(&error) => {
                tokio::time::sleep(RETRY_PAUSE).await;
                self.attempt(request).await
            }
            done => done,
        }
    }

    async fn attempt(&self, request: &Request<'_>) -> Result<Reply, ExternalSecretError> {
        let client = self.http.get_or_try_init(|| self.build()).await?;
        let mut builder = client.request(request.method.clone(), request.url.clone());
        builder = builder.header("X-Vault-Request", "true");
        if let Some(namespace) = &self.namespace {
            builder = builder.header("X-Vault-Namespace", namespace.clone());
        }
        if let Some(token) = request.token {
            builder = builder.header("X-Vault-Token", token_header(token)?);
        }
        if let Some(body) = &request.body {
            builder = builder.header(CONTENT_TYPE, "application/json").body(body.clone());
        }
        let exchange = async {
            let response = builder.send().await.map_err(|error| disconnected(&error.without_url()))?;
            read(response).await
        };
        let timed_out = |_| Err(ExternalSecretError::TimedOut(self.timeout));
        tokio::time::timeout(self.timeout, exchange).await.unwrap_or_else(timed_out)
    }

    async fn build(&self) -> Result<reqwest::Client, ExternalSecretError> {
        let roots = match &self.ca_file {
            Some(file) => Arc::new(with_certificates(file).await?),
            None => Arc::clone(roots()),
        };
        let tls = tls(roots).map_err(ExternalSecretError::Unreachable)?;
        reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .connect_timeout(CONNECT_TIMEOUT)
            .user_agent(concat!("haft/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| ExternalSecretError::Unreachable(error.to_string()))
    }
}

/// Returns whether the same request may have a response now. A sealed Vault stays sealed.
fn is_transient(error: &ExternalSecretError) -> bool {
    match error {
        ExternalSecretError::Sealed
        | ExternalSecretError::Redirected
        | ExternalSecretError::CredentialFile => false,
        other => other.is_unavailable(),
    }
}

fn token_header(token: &Secret) -> Result<HeaderValue, ExternalSecretError> {
    let mut value = HeaderValue::from_str(token.expose()).map_err(|_| {
        ExternalSecretError::InvalidResponse("the token has characters that a header cannot carry")
    })?;
    value.set_sensitive(true);
    Ok(value)
}

async fn read(mut response: reqwest::Response) -> Result<Reply, ExternalSecretError> {
    let status = response.status().as_u16();
    if response.status().is_redirection() {
        return Err(ExternalSecretError::Redirected);
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| disconnected(&error.without_url()))? {
        if bytes.len() + chunk.len() > MAX_RESPONSE_BYTES {
            return Err(ExternalSecretError::TooLarge(MAX_RESPONSE_BYTES));
        }
        bytes.extend_from_slice(&chunk);
    }
    // The text of an error is not shown: nobody knows what it repeats.
    let body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    match status {
        200..=299 | 400 | 403 | 404 => Ok(Reply { status, body }),
        503 if is_sealed(&body) => Err(ExternalSecretError::Sealed),
        _ => Err(ExternalSecretError::Status(status)),
    }
}

fn is_sealed(body: &Value) -> bool {
    let errors = body.get("errors").and_then(Value::as_array);
    errors.into_iter().flatten().filter_map(Value::as_str).any(|error| error.contains("sealed"))
}

fn disconnected(error: &reqwest::Error) -> ExternalSecretError {
    let mut innermost: &(dyn Error + 'static) = error;
    while let Some(inner) = innermost.source() {
        innermost = inner;
    }
    ExternalSecretError::Unreachable(excerpt(&innermost.to_string(), 200))
}

/// Returns the usual root certificates, and those of a file.
async fn with_certificates(file: &Path) -> Result<RootCertStore, ExternalSecretError> {
    let bytes = read_file(file).await?;
    let mut all = RootCertStore::clone(roots());
    let usual = all.len();
    for certificate in CertificateDer::pem_slice_iter(&bytes) {
        let certificate = certificate.map_err(|error| file_error(file, error.to_string()))?;
        all.add(certificate).map_err(|error| file_error(file, error.to_string()))?;
    }
    if all.len() == usual { Err(file_error(file, "it has no certificate in PEM format")) } else { Ok(all) }
}

/// Reads a file with a credential, without the white space around it.
pub(super) async fn read_credential(file: &Path) -> Result<Secret, ExternalSecretError> {
    let text = String::from_utf8(read_file(file).await?).map_err(|_| file_error(file, "it is not text"))?;
    match text.trim() {
        "" => Err(file_error(file, "it is empty")),
        text => Ok(Secret::new(text.to_owned())),
    }
}

async fn read_file(file: &Path) -> Result<Vec<u8>, ExternalSecretError> {
    let failed = |error: std::io::Error| file_error(file, error.to_string());
    let opened = tokio::fs::File::open(file).await.map_err(failed)?;
    let mut bytes = Vec::new();
    opened.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).await.map_err(failed)?;
    if bytes.len() as u64 > MAX_FILE_BYTES { Err(file_error(file, "it exceeds 1 MiB")) } else { Ok(bytes) }
}

/// Only the log names the file: ordinary callers must not learn the paths of the server.
fn file_error(file: &Path, reason: impl Into<String>) -> ExternalSecretError {
    let (file, reason) = (file.display(), reason.into());
    tracing::warn!(%file, %reason, "a credential file of Vault cannot be used");
    ExternalSecretError::CredentialFile
}
