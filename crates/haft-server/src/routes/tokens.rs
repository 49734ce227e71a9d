//! `/tokens`: access tokens. A token is returned only once, when it is created.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use haft_core::Timestamp;
use haft_core::duration;
use haft_core::hash;
use haft_core::id::TokenId;
use haft_core::outcome::ErrorCode;
use haft_core::token::{Role, TokenRecord};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::app::App;
use crate::audit;
use crate::body::Body;
use crate::error::{ApiError, ErrorBody};
use crate::identity::Identity;
use crate::params::{PageParams, Params};
use crate::reply::{self, Message, Success, created, success};

/// A token, without its value.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TokenView {
    id: Uuid,
    #[schema(example = "ci")]
    name: String,
    #[schema(example = "default")]
    tenant: String,
    role: Role,
    /// Whether tools that need approval run without it.
    elevated: bool,
    created_at: Timestamp,
    #[schema(required)]
    expires_at: Option<Timestamp>,
}

/// A new token with its value.
#[derive(Serialize, ToSchema)]
pub(crate) struct CreatedToken {
    #[serde(flatten)]
    record: TokenView,
    /// The value, which no later response contains.
    #[schema(example = "haft_…")]
    token: String,
}

/// A page of tokens.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TokenList {
    tokens: Vec<TokenView>,
    total: usize,
    #[schema(required)]
    next_page_token: Option<String>,
}

/// List tokens, without their values.
#[utoipa::path(get, path = "/tokens", tag = "tokens", params(PageParams), responses((status = 200, body = Success<TokenList>)))]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    identity: Identity,
    params: Params,
) -> Result<Response, ApiError> {
    identity.require(Role::Admin)?;
    let page = params.page("tokens")?;
    let mut all: Vec<_> =
        app.store().tokens().await?.into_iter().filter(|token| token.tenant == identity.tenant).collect();
    all.sort_by_key(|token| token.id.to_string());
    let total = all.len();
    let (selected, next_page_token) = page.select(all, |token| token.id.to_string());
    let tokens: Vec<_> = selected.iter().map(view).collect();
    Ok(success(TokenList { tokens, total, next_page_token }).into_response())
}

fn view(token: &TokenRecord) -> TokenView {
    TokenView {
        id: token.id.0,
        name: token.name.clone(),
        tenant: token.tenant.to_string(),
        role: token.role,
        elevated: token.elevated,
        created_at: token.created_at,
        expires_at: token.expires_at,
    }
}

/// A new token.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub(crate) struct NewToken {
    /// The name of the token: 1 to 64 characters without control characters.
    #[schema(example = "ci", min_length = 1, max_length = 64)]
    name: String,
    /// The role; default: `caller`.
    #[serde(default = "default_role")]
    #[schema(value_type = Role, example = "caller")]
    role: String,
    /// Whether tools that need approval run without it.
    #[serde(default)]
    elevated: bool,
    /// The lifetime, for example `12h` or `90d`; default: no expiry.
    #[schema(example = "90d")]
    expires_in: Option<String>,
    /// The tenant; must be the caller's.
    tenant: Option<String>,
}

fn default_role() -> String {
    Role::Caller.as_str().to_owned()
}

/// Create a token; only this response contains its value.
#[utoipa::path(
    post, path = "/tokens", tag = "tokens", request_body = NewToken,
    responses((status = 201, body = Success<CreatedToken>))
)]
pub(crate) async fn create(
    State(app): State<Arc<App>>,
    identity: Identity,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Admin)?;
    let new: NewToken = body.json()?;
    let name = new.name.trim().to_owned();
    if name.is_empty() || name.chars().count() > 64 || name.chars().any(char::is_control) {
        return Err(ApiError::bad_request(
            "invalid `name`: expected 1 to 64 characters without control characters",
        ));
    }
    let role = Role::parse(&new.role).ok_or_else(|| {
        ApiError::bad_request("invalid `role`: expected `viewer`, `caller`, `editor` or `admin`")
    })?;
    if new.tenant.as_deref().is_some_and(|tenant| tenant != identity.tenant.as_str()) {
        return Err(ApiError::new(ErrorCode::Forbidden, "`tenant` must be your own tenant"));
    }
    let expires_at = match new.expires_in.as_deref() {
        Some(text) => Some(app.now().checked_add(lifetime(text)?).map_err(|_| too_long())?),
        None => None,
    };
    let token = crate::local_token::generate()
        .map_err(|_| ApiError::new(ErrorCode::Internal, "the operating system returned no random bytes"))?;
    let record = TokenRecord {
        id: TokenId(Uuid::now_v7()),
        tenant: identity.tenant.clone(),
        name,
        hash: hash::of_bytes(token.expose().as_bytes()),
        role,
        elevated: new.elevated,
        created_at: app.now(),
        expires_at,
    };
    app.store().insert_token(&record).await?;
    app.reload_tokens().await?;
    audit::note(&identity, "token.create", &record.name);
    Ok(created(CreatedToken { record: view(&record), token: token.expose().to_owned() }))
}

/// Parses a lifetime; unlike other durations it may be longer than a day, as in `90d` and `2000h`.
pub(crate) fn lifetime(text: &str) -> Result<Duration, ApiError> {
    let whole = |unit: char, seconds: u64| {
        let number: u64 = text.trim().strip_suffix(unit)?.parse().ok()?;
        number.checked_mul(seconds).map(Duration::from_secs)
    };
    let time = match whole('d', 86_400).or_else(|| whole('h', 3600)) {
        Some(time) => time,
        None => duration::parse(text, Duration::from_secs(1)).map_err(|error| {
            ApiError::bad_request(format!("invalid `expires_in`: {error}; or a number of days such as `90d`"))
        })?,
    };
    if time.is_zero() {
        return Err(ApiError::bad_request("invalid `expires_in`: must be greater than zero"));
    }
    Ok(time)
}

fn too_long() -> ApiError {
    ApiError::bad_request("invalid `expires_in`: too long; omit it for a token that does not expire")
}

/// Revoke a token; it stops working immediately.
#[utoipa::path(
    delete, path = "/tokens/{id}", tag = "tokens", params(("id" = Uuid, Path)),
    responses((status = 200, body = Success<Message>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    identity.require(Role::Admin)?;
    let parsed: TokenId = id.parse().map_err(|_| ApiError::not_found("token", &id))?;
    let is_own =
        app.store().tokens().await?.into_iter().any(|t| t.id == parsed && t.tenant == identity.tenant);
    if !is_own {
        return Err(ApiError::not_found("token", &id));
    }
    app.store().delete_token(parsed).await?;
    app.reload_tokens().await?;
    audit::note(&identity, "token.delete", &id);
    Ok(reply::message("Token deleted"))
}
