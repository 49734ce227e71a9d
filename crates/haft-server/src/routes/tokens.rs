//! `/tokens`: access tokens. A token is returned only once, when it is created.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use haft_api::token::{CreatedToken, NewToken, RateBody, RotateToken, TokenList, TokenView};
use haft_core::token::TokenRecord;

use crate::actor_view::ActorNames;
use crate::authentication::Caller;
use crate::body::Body;
use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::params::{PageParams, Params};
use crate::reply::{self, Message, Success, created, success};
use haft_platform::Installation;
use haft_platform::rate_text::RateText;
use haft_platform::tokens::{self, IssuedToken, TokenFields};

fn with_value(app: &Installation, issued: &IssuedToken, names: &ActorNames) -> CreatedToken {
    CreatedToken {
        record: view(app, &issued.record, names),
        token: issued.value.expose().to_owned(),
        warnings: tokens::unmatched_rules(app, &issued.record),
    }
}

/// List tokens, without their values: those of the tenant for admins, their own for other people.
#[utoipa::path(
    get, path = "/tokens", tag = "tokens",
    params(
        PageParams,
        ("tenant" = Option<String>, Query, description = "The tenant, for platform admins; default: your own", example = "default"),
        ("actor" = Option<String>, Query, description = "The id of the person or the service account that they belong to"),
    ),
    responses((status = 200, body = Success<TokenList>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn list(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    params: Params,
) -> Result<Response, ApiError> {
    let page = params.page("tokens")?;
    let all = tokens::list(&app, &identity, params.get("tenant"), params.get("actor")).await?;
    let total = all.len();
    let (selected, next_page_token) = page.select(all, |token| token.id.to_string());
    let names = ActorNames::load(&app, &selected).await?;
    let tokens: Vec<_> = selected.iter().map(|token| view(&app, token, &names)).collect();
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
    tokens::require_token_owner(&identity)?;
    let token = tokens::find(&app, &identity, &id).await?;
    Ok(success(view(&app, &token, &ActorNames::load(&app, [&token]).await?)).into_response())
}

pub(super) fn rate_text(RateBody { calls, per }: RateBody) -> RateText {
    RateText { calls, per }
}

pub(super) fn view(app: &Installation, token: &TokenRecord, names: &ActorNames) -> TokenView {
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
        parent_id: token.parent.map(|parent| parent.0),
        actor: token.actor.and_then(|actor| names.get(actor)),
    }
}

/// Create a token; only this response contains its value. No token can create a stronger one. People who are no admins
/// create tokens of their own.
#[utoipa::path(
    post, path = "/tokens", tag = "tokens", request_body = NewToken,
    responses((status = 201, body = Success<CreatedToken>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn create(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    body: Body,
) -> Result<Response, ApiError> {
    tokens::require_token_owner(&identity)?;
    let new: NewToken = body.json()?;
    let NewToken { name, role, elevated, platform, tools, rate_limit, expires_in, tenant, owner } = new;
    let rate_limit = rate_limit.map(rate_text);
    let fields = TokenFields { name, role, elevated, platform, tools, rate_limit, expires_in, tenant, owner };
    let issued = tokens::create(&app, &identity, fields).await?;
    Ok(created(with_value(&app, &issued, &ActorNames::load(&app, [&issued.record]).await?)))
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
    tokens::require_token_owner(&identity)?;
    let RotateToken { grace, expires_in } = body.json_or_default()?;
    let issued = tokens::rotate(&app, &identity, &id, grace.as_deref(), expires_in.as_deref()).await?;
    Ok(success(with_value(&app, &issued, &ActorNames::load(&app, [&issued.record]).await?)).into_response())
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
