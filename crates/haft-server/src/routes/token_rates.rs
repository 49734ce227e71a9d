//! `PATCH /tokens/{id}`: the rate limit of a token.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use haft_core::duration;
use haft_core::limit::CallRate;
use haft_core::token::{Role, TokenRecord};
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use super::grants;
use super::tokens::{TokenView, view};
use crate::app::App;
use crate::audit;
use crate::body::{self, Body};
use crate::error::{ApiError, ErrorBody};
use crate::identity::Identity;
use crate::reply::{Success, success};

/// The most calls of a rate.
const MAX_CALLS: u32 = 1_000_000_000;

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

impl RateBody {
    /// Checks the rate; errors name the field.
    pub(crate) fn check(&self) -> Result<CallRate, ApiError> {
        if !(1..=MAX_CALLS).contains(&self.calls) {
            return Err(ApiError::bad_request(format!(
                "invalid `rate_limit.calls`: {}; expected 1 to {MAX_CALLS}",
                self.calls
            )));
        }
        let period = duration::parse(&self.per, Duration::from_secs(1))
            .map_err(|error| ApiError::bad_request(format!("invalid `rate_limit.per`: {error}")))?;
        if period.is_zero() {
            return Err(ApiError::bad_request(
                "invalid `rate_limit.per`: must be longer than zero, such as `1m`",
            ));
        }
        Ok(CallRate { calls: self.calls, period })
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
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(id): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Admin)?;
    let patch: TokenPatch = body.json()?;
    let token = grants::find(&app, &identity, &id).await?;
    let Some(rate) = patch.rate_limit else {
        return Err(ApiError::bad_request("nothing to change: expected `rate_limit`"));
    };
    let rate_limit = rate.as_ref().map(RateBody::check).transpose()?;
    let token = TokenRecord { rate_limit, ..token };
    grants::check(&identity, &token)?;
    app.store().set_token_rate(token.id, rate_limit).await?;
    app.reload_access().await?;
    audit::note(&identity, "token.update", &token.name);
    Ok(success(view(&app, &token)).into_response())
}
