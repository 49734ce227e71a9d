//! `/oauth/device_authorization` and `/oauth/token`: how a command line logs in (RFC 8628). Requests are forms, and errors
//! have the form of OAuth (RFC 6749, section 5.2), not that of the API.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};

use crate::body::{Body, discard};
use crate::browser;
use crate::error::{ApiError, status};
use crate::html_page::field;
use crate::open_stream::ClientAddress;
use haft_platform::Installation;
use haft_platform::device_logins::{self, DeviceToken, StartDeviceLoginError};
use haft_platform::error::ServiceError;

/// The only client: the command line.
const CLIENT: &str = "haft-cli";
const GRANT_TYPE: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// The largest form in bytes.
const MAX_FORM_BYTES: usize = 8 * 1024;

/// An error of OAuth.
struct OAuthError {
    status: StatusCode,
    code: &'static str,
    description: String,
}

impl OAuthError {
    fn new(code: &'static str, description: impl Into<String>) -> Self {
        Self { status: StatusCode::BAD_REQUEST, code, description: description.into() }
    }

    fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    /// An error of this server, not of the request.
    fn of_server(error: impl Into<ServiceError>) -> Self {
        let error = error.into();
        let code = if status(error.code) == StatusCode::SERVICE_UNAVAILABLE {
            "temporarily_unavailable"
        } else {
            "server_error"
        };
        Self::new(code, error.message).with_status(status(error.code))
    }

    fn into_response(self) -> Response {
        let mut response =
            answer(self.status, &json!({"error": self.code, "error_description": self.description}));
        if [StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE].contains(&self.status) {
            let wait = HeaderValue::from(device_logins::POLL_INTERVAL.as_secs());
            response.headers_mut().insert(header::RETRY_AFTER, wait);
        }
        response
    }
}

impl From<StartDeviceLoginError> for OAuthError {
    fn from(error: StartDeviceLoginError) -> Self {
        match error {
            StartDeviceLoginError::TooManyOfAddress => {
                Self::new("slow_down", error.to_string()).with_status(StatusCode::TOO_MANY_REQUESTS)
            }
            StartDeviceLoginError::TooMany => Self::new("temporarily_unavailable", error.to_string())
                .with_status(StatusCode::SERVICE_UNAVAILABLE),
            StartDeviceLoginError::Store(error) => Self::of_server(error),
        }
    }
}

/// Starts a login of a command line.
pub(crate) async fn authorize(State(app): State<Arc<Installation>>, request: Request) -> Response {
    match start(&app, request).await {
        Ok(started) => answer(StatusCode::OK, &started),
        Err(error) => error.into_response(),
    }
}

async fn start(app: &Installation, request: Request) -> Result<Value, OAuthError> {
    let base = browser::own_url(app, request.headers());
    let address = request.extensions().get::<ClientAddress>().map(|address| address.0);
    let form = form(app, request).await?;
    check_client(&form)?;
    let device = field(&form, "device_name").unwrap_or_default();
    let started = device_logins::start(app, &device, address).await?;
    let user_code = started.user_code.shown();
    let page = format!("{base}/device");
    Ok(json!({
        "device_code": started.device_code.expose(),
        "user_code": user_code,
        "verification_uri": page,
        "verification_uri_complete": format!("{page}?user_code={user_code}"),
        "expires_in": device_logins::LIFETIME.as_secs(),
        "interval": device_logins::POLL_INTERVAL.as_secs(),
    }))
}

/// Returns the token of a login that a person has approved, once.
pub(crate) async fn token(State(app): State<Arc<Installation>>, request: Request) -> Response {
    match fetch(&app, request).await {
        Ok(token) => answer(StatusCode::OK, &token),
        Err(error) => error.into_response(),
    }
}

async fn fetch(app: &Installation, request: Request) -> Result<Value, OAuthError> {
    let form = form(app, request).await?;
    check_client(&form)?;
    if field(&form, "grant_type").as_deref() != Some(GRANT_TYPE) {
        let description = format!("expected the `grant_type` `{GRANT_TYPE}`");
        return Err(OAuthError::new("unsupported_grant_type", description));
    }
    let Some(device_code) = field(&form, "device_code") else {
        return Err(OAuthError::new("invalid_request", "missing `device_code`"));
    };
    let token = device_logins::fetch_token(app, &device_code).await.map_err(OAuthError::of_server)?;
    let (code, description) = match token {
        DeviceToken::Issued(issued) => {
            let seconds = issued.record.expires_at.map(|end| end.as_second() - app.now().as_second());
            return Ok(json!({
                "access_token": issued.value.expose(),
                "token_type": "Bearer",
                "expires_in": seconds,
            }));
        }
        DeviceToken::Pending => ("authorization_pending", "nobody has approved the login yet"),
        DeviceToken::TooFast => ("slow_down", "wait for longer between two requests"),
        DeviceToken::Denied => ("access_denied", "the login was denied"),
        DeviceToken::Expired => ("expired_token", "the code has expired; start another login"),
        DeviceToken::Unknown => ("invalid_grant", "the code is invalid, or its token was fetched already"),
    };
    Err(OAuthError::new(code, description))
}

fn check_client(form: &[u8]) -> Result<(), OAuthError> {
    match field(form, "client_id").as_deref() {
        Some(CLIENT) => Ok(()),
        _ => Err(OAuthError::new("invalid_client", format!("expected the `client_id` `{CLIENT}`"))),
    }
}

/// Reads the form. A page of another origin must not use up the limit of logins of a server that its visitor reaches; the
/// command line sends no headers of a browser.
async fn form(app: &Installation, request: Request) -> Result<Vec<u8>, OAuthError> {
    let invalid = |error: ApiError| {
        let status = status(error.0.code);
        OAuthError::new("invalid_request", error.0.message).with_status(status)
    };
    if let Err(error) = browser::check_page(app, request.headers()) {
        discard(request).await;
        return Err(invalid(error));
    }
    let body = Body::read(request, MAX_FORM_BYTES, "login form").await;
    body.map(|body| body.bytes.to_vec()).map_err(invalid)
}

fn answer(status: StatusCode, body: &Value) -> Response {
    let mut headers = HeaderMap::new();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    (status, headers, Json(body)).into_response()
}
