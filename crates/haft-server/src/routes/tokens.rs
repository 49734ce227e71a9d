//! `/tokens`: access tokens. A token is returned only once, when it is created.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use haft_core::duration;
use haft_core::hash;
use haft_core::id::TokenId;
use haft_core::outcome::ErrorCode;
use haft_core::token::{Role, TokenRecord};
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::app::App;
use crate::audit;
use crate::body::Body;
use crate::error::{ApiError, ErrorBody};
use crate::identity::Identity;
use crate::params::Params;
use crate::reply::{self, created};

/// List tokens, without their values.
#[utoipa::path(get, path = "/tokens", tag = "tokens", responses((status = 200, body = Object)))]
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
    Ok(reply::list("tokens", &tokens, total, next_page_token.as_deref()))
}

fn view(token: &TokenRecord) -> Value {
    json!({
        "id": token.id, "name": token.name, "tenant": token.tenant, "role": token.role,
        "elevated": token.elevated, "created_at": token.created_at, "expires_at": token.expires_at,
    })
}

/// A new token.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub(crate) struct NewToken {
    /// The name of the token.
    name: String,
    /// `viewer`, `caller`, `editor` or `admin`.
    #[serde(default = "default_role")]
    role: String,
    /// Whether tools that need approval run without it.
    #[serde(default)]
    elevated: bool,
    /// The lifetime, for example `12h` or `90d`; default: no expiry.
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
    responses((status = 201, body = Object), (status = 400, body = ErrorBody))
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
    let mut response = view(&record);
    if let Some(map) = response.as_object_mut() {
        map.insert("token".to_owned(), Value::from(token.expose()));
    }
    Ok(created(response))
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
    delete, path = "/tokens/{id}", tag = "tokens", params(("id" = String, Path)),
    responses((status = 200, body = Object), (status = 404, body = ErrorBody))
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
