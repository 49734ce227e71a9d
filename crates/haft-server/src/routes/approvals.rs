//! `/approvals`: calls that wait for a person.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use haft_api::approval::{ApprovalList, ApprovalView, ApproveBody, DenyBody};
use haft_core::approval::{Approval, ApprovalStatus};
use haft_core::principal::Principal;
use haft_store::ApprovalQuery;
use serde_json::Value;

use crate::authentication::Caller;
use crate::body::Body;
use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::params::{PageParams, Params};
use crate::reply::{Success, success};
use crate::routes::calls::MAX_LISTED_BYTES;
use haft_platform::Installation;
use haft_platform::approvals::{self, approvable, find, may_decide, preview, seen_requester};

/// How many approvals of a list have a preview: each may compile its tool.
const MAX_PREVIEWS: usize = 100;

fn view(app: &Installation, approval: Approval, viewer: &Principal) -> ApprovalView {
    let may_decide = may_decide(app, &approval, viewer);
    ApprovalView::new(approval, may_decide)
}

/// Creates the view with a preview of the call.
async fn view_with_preview(app: &Installation, approval: Approval, viewer: &Principal) -> ApprovalView {
    let preview = preview(app, &approval).await;
    ApprovalView { preview, ..view(app, approval, viewer) }
}

/// Leaves out long arguments.
fn shorten(view: &mut ApprovalView) {
    let is_long = |value: &Value| value.to_string().len() > MAX_LISTED_BYTES;
    if is_long(&view.args) {
        (view.args, view.shortened) = (Value::Null, true);
    }
    if view.requested_args.as_ref().is_some_and(is_long) {
        (view.requested_args, view.shortened) = (None, true);
    }
}

/// List approvals, newest first. Callers see their own requests; admins and elevated tokens all of the tenant.
#[utoipa::path(
    get, path = "/approvals", tag = "approvals",
    params(("status" = Option<ApprovalStatus>, Query, description = "Only approvals in this state"), PageParams),
    responses((status = 200, body = Success<ApprovalList>))
)]
pub(crate) async fn list(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    params: Params,
) -> Result<Response, ApiError> {
    let page = params.page("approvals")?;
    let statuses = "`waiting`, `approved`, `denied`, `expired`, `cancelled`";
    let query = ApprovalQuery {
        tenant: identity.tenant.clone(),
        status: params.choice("status", ApprovalStatus::parse, statuses)?,
        requested_by: seen_requester(&identity),
        before: page.after()?,
        limit: page.size,
    };
    let (approvals, total) = app.store().approvals().list(query).await?;
    let next_page_token = page.token_after(&approvals, page.size, |approval| approval.id.to_string());
    let mut views = Vec::with_capacity(approvals.len());
    for (index, approval) in approvals.into_iter().enumerate() {
        let mut view = if index < MAX_PREVIEWS {
            view_with_preview(&app, approval, &identity).await
        } else {
            view(&app, approval, &identity)
        };
        shorten(&mut view);
        views.push(view);
    }
    Ok(success(ApprovalList { approvals: views, total, next_page_token }).into_response())
}

/// Return one approval.
#[utoipa::path(
    get, path = "/approvals/{id}", tag = "approvals", params(("id" = Uuid, Path)),
    responses((status = 200, body = Success<ApprovalView>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn get(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let approval = find(&app, &identity, &id).await?;
    Ok(success(view_with_preview(&app, approval, &identity).await).into_response())
}

/// Approve a call; it runs once, on the revision that was shown.
#[utoipa::path(
    post, path = "/approvals/{id}/approve", tag = "approvals", params(("id" = Uuid, Path)),
    request_body = Option<ApproveBody>,
    responses((status = 200, body = Success<ApprovalView>), (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody), (status = 409, body = ErrorBody))
)]
pub(crate) async fn approve(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    let approval = approvable(&app, &identity, &id).await?;
    let ApproveBody { args, remember } = body.json_or_default()?;
    let decided = approvals::approve(&app, &identity, &approval, args, remember).await?;
    Ok(success(view(&app, decided, &identity)).into_response())
}

/// Deny a call; it never runs.
#[utoipa::path(
    post, path = "/approvals/{id}/deny", tag = "approvals", params(("id" = Uuid, Path)),
    request_body = Option<DenyBody>,
    responses((status = 200, body = Success<ApprovalView>), (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody), (status = 409, body = ErrorBody))
)]
pub(crate) async fn deny(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    let approval = approvable(&app, &identity, &id).await?;
    let DenyBody { reason } = body.json_or_default()?;
    let decided = approvals::deny(&app, &identity, &approval, reason).await?;
    Ok(success(view(&app, decided, &identity)).into_response())
}
