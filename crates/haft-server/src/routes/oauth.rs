//! The endpoints of haft as authorization server that programs use: metadata (RFC 8414), tokens (RFC 6749), registration
//! (RFC 7591), revocation (RFC 7009) and introspection (RFC 7662).

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use haft_core::Timestamp;
use haft_core::secret::Secret;
use haft_oauth::id_jag;
use haft_oauth::redirect_uri::RedirectUri;
use haft_oauth::scope;
use serde_json::{Map, Value, json};

use super::device_oauth;
use super::mcp;
use crate::body::Body;
use crate::browser;
use crate::error::ApiError;
use crate::html_page::field;
use crate::oauth_answer::{self, OAuthError, answer, credentials};
use crate::open_stream::ClientAddress;
use haft_platform::Installation;
use haft_platform::applications::{
    self, AssertionRequest, CodeRequest, Introspected, IssuedTokens, RefreshRequest, RegisterError,
};

/// The path of the metadata; the path of a resource may follow.
pub(crate) const METADATA: &str = "/.well-known/oauth-authorization-server";
/// The largest registration in bytes.
const MAX_REGISTRATION_BYTES: usize = 32 * 1024;

/// Returns the metadata of the authorization server.
pub(crate) async fn metadata(State(app): State<Arc<Installation>>, request: Request) -> Response {
    if let Err(error) = mcp::check_host(&app, &request) {
        return error.into_response();
    }
    let path = request.uri().path().strip_prefix(METADATA).unwrap_or_default();
    let issuer = browser::own_url(&app, request.headers());
    let own_path = url::Url::parse(&issuer).map(|url| url.path().trim_end_matches('/').to_owned());
    // Clients append the path of the issuer, and older ones that of the MCP server.
    let is_known = path.is_empty() || path == "/" || path == "/mcp" || path.starts_with("/mcp/");
    if !is_known && own_path.ok().as_deref() != Some(path) {
        return ApiError::not_found("route", request.uri().path()).into_response();
    }
    let at = |path: &str| format!("{issuer}{path}");
    let accepts_assertions = applications::assertion_audience(&app).is_some();
    let mut grant_types = vec!["authorization_code", "refresh_token", device_oauth::GRANT_TYPE];
    grant_types.extend(accepts_assertions.then_some(id_jag::GRANT_TYPE));
    let mut document = json!({
        "issuer": issuer,
        "authorization_endpoint": at("/oauth/authorize"),
        "token_endpoint": at("/oauth/token"),
        "revocation_endpoint": at("/oauth/revoke"),
        "introspection_endpoint": at("/oauth/introspect"),
        "device_authorization_endpoint": at("/oauth/device_authorization"),
        "scopes_supported": scope::ALL,
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": grant_types,
        "token_endpoint_auth_methods_supported": ["none", "client_secret_basic", "client_secret_post"],
        "revocation_endpoint_auth_methods_supported": ["none", "client_secret_basic", "client_secret_post"],
        "introspection_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
        "code_challenge_methods_supported": [haft_oauth::pkce::METHOD],
        "client_id_metadata_document_supported": true,
        "authorization_response_iss_parameter_supported": true,
    });
    if app.settings().oauth.dynamic_registration
        && let Some(document) = document.as_object_mut()
    {
        document.insert("registration_endpoint".to_owned(), at("/oauth/register").into());
    }
    if accepts_assertions && let Some(document) = document.as_object_mut() {
        document.insert("authorization_grant_profiles_supported".to_owned(), json!([id_jag::PROFILE]));
    }
    Json(document).into_response()
}

/// Issues tokens: for a code, for a refresh token, for an assertion of an issuer, or for the login of a command line that a person has approved.
pub(crate) async fn token(State(app): State<Arc<Installation>>, request: Request) -> Response {
    match issue(&app, request).await {
        Ok(tokens) => answer(StatusCode::OK, &tokens),
        Err(error) => error.into_response(),
    }
}

async fn issue(app: &Arc<Installation>, request: Request) -> Result<Value, OAuthError> {
    let headers = request.headers().clone();
    let issuer = browser::own_url(app, &headers);
    let form = oauth_answer::form(request).await?;
    let missing = |name: &str| OAuthError::new("invalid_request", format!("missing `{name}`"));
    let resources = url::form_urlencoded::parse(&form).filter(|(name, _)| name == "resource");
    let resources: Vec<String> = resources.map(|(_, value)| value.into_owned()).collect();
    let issued = match field(&form, "grant_type").as_deref() {
        Some(device_oauth::GRANT_TYPE) => return device_oauth::token(app, &form).await,
        Some("authorization_code") => {
            let request = CodeRequest {
                credentials: credentials(&headers, &form)?,
                code: field(&form, "code").map(Secret::new).ok_or_else(|| missing("code"))?,
                redirect_uri: field(&form, "redirect_uri"),
                verifier: field(&form, "code_verifier"),
                resources,
                issuer,
            };
            Box::pin(applications::exchange(app, request)).await?
        }
        Some("refresh_token") => {
            let token = field(&form, "refresh_token").map(Secret::new);
            let request = RefreshRequest {
                credentials: credentials(&headers, &form)?,
                token: token.ok_or_else(|| missing("refresh_token"))?,
                scope: field(&form, "scope"),
                resources,
                issuer,
            };
            Box::pin(applications::refresh(app, request)).await?
        }
        Some(id_jag::GRANT_TYPE) => {
            let assertion = field(&form, "assertion").map(Secret::new);
            let request = AssertionRequest {
                credentials: credentials(&headers, &form)?,
                assertion: assertion.ok_or_else(|| missing("assertion"))?,
                scope: field(&form, "scope"),
                resources,
            };
            Box::pin(applications::exchange_assertion(app, request)).await?
        }
        None => return Err(missing("grant_type")),
        Some(other) => {
            let other = haft_core::problem::excerpt(other, 60);
            let description = format!(
                "`grant_type` is `{other}`; expected `authorization_code`, `refresh_token` or `{}`",
                device_oauth::GRANT_TYPE
            );
            return Err(OAuthError::new("unsupported_grant_type", description));
        }
    };
    Ok(issued_tokens(&issued))
}

