//! One request and its response: sent through the egress guard, within time and size limits.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use haft_core::problem::excerpt;
use haft_core::secret::Secret;
use haft_core::{Clock, duration};
use haft_executors::egress::{Egress, OutgoingRequest, SendError};
use haft_runtime::retry::parse_retry_after;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, Method};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};
use url::Url;

use super::answer::Answer;
use super::egress::denied_address;
use super::error::{Failure, ModelError, ModelErrorKind};
use super::event::ModelEvent;
use super::price::Prices;
use super::provider::Provider;
use super::provider_error;
use super::sse::SseParser;
use super::stream::EventSource;
use super::wire::Decoder;

/// The maximum size of a response.
pub const MAX_RESPONSE_BYTES: usize = 64 * 1024 * 1024;

/// How much of an error response is read.
const ERROR_BYTES: usize = 16 * 1024;

/// How long the body of an error response may take.
const ERROR_TIME: Duration = Duration::from_secs(5);

/// Redirects are returned and not followed: the key belongs to one address.
const REDIRECTS: [u16; 5] = [301, 302, 303, 307, 308];

/// How long to wait for an answer. Connecting has its own limit of 10 seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Until the first byte of the answer.
    pub first_byte: Duration,
    /// Between two pieces of the answer.
    pub idle: Duration,
    /// For the whole answer.
    pub total: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            first_byte: Duration::from_mins(2),
            idle: Duration::from_mins(1),
            total: Duration::from_mins(10),
        }
    }
}

impl Timeouts {
    /// Returns the name of a timeout that is zero or longer than a day.
    pub(super) fn invalid(&self) -> Option<&'static str> {
        let all = [("first_byte", self.first_byte), ("idle", self.idle), ("total", self.total)];
        let valid = |limit: Duration| !limit.is_zero() && limit <= duration::MAX_LENGTH;
        all.into_iter().find(|(_, limit)| !valid(*limit)).map(|(name, _)| name)
    }
}

/// Where a model is and how it is reached.
pub(super) struct Endpoint {
    /// The name for messages and events.
    pub(super) model: String,
    pub(super) egress: Egress,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) timeouts: Timeouts,
    pub(super) prices: Option<Prices>,
    /// What errors must not contain.
    pub(super) secrets: Vec<Secret>,
    /// The provider, which selects the hint of an error.
    pub(super) provider: Provider,
}

impl Endpoint {
    pub(super) fn error(&self, failure: Failure) -> ModelError {
        let advice = self.advice(&failure.kind);
        let mut error = failure.of_model(&self.model, &self.secrets);
        if let Some(advice) = advice {
            let separator = if error.detail.is_empty() { "" } else { "; " };
            error.detail = format!("{}{separator}{advice}", error.detail);
        }
        error
    }

    /// Returns the hint for an error, if the provider has one.
    fn advice(&self, kind: &ModelErrorKind) -> Option<String> {
        match kind {
            ModelErrorKind::Connect => {
                let address = self.url.origin().ascii_serialization();
                let start = self.provider.start_command();
                let start = start.map(|command| format!("; start it with `{command}`")).unwrap_or_default();
                Some(format!("no server responds at {address}{start}"))
            }
            ModelErrorKind::NotFound | ModelErrorKind::InvalidResponse
                if self.is_foreign_responses_server() =>
            {
                Some("a server of chat completions needs `provider: openai_compatible`".to_owned())
            }
            _ => None,
        }
    }

    /// Returns whether the provider is OpenAI but the URL is that of another server, which may lack the Responses API.
    fn is_foreign_responses_server(&self) -> bool {
        let own = Provider::OpenAi.default_url().and_then(|url| Url::parse(url).ok());
        self.provider == Provider::OpenAi && own.is_some_and(|own| own.origin() != self.url.origin())
    }
}

/// A request that is sent when the first event is taken.
pub(super) struct Exchange {
    endpoint: Arc<Endpoint>,
    decoder: Box<dyn Decoder>,
    answer: Answer,
    stage: Stage,
    /// Reported after the events before it.
    failure: Option<Failure>,
    has_started: bool,
    began: Option<Instant>,
    received: usize,
}

enum Stage {
    Unsent(Bytes),
    Streaming { response: reqwest::Response, parser: SseParser },
    Ended,
}

impl Exchange {
    pub(super) fn new(endpoint: Arc<Endpoint>, decoder: Box<dyn Decoder>, body: Bytes) -> Self {
        Self {
            endpoint,
            decoder,
            answer: Answer::default(),
            stage: Stage::Unsent(body),
            failure: None,
            has_started: false,
            began: None,
            received: 0,
        }
    }

    /// Goes on until there are events, an error, or the end.
    async fn advance(&mut self) -> Result<(), Failure> {
        match std::mem::replace(&mut self.stage, Stage::Ended) {
            Stage::Unsent(body) => self.send(body).await,
            Stage::Streaming { response, parser } => self.read_events(response, parser).await,
            Stage::Ended => Ok(()),
        }
    }

    async fn send(&mut self, body: Bytes) -> Result<(), Failure> {
        let endpoint = Arc::clone(&self.endpoint);
        let request = OutgoingRequest {
            method: Method::POST,
            url: endpoint.url.clone(),
            headers: endpoint.headers.clone(),
            body: Some(body),
            accepted_statuses: REDIRECTS.to_vec(),
        };
        self.began = Some(Instant::now());
        let sending = Box::pin(endpoint.egress.send(request));
        let response = self.within(endpoint.timeouts.first_byte, sending).await?.map_err(send_failure)?;
        if !response.status().is_success() {
            return Err(self.refused(response).await);
        }
        let content_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let content_type = content_type.unwrap_or_default().to_ascii_lowercase();
        if content_type.starts_with("text/html") {
            return Err(Failure::invalid("an HTML page"));
        }
        if content_type.starts_with("application/json") {
            return self.read_whole(response).await;
        }
        self.stage = Stage::Streaming { response, parser: SseParser::default() };
        Ok(())
    }

