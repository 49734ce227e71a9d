//! `GET /audit`: what was changed, by whom, and what came of it.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use haft_core::Timestamp;
use haft_core::audit::AuditQuery;
use haft_core::page::PageTokenError;
use haft_core::token::Role;
use serde_json::json;

use crate::app::App;
use crate::error::{ApiError, ErrorBody};
use crate::identity::Identity;
use crate::params::Params;
use crate::reply::success;
use crate::routes::tokens;

/// List what was changed, newest first.
#[utoipa::path(
    get, path = "/audit", tag = "audit",
    params(("action" = Option<String>, Query, description = "Such as `tool.update`"),
        ("target" = Option<String>, Query, description = "A part of what it was done to"),
        ("actor" = Option<String>, Query, description = "The name or the id of a token"),
        ("since" = Option<String>, Query, description = "A time like `2026-01-31T12:00:00Z`, or how long ago: `24h`, `7d`"),
        ("page_size" = Option<u32>, Query), ("page_token" = Option<String>, Query),
        ("skip" = Option<u32>, Query), ("limit" = Option<u32>, Query)),
    responses((status = 200, body = Object), (status = 400, body = ErrorBody), (status = 403, body = ErrorBody))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    identity: Identity,
    params: Params,
) -> Result<Response, ApiError> {
    identity.require(Role::Admin)?;
    let page = params.page("audit")?;
    let before = page.after.as_deref().map(str::parse).transpose().map_err(|_| PageTokenError)?;
    let text = |name: &str| params.get(name).map(str::to_owned);
    let query = AuditQuery {
        tenant: identity.tenant.clone(),
        action: text("action"),
        target: text("target"),
        actor: text("actor"),
        since: params.get("since").map(|text| moment(text, app.now())).transpose()?,
        before,
        skip: page.skip,
        limit: page.size,
    };
    let found = app.store().changes(&query).await?;
    let full = u32::try_from(found.records.len()).is_ok_and(|length| length == page.size);
    let next_page_token = found.records.last().filter(|_| full).map(|last| page.token(&last.id.to_string()));
    Ok(success(json!({"records": found.records, "total": found.total, "next_page_token": next_page_token}))
        .into_response())
}

/// Reads a moment, or how long ago it was.
fn moment(text: &str, now: Timestamp) -> Result<Timestamp, ApiError> {
    let ago = || tokens::lifetime(text).ok().and_then(|time| now.checked_sub(time).ok());
    text.parse().ok().or_else(ago).ok_or_else(|| {
        let shown = haft_core::problem::excerpt(text, 60);
        ApiError::bad_request(format!(
            "`since` is `{shown}`; expected a time like `2026-01-31T12:00:00Z`, or how long ago, like `24h` or `7d`"
        ))
    })
}
