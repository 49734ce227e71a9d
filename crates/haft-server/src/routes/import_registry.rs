//! `POST /import/registry`.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use haft_core::name::BundleSlug;
use haft_core::outcome::ErrorCode;
use haft_core::token::Role;
use serde_json::json;

use crate::authentication::Caller;
use crate::body::Body;
use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::params::Params;
use crate::reply::{Success, success};
use crate::report_view;
use haft_api::import::{RegistryReport, RowAction, RowReport};
use haft_platform::Installation;
use haft_platform::audit;
use haft_platform::importing::registry::RegistryImport;

const SETTING: &str = "import.max_document_bytes";
/// The number of invalid rows in an error.
const MAX_FAILED_ROWS: usize = 100;

/// Import rows of a `tool_registry` table, one JSON object per line: all of them or none. A row that was imported before
/// updates its tool.
#[utoipa::path(
    post, path = "/import/registry", tag = "tools",
    params(
        ("bundle" = Option<String>, Query, description = "The bundle for the tools; default: `user-created`"),
        ("tenant_id" = Option<String>, Query, description = "Only rows of this tenant, and global ones; required if the rows belong to several tenants"),
        ("dry_run" = Option<bool>, Query, description = "Only report what would be done"),
    ),
    request_body(content = String, content_type = "text/plain", description = "JSON Lines: one row per line"),
    responses((status = 200, body = Success<RegistryReport>),
        (status = 400, body = ErrorBody, description = "A row is invalid; `details.rows` has the invalid rows"),
        (status = 409, body = ErrorBody))
)]
pub(crate) async fn registry(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    params: Params,
    request: Request,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let dry_run = params.flag("dry_run")?;
    let bundle = match params.get("bundle") {
        Some(slug) => BundleSlug::new(slug)?,
        None => BundleSlug::user_created(),
    };
    if let Ok(existing) = haft_platform::bundles::find(&app, &identity, bundle.as_str()) {
        haft_platform::bundles::require_enabled(&existing)?;
    }
    let body = Body::read(request, app.settings().import.max_document_bytes, SETTING).await?;
    let tenant_id = params.get("tenant_id");
    let import = RegistryImport { app: &app, identity: &identity, bundle: &bundle, tenant_id };
    let plan = import.plan(body.text()?).await.map_err(ApiError::bad_request)?;
    let rows: Vec<_> = plan.rows.into_iter().map(report_view::row).collect();
    let count = |action| rows.iter().filter(|row| row.action == action).count();
    let report = RegistryReport {
        bundle: bundle.to_string(),
        dry_run,
        created: count(RowAction::Created),
        updated: count(RowAction::Updated),
        unchanged: count(RowAction::Unchanged),
        skipped: count(RowAction::Skipped),
        failed: count(RowAction::Failed),
        rows,
    };
    if !dry_run {
        if report.failed > 0 {
            return Err(rejected(report));
        }
        app.store().catalog().import_tools(identity.tenant.clone(), plan.tools).await?;
        let summary = format!("{}: {} created, {} updated", bundle, report.created, report.updated);
        audit::note(&identity, "import.registry", &summary);
    }
    Ok(success(report).into_response())
}

fn rejected(report: RegistryReport) -> ApiError {
    let message = format!(
        "nothing was imported: {} of {} rows are invalid; see `details.rows`",
        report.failed,
        report.rows.len()
    );
    let failed = report.rows.into_iter().filter(|row| row.action == RowAction::Failed);
    let failed: Vec<RowReport> = failed.take(MAX_FAILED_ROWS).collect();
    ApiError::new(ErrorCode::InvalidDefinition, message).with_details(json!({"rows": failed}))
}
