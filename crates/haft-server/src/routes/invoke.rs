//! `POST /tools/{ref}/invoke`.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{self, FromRequest, FromRequestParts as _, Path, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use haft_core::outcome::ErrorCode;
use haft_core::reference::ToolRef;
use haft_core::runnable::Mode;
use haft_core::token::Role;
use haft_core::tool::Status;
use haft_runtime::pipeline::{CallTarget, CompletedCall, Labels, Request};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use crate::app::App;
use crate::body::Body;
use crate::error::{self, ApiError, ErrorBody};
use crate::identity::{self, Identity};
use crate::params::Params;
use crate::view::OutcomeView;

/// What a call says.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Invocation {
    /// The arguments.
    #[serde(alias = "parameters", alias = "arguments")]
    #[schema(value_type = Object)]
    args: Map<String, Value>,
    /// The chat it belongs to.
    chat_id: Option<String>,
    /// The message it belongs to.
    message_id: Option<String>,
    /// Another time limit than the tool's, in milliseconds.
    timeout_ms: Option<u64>,
}

/// Call a tool.
#[utoipa::path(
    post, path = "/tools/{ref}/invoke", tag = "calls",
    params(
        ("ref" = String, Path),
        ("mode" = Option<String>, Query, description = "`production` or `debug`"),
        ("async" = Option<bool>, Query, description = "Answer 202 at once and run in the background"),
        ("Idempotency-Key" = Option<String>, Header, description = "The same key and arguments never run twice"),
    ),
    request_body = Invocation,
    responses(
        (status = 200, body = OutcomeView<'static>, description = "The outcome, also of a tool that failed"),
        (status = 202, description = "Accepted; see `/calls/{id}`"),
        (status = 400, body = ErrorBody), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody),
    )
)]
pub(crate) async fn invoke(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(reference): Path<String>,
    call: Incoming,
) -> Result<Response, ApiError> {
    call_named(&app, &identity, &reference, call).await
}

/// Returns the tool that a request for this route names. It is asked before the router, which takes longer to find
/// the handler than the handler to do its work; what is spelled in an unusual way is left to the router.
pub(crate) fn named_by<'a>(method: &Method, path: &'a str) -> Option<&'a str> {
    let path = path.strip_prefix("/api").unwrap_or(path);
    let reference = path.strip_prefix("/tools/")?.strip_suffix("/invoke")?;
    let plain = !reference.is_empty() && !reference.contains(['/', '%']) && reference != "bundles";
    (method == Method::POST && plain).then_some(reference)
}

/// Answers a request for this route.
pub(crate) async fn directly(
    app: &Arc<App>,
    reference: &str,
    request: extract::Request,
) -> Result<Response, ApiError> {
    let identity = identity::authenticate(app, request.headers())?;
    let call = Incoming::from_request(request, app).await?;
    call_named(app, &identity, reference, call).await
}

async fn call_named(
    app: &App,
    identity: &Identity,
    reference: &str,
    call: Incoming,
) -> Result<Response, ApiError> {
    let named: ToolRef = reference.parse()?;
    let mode = mode(app, identity, &call.params)?;
    let snapshot = app.registry().snapshot();
    // What a model was offered under another name is called by that name.
    let tool = match snapshot.resolve_called(&identity.tenant, reference, &named, mode) {
        Ok(entry) => CallTarget::Resolved(snapshot.resolved(entry)),
        Err(_) => CallTarget::Named(named),
    };
    drop(snapshot);
    run(app, identity, tool, call).await
}

/// Everything that a request says about a call, but for the tool.
pub(crate) struct Incoming {
    params: Params,
    surface: &'static str,
    idempotency_key: Option<String>,
    body: Body,
}

impl FromRequest<Arc<App>> for Incoming {
    type Rejection = ApiError;

    async fn from_request(request: extract::Request, state: &Arc<App>) -> Result<Self, ApiError> {
        let (mut parts, body) = request.into_parts();
        let params = Params::from_request_parts(&mut parts, state).await?;
        let surface = surface(&parts.headers);
        let idempotency_key = idempotency_key(&parts.headers)?;
        let body = Body::from_request(extract::Request::from_parts(parts, body), state).await?;
        Ok(Self { params, surface, idempotency_key, body })
    }
}

