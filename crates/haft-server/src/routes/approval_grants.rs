//! `/approval-grants`: approvals that are remembered for later calls.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use haft_core::Timestamp;
use haft_core::approval::{ApprovalGrant, Remember};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::authentication::Caller;
use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::params::{PageParams, Params};
use crate::reply::{self, Message, Success, success};
use haft_platform::Installation;
use haft_platform::approvals;
use haft_platform::identity::Identity;

/// An approval that is remembered for later calls of the same definition of a tool.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ApprovalGrant)]
pub(crate) struct GrantView {
    id: Uuid,
    tool_id: Uuid,
    /// `bundle:name@version`; missing if the tool is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "user-created:deploy@1.0.0")]
    tool: Option<String>,
    /// The cause that it covers: `requires_confirmation`, `elevated_policy` or `rule:NAME`.
    #[schema(example = "requires_confirmation")]
    cause: String,
    /// How far it reaches.
    remember: Remember,
    /// The name of the token that approved.
    #[schema(example = "ada")]
    granted_by: String,
    created_at: Timestamp,
}

/// A page of remembered approvals.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct GrantList {
    grants: Vec<GrantView>,
    #[schema(required)]
    next_page_token: Option<String>,
}

fn view(app: &Installation, identity: &Identity, grant: ApprovalGrant) -> GrantView {
    let snapshot = app.registry().snapshot();
    let tool = snapshot.tool(&identity.tenant, grant.tool_id).map(|entry| entry.qualified.to_string());
    GrantView {
        id: grant.id.0,
        tool_id: grant.tool_id.0,
        tool,
        cause: grant.cause,
        remember: grant.remember,
        granted_by: grant.granted_by,
        created_at: grant.created_at,
    }
}

/// List remembered approvals, newest first. Callers see their own; admins and elevated tokens those of the tenant.
#[utoipa::path(
    get, path = "/approval-grants", tag = "approvals", params(PageParams),
    responses((status = 200, body = Success<GrantList>))
)]
pub(crate) async fn list(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    params: Params,
) -> Result<Response, ApiError> {
    let page = params.page("approval-grants")?;
    let (before, principal) = (page.after()?, approvals::seen_requester(&identity));
    let found =
        app.store().approval_grants(&identity.tenant, principal.as_deref(), before, page.size).await?;
    let next_page_token = page.token_after(&found, page.size, |grant| grant.id.to_string());
    let grants = found.into_iter().map(|grant| view(&app, &identity, grant)).collect();
    Ok(success(GrantList { grants, next_page_token }).into_response())
}

/// Forget a remembered approval: later calls ask again.
#[utoipa::path(
    delete, path = "/approval-grants/{id}", tag = "approvals", params(("id" = Uuid, Path)),
    responses((status = 200, body = Success<Message>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn delete(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    approvals::forget_grant(&app, &identity, &id).await?;
    Ok(reply::message("Remembered approval deleted"))
}
