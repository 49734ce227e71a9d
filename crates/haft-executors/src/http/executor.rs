//! Runs one attempt of an `http` tool.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use haft_core::executor::{CallContext, CallEvent, Executor, Prepared};
use haft_core::implementation::{ErrorMode, Implementation, Kind};
use haft_core::outcome::{CallError, ErrorCode, Outcome};
use haft_core::problem::Problem;
use haft_core::secret::Secret;
use haft_core::spec::ToolSpec;
use haft_core::{BoxFuture, Clock};
use haft_runtime::retry;
use haft_template::Values;
use http::{HeaderName, HeaderValue, Method, StatusCode};
use serde_json::{Map, Value};

use super::auth::{self, AuthPlan};
use super::failure::{self, RetrySafety};
use super::multipart::{self, FileSource};
use super::plan::{Plan, Step};
use super::prepare;
use super::request;
use super::response::{self, ResponseBody, ResponseReader};
use super::tokens::TokenCache;
use crate::egress::{Egress, OutgoingRequest, RedirectTrail};

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Responses above this size are parsed on a blocking thread.
const OFFLOAD_BYTES: usize = 256 * 1024;

/// Runs `http` tools.
#[derive(Clone)]
pub struct HttpExecutor {
    shared: Arc<Shared>,
}

struct Shared {
    egress: Egress,
    clock: Arc<dyn Clock>,
    tokens: TokenCache,
}

impl HttpExecutor {
    /// Creates the executor; all requests go through the egress guard.
    pub fn new(egress: Egress, clock: Arc<dyn Clock>) -> Self {
        Self { shared: Arc::new(Shared { egress, clock, tokens: TokenCache::default() }) }
    }
}

impl Executor for HttpExecutor {
    fn kind(&self) -> Kind {
        Kind::Http
    }

    fn prepare(
        &self,
        spec: &Arc<ToolSpec>,
        _folder: Option<&str>,
    ) -> Result<Arc<dyn Prepared>, Vec<Problem>> {
        let Implementation::Http(http) = &spec.implementation else {
            let message = format!("expected `http`, got `{}`", spec.implementation.kind().as_str());
            return Err(vec![Problem::new("implementation.type", "wrong_type", message)]);
        };
        let plan = prepare::plan(spec, http)?;
        Ok(Arc::new(PreparedHttp { shared: Arc::clone(&self.shared), plan }))
    }
}

struct PreparedHttp {
    shared: Arc<Shared>,
    plan: Plan,
}

impl Prepared for PreparedHttp {
    fn run<'a>(&'a self, call: &'a CallContext, args: &'a Map<String, Value>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            match self.attempt(call, args).await {
                Ok(value) => Ok(value),
                Err(error) => self.apply_error_mode(call, error),
            }
        })
    }

    fn secrets(&self) -> Vec<&str> {
        self.plan.secrets.iter().map(String::as_str).collect()
    }

    fn works_with_files(&self) -> bool {
        self.plan.steps.iter().any(|step| !step.files.is_empty())
    }

    fn preview(&self, args: &Map<String, Value>) -> Option<String> {
        super::preview::requests(&self.plan, args)
    }
}

impl PreparedHttp {
    async fn attempt(&self, call: &CallContext, args: &Map<String, Value>) -> Outcome {
        let secrets = self.secrets(call).await?;
        let mut steps = Map::new();
        let mut last = Value::Null;
        let mut earlier_safe = true;
        for (index, step) in self.plan.steps.iter().enumerate() {
            if index > 0 {
                let before = self.plan.steps.get(index - 1).map_or("", |step| step.name.as_str());
                steps.insert(before.to_owned(), std::mem::take(&mut last));
            }
            if self.plan.steps.len() > 1 {
                #[expect(clippy::cast_precision_loss, reason = "there are few steps")]
                let done = index as f64 / self.plan.steps.len() as f64;
                call.emit(CallEvent::Progress(done, step.name.clone()));
            }
            let unsent = self.plan.retry_all || earlier_safe;
            earlier_safe &= step.is_idempotent();
            let safety = RetrySafety { unsent, sent: self.plan.retry_all || earlier_safe };
            let values = Values { args, steps: &steps, secrets: &secrets, version: &self.plan.version };
            last = self.step(call, step, &values, safety).await?;
        }
        Ok(last)
    }

    /// Fetches every secret that a template may read.
    async fn secrets(&self, call: &CallContext) -> Result<BTreeMap<&str, Secret>, CallError> {
        let mut found = BTreeMap::new();
        for name in &self.plan.secrets {
            let Some(secret) = call.secret(name).await? else { continue };
            found.insert(name.as_str(), secret);
        }
        Ok(found)
    }

    async fn step(
        &self,
        call: &CallContext,
        step: &Step,
        values: &Values<'_>,
        safety: RetrySafety,
    ) -> Result<Value, CallError> {
        let loaded = multipart::load(step, values, call).await?;
        let mut outgoing = step.build(values, FileSource::Loaded(&loaded))?;
        pass_key_on(&mut outgoing, call, self.plan.steps.len() == 1);
        if let Some(auth) = &self.plan.auth {
            auth.apply(&mut outgoing, call, values, self.shared.clock.now())?;
        }
        let (size, max) = (request::size(&outgoing), self.plan.limits.max_request_bytes);
        if size > max {
            let text = format!("the request has {size} bytes, which exceeds the limit of {max}");
            return Err(CallError::new(
                ErrorCode::TooLarge,
                format!("{text}; raise `execution.limits.max_request_bytes`"),
            )
            .for_model(text));
        }
        let left = call.deadline.saturating_duration_since(Instant::now());
        let limit = self.plan.timeout.min(left);
        let trail = RedirectTrail::default();
        let exchange = Exchange { prepared: self, call, step, values, safety, trail: &trail };
        let shown = || trail.shown(step.shown(values));
        match tokio::time::timeout(limit, exchange.run(outgoing)).await {
            Ok(outcome) => outcome,
            // The remaining time of a call is not a configured limit.
            Err(_) if left < self.plan.timeout => Err(failure::call_timeout(&shown(), safety)),
            Err(_) => Err(failure::timeout(&shown(), limit, safety)),
        }
    }

