//! `GET /audit`: the audit log.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use haft_core::Timestamp;
use haft_core::audit::AuditQuery;
use haft_core::token::Role;

use crate::app::App;
use crate::error::{ApiError, ErrorBody};
use crate::identity::Identity;
use crate::params::Params;
use crate::reply;
use crate::routes::tokens;

/// List recorded changes, newest first.
#[utoipa::path(
    get, path = "/audit", tag = "audit",
    params(("action" = Option<String>, Query, description = "An action, for example `tool.update`"),
        ("target" = Option<String>, Query, description = "A part of the target"),
        ("actor" = Option<String>, Query, description = "Name or id of a token"),
        ("since" = Option<String>, Query, description = "A time such as `2026-01-31T12:00:00Z`, or a period before now such as `24h` or `7d`"),
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
    let text = |name: &str| params.get(name).map(str::to_owned);
    let query = AuditQuery {
        tenant: identity.tenant.clone(),
        action: text("action"),
        target: text("target"),
        actor: text("actor"),
        since: params.get("since").map(|text| parse_since(text, app.now())).transpose()?,
        before: page.after()?,
        skip: page.skip,
        limit: page.size,
    };
    let found = app.store().changes(&query).await?;
    let next_page_token = page.token_after(&found.records, page.size, |record| record.id.to_string());
    Ok(reply::list("records", &found.records, found.total, next_page_token.as_deref()))
}

/// Parses a time, or a period before now.
fn parse_since(text: &str, now: Timestamp) -> Result<Timestamp, ApiError> {
    let ago = || tokens::lifetime(text).ok().and_then(|time| now.checked_sub(time).ok());
    text.parse().ok().or_else(ago).ok_or_else(|| {
        let shown = haft_core::problem::excerpt(text, 60);
        ApiError::bad_request(format!(
            "invalid `since`: `{shown}`; expected a time such as `2026-01-31T12:00:00Z`, or a period such as `24h` or `7d`"
        ))
    })
}
