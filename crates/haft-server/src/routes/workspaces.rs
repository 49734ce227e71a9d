//! `/workspaces`: the folders that calls work in, and their states. The workspaces of chats have the same routes below
//! `/chats/{id}/workspace`.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use haft_core::Timestamp;
use haft_core::id::{ManifestId, MessageId};
use haft_core::token::Role;
use haft_core::workspace::{FileChange, ManifestInfo, ManifestSource, WorkspaceName, WorkspaceUse};
use haft_store::WorkspaceInfo;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::authentication::Caller;
use crate::body::Body;
use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::params::{PageParams, Params};
use crate::reply::{self, Message, Success, success};
use haft_platform::Installation;
use haft_platform::audit;
use haft_platform::identity::Identity;
use haft_platform::workspaces::{Expected, FileEdit, FileListing, FileRange, StateChange};

/// A workspace.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Workspace)]
pub(crate) struct WorkspaceView {
    #[schema(example = "report")]
    name: String,
    /// The active state; `null` before the first one.
    #[schema(required)]
    manifest_id: Option<Uuid>,
    /// The number of files.
    files: u64,
    /// The size of all files together.
    bytes: u64,
    created_at: Timestamp,
    modified_at: Timestamp,
}

impl From<WorkspaceInfo> for WorkspaceView {
    fn from(info: WorkspaceInfo) -> Self {
        Self {
            name: info.name.to_string(),
            manifest_id: info.active.map(|id| id.0),
            files: info.files,
            bytes: info.bytes,
            created_at: info.created_at,
            modified_at: info.modified_at,
        }
    }
}

/// A page of workspaces.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WorkspaceList {
    workspaces: Vec<WorkspaceView>,
    #[schema(required)]
    next_page_token: Option<String>,
}

/// A page of states.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ManifestList {
    manifests: Vec<ManifestInfo>,
    #[schema(required)]
    next_page_token: Option<String>,
}

/// The files that differ between two states.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChangeList {
    changes: Vec<FileChange>,
    total: usize,
}

/// The state to restore.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub(crate) struct RestoreBody {
    /// An earlier state of the workspace.
    manifest_id: Uuid,
}

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
    let found = app.store().workspaces(&identity.tenant, after.as_deref(), page.size).await?;
    let next_page_token = page.token_after(&found, page.size, |workspace| workspace.name.to_string());
    let workspaces = found.into_iter().map(Into::into).collect();
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
    if !app.store().delete_workspace(&identity.tenant, &parsed).await? {
        return Err(ApiError::not_found("workspace", &name));
    }
    app.workspaces().forget(&identity.tenant, &parsed).await;
    Ok(reply::message("Workspace deleted"))
}

/// List the files of a workspace.
#[utoipa::path(
    get, path = "/workspaces/{name}/files", tag = "workspaces",
    params(
        ("name" = String, Path, example = "report"),
        ("manifest" = Option<Uuid>, Query, description = "A state; default: the active one"),
        ("path" = Option<String>, Query, description = "Only what is below this folder"),
    ),
    responses((status = 200, body = Success<FileListing>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn files(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(name): Path<String>,
    params: Params,
) -> Result<Response, ApiError> {
    files_of(&app, &identity, &parse_name(&name)?, &params).await
}

/// Read a file of a workspace, or a part of it (`Range: bytes=0-1023`).
#[utoipa::path(
    get, path = "/workspaces/{name}/files/{*path}", tag = "workspaces",
    params(
        ("name" = String, Path, example = "report"), ("path" = String, Path, example = "summary.md"),
        ("manifest" = Option<Uuid>, Query, description = "A state; default: the active one"),
        ("Range" = Option<String>, Header, description = "`bytes=0-1023`"),
    ),
    responses(
        (status = 200, content(
            (Vec<u8> = "application/octet-stream"), (String = "text/plain"), (Vec<u8> = "image/png"),
            (Vec<u8> = "image/jpeg"), (Vec<u8> = "image/gif"), (Vec<u8> = "image/webp"),
        ), description = "The file"),
        (status = 206, content(
            (Vec<u8> = "application/octet-stream"), (String = "text/plain"), (Vec<u8> = "image/png"),
            (Vec<u8> = "image/jpeg"), (Vec<u8> = "image/gif"), (Vec<u8> = "image/webp"),
        ), description = "The part of the file"),
        (status = 404, body = ErrorBody), (status = 413, body = ErrorBody),
    )
)]
pub(crate) async fn read(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path((name, path)): Path<(String, String)>,
    params: Params,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    read_of(&app, &identity, &parse_name(&name)?, (&path, &params, &headers)).await
}

