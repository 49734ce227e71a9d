//! Embeddings by an OpenAI-compatible endpoint.

use std::time::Duration;

use bytes::Bytes;
use haft_agent::model::{ConfiguredBy, denied_address};
use haft_core::BoxFuture;
use haft_core::backoff::Backoff;
use haft_core::name::TenantId;
use haft_core::problem::excerpt;
use haft_core::retrieval::EmbeddingModel;
use haft_core::secret::{CredentialSelector, ExternalSecretError, Secret, scrub_text};
use haft_executors::egress::{Egress, OutgoingRequest, SendError};
use haft_retrieval::{EmbedError, Embedder};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use serde::Deserialize;
use serde_json::{Value, json};
use url::Url;

use super::host::RetrievalHost;
use crate::models::key_in;

/// How many texts one request has.
const BATCH: usize = 64;
/// How often a request is sent, at most.
const ATTEMPTS: u32 = 4;
/// How long one request may take.
const TIMEOUT: Duration = Duration::from_mins(1);
/// The pause before the second attempt; it doubles each time.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(500), MAX_PAUSE);
/// The longest pause that a server may ask for.
const MAX_PAUSE: Duration = Duration::from_secs(30);
/// The largest response.
const MAX_RESPONSE: usize = 64 << 20;
/// How much of an error is shown.
const MAX_ERROR: usize = 300;
/// Redirects are returned and not followed: the key belongs to one address.
const REDIRECTS: [u16; 5] = [301, 302, 303, 307, 308];

/// Why there are no embeddings.
#[derive(Debug, thiserror::Error)]
pub(super) enum EmbeddingError {
    /// The address is not a URL.
    #[error("embedding model: invalid `base_url`: {0}")]
    Url(url::ParseError),
    /// The credential does not exist.
    #[error("embedding model: credential `{0}` not found; store it with `haft secret set {0}`")]
    Credential(String),
    /// The credential is not one key.
    #[error("embedding model: credential `{name}`: {error}")]
    Key {
        /// Its name.
        name: String,
        /// Why.
        error: ExternalSecretError,
    },
    /// The credential cannot be read.
    #[error("embedding model: the credential cannot be read")]
    Unreadable,
    /// The server cannot be reached, or the guard denied its address.
    #[error("embedding model: {0}")]
    Unreachable(String),
    /// The server answered with an error.
    #[error("embedding model: the server responded with status {status}: {message}")]
    Status {
        /// The status.
        status: u16,
        /// What it says.
        message: String,
    },
    /// The response is not what the API promises.
    #[error("embedding model: invalid response: {0}")]
    Invalid(String),
}

/// A connection to an embedding model.
pub(super) struct Endpoint {
    egress: Egress,
    url: Url,
    key: Option<Secret>,
    model: EmbeddingModel,
}

impl Endpoint {
    /// Resolves the address and the key of a model.
    pub(super) async fn connect(
        host: &RetrievalHost,
        tenant: &TenantId,
        model: &EmbeddingModel,
    ) -> Result<Self, EmbeddingError> {
        let text = format!("{}/embeddings", model.base_url.trim_end_matches('/'));
        let url = Url::parse(&text).map_err(EmbeddingError::Url)?;
        let key = match &model.credential {
            None => None,
            Some(name) => {
                let found = host.parts.secrets.credential(tenant, CredentialSelector::Name(name)).await;
                let found = found.map_err(|error| {
                    let source = &error.source;
                    tracing::warn!(%error, %source, "the credential of an embedding model cannot be read");
                    EmbeddingError::Unreadable
                })?;
                let stored = found.ok_or_else(|| EmbeddingError::Credential(excerpt(name, 60)))?;
                let key = key_in(&stored);
                Some(key.map_err(|error| EmbeddingError::Key { name: excerpt(name, 60), error })?)
            }
        };
        // The platform's settings decide which private addresses are open.
        let egress = host.parts.models.guard(&url, ConfiguredBy::Platform).clone();
        Ok(Self { egress, url, key, model: model.clone() })
    }

