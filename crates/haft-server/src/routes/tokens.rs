//! `/tokens`: access tokens. A token is returned only once, when it is created.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use haft_core::Timestamp;
use haft_core::token::{Role, TokenRecord};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::token_rates::RateBody;
use crate::authentication::Caller;
use crate::body::{self, Body};
use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::params::{PageParams, Params};
use crate::reply::{self, Message, Success, created, success};
use haft_platform::Installation;
use haft_platform::tokens::{self, IssuedToken, TokenFields};

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
    /// Whether it administers tenants.
    platform: bool,
    /// The rules of the tools that it may see and call; `null` allows every tool.
    #[schema(required)]
    tools: Option<Vec<String>>,
    /// How many calls it may make; `null` for no limit.
    #[schema(required)]
    rate_limit: Option<RateBody>,
    created_at: Timestamp,
    #[schema(required)]
    expires_at: Option<Timestamp>,
    /// When it was last used; `null` if never. Other nodes report a use within a minute.
    #[schema(required)]
    last_used_at: Option<Timestamp>,
    /// When the value before the last rotation stops working; `null` if it does not work.
    #[schema(required)]
    previous_expires_at: Option<Timestamp>,
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

impl CreatedToken {
    fn new(app: &Installation, issued: &IssuedToken) -> Self {
        Self { record: view(app, &issued.record), token: issued.value.expose().to_owned() }
    }
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
#[utoipa::path(
    get, path = "/tokens", tag = "tokens",
    params(
        PageParams,
        ("tenant" = Option<String>, Query, description = "The tenant, for platform admins; default: your own", example = "default"),
    ),
    responses((status = 200, body = Success<TokenList>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn list(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    params: Params,
) -> Result<Response, ApiError> {
    identity.require(Role::Admin)?;
    let page = params.page("tokens")?;
    let all = tokens::list(&app, &identity, params.get("tenant")).await?;
    let total = all.len();
    let (selected, next_page_token) = page.select(all, |token| token.id.to_string());
    let tokens: Vec<_> = selected.iter().map(|token| view(&app, token)).collect();
    Ok(success(TokenList { tokens, total, next_page_token }).into_response())
}

/// Get a token, without its value.
#[utoipa::path(
    get, path = "/tokens/{id}", tag = "tokens", params(("id" = Uuid, Path)),
    responses((status = 200, body = Success<TokenView>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn get(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    identity.require(Role::Admin)?;
    let token = tokens::find(&app, &identity, &id).await?;
    Ok(success(view(&app, &token)).into_response())
}

pub(super) fn view(app: &Installation, token: &TokenRecord) -> TokenView {
    TokenView {
        id: token.id.0,
        name: token.name.clone(),
        tenant: token.tenant.to_string(),
        role: token.role,
        elevated: token.elevated,
        platform: token.platform,
        tools: token.tools.rules(),
        rate_limit: token.rate_limit.map(Into::into),
        created_at: token.created_at,
        expires_at: token.expires_at,
        last_used_at: token.last_used_at.max(app.access().last_use(token.id)),
        previous_expires_at: token.previous.as_ref().map(|old| old.expires_at).filter(|end| app.now() < *end),
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
    /// Whether it administers tenants, for admins of the tenant `default`.
    #[serde(default)]
    platform: bool,
    /// The tools that it may see and call: names, `bundle:name`, `bundle:*`, `tag:name`; default: every tool.
    #[schema(example = json!(["weather", "web:*"]), max_items = 256)]
    tools: Option<Vec<String>>,
    /// How many calls it may make; default: no limit.
    #[serde(default, deserialize_with = "body::optional_object")]
    rate_limit: Option<RateBody>,
    /// The lifetime, for example `12h` or `90d`; default: no expiry.
    #[schema(example = "90d")]
    expires_in: Option<String>,
    /// The tenant; platform admins may name any, others only their own.
    tenant: Option<String>,
}

fn default_role() -> String {
    Role::Caller.as_str().to_owned()
}

/// Create a token; only this response contains its value. No token can create a stronger one.
#[utoipa::path(
    post, path = "/tokens", tag = "tokens", request_body = NewToken,
    responses((status = 201, body = Success<CreatedToken>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn create(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Admin)?;
    let new: NewToken = body.json()?;
    let NewToken { name, role, elevated, platform, tools, rate_limit, expires_in, tenant } = new;
    let rate_limit = rate_limit.map(Into::into);
    let fields = TokenFields { name, role, elevated, platform, tools, rate_limit, expires_in, tenant };
    let issued = tokens::create(&app, &identity, fields).await?;
    Ok(created(CreatedToken::new(&app, &issued)))
}

/// The options of a rotation.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields, expecting = "an object")]
pub(crate) struct RotateToken {
    /// How long the old value works besides the new one, at most `7d`; default: it stops working at once.
    #[schema(example = "10m")]
    grace: Option<String>,
    /// The new lifetime, from now on; default: the expiry stays.
    #[schema(example = "90d")]
    expires_in: Option<String>,
}

/// Replace the value of a token; only this response contains the new one. Sessions that the old value opened end with it.
#[utoipa::path(
    post, path = "/tokens/{id}/rotate", tag = "tokens", params(("id" = Uuid, Path)),
    request_body = Option<RotateToken>,
    responses((status = 200, body = Success<CreatedToken>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn rotate(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Admin)?;
    let RotateToken { grace, expires_in } = body.json_or_default()?;
    let issued = tokens::rotate(&app, &identity, &id, grace.as_deref(), expires_in.as_deref()).await?;
    Ok(success(CreatedToken::new(&app, &issued)).into_response())
}

/// Revoke a token; it stops working immediately, and its sessions end.
#[utoipa::path(
    delete, path = "/tokens/{id}", tag = "tokens", params(("id" = Uuid, Path)),
    responses((status = 200, body = Success<Message>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn delete(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    tokens::delete(&app, &identity, &id).await?;
    Ok(reply::message("Token deleted"))
}
