//! `POST /tools/bundles/{id}/publish`.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use haft_api::bundle::{BundlePublication, PublicationAction, PublicationLine};
use haft_core::outcome::ErrorCode;
use haft_core::token::Role;
use haft_core::tool::Status;
use haft_runtime::registry::Entry;
use serde_json::json;

use crate::authentication::Caller;
use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::params::Params;
use crate::reply::{Success, success};
use haft_platform::Installation;
use haft_platform::tools::unpublishable;
use haft_platform::{audit, bundles};

/// Publish the newest revisions of all tools of a bundle: all of them or none. Disabled and deprecated tools stay so.
#[utoipa::path(
    post, path = "/tools/bundles/{id}/publish", tag = "bundles",
    params(("id" = String, Path, description = "Id or slug", example = "demo"),
        ("dry_run" = Option<bool>, Query, description = "Only report what would be done")),
    responses((status = 200, body = Success<BundlePublication>), (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody, description = "A tool cannot be published; `details.tools` has the report"))
)]
pub(crate) async fn publish(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(key): Path<String>,
    params: Params,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let dry_run = params.flag("dry_run")?;
    let bundle = bundles::find(&app, &identity, &key)?;
    identity.require_editor_of(&bundle.tenant)?;
    if bundle.kind.is_read_only() {
        let message = format!("the tools of bundle `{}` are always published", bundle.slug);
        return Err(ApiError::new(ErrorCode::ReadOnly, message));
    }
    bundles::require_enabled(&bundle)?;
    let snapshot = app.registry().snapshot();
    let entries: Vec<Arc<Entry>> = snapshot
        .tools(&identity.tenant)
        .filter(|entry| entry.tool.bundle_id == bundle.id)
        .map(Arc::clone)
        .collect();
    let mut tools = Vec::with_capacity(entries.len());
    for entry in &entries {
        tools.push(line(&app, entry).await);
    }
    let count = |action| tools.iter().filter(|line| line.action == action).count();
    let report = BundlePublication {
        bundle: bundle.slug.to_string(),
        dry_run,
        published: count(PublicationAction::Published),
        unchanged: count(PublicationAction::Unchanged),
        failed: count(PublicationAction::Failed),
        tools,
    };
    if !dry_run {
        if report.failed > 0 {
            return Err(rejected(&report));
        }
        let to_publish = report.tools.iter().zip(&entries);
        let to_publish = to_publish.filter(|(line, _)| line.action == PublicationAction::Published);
        app.store().catalog().publish_tools(to_publish.map(|(_, entry)| entry.tool.id).collect()).await?;
        audit::note(&identity, "bundle.publish", bundle.slug.as_str());
    }
    Ok(success(report).into_response())
}

async fn line(app: &Installation, entry: &Arc<Entry>) -> PublicationLine {
    let tool = &entry.tool;
    let published_revision = tool.published.as_ref().map(|(number, _)| *number);
    let (action, reason) = match tool.status {
        Status::Disabled | Status::Deprecated => (PublicationAction::Skipped, None),
        Status::Published if published_revision == Some(tool.revision) => {
            (PublicationAction::Unchanged, None)
        }
        Status::Draft | Status::Published => match unpublishable(app, entry).await {
            Some(reason) => (PublicationAction::Failed, Some(reason)),
            None => (PublicationAction::Published, None),
        },
    };
    let revision = tool.revision;
    PublicationLine {
        id: tool.id.0,
        tool: entry.qualified.to_string(),
        action,
        published_revision,
        revision,
        reason,
    }
}

fn rejected(report: &BundlePublication) -> ApiError {
    let failed = report.tools.iter().filter(|line| line.action == PublicationAction::Failed);
    let names: Vec<&str> = failed.map(|line| line.tool.as_str()).collect();
    let message = format!(
        "bundle `{}` was not published: {} of its tools cannot be published: {}",
        report.bundle,
        names.len(),
        haft_core::problem::excerpt(&names.join(", "), 300)
    );
    ApiError::new(ErrorCode::NotReady, message).with_details(json!({"tools": report.tools}))
}