fn issued_tokens(issued: &IssuedTokens) -> Value {
    let mut body = Map::new();
    body.insert("access_token".to_owned(), issued.access.expose().into());
    body.insert("token_type".to_owned(), "Bearer".into());
    body.insert("expires_in".to_owned(), issued.seconds.into());
    if let Some(refresh) = &issued.refresh {
        body.insert("refresh_token".to_owned(), refresh.expose().into());
    }
    body.insert("scope".to_owned(), issued.scope.as_str().into());
    body.into()
}

/// Registers an application.
pub(crate) async fn register(State(app): State<Arc<Installation>>, request: Request) -> Response {
    match registered(&app, request).await {
        Ok(registered) => answer(StatusCode::CREATED, &registered),
        Err(error) => error.into_response(),
    }
}

async fn registered(app: &Installation, request: Request) -> Result<Value, OAuthError> {
    let address = request.extensions().get::<ClientAddress>().map(|address| address.0);
    let body = Body::read(request, MAX_REGISTRATION_BYTES, "registration").await?;
    let registered = applications::register(app, &body.bytes, address).await.map_err(register_error)?;
    let metadata = &registered.metadata;
    let mut grant_types = vec!["authorization_code"];
    grant_types.extend(metadata.refreshes.then_some("refresh_token"));
    let uris: Vec<&str> = metadata.redirect_uris.iter().map(RedirectUri::as_str).collect();
    let mut body = json!({
        "client_id": registered.id,
        "client_id_issued_at": registered.created_at.as_second(),
        "client_name": metadata.name,
        "redirect_uris": uris,
        "grant_types": grant_types,
        "response_types": ["code"],
        "token_endpoint_auth_method": metadata.auth_method.as_str(),
    });
    if let (Some(secret), Some(body)) = (&registered.secret, body.as_object_mut()) {
        body.insert("client_secret".to_owned(), secret.expose().into());
        // It does not expire.
        body.insert("client_secret_expires_at".to_owned(), 0.into());
    }
    Ok(body)
}

fn register_error(error: RegisterError) -> OAuthError {
    let message = error.to_string();
    match error {
        RegisterError::Disabled => {
            OAuthError::new("access_denied", message).with_status(StatusCode::FORBIDDEN)
        }
        RegisterError::Invalid(invalid) => {
            let code = match invalid {
                haft_oauth::client_metadata::InvalidMetadata::RedirectUri(_) => "invalid_redirect_uri",
                haft_oauth::client_metadata::InvalidMetadata::Field(_) => "invalid_client_metadata",
            };
            OAuthError::new(code, message)
        }
        RegisterError::TooManyOfAddress => {
            OAuthError::new("slow_down", message).with_status(StatusCode::TOO_MANY_REQUESTS)
        }
        RegisterError::TooMany => {
            OAuthError::new("temporarily_unavailable", message).with_status(StatusCode::SERVICE_UNAVAILABLE)
        }
        RegisterError::Service(error) => OAuthError::of_server(error),
    }
}

/// Ends the grant of a token. A token that is unknown is no error.
pub(crate) async fn revoke(State(app): State<Arc<Installation>>, request: Request) -> Response {
    match revoked(&app, request).await {
        Ok(()) => answer(StatusCode::OK, &json!({})),
        Err(error) => error.into_response(),
    }
}

async fn revoked(app: &Arc<Installation>, request: Request) -> Result<(), OAuthError> {
    let headers = request.headers().clone();
    let form = oauth_answer::form(request).await?;
    let token = field(&form, "token").ok_or_else(|| OAuthError::new("invalid_request", "missing `token`"))?;
    let credentials = credentials(&headers, &form)?;
    Ok(applications::revoke(app, &credentials, &token).await?)
}

/// Describes a token to the application that it was issued to.
pub(crate) async fn introspect(State(app): State<Arc<Installation>>, request: Request) -> Response {
    match introspected(&app, request).await {
        Ok(description) => answer(StatusCode::OK, &description),
        Err(error) => error.into_response(),
    }
}

async fn introspected(app: &Arc<Installation>, request: Request) -> Result<Value, OAuthError> {
    let headers = request.headers().clone();
    let issuer = browser::own_url(app, &headers);
    let form = oauth_answer::form(request).await?;
    let credentials = credentials(&headers, &form)?;
    let client = applications::authenticate_confidential(app, &credentials).await?;
    let token = field(&form, "token").ok_or_else(|| OAuthError::new("invalid_request", "missing `token`"))?;
    let found = applications::introspect(app, &client, &token).await.map_err(OAuthError::of_server)?;
    let Some(Introspected { record, token, issued_at, expires_at }) = found else {
        return Ok(json!({"active": false}));
    };
    let subject = token.principal.actor_or_token_id().map(|id| id.to_string());
    Ok(json!({
        "active": true,
        "client_id": record.client_id,
        "scope": scope::granted(token.principal.role, record.refresh.is_some()),
        "token_type": if issued_at.is_some() { "Bearer" } else { "refresh_token" },
        "sub": subject,
        "iss": issuer,
        "aud": issuer,
        "iat": issued_at.map(Timestamp::as_second),
        "exp": expires_at.map(Timestamp::as_second),
    }))
}
