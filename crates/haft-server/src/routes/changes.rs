//! `GET /audit`: the audit log.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use haft_core::audit::{AuditQuery, AuditRecord};
use haft_core::token::Role;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::error::ApiError;
use crate::identity::Identity;
use crate::params::{PageParams, Params};
use crate::reply::{Success, success};

/// A page of audit records.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AuditList {
    records: Vec<AuditRecord>,
    /// The number of records that match the filter.
    total: u64,
    #[schema(required)]
    next_page_token: Option<String>,
}

/// List recorded changes, newest first.
#[utoipa::path(
    get, path = "/audit", tag = "audit",
    params(("action" = Option<String>, Query, description = "An action, for example `tool.update`"),
        ("target" = Option<String>, Query, description = "A part of the target"),
        ("actor" = Option<String>, Query, description = "Name or id of a token"),
        ("since" = Option<String>, Query, description = "A time such as `2026-01-31T12:00:00Z`, or a period before now such as `24h` or `7d`"),
        PageParams),
    responses((status = 200, body = Success<AuditList>))
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
        since: params.time("since", app.now())?,
        before: page.after()?,
        skip: page.skip,
        limit: page.size,
    };
    let found = app.store().changes(&query).await?;
    let next_page_token = page.token_after(&found.records, page.size, |record| record.id.to_string());
    Ok(success(AuditList { records: found.records, total: found.total, next_page_token }).into_response())
}
