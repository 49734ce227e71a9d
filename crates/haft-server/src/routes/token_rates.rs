//! `PATCH /tokens/{id}`: the rate limit of a token.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use haft_core::duration;
use haft_core::limit::CallRate;
use haft_core::token::Role;
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use super::tokens::{TokenView, view};
use crate::authentication::Caller;
use crate::body::{self, Body};
use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::reply::{Success, success};
use haft_platform::Installation;
use haft_platform::tokens::{self, RateText};

/// A number of calls per period.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub(crate) struct RateBody {
    /// The number of calls.
    #[schema(example = 60, minimum = 1, maximum = 1_000_000_000)]
    calls: u32,
    /// The period, a duration such as `1m`, at most a day.
    #[schema(example = "1m")]
    per: String,
}

impl From<RateBody> for RateText {
    fn from(RateBody { calls, per }: RateBody) -> Self {
        Self { calls, per }
    }
}

impl From<CallRate> for RateBody {
    fn from(rate: CallRate) -> Self {
        Self { calls: rate.calls, per: duration::format(rate.period) }
    }
}

/// Changes of a token.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub(crate) struct TokenPatch {
    /// How many calls it may make; `null` removes the limit.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<RateBody>)]
    #[expect(clippy::option_option, reason = "missing, null, or a rate")]
    rate_limit: Option<Option<RateBody>>,
}

/// Reads a field that is there, so that `null` differs from a missing one.
#[expect(clippy::option_option, reason = "missing, null, or a rate")]
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<RateBody>>, D::Error> {
    body::optional_object(deserializer).map(Some)
}

/// Change the rate limit of a token. It holds at once, and counted calls stay counted.
#[utoipa::path(
    patch, path = "/tokens/{id}", tag = "tokens", params(("id" = uuid::Uuid, Path)), request_body = TokenPatch,
    responses((status = 200, body = Success<TokenView>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn patch(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Admin)?;
    let patch: TokenPatch = body.json()?;
    let token = tokens::find(&app, &identity, &id).await?;
    let Some(rate) = patch.rate_limit else {
        return Err(ApiError::bad_request("nothing to change: expected `rate_limit`"));
    };
    let token = tokens::set_rate(&app, &identity, token, rate.map(RateText::from).as_ref()).await?;
    Ok(success(view(&app, &token)).into_response())
}
