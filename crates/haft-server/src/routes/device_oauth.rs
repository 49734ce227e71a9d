//! `/oauth/device_authorization`: how a command line logs in (RFC 8628). It fetches its token at `/oauth/token`.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Value, json};

use crate::browser;
use crate::html_page::field;
use crate::oauth_answer::{self, OAuthError, answer};
use crate::open_stream::ClientAddress;
use haft_platform::Installation;
use haft_platform::device_logins::{self, DeviceToken, StartDeviceLoginError};

/// The only client: the command line.
const CLIENT: &str = "haft-cli";
/// The `grant_type` of the command line.
pub(super) const GRANT_TYPE: &str = "urn:ietf:params:oauth:grant-type:device_code";

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
    // A page of another origin must not use up the limit of logins of a server that its visitor reaches; the command line
    // sends no headers of a browser.
    let page = browser::check_page(app, request.headers());
    let form = oauth_answer::form(request).await;
    page.map_err(OAuthError::from)?;
    let form = form?;
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
pub(super) async fn token(app: &Installation, form: &[u8]) -> Result<Value, OAuthError> {
    check_client(form)?;
    let Some(device_code) = field(form, "device_code") else {
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