    /// Awaits something within a time limit and the limit of the whole answer.
    async fn within<T>(&self, limit: Duration, work: impl Future<Output = T>) -> Result<T, Failure> {
        let now = Instant::now();
        let total = self.endpoint.timeouts.total;
        let end = self.began.unwrap_or(now) + total;
        let kind = if now + limit < end {
            ModelErrorKind::Stalled { limit }
        } else {
            ModelErrorKind::Timeout { limit: total }
        };
        timeout_at(end.min(now + limit), work).await.map_err(|_| Failure::new(kind, ""))
    }

    /// Reads why the provider refused the request.
    async fn refused(&self, mut response: reqwest::Response) -> Failure {
        let status = response.status().as_u16();
        let wait = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let wait = wait.and_then(|text| parse_retry_after(text, self.endpoint.clock.now()));
        let mut body = Vec::new();
        let reading = async {
            while let Ok(Some(chunk)) = response.chunk().await {
                body.extend(chunk.iter().take(ERROR_BYTES - body.len()));
                if body.len() >= ERROR_BYTES {
                    break;
                }
            }
        };
        // What arrived until then is enough for a message.
        let _ = tokio::time::timeout(ERROR_TIME, reading).await;
        provider_error::from_status(status, &String::from_utf8_lossy(&body), wait)
    }

    async fn chunk(&mut self, response: &mut reqwest::Response) -> Result<Option<Bytes>, Failure> {
        let timeouts = self.endpoint.timeouts;
        let limit = if self.received == 0 { timeouts.first_byte } else { timeouts.idle };
        let chunk = self.within(limit, response.chunk()).await?;
        let chunk = chunk
            .map_err(|error| Failure::new(ModelErrorKind::BrokenStream, innermost(&error.without_url())))?;
        self.received += chunk.as_ref().map_or(0, Bytes::len);
        if self.received > MAX_RESPONSE_BYTES {
            let kind = ModelErrorKind::TooLarge { part: "response", limit: MAX_RESPONSE_BYTES };
            return Err(Failure::new(kind, ""));
        }
        Ok(chunk)
    }

    /// Reads a response that is one JSON document.
    async fn read_whole(&mut self, mut response: reqwest::Response) -> Result<(), Failure> {
        let mut body = Vec::new();
        while let Some(chunk) = self.chunk(&mut response).await? {
            body.extend_from_slice(&chunk);
        }
        let body: Value = serde_json::from_slice(&body)
            .map_err(|error| Failure::invalid(format!("not valid JSON: {error}")))?;
        self.decoder.whole(&body, &mut self.answer)
    }

    /// Reads events until at least one was decoded.
    async fn read_events(
        &mut self,
        mut response: reqwest::Response,
        mut parser: SseParser,
    ) -> Result<(), Failure> {
        let chunk = match self.chunk(&mut response).await {
            // Some servers leave the connection open, or cut it, after a complete answer.
            Err(failure) if self.answer.has_reason() && is_silence(&failure.kind) => None,
            chunk => chunk?,
        };
        let mut events = Vec::new();
        match &chunk {
            Some(bytes) => parser.push(bytes, &mut events)?,
            None => parser.finish(&mut events),
        }
        for event in &events {
            self.decoder.event(event, &mut self.answer)?;
            if self.answer.is_finished() {
                // Nothing after the end of an answer counts.
                return Ok(());
            }
        }
        if chunk.is_some() {
            self.stage = Stage::Streaming { response, parser };
            return Ok(());
        }
        if self.received == 0 {
            return Err(Failure::new(ModelErrorKind::BrokenStream, "the response is empty"));
        }
        self.decoder.end(&mut self.answer)
    }

    fn pop(&mut self) -> Option<ModelEvent> {
        let event = self.answer.pop()?;
        Some(match (event, &self.endpoint.prices) {
            (ModelEvent::Usage { usage, .. }, Some(prices)) => {
                ModelEvent::Usage { usage, cost: Some(prices.cost(usage)) }
            }
            (event, _) => event,
        })
    }
}

impl EventSource for Exchange {
    async fn next(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        loop {
            if !self.has_started && self.answer.has_events() {
                self.has_started = true;
                return Some(Ok(ModelEvent::Start { model: self.endpoint.model.clone() }));
            }
            if let Some(event) = self.pop() {
                return Some(Ok(event));
            }
            if let Some(failure) = self.failure.take() {
                return Some(Err(self.endpoint.error(failure)));
            }
            if matches!(self.stage, Stage::Ended) {
                return None;
            }
            if let Err(failure) = self.advance().await {
                self.stage = Stage::Ended;
                self.failure = Some(failure);
            }
        }
    }
}

/// Returns whether nothing more arrives.
fn is_silence(kind: &ModelErrorKind) -> bool {
    matches!(kind, ModelErrorKind::Stalled { .. } | ModelErrorKind::BrokenStream)
}

fn send_failure(error: SendError) -> Failure {
    match error {
        SendError::Denied(denied) => Failure::new(ModelErrorKind::RefusedAddress, denied_address(&denied)),
        SendError::Connect(reason) => Failure::new(ModelErrorKind::Connect, reason),
        SendError::Disconnected(reason) => Failure::new(ModelErrorKind::BrokenStream, reason),
        SendError::Redirect(reason) => Failure::new(ModelErrorKind::Redirected, reason),
    }
}

fn innermost(error: &dyn std::error::Error) -> String {
    let mut at = error;
    while let Some(inner) = at.source() {
        at = inner;
    }
    excerpt(&at.to_string(), 200)
}
