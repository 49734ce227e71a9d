//! `/workspaces`: the folders that calls work in. The routes of their files are those of every workspace, below
//! `/workspaces/{name}` and `/chats/{id}/workspace`.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use haft_core::token::Role;
use haft_core::workspace::WorkspaceName;
use haft_store::WorkspaceInfo;

use crate::authentication::Caller;
use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::params::{PageParams, Params};
use crate::reply::{self, Message, Success, success};
use haft_api::workspace::{FileListing, ListedFile, ListedKind, WorkspaceList, WorkspaceView};
use haft_platform::Installation;
use haft_platform::audit;
use haft_platform::workspaces;

/// Parses the name of a workspace that a caller chose.
pub(crate) fn parse_name(name: &str) -> Result<WorkspaceName, ApiError> {
    match name.parse() {
        Ok(name @ WorkspaceName::Named(_)) => Ok(name),
        _ => Err(ApiError::not_found("workspace", name)),
    }
}

/// List the workspaces of the tenant by name, without those of chats.
#[utoipa::path(
    get, path = "/workspaces", tag = "workspaces", params(PageParams),
    responses((status = 200, body = Success<WorkspaceList>))
)]
pub(crate) async fn list(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    params: Params,
) -> Result<Response, ApiError> {
    let page = params.page("workspaces")?;
    let after: Option<String> = page.after()?;
    let found = app.store().workspaces().list(&identity.tenant, after.as_deref(), page.size).await?;
    let next_page_token = page.token_after(&found, page.size, |workspace| workspace.name.to_string());
    let workspaces = found.iter().map(view).collect();
    Ok(success(WorkspaceList { workspaces, next_page_token }).into_response())
}

/// Delete a workspace with all its states.
#[utoipa::path(
    delete, path = "/workspaces/{name}", tag = "workspaces", params(("name" = String, Path, example = "report")),
    responses((status = 200, body = Success<Message>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn delete(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(name): Path<String>,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let parsed = parse_name(&name)?;
    audit::note(&identity, "workspace.delete", &name);
    if !app.store().workspaces().delete(&identity.tenant, &parsed).await? {
        return Err(ApiError::not_found("workspace", &name));
    }
    app.workspaces().forget(&identity.tenant, &parsed).await;
    Ok(reply::message("Workspace deleted"))
}

fn view(info: &WorkspaceInfo) -> WorkspaceView {
    WorkspaceView {
        name: info.name.to_string(),
        manifest_id: info.active.map(|id| id.0),
        files: info.files,
        bytes: info.bytes,
        created_at: info.created_at,
        modified_at: info.modified_at,
    }
}

/// Shows the files of a state.
pub(super) fn file_listing(listing: workspaces::FileListing) -> FileListing {
    let workspaces::FileListing { manifest, files, total } = listing;
    FileListing { manifest, files: files.into_iter().map(listed_file).collect(), total }
}

fn listed_file(file: workspaces::ListedFile) -> ListedFile {
    let workspaces::ListedFile { path, kind, size, executable, target, hash } = file;
    let kind = match kind {
        workspaces::ListedKind::File => ListedKind::File,
        workspaces::ListedKind::Folder => ListedKind::Folder,
        workspaces::ListedKind::Link => ListedKind::Link,
    };
    ListedFile { path, kind, size, executable, target, hash }
}
