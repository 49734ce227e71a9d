//! `PATCH /tokens/{id}`: the rate limit and the owner of a token.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use haft_api::token::{TokenPatch, TokenView};
use haft_core::token::Role;

use super::tokens::{rate_text, view};
use crate::actor_view::ActorNames;
use crate::authentication::Caller;
use crate::body::Body;
use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::reply::{Success, success};
use haft_platform::Installation;
use haft_platform::tokens;

/// Change the rate limit of a token, or give one without an owner to somebody. It holds at once, and counted calls stay
/// counted.
#[utoipa::path(
    patch, path = "/tokens/{id}", tag = "tokens", params(("id" = uuid::Uuid, Path)), request_body = TokenPatch,
    responses(
        (status = 200, body = Success<TokenView>),
        (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody),
    )
)]
pub(crate) async fn patch(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Admin)?;
    let patch: TokenPatch = body.json()?;
    if patch.rate_limit.is_none() && patch.owner.is_none() {
        return Err(ApiError::bad_request("nothing to change: expected `rate_limit` or `owner`"));
    }
    let mut token = tokens::find(&app, &identity, &id).await?;
    if let Some(owner) = &patch.owner {
        token = tokens::assign(&app, &identity, token, owner).await?;
    }
    if let Some(rate) = patch.rate_limit {
        token = tokens::set_rate(&app, &identity, token, rate.map(rate_text).as_ref()).await?;
    }
    Ok(success(view(&app, &token, &ActorNames::load(&app, [&token]).await?)).into_response())
}