    async fn request(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbeddingError> {
        let mut body = json!({"model": self.model.model, "input": texts, "encoding_format": "float"});
        if let (Some(dimensions), Value::Object(body)) = (self.model.dimensions, &mut body) {
            body.insert("dimensions".to_owned(), dimensions.into());
        }
        let body = Bytes::from(body.to_string());
        for attempt in 0.. {
            let (error, wait) = match self.send(body.clone()).await {
                Ok(response) => return self.vectors(&response, texts.len()),
                Err(failed) => failed,
            };
            let Some(wait) = wait.filter(|_| attempt + 1 < ATTEMPTS) else { return Err(error) };
            tokio::time::sleep(BACKOFF.wait_at_least(Some(wait), attempt, 0.0).min(MAX_PAUSE)).await;
        }
        Err(EmbeddingError::Invalid("no attempt was made".to_owned()))
    }

    /// Sends the request once. An error comes with the pause before another attempt, if one makes sense.
    async fn send(&self, body: Bytes) -> Result<Bytes, (EmbeddingError, Option<Duration>)> {
        let exchange = async {
            let request = OutgoingRequest {
                method: Method::POST,
                url: self.url.clone(),
                headers: self.headers(),
                body: Some(body),
                accepted_statuses: REDIRECTS.to_vec(),
            };
            let mut response = self.egress.send(request).await.map_err(unreachable)?;
            let status = response.status();
            let wait = retry_pause(status, response.headers());
            let mut bytes = Vec::new();
            let lost =
                |_| (EmbeddingError::Unreachable("the connection was lost".to_owned()), Some(Duration::ZERO));
            while let Some(chunk) = response.chunk().await.map_err(lost)? {
                if bytes.len() + chunk.len() > MAX_RESPONSE {
                    let message = format!("larger than {MAX_RESPONSE} bytes");
                    return Err((EmbeddingError::Invalid(message), None));
                }
                bytes.extend_from_slice(&chunk);
            }
            if status.is_success() {
                return Ok(Bytes::from(bytes));
            }
            Err((EmbeddingError::Status { status: status.as_u16(), message: self.message(&bytes) }, wait))
        };
        match tokio::time::timeout(TIMEOUT, exchange).await {
            Ok(result) => result,
            Err(_) => {
                Err((EmbeddingError::Unreachable("no response within 60 s".to_owned()), Some(Duration::ZERO)))
            }
        }
    }

    fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let key = self.key.as_ref().map(|key| format!("Bearer {}", key.expose().trim()));
        if let Some(Ok(mut value)) = key.as_deref().map(HeaderValue::from_str) {
            value.set_sensitive(true);
            headers.insert(header::AUTHORIZATION, value);
        }
        headers
    }

    /// Returns what an error response says, without the key.
    fn message(&self, body: &[u8]) -> String {
        let text = String::from_utf8_lossy(body.get(..4096).unwrap_or(body)).into_owned();
        let parsed: Option<Value> = serde_json::from_slice(body).ok();
        let message = parsed.as_ref().and_then(|value| {
            let error = value.get("error")?;
            error.get("message").unwrap_or(error).as_str().map(str::to_owned)
        });
        let mut shown = excerpt(message.unwrap_or(text).trim(), MAX_ERROR);
        if let Some(key) = &self.key {
            scrub_text(&mut shown, std::slice::from_ref(key));
        }
        if shown.is_empty() { "no message".to_owned() } else { shown }
    }

    fn vectors(&self, body: &[u8], count: usize) -> Result<Vec<Vec<f32>>, EmbeddingError> {
        let invalid = |message: String| EmbeddingError::Invalid(excerpt(&message, MAX_ERROR));
        let parsed: EmbeddingResponse = serde_json::from_slice(body)
            .map_err(|error| invalid(format!("not what the API promises: {error}")))?;
        let mut items = parsed.data;
        if items.len() != count {
            return Err(invalid(format!("{} vectors for {count} texts", items.len())));
        }
        items.sort_by_key(|item| item.index);
        let expected = self.model.dimensions.and_then(|dimensions| usize::try_from(dimensions).ok());
        for item in &items {
            let length = item.embedding.len();
            if length == 0 || expected.is_some_and(|expected| expected != length) {
                let wanted =
                    expected.map_or_else(|| "at least 1".to_owned(), |expected| expected.to_string());
                return Err(invalid(format!("a vector of {length} dimensions; expected {wanted}")));
            }
        }
        Ok(items.into_iter().map(|item| item.embedding).collect())
    }
}

#[derive(Deserialize)]
struct EmbeddingResponse {
    data: Vec<EmbeddingItem>,
}

#[derive(Deserialize)]
struct EmbeddingItem {
    #[serde(default)]
    index: usize,
    embedding: Vec<f32>,
}

fn unreachable(error: SendError) -> (EmbeddingError, Option<Duration>) {
    let (message, wait) = match error {
        SendError::Denied(denied) => (denied_address(&denied), None),
        SendError::Connect(reason) => (format!("cannot connect: {reason}"), Some(Duration::ZERO)),
        SendError::Disconnected(reason) => (reason, Some(Duration::ZERO)),
        SendError::Redirect(reason) => (reason, None),
    };
    (EmbeddingError::Unreachable(message), wait)
}

/// Returns how long to wait before another attempt, if the status allows one.
fn retry_pause(status: StatusCode, headers: &HeaderMap) -> Option<Duration> {
    let may_retry = status == StatusCode::TOO_MANY_REQUESTS
        || status == StatusCode::REQUEST_TIMEOUT
        || (status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED);
    let seconds = headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
    may_retry.then(|| seconds.map_or(Duration::ZERO, Duration::from_secs))
}

impl Embedder for Endpoint {
    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Vec<Vec<f32>>, EmbedError>> {
        Box::pin(
            async move { self.request(texts).await.map_err(|error| EmbedError::Request(Box::new(error))) },
        )
    }

    fn max_batch(&self) -> usize {
        BATCH
    }
}

/// Returns the words of an embedding error: the cause is the part that helps.
pub(super) fn describe(error: &EmbedError) -> String {
    match error {
        EmbedError::Request(source) => source.to_string(),
        other => format!("embedding model: {other}"),
    }
}