    /// With `error_mode: empty` a failed request becomes `null` if there is no further attempt.
    fn apply_error_mode(&self, call: &CallContext, error: CallError) -> Outcome {
        let is_request_failure = matches!(
            error.code,
            ErrorCode::Network | ErrorCode::Timeout | ErrorCode::HttpStatus | ErrorCode::InvalidResponse
        );
        if self.plan.error_mode == ErrorMode::Fail || !is_request_failure {
            return Err(error);
        }
        // With the maximum wait: an error that is returned here is retried for certain.
        let wait = retry::wait(&self.plan.retry, &error, call.attempt, 1.0);
        if wait.is_some_and(|wait| Instant::now() + wait < call.deadline) {
            return Err(error);
        }
        Ok(Value::Null)
    }
}

/// One request and its response.
struct Exchange<'a> {
    prepared: &'a PreparedHttp,
    call: &'a CallContext,
    step: &'a Step,
    values: &'a Values<'a>,
    safety: RetrySafety,
    trail: &'a RedirectTrail,
}

impl Exchange<'_> {
    async fn run(&self, outgoing: OutgoingRequest) -> Result<Value, CallError> {
        let mut response = self.send(outgoing).await?;
        let status = response.status();
        if !self.step.succeeds(status.as_u16()) {
            let now = self.prepared.shared.clock.now();
            let exposed = self.call.exposed();
            return Err(failure::status_failure(response, &self.shown(), self.safety, now, &exposed).await);
        }
        let limit = self.prepared.plan.limits.max_response_bytes;
        let bytes = response::read(&mut response, limit)
            .await
            .map_err(|error| failure::body_failure(&error, &self.shown(), limit, self.safety))?;
        let bodiless = self.step.method == Method::HEAD || matches!(status.as_u16(), 204 | 205 | 304);
        let body = ResponseBody { content_type: response::content_type(&response), bytes, bodiless };
        self.value(body).await.map_err(|error| {
            let model = error.message;
            CallError { message: format!("{}: {model}", self.shown()), for_model: Some(model), ..error }
        })
    }

    fn shown(&self) -> String {
        self.trail.shown(self.step.shown(self.values))
    }

    /// Sends the request, with an access token if configured; a rejected token is replaced once.
    async fn send(&self, outgoing: OutgoingRequest) -> Result<reqwest::Response, CallError> {
        let Some(AuthPlan::OAuth2(plan)) = &self.prepared.plan.auth else {
            return self.send_once(outgoing).await;
        };
        let Shared { egress, tokens, .. } = &*self.prepared.shared;
        let grant = plan.grant(self.call, self.values)?;
        let mut with_token = outgoing.clone();
        let token = tokens.get(egress, &grant).await.map_err(|error| self.unsent(error))?;
        self.call.hide(token.clone());
        auth::bearer(&mut with_token, &token)?;
        let response = self.send_once(with_token).await?;
        if response.status() != StatusCode::UNAUTHORIZED {
            return Ok(response);
        }
        tokens.forget(&grant, &token).await;
        let token = tokens.get(egress, &grant).await.map_err(|error| self.unsent(error))?;
        self.call.hide(token.clone());
        let mut with_token = outgoing;
        auth::bearer(&mut with_token, &token)?;
        self.send_once(with_token).await
    }

    /// Without a token the request was not sent, or it was rejected.
    fn unsent(&self, error: CallError) -> CallError {
        let retryable = error.retryable && self.safety.unsent;
        error.retryable(retryable)
    }

    async fn send_once(&self, outgoing: OutgoingRequest) -> Result<reqwest::Response, CallError> {
        let sent = self.prepared.shared.egress.send_along(outgoing, self.trail).await;
        sent.map_err(|error| failure::send_failure(&error, &self.shown(), self.safety))
    }

    async fn value(&self, body: ResponseBody) -> Result<Value, CallError> {
        if body.bytes.len() < OFFLOAD_BYTES {
            return self.step.reader.value(&body);
        }
        let reader: Arc<ResponseReader> = Arc::clone(&self.step.reader);
        let parsing = tokio::task::spawn_blocking(move || reader.value(&body));
        parsing.await.unwrap_or_else(|_| Err(CallError::internal("failed to process the response")))
    }
}

/// Passes the idempotency key of the call on, so that the service does not act twice either. A request that only reads
/// needs none, and a key that the definition sets stays.
fn pass_key_on(outgoing: &mut OutgoingRequest, call: &CallContext, is_only_step: bool) {
    let Some(key) = call.idempotency_key.as_deref() else { return };
    if outgoing.method.is_safe() || outgoing.headers.contains_key(IDEMPOTENCY_KEY) {
        return;
    }
    // The steps of one call are different requests.
    let value = if is_only_step {
        HeaderValue::from_str(key)
    } else {
        HeaderValue::from_str(&format!("{key}:{}{}", outgoing.method, outgoing.url.path()))
    };
    if let Ok(value) = value {
        outgoing.headers.insert(IDEMPOTENCY_KEY, value);
    }
}