/// Calls a tool, for this route and the one under bundles.
pub(crate) async fn run(
    app: &App,
    identity: &Identity,
    tool: CallTarget,
    Incoming { params, surface, idempotency_key, body }: Incoming,
) -> Result<Response, ApiError> {
    identity.require(Role::Caller)?;
    let invocation: Invocation = body.json_or_default().map_err(|error| ApiError {
        message: format!("{}; a call is `{{\"args\": {{…}}}}`", error.message),
        ..error.of_call()
    })?;
    let request = Request {
        principal: app.pipeline().principal(identity.tenant.clone(), identity.caller.clone()),
        args: invocation.args,
        mode: mode(app, identity, &params)?,
        surface,
        timeout: invocation.timeout_ms.map(Duration::from_millis),
        events: None,
        labels: Some(Box::new(Labels {
            idempotency_key,
            request_id: crate::request_id::current(),
            chat_id: invocation.chat_id,
            message_id: invocation.message_id,
        })),
    };
    if params.flag("async")? {
        let answer = Box::pin(app.pipeline().start(tool, request)).await?;
        return Ok(accepted(app, &answer));
    }
    let answer = app.pipeline().call(tool, request).await?;
    Ok(outcome(app, &answer))
}

/// The mode of a call: what the query says, as far as the token may, else the server's.
fn mode(app: &App, identity: &Identity, params: &Params) -> Result<Mode, ApiError> {
    let asked = params.choice("mode", Mode::parse, "`production`, `debug`")?;
    let own = app.settings().mode;
    match asked {
        Some(Mode::Debug) if own == Mode::Production => {
            identity.require(Role::Editor)?;
            Ok(Mode::Debug)
        }
        Some(mode) => Ok(mode),
        None => Ok(own),
    }
}

fn surface(headers: &HeaderMap) -> &'static str {
    match headers.get("x-haft-surface").map(HeaderValue::as_bytes) {
        Some(b"cli") => "cli",
        _ => "rest",
    }
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let Some(value) = headers.get("idempotency-key") else { return Ok(None) };
    match value.to_str() {
        Ok(key) if (1..=255).contains(&key.len()) => Ok(Some(key.to_owned())),
        _ => Err(ApiError::bad_request("`Idempotency-Key` must be 1 to 255 visible ASCII characters")),
    }
}

fn outcome(app: &App, answer: &CompletedCall) -> Response {
    let record = &answer.record;
    let snapshot = app.registry().snapshot();
    let deprecated = snapshot
        .tool(&record.tenant, record.tool_id)
        .is_some_and(|entry| entry.tool.status == Status::Deprecated);
    let refused = record.error.as_ref();
    let refused = refused.filter(|e| [ErrorCode::Overloaded, ErrorCode::RateLimited].contains(&e.code));
    let status = refused.map_or(StatusCode::OK, |error| error::status(error.code));
    let mut response = (status, Json(OutcomeView::new(record, deprecated))).into_response();
    error::ask_to_wait(&mut response, refused.and_then(|error| error.retry_after));
    if answer.replayed {
        response.headers_mut().insert("idempotency-replayed", HeaderValue::from_static("true"));
    }
    response
}

fn accepted(app: &App, answer: &CompletedCall) -> Response {
    let record = &answer.record;
    if answer.replayed {
        return outcome(app, answer);
    }
    let address = format!("/api/calls/{}", record.id);
    let body = json!({"call_id": record.id, "status": record.status, "events": format!("{address}/events")});
    let mut response = (StatusCode::ACCEPTED, Json(body)).into_response();
    if let Ok(value) = HeaderValue::from_str(&address) {
        response.headers_mut().insert("location", value);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_straight_way_is_for_calls_in_their_plain_spelling() {
        let check = |method: Method, path: &str, expected: Option<&str>| {
            assert_eq!(named_by(&method, path), expected, "{method} {path}");
        };
        check(Method::POST, "/api/tools/weather/invoke", Some("weather"));
        check(Method::POST, "/tools/weather/invoke", Some("weather"));
        check(Method::POST, "/api/tools/web:weather@1.0.0/invoke", Some("web:weather@1.0.0"));
        for other in [
            "/api/tools//invoke",
            "/api/tools/invoke",
            "/api/tools/web%3Aweather/invoke",
            "/api/tools/weather/invoke/",
            "/api/tools/weather/test",
            "/api/api/tools/weather/invoke",
            "/apitools/weather/invoke",
            "/api/tools/bundles/web/tools/weather/version/1/invoke",
            // The router takes this for the bundle `invoke`.
            "/api/tools/bundles/invoke",
        ] {
            check(Method::POST, other, None);
        }
        check(Method::GET, "/api/tools/weather/invoke", None);
    }
}
