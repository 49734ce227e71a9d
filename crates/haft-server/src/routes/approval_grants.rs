//! `/approval-grants`: approvals that are remembered for later calls.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use haft_api::approval::{GrantList, GrantView};
use haft_core::approval::ApprovalGrant;

use crate::authentication::Caller;
use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::params::{PageParams, Params};
use crate::reply::{self, Message, Success, success};
use haft_platform::Installation;
use haft_platform::approvals;
use haft_platform::identity::Identity;

fn view(app: &Installation, identity: &Identity, grant: ApprovalGrant) -> GrantView {
    let snapshot = app.registry().snapshot();
    let tool = snapshot.tool(&identity.tenant, grant.tool_id).map(|entry| entry.qualified.to_string());
    GrantView::new(grant, tool)
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
        app.store().approvals().grants(&identity.tenant, principal.as_deref(), before, page.size).await?;
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
