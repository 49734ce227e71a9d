//! `/chats/{id}/workspace`: the workspace of a chat, with the routes of every workspace.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use haft_core::chat::Chat;
use haft_core::token::Role;
use haft_core::workspace::{WorkspaceName, WorkspaceUse};

use super::workspaces::{
    self, ChangeList, ManifestList, RestoreBody, archive_of, changes_of, diff_of, expected, files_of,
    manifests_of, read_of, restore_of,
};
use crate::authentication::Caller;
use crate::body::Body;
use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::params::{PageParams, Params};
use crate::reply::Success;
use haft_platform::Installation;
use haft_platform::chats::{readable, writable};
use haft_platform::identity::Identity;
use haft_platform::workspaces::{FileEdit, FileListing};

/// Returns the workspace of a chat that the caller may change.
async fn of_chat(
    app: &Installation,
    identity: &Identity,
    id: &str,
) -> Result<(Chat, WorkspaceName), ApiError> {
    opened(app, identity, writable(app, identity, id).await?).await
}

/// Returns the workspace of a chat that the caller may read.
async fn of_readable(
    app: &Installation,
    identity: &Identity,
    id: &str,
) -> Result<(Chat, WorkspaceName), ApiError> {
    opened(app, identity, readable(app, identity, id).await?).await
}

/// Returns the workspace of a chat, which exists from the first time that somebody looks at it.
async fn opened(
    app: &Installation,
    identity: &Identity,
    chat: Chat,
) -> Result<(Chat, WorkspaceName), ApiError> {
    let name = WorkspaceName::Chat(chat.id);
    if app.store().active_manifest(&identity.tenant, &name).await?.is_none() {
        app.store().create_workspace(&identity.tenant, &name).await?;
    }
    Ok((chat, name))
}

/// List the files of a chat.
#[utoipa::path(
    get, path = "/chats/{id}/workspace/files", tag = "chats",
    params(
        ("id" = Uuid, Path),
        ("manifest" = Option<Uuid>, Query, description = "A state; default: the active one"),
        ("path" = Option<String>, Query, description = "Only what is below this folder"),
    ),
    responses((status = 200, body = Success<FileListing>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn files(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
    params: Params,
) -> Result<Response, ApiError> {
    let (_, name) = of_readable(&app, &identity, &id).await?;
    files_of(&app, &identity, &name, &params).await
}

/// Read a file of a chat, or a part of it (`Range: bytes=0-1023`).
#[utoipa::path(
    get, path = "/chats/{id}/workspace/files/{*path}", tag = "chats",
    params(
        ("id" = Uuid, Path), ("path" = String, Path, example = "summary.md"),
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
    Path((id, path)): Path<(String, String)>,
    params: Params,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let (_, name) = of_readable(&app, &identity, &id).await?;
    read_of(&app, &identity, &name, (&path, &params, &headers)).await
}

/// Write a file of a chat. The body is the content.
#[utoipa::path(
    put, path = "/chats/{id}/workspace/files/{*path}", tag = "chats",
    params(
        ("id" = Uuid, Path), ("path" = String, Path, example = "summary.md"),
        ("If-Match" = Option<String>, Header, description = "The `ETag` of the file to replace, or `*` for any file"),
        ("If-None-Match" = Option<String>, Header, description = "`*`: only if there is no such file"),
    ),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses(
        (status = 200, body = Success<WorkspaceUse>), (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody), (status = 413, body = ErrorBody),
    )
)]
pub(crate) async fn write(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path((id, path)): Path<(String, String)>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Caller)?;
    let expected = expected(&headers)?;
    let (chat, name) = of_chat(&app, &identity, &id).await?;
    let edit = FileEdit::Write { path, bytes: body.bytes, expected };
    workspaces::edit(&app, &identity, &name, edit, chat.active_leaf).await
}

/// Delete a file of a chat, or a folder that is empty.
#[utoipa::path(
    delete, path = "/chats/{id}/workspace/files/{*path}", tag = "chats",
    params(
        ("id" = Uuid, Path), ("path" = String, Path, example = "summary.md"),
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
    Path((id, path)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    identity.require(Role::Caller)?;
    let expected = expected(&headers)?;
    let (chat, name) = of_chat(&app, &identity, &id).await?;
    let edit = FileEdit::Delete { path, expected };
    workspaces::edit(&app, &identity, &name, edit, chat.active_leaf).await
}

/// Download the files of a chat as a ZIP archive.
#[utoipa::path(
    get, path = "/chats/{id}/workspace/archive", tag = "chats",
    params(
        ("id" = Uuid, Path),
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
    Path(id): Path<String>,
    params: Params,
) -> Result<Response, ApiError> {
    let (_, name) = of_readable(&app, &identity, &id).await?;
    archive_of(&app, &identity, &name, &params).await
}

/// List the states of the files of a chat, newest first.
#[utoipa::path(
    get, path = "/chats/{id}/workspace/manifests", tag = "chats", params(("id" = Uuid, Path), PageParams),
    responses((status = 200, body = Success<ManifestList>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn manifests(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
    params: Params,
) -> Result<Response, ApiError> {
    let (_, name) = of_readable(&app, &identity, &id).await?;
    manifests_of(&app, &identity, &name, &params).await
}

/// List the files of a chat that differ between two states.
#[utoipa::path(
    get, path = "/chats/{id}/workspace/diff", tag = "chats",
    params(
        ("id" = Uuid, Path),
        ("from" = Uuid, Query, description = "The state before"),
        ("to" = Option<Uuid>, Query, description = "The state after; default: the active one"),
    ),
    responses((status = 200, body = Success<ChangeList>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn diff(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
    params: Params,
) -> Result<Response, ApiError> {
    let (_, name) = of_readable(&app, &identity, &id).await?;
    diff_of(&app, &identity, &name, &params).await
}

/// List what the latest change of the files of a chat changed.
#[utoipa::path(
    get, path = "/chats/{id}/workspace/changes", tag = "chats", params(("id" = Uuid, Path)),
    responses((status = 200, body = Success<ChangeList>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn changes(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let (_, name) = of_readable(&app, &identity, &id).await?;
    changes_of(&app, &identity, &name).await
}

/// Restore an earlier state of the files of a chat; that is a new state with the same files.
#[utoipa::path(
    post, path = "/chats/{id}/workspace/restore", tag = "chats", params(("id" = Uuid, Path)),
    request_body = RestoreBody,
    responses((status = 200, body = Success<WorkspaceUse>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn restore(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Caller)?;
    let (_, name) = of_chat(&app, &identity, &id).await?;
    restore_of(&app, &identity, &name, &body).await
}
