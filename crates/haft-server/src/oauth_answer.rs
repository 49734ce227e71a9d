//! What the endpoints of OAuth share: their errors have the form of RFC 6749 (section 5.2), not that of the API, and pages
//! of any origin may use those that need no session.

use axum::Json;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use haft_core::secret::Secret;
use serde_json::{Value, json};

use crate::body::Body;
use crate::error::{ApiError, status};
use crate::html_page::field;
use haft_platform::applications::{ClientCredentials, ClientError, TokenError};
use haft_platform::device_logins;
use haft_platform::error::ServiceError;

/// The largest form in bytes.
const MAX_FORM_BYTES: usize = 24 * 1024;
/// The paths that clients in browsers use, whatever their origin: they send no cookies there.
const PUBLIC_PATHS: [&str; 4] = ["/oauth/token", "/oauth/register", "/oauth/revoke", "/.well-known/oauth-"];

/// An error of OAuth.
#[derive(Debug)]
pub(crate) struct OAuthError {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) description: String,
}

impl OAuthError {
    pub(crate) fn new(code: &'static str, description: impl Into<String>) -> Self {
        Self { status: StatusCode::BAD_REQUEST, code, description: description.into() }
    }

    pub(crate) fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    /// An error of this server, not of the request.
    pub(crate) fn of_server(error: impl Into<ServiceError>) -> Self {
        let error = error.into();
        let code = if status(error.code) == StatusCode::SERVICE_UNAVAILABLE {
            "temporarily_unavailable"
        } else {
            "server_error"
        };
        Self::new(code, error.message).with_status(status(error.code))
    }

    pub(crate) fn into_response(self) -> Response {
        let mut response =
            answer(self.status, &json!({"error": self.code, "error_description": self.description}));
        if [StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE].contains(&self.status) {
            let wait = HeaderValue::from(device_logins::POLL_INTERVAL.as_secs());
            response.headers_mut().insert(header::RETRY_AFTER, wait);
        }
        if self.status == StatusCode::UNAUTHORIZED {
            let scheme = HeaderValue::from_static("Basic realm=\"haft\"");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
        }
        response
    }
}

impl From<ApiError> for OAuthError {
    fn from(error: ApiError) -> Self {
        let status = status(error.0.code);
        Self::new("invalid_request", error.0.message).with_status(status)
    }
}

impl From<ClientError> for OAuthError {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Store(error) => Self::of_server(error),
            error => Self::new("invalid_client", error.to_string()).with_status(StatusCode::UNAUTHORIZED),
        }
    }
}

impl From<TokenError> for OAuthError {
    fn from(error: TokenError) -> Self {
        match error {
            TokenError::InvalidGrant(description) => Self::new("invalid_grant", description),
            TokenError::InvalidClient(error) => error.into(),
            TokenError::InvalidTarget => Self::new("invalid_target", "`resource` is not this server"),
            TokenError::InvalidScope => Self::new("invalid_scope", "the scope is more than what was allowed"),
            TokenError::UnsupportedGrant => {
                Self::new("unsupported_grant_type", "this server accepts no identity assertions")
            }
            TokenError::UnauthorizedClient => Self::new(
                "unauthorized_client",
                "the application may not use assertions of this issuer; an admin lists it in `assertion_clients`",
            ),
            TokenError::Service(error) => Self::of_server(error),
        }
    }
}

/// Returns an answer that nobody may store.
pub(crate) fn answer(status: StatusCode, body: &Value) -> Response {
    let mut headers = HeaderMap::new();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    (status, headers, Json(body)).into_response()
}

/// Reads a form.
pub(crate) async fn form(request: Request) -> Result<Vec<u8>, OAuthError> {
    let body = Body::read(request, MAX_FORM_BYTES, "form").await?;
    Ok(body.bytes.to_vec())
}