/// Write a file of a workspace, which is created if necessary. The body is the content.
#[utoipa::path(
    put, path = "/workspaces/{name}/files/{*path}", tag = "workspaces",
    params(
        ("name" = String, Path, example = "report"), ("path" = String, Path, example = "summary.md"),
        ("If-Match" = Option<String>, Header, description = "The `ETag` of the file to replace, or `*` for any file"),
        ("If-None-Match" = Option<String>, Header, description = "`*`: only if there is no such file"),
    ),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses(
        (status = 200, body = Success<WorkspaceUse>), (status = 409, body = ErrorBody),
        (status = 413, body = ErrorBody),
    )
)]
pub(crate) async fn write(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path((name, path)): Path<(String, String)>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Caller)?;
    let (name, expected) = (parse_name(&name)?, expected(&headers)?);
    edit(&app, &identity, &name, FileEdit::Write { path, bytes: body.bytes, expected }, None).await
}

/// Delete a file of a workspace, or a folder that is empty.
#[utoipa::path(
    delete, path = "/workspaces/{name}/files/{*path}", tag = "workspaces",
    params(
        ("name" = String, Path, example = "report"), ("path" = String, Path, example = "summary.md"),
        ("If-Match" = Option<String>, Header, description = "The `ETag` of the file to delete"),
    ),
    responses(
        (status = 200, body = Success<WorkspaceUse>), (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody),
    )
)]
pub(crate) async fn remove(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path((name, path)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    identity.require(Role::Caller)?;
    let (name, expected) = (parse_name(&name)?, expected(&headers)?);
    app.workspaces().state(&identity.tenant, &name, None).await.map_err(ApiError::outside_call)?;
    edit(&app, &identity, &name, FileEdit::Delete { path, expected }, None).await
}

/// Download the files of a workspace as a ZIP archive.
#[utoipa::path(
    get, path = "/workspaces/{name}/archive", tag = "workspaces",
    params(
        ("name" = String, Path, example = "report"),
        ("manifest" = Option<Uuid>, Query, description = "A state; default: the active one"),
    ),
    responses(
        (status = 200, body = Vec<u8>, content_type = "application/zip", description = "The archive"),
        (status = 404, body = ErrorBody), (status = 429, body = ErrorBody),
    )
)]
pub(crate) async fn archive(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(name): Path<String>,
    params: Params,
) -> Result<Response, ApiError> {
    archive_of(&app, &identity, &parse_name(&name)?, &params).await
}

