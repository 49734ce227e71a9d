//! `/tokens`: access tokens. A token is returned only once, when it is created.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use haft_core::id::TokenId;
use haft_core::outcome::ErrorCode;
use haft_core::principal::AllowList;
use haft_core::secret::Secret;
use haft_core::token::{PreviousToken, Role, TokenRecord};
use haft_core::{Timestamp, duration, hash};
use haft_store::TokenRotation;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::grants;
use super::token_rates::RateBody;
use crate::app::App;
use crate::audit;
use crate::body::{self, Body};
use crate::error::{ApiError, ErrorBody};
use crate::identity::Identity;
use crate::params::{PageParams, Params};
use crate::reply::{self, Message, Success, created, success};

/// The longest time that the old value of a rotated token works.
const MAX_GRACE: Duration = Duration::from_hours(7 * 24);

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
    State(app): State<Arc<App>>,
    identity: Identity,
    params: Params,
) -> Result<Response, ApiError> {
    identity.require(Role::Admin)?;
    let page = params.page("tokens")?;
    let tenant = grants::tenant(&app, &identity, params.get("tenant"))?;
    let mut all: Vec<_> =
        app.store().tokens().await?.into_iter().filter(|token| token.tenant == tenant).collect();
    all.sort_by_key(|token| token.id.to_string());
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
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    identity.require(Role::Admin)?;
    let token = grants::find(&app, &identity, &id).await?;
    Ok(success(view(&app, &token)).into_response())
}

pub(super) fn view(app: &App, token: &TokenRecord) -> TokenView {
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
    let tools = AllowList::try_from(new.tools)
        .map_err(|error| ApiError::bad_request(format!("invalid `tools`: {error}")))?;
    let (token, hash) = generate()?;
    let record = TokenRecord {
        id: TokenId(Uuid::now_v7()),
        tenant: grants::tenant(&app, &identity, new.tenant.as_deref())?,
        name,
        hash,
        role,
        elevated: new.elevated,
        platform: new.platform,
        tools,
        rate_limit: new.rate_limit.as_ref().map(RateBody::check).transpose()?,
        created_at: app.now(),
        expires_at: grants::expiry(&app, &identity, expiry(&app, new.expires_in.as_deref())?).await?,
        last_used_at: None,
        previous: None,
    };
    grants::check(&identity, &record)?;
    app.store().insert_token(&record).await?;
    app.reload_access().await?;
    audit::note(&identity, "token.create", &record.name);
    Ok(created(CreatedToken { record: view(&app, &record), token: token.expose().to_owned() }))
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
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(id): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Admin)?;
    let RotateToken { grace, expires_in } = body.json_or_default()?;
    let record = grants::find(&app, &identity, &id).await?;
    grants::check(&identity, &record)?;
    let grace = grace.map(|grace| lifetime_of("grace", &grace)).transpose()?;
    if grace.is_some_and(|grace| grace > MAX_GRACE) {
        return Err(ApiError::bad_request("invalid `grace`: at most `7d`"));
    }
    let (token, hash) = generate()?;
    let expires_at = match &expires_in {
        Some(_) => expiry(&app, expires_in.as_deref())?,
        None => record.expires_at,
    };
    let expires_at = grants::expiry(&app, &identity, expires_at).await?;
    let previous =
        grace.map(|grace| PreviousToken { hash: record.hash.clone(), expires_at: app.now() + grace });
    let record = TokenRecord { hash, previous, expires_at, ..record };
    let TokenRecord { id, hash, previous, expires_at, .. } = record.clone();
    app.store().rotate_token(TokenRotation { id, hash, previous, expires_at }).await?;
    app.reload_access().await?;
    audit::note(&identity, "token.rotate", &record.name);
    let created = CreatedToken { record: view(&app, &record), token: token.expose().to_owned() };
    Ok(success(created).into_response())
}

/// Generates the value of a token; returns it with its hash.
fn generate() -> Result<(Secret, String), ApiError> {
    let token = crate::local_token::generate()
        .map_err(|_| ApiError::new(ErrorCode::Internal, "the operating system returned no random bytes"))?;
    let hash = hash::of_bytes(token.expose().as_bytes());
    Ok((token, hash))
}

fn expiry(app: &App, expires_in: Option<&str>) -> Result<Option<Timestamp>, ApiError> {
    let Some(text) = expires_in else { return Ok(None) };
    Ok(Some(app.now().checked_add(lifetime(text)?).map_err(|_| too_long())?))
}

/// Parses a lifetime; unlike other durations it may be longer than a day, as in `90d` and `2000h`.
pub(crate) fn lifetime(text: &str) -> Result<Duration, ApiError> {
    lifetime_of("expires_in", text)
}

fn lifetime_of(field: &str, text: &str) -> Result<Duration, ApiError> {
    let whole = |unit: char, seconds: u64| {
        let number: u64 = text.trim().strip_suffix(unit)?.parse().ok()?;
        number.checked_mul(seconds).map(Duration::from_secs)
    };
    let time = match whole('d', 86_400).or_else(|| whole('h', 3600)) {
        Some(time) => time,
        None => duration::parse(text, Duration::from_secs(1)).map_err(|error| {
            ApiError::bad_request(format!("invalid `{field}`: {error}; or a number of days such as `90d`"))
        })?,
    };
    if time.is_zero() {
        return Err(ApiError::bad_request(format!("invalid `{field}`: must be greater than zero")));
    }
    Ok(time)
}

fn too_long() -> ApiError {
    ApiError::bad_request("invalid `expires_in`: too long; omit it for a token that does not expire")
}

/// Revoke a token; it stops working immediately, and its sessions end.
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
    let token = grants::find(&app, &identity, &id).await?;
    grants::check_platform(&identity, &token)?;
    app.store().delete_token(token.id).await?;
    app.reload_access().await?;
    audit::note(&identity, "token.delete", &token.name);
    Ok(reply::message("Token deleted"))
}