/// Returns what a client sends to show who it is: in the `Authorization` header, or in the form.
pub(crate) fn credentials(headers: &HeaderMap, form: &[u8]) -> Result<ClientCredentials, OAuthError> {
    let in_form = ClientCredentials {
        id: field(form, "client_id"),
        secret: field(form, "client_secret").map(Secret::new),
    };
    let Some(value) = headers.get(header::AUTHORIZATION) else { return Ok(in_form) };
    let invalid = || {
        OAuthError::new("invalid_client", "invalid `Authorization` header; expected `Basic`")
            .with_status(StatusCode::UNAUTHORIZED)
    };
    let (scheme, encoded) = value.to_str().ok().and_then(|text| text.split_once(' ')).ok_or_else(invalid)?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return Err(invalid());
    }
    let decoded = STANDARD.decode(encoded.trim()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let decoded = decoded.ok_or_else(invalid)?;
    let (id, secret) = decoded.split_once(':').ok_or_else(invalid)?;
    // RFC 6749, section 2.3.1: both are form-encoded.
    let (id, secret) = (form_decoded(id), form_decoded(secret));
    if in_form.id.is_some_and(|other| other != id) {
        return Err(invalid());
    }
    Ok(ClientCredentials {
        id: Some(id),
        secret: Some(Secret::new(secret)).filter(|secret| !secret.expose().is_empty()),
    })
}

fn form_decoded(text: &str) -> String {
    let pair = format!("x={text}");
    let mut pairs = url::form_urlencoded::parse(pair.as_bytes());
    pairs.next().map(|(_, value)| value.into_owned()).unwrap_or_default()
}

/// Returns whether pages of any origin may use a path.
pub(crate) fn is_public(path: &str) -> bool {
    PUBLIC_PATHS.iter().any(|public| path == *public || (public.ends_with('-') && path.starts_with(public)))
}

/// Answers the question of a browser whether a page of another origin may send a request.
pub(crate) fn preflight() -> Response {
    let headers = [
        (header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
        (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST"),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, "authorization, content-type, mcp-protocol-version"),
        (header::ACCESS_CONTROL_MAX_AGE, "3600"),
    ];
    (StatusCode::NO_CONTENT, headers).into_response()
}

/// Lets pages of any origin read a response.
pub(crate) fn allow_every_origin(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("www-authenticate"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_come_from_the_header_or_the_form() {
        let check = |header: Option<&str>,
                     form: &str,
                     expected: Result<(Option<&str>, Option<&str>), &str>| {
            let mut headers = HeaderMap::new();
            if let Some(value) = header {
                headers.insert(header::AUTHORIZATION, HeaderValue::from_str(value).unwrap());
            }
            let read = credentials(&headers, form.as_bytes());
            let read = read
                .map(|read| (read.id, read.secret.map(|secret| secret.expose().to_owned())))
                .map_err(|error| error.code.to_owned());
            let expected = expected.map(|(id, secret)| (id.map(str::to_owned), secret.map(str::to_owned)));
            assert_eq!(read, expected.map_err(str::to_owned), "{header:?} {form}");
        };
        let basic = |text: &str| format!("Basic {}", STANDARD.encode(text));
        check(None, "client_id=a&client_secret=b", Ok((Some("a"), Some("b"))));
        check(None, "", Ok((None, None)));
        check(Some(&basic("a%3A1:b%2B")), "", Ok((Some("a:1"), Some("b+"))));
        check(Some(&basic("a:b")), "client_id=a", Ok((Some("a"), Some("b"))));
        check(Some(&basic("a:b")), "client_id=c", Err("invalid_client"));
        check(Some(&basic("a")), "", Err("invalid_client"));
        check(Some("Bearer x"), "client_id=a", Err("invalid_client"));
    }

    #[test]
    fn only_endpoints_without_cookies_are_public() {
        for (path, expected) in [
            ("/oauth/token", true),
            ("/oauth/register", true),
            ("/.well-known/oauth-authorization-server/mcp", true),
            ("/oauth/authorize", false),
            ("/oauth/introspect", false),
            ("/oauth/token/x", false),
            ("/api/tokens", false),
        ] {
            assert_eq!(is_public(path), expected, "{path}");
        }
    }
}