/// List the states of a workspace, newest first.
#[utoipa::path(
    get, path = "/workspaces/{name}/manifests", tag = "workspaces",
    params(("name" = String, Path, example = "report"), PageParams),
    responses((status = 200, body = Success<ManifestList>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn manifests(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(name): Path<String>,
    params: Params,
) -> Result<Response, ApiError> {
    manifests_of(&app, &identity, &parse_name(&name)?, &params).await
}

/// List the files that differ between two states.
#[utoipa::path(
    get, path = "/workspaces/{name}/diff", tag = "workspaces",
    params(
        ("name" = String, Path, example = "report"),
        ("from" = Uuid, Query, description = "The state before"),
        ("to" = Option<Uuid>, Query, description = "The state after; default: the active one"),
    ),
    responses((status = 200, body = Success<ChangeList>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn diff(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(name): Path<String>,
    params: Params,
) -> Result<Response, ApiError> {
    diff_of(&app, &identity, &parse_name(&name)?, &params).await
}

/// List what the latest change of a workspace changed.
#[utoipa::path(
    get, path = "/workspaces/{name}/changes", tag = "workspaces", params(("name" = String, Path, example = "report")),
    responses((status = 200, body = Success<ChangeList>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn changes(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(name): Path<String>,
) -> Result<Response, ApiError> {
    changes_of(&app, &identity, &parse_name(&name)?).await
}

/// Restore an earlier state of a workspace; that is a new state with the same files.
#[utoipa::path(
    post, path = "/workspaces/{name}/restore", tag = "workspaces", params(("name" = String, Path, example = "report")),
    request_body = RestoreBody,
    responses((status = 200, body = Success<WorkspaceUse>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn restore(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(name): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Caller)?;
    restore_of(&app, &identity, &parse_name(&name)?, &body).await
}

pub(super) async fn files_of(
    app: &Installation,
    identity: &Identity,
    name: &WorkspaceName,
    params: &Params,
) -> Result<Response, ApiError> {
    let (state, folder) = (manifest_param(params, "manifest")?, params.get("path"));
    let listing = app
        .workspaces()
        .files(&identity.tenant, name, state, folder)
        .await
        .map_err(ApiError::outside_call)?;
    Ok(success(listing).into_response())
}

pub(super) async fn read_of(
    app: &Installation,
    identity: &Identity,
    name: &WorkspaceName,
    (path, params, headers): (&str, &Params, &HeaderMap),
) -> Result<Response, ApiError> {
    let part = requested_range(headers);
    let state = manifest_param(params, "manifest")?;
    let read = app
        .workspaces()
        .read(&identity.tenant, name, state, (path, part))
        .await
        .map_err(ApiError::outside_call)?;
    Ok(file_response(path, read, part.is_some()))
}

pub(super) async fn archive_of(
    app: &Installation,
    identity: &Identity,
    name: &WorkspaceName,
    params: &Params,
) -> Result<Response, ApiError> {
    let state = manifest_param(params, "manifest")?;
    let archive =
        app.workspaces().archive(&identity.tenant, name, state).await.map_err(ApiError::outside_call)?;
    let mut response = axum::body::Body::from_stream(archive.into_stream()).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/zip"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let file = match name {
        WorkspaceName::Chat(id) => format!("chat-{id}"),
        WorkspaceName::Named(name) => name.to_string(),
    };
    let file: String =
        file.chars().map(|c| if c.is_ascii_alphanumeric() || "-_".contains(c) { c } else { '-' }).collect();
    if let Ok(value) = HeaderValue::from_str(&format!("attachment; filename=\"{file}.zip\"")) {
        headers.insert(header::CONTENT_DISPOSITION, value);
    }
    Ok(response)
}

pub(super) async fn manifests_of(
    app: &Installation,
    identity: &Identity,
    name: &WorkspaceName,
    params: &Params,
) -> Result<Response, ApiError> {
    let page = params.page("manifests")?;
    app.workspaces().state(&identity.tenant, name, None).await.map_err(ApiError::outside_call)?;
    let found = app.store().manifests(&identity.tenant, name, page.after()?, page.size).await?;
    let next_page_token = page.token_after(&found, page.size, |manifest| manifest.info.id.to_string());
    let manifests = found.into_iter().map(|manifest| manifest.info).collect();
    Ok(success(ManifestList { manifests, next_page_token }).into_response())
}

pub(super) async fn diff_of(
    app: &Installation,
    identity: &Identity,
    name: &WorkspaceName,
    params: &Params,
) -> Result<Response, ApiError> {
    let from = manifest_param(params, "from")?;
    let from = from.ok_or_else(|| ApiError::bad_request("missing `from`: the id of a state"))?;
    let to = manifest_param(params, "to")?;
    let changes =
        app.workspaces().changes(&identity.tenant, name, from, to).await.map_err(ApiError::outside_call)?;
    Ok(success(ChangeList { total: changes.len(), changes }).into_response())
}

pub(super) async fn changes_of(
    app: &Installation,
    identity: &Identity,
    name: &WorkspaceName,
) -> Result<Response, ApiError> {
    let changes = app.workspaces().latest_changes(&identity.tenant, name).await;
    let changes = changes.map_err(ApiError::outside_call)?;
    Ok(success(ChangeList { total: changes.len(), changes }).into_response())
}

pub(super) async fn restore_of(
    app: &Installation,
    identity: &Identity,
    name: &WorkspaceName,
    body: &Body,
) -> Result<Response, ApiError> {
    let RestoreBody { manifest_id } = body.json()?;
    audit::note(identity, "workspace.restore", &name.to_string());
    let change = StateChange {
        source: ManifestSource::Restore,
        source_ref: Some(manifest_id.to_string()),
        by: identity.name.to_string(),
        message: None,
    };
    let restored = app
        .workspaces()
        .restore(&identity.tenant, name, ManifestId(manifest_id), change)
        .await
        .map_err(ApiError::outside_call)?;
    Ok(success(restored).into_response())
}

pub(super) async fn edit(
    app: &Installation,
    identity: &Identity,
    name: &WorkspaceName,
    edit: FileEdit,
    message: Option<MessageId>,
) -> Result<Response, ApiError> {
    audit::note(identity, "workspace.edit", &name.to_string());
    let source = match &edit {
        FileEdit::Write { .. } => ManifestSource::UserUpload,
        FileEdit::Delete { .. } => ManifestSource::Edit,
    };
    let change = StateChange { source, source_ref: None, by: identity.name.to_string(), message };
    let edited = app
        .workspaces()
        .edit(&identity.tenant, name, vec![edit], change)
        .await
        .map_err(ApiError::outside_call)?;
    Ok(success(edited).into_response())
}

fn manifest_param(params: &Params, name: &str) -> Result<Option<ManifestId>, ApiError> {
    params.parsed(name, "the id of a state")
}

/// Returns what a change of a file expects to find, by `If-Match` and `If-None-Match`.
pub(super) fn expected(headers: &HeaderMap) -> Result<Expected, ApiError> {
    let text = |name: header::HeaderName| {
        let value = headers.get(&name).map(|value| value.to_str().map(str::trim));
        let invalid = || ApiError::bad_request(format!("invalid value in header `{name}`"));
        value.transpose().map_err(|_| invalid())
    };
    match (text(header::IF_MATCH)?, text(header::IF_NONE_MATCH)?) {
        (None, None) => Ok(Expected::Anything),
        (Some("*"), None) => Ok(Expected::File),
        (None, Some("*")) => Ok(Expected::Nothing),
        (Some(tags), None) => {
            let tags = tags.split(',').map(|tag| {
                let tag = tag.trim().trim_start_matches("W/");
                tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"')).map(str::to_owned)
            });
            let tags: Option<Vec<String>> = tags.collect();
            tags.map(Expected::Hash).ok_or_else(|| {
                ApiError::bad_request("`If-Match` must be `*` or the `ETag` of a file, in quotes")
            })
        }
        _ => Err(ApiError::bad_request("send either `If-Match`, or `If-None-Match: *`")),
    }
}

/// Returns the first byte and the one after the last of `Range: bytes=a-b`; other forms are ignored.
fn requested_range(headers: &HeaderMap) -> Option<(u64, Option<u64>)> {
    let value = headers.get(header::RANGE)?.to_str().ok()?;
    let (start, end) = value.strip_prefix("bytes=")?.split_once('-')?;
    let start: u64 = start.parse().ok()?;
    match end {
        "" => Some((start, None)),
        end => end
            .parse::<u64>()
            .ok()
            .filter(|end| *end >= start)
            .map(|end| (start, Some(end.saturating_add(1)))),
    }
}

/// Returns a response with a file that is shown, never run: nothing but pictures and plain text has a type that a
/// browser displays.
pub(super) fn shown_file(path: &str, bytes: Vec<u8>) -> Response {
    let media_type = match path.rsplit('.').next().map(str::to_ascii_lowercase).as_deref() {
        Some("png") => "image/png",
        Some("jpg" | "jpeg") => "image/jpeg",
        Some("gif") => "image/gif",
        Some("webp") => "image/webp",
        _ if std::str::from_utf8(&bytes).is_ok() => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    };
    let mut response = bytes.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

fn file_response(path: &str, read: FileRange, is_part: bool) -> Response {
    let range = format!("bytes {}-{}/{}", read.range.start, read.range.end.saturating_sub(1), read.total);
    let mut response = shown_file(path, read.bytes);
    if is_part {
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
    }
    let headers = response.headers_mut();
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if let Ok(tag) = HeaderValue::from_str(&format!("\"{}\"", read.hash)) {
        headers.insert(header::ETAG, tag);
    }
    if is_part && let Ok(range) = HeaderValue::from_str(&range) {
        headers.insert(header::CONTENT_RANGE, range);
    }
    response
}
