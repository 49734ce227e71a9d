//! The files of a workspace and their states: the same routes for named workspaces, below `/workspaces/{name}`, and for
//! those of chats, below `/chats/{id}/workspace`.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Path, RawPathParams, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use haft_core::chat::Chat;
use haft_core::id::{ManifestId, MessageId};
use haft_core::token::Role;
use haft_core::workspace::{ManifestSource, WorkspaceName, WorkspaceUse};
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa::openapi::path::{Operation, Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::{KnownFormat, ObjectBuilder, Required, SchemaFormat, Type};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::workspaces::{file_listing, parse_name};
use crate::authentication::Caller;
use crate::body::Body;
use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::params::{PageParams, Params};
use crate::reply::{Success, success};
use haft_api::workspace::{ChangeList, FileListing, ManifestList};
use haft_platform::Installation;
use haft_platform::audit;
use haft_platform::chats::{readable, writable};
use haft_platform::identity::Identity;
use haft_platform::workspaces::{Expected, FileEdit, FileRange, StateChange};

/// Returns the routes for both kinds of workspaces.
pub(crate) fn router() -> OpenApiRouter<Arc<Installation>> {
    OpenApiRouter::new()
        .nest(
            "/workspaces/{name}",
            described(|operation| describe(operation, "workspaces", name_parameter())),
        )
        .nest("/chats/{id}/workspace", described(describe_for_chat))
}

/// Returns the routes of one kind, with completed descriptions.
fn described(describe: impl Fn(&mut Operation)) -> OpenApiRouter<Arc<Installation>> {
    let mut router = OpenApiRouter::new()
        .routes(routes!(files))
        .routes(routes!(read, write, remove))
        .routes(routes!(archive))
        .routes(routes!(manifests))
        .routes(routes!(diff))
        .routes(routes!(changes))
        .routes(routes!(restore));
    for item in router.get_openapi_mut().paths.paths.values_mut() {
        let operations = [&mut item.get, &mut item.put, &mut item.post, &mut item.delete];
        operations.into_iter().flatten().for_each(&describe);
    }
    router
}

fn describe(operation: &mut Operation, tag: &str, workspace: Parameter) {
    operation.tags = Some(vec![tag.to_owned()]);
    operation.parameters.get_or_insert_default().insert(0, workspace.into());
}

fn describe_for_chat(operation: &mut Operation) {
    describe(operation, "chats", chat_parameter());
    for text in [&mut operation.summary, &mut operation.description].into_iter().flatten() {
        *text = text.replace("a workspace", "a chat");
    }
}

fn name_parameter() -> Parameter {
    let text = ObjectBuilder::new().schema_type(Type::String);
    path_parameter("name").schema(Some(text)).example(Some("report".into())).build()
}

fn chat_parameter() -> Parameter {
    let id = ObjectBuilder::new()
        .schema_type(Type::String)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::Uuid)));
    path_parameter("id").schema(Some(id)).build()
}

fn path_parameter(name: &str) -> ParameterBuilder {
    ParameterBuilder::new().name(name).parameter_in(ParameterIn::Path).required(Required::True)
}

/// The workspace of a request, and its caller.
pub(crate) struct Target {
    identity: Identity,
    name: WorkspaceName,
    /// The message that a change belongs to.
    message: Option<MessageId>,
}

/// A workspace that the caller may read.
pub(crate) struct Readable(Target);

/// A workspace that the caller may change.
pub(crate) struct Writable(Target);

impl FromRequestParts<Arc<Installation>> for Readable {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<Installation>) -> Result<Self, ApiError> {
        let Caller(identity) = Caller::from_request_parts(parts, app).await?;
        match path_reference(parts, app).await? {
            Reference::Name(name) => Ok(Self(Target { identity, name: parse_name(&name)?, message: None })),
            Reference::Chat(id) => {
                let chat = readable(app, &identity, &id).await?;
                Ok(Self(Target::of_chat(app, identity, &chat).await?))
            }
        }
    }
}

impl FromRequestParts<Arc<Installation>> for Writable {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<Installation>) -> Result<Self, ApiError> {
        let Caller(identity) = Caller::from_request_parts(parts, app).await?;
        identity.require(Role::Caller)?;
        match path_reference(parts, app).await? {
            Reference::Name(name) => Ok(Self(Target { identity, name: parse_name(&name)?, message: None })),
            Reference::Chat(id) => {
                let chat = writable(app, &identity, &id).await?;
                Ok(Self(Target::of_chat(app, identity, &chat).await?))
            }
        }
    }
}

impl Target {
    /// Returns the workspace of a chat, and creates it on first access.
    async fn of_chat(app: &Installation, identity: Identity, chat: &Chat) -> Result<Self, ApiError> {
        let name = WorkspaceName::Chat(chat.id);
        if app.store().workspaces().active_manifest(&identity.tenant, &name).await?.is_none() {
            app.store().workspaces().create(&identity.tenant, &name).await?;
        }
        Ok(Self { identity, name, message: chat.active_leaf })
    }
}

/// The workspace in a path.
enum Reference {
    Name(String),
    /// By the id of its chat.
    Chat(String),
}

async fn path_reference(parts: &mut Parts, app: &Arc<Installation>) -> Result<Reference, ApiError> {
    let params = RawPathParams::from_request_parts(parts, app).await;
    let params = params.map_err(|error| ApiError::bad_request(error.to_string()))?;
    let reference = params.iter().find_map(|(key, value)| match key {
        "name" => Some(Reference::Name(value.to_owned())),
        "id" => Some(Reference::Chat(value.to_owned())),
        _ => None,
    });
    reference.ok_or_else(|| ApiError::not_found("workspace", parts.uri.path()))
}

/// The state to restore.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub(crate) struct RestoreBody {
    /// An earlier state of the workspace.
    manifest_id: Uuid,
}

/// List the files of a workspace.
#[utoipa::path(
    get, path = "/files",
    params(
        ("manifest" = Option<Uuid>, Query, description = "A state; default: the active one"),
        ("path" = Option<String>, Query, description = "Only what is below this folder"),
    ),
    responses((status = 200, body = Success<FileListing>), (status = 404, body = ErrorBody))
)]
async fn files(
    State(app): State<Arc<Installation>>,
    Readable(Target { identity, name, .. }): Readable,
    params: Params,
) -> Result<Response, ApiError> {
    let (state, folder) = (manifest_param(&params, "manifest")?, params.get("path"));
    let listing = app.workspaces().files(&identity.tenant, &name, state, folder).await;
    Ok(success(file_listing(listing.map_err(ApiError::outside_call)?)).into_response())
}

/// Read a file of a workspace, or a part of it (`Range: bytes=0-1023`).
#[utoipa::path(
    get, path = "/files/{*path}",
    params(
        ("path" = String, Path, example = "summary.md"),
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
async fn read(
    State(app): State<Arc<Installation>>,
    Readable(Target { identity, name, .. }): Readable,
    Path((_, path)): Path<(String, String)>,
    params: Params,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let part = requested_range(&headers);
    let state = manifest_param(&params, "manifest")?;
    let file = app.workspaces().read(&identity.tenant, &name, state, (&path, part)).await;
    Ok(file_response(&path, file.map_err(ApiError::outside_call)?, part.is_some()))
}

/// Write a file of a workspace. A named workspace is created if necessary. The body is the content.
#[utoipa::path(
    put, path = "/files/{*path}",
    params(
        ("path" = String, Path, example = "summary.md"),
        ("If-Match" = Option<String>, Header, description = "The `ETag` of the file to replace, or `*` for any file"),
        ("If-None-Match" = Option<String>, Header, description = "`*`: only if there is no such file"),
    ),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses(
        (status = 200, body = Success<WorkspaceUse>), (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody), (status = 413, body = ErrorBody),
    )
)]
async fn write(
    State(app): State<Arc<Installation>>,
    Writable(target): Writable,
    Path((_, path)): Path<(String, String)>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let expected = expected(&headers)?;
    edit(&app, target, FileEdit::Write { path, bytes: body.bytes, expected }).await
}

/// Delete a file of a workspace, or a folder that is empty.
#[utoipa::path(
    delete, path = "/files/{*path}",
    params(
        ("path" = String, Path, example = "summary.md"),
        ("If-Match" = Option<String>, Header, description = "The `ETag` of the file to delete"),
    ),
    responses(
        (status = 200, body = Success<WorkspaceUse>), (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody),
    )
)]
async fn remove(
    State(app): State<Arc<Installation>>,
    Writable(target): Writable,
    Path((_, path)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let expected = expected(&headers)?;
    app.workspaces()
        .state(&target.identity.tenant, &target.name, None)
        .await
        .map_err(ApiError::outside_call)?;
    edit(&app, target, FileEdit::Delete { path, expected }).await
}

/// Download the files of a workspace as a ZIP archive.
#[utoipa::path(
    get, path = "/archive",
    params(("manifest" = Option<Uuid>, Query, description = "A state; default: the active one")),
    responses(
        (status = 200, body = Vec<u8>, content_type = "application/zip", description = "The archive"),
        (status = 404, body = ErrorBody), (status = 429, body = ErrorBody),
    )
)]
async fn archive(
    State(app): State<Arc<Installation>>,
    Readable(Target { identity, name, .. }): Readable,
    params: Params,
) -> Result<Response, ApiError> {
    let state = manifest_param(&params, "manifest")?;
    let archive =
        app.workspaces().archive(&identity.tenant, &name, state).await.map_err(ApiError::outside_call)?;
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

/// List the states of the files of a workspace, newest first.
#[utoipa::path(
    get, path = "/manifests", params(PageParams),
    responses((status = 200, body = Success<ManifestList>), (status = 404, body = ErrorBody))
)]
async fn manifests(
    State(app): State<Arc<Installation>>,
    Readable(Target { identity, name, .. }): Readable,
    params: Params,
) -> Result<Response, ApiError> {
    let page = params.page("manifests")?;
    app.workspaces().state(&identity.tenant, &name, None).await.map_err(ApiError::outside_call)?;
    let found = app.store().workspaces().manifests(&identity.tenant, &name, page.after()?, page.size).await?;
    let next_page_token = page.token_after(&found, page.size, |manifest| manifest.info.id.to_string());
    let manifests = found.into_iter().map(|manifest| manifest.info).collect();
    Ok(success(ManifestList { manifests, next_page_token }).into_response())
}

/// List the files that differ between two states of a workspace.
#[utoipa::path(
    get, path = "/diff",
    params(
        ("from" = Uuid, Query, description = "The state before"),
        ("to" = Option<Uuid>, Query, description = "The state after; default: the active one"),
    ),
    responses((status = 200, body = Success<ChangeList>), (status = 404, body = ErrorBody))
)]
async fn diff(
    State(app): State<Arc<Installation>>,
    Readable(Target { identity, name, .. }): Readable,
    params: Params,
) -> Result<Response, ApiError> {
    let from = manifest_param(&params, "from")?;
    let from = from.ok_or_else(|| ApiError::bad_request("missing `from`: the id of a state"))?;
    let to = manifest_param(&params, "to")?;
    let changes = app.workspaces().changes(&identity.tenant, &name, from, to).await;
    Ok(success(ChangeList::from(changes.map_err(ApiError::outside_call)?)).into_response())
}

/// List the files that the latest change of a workspace affected.
#[utoipa::path(
    get, path = "/changes",
    responses((status = 200, body = Success<ChangeList>), (status = 404, body = ErrorBody))
)]
async fn changes(
    State(app): State<Arc<Installation>>,
    Readable(Target { identity, name, .. }): Readable,
) -> Result<Response, ApiError> {
    let changes = app.workspaces().latest_changes(&identity.tenant, &name).await;
    Ok(success(ChangeList::from(changes.map_err(ApiError::outside_call)?)).into_response())
}

/// Restore an earlier state of the files of a workspace; that is a new state with the same files.
#[utoipa::path(
    post, path = "/restore", request_body = RestoreBody,
    responses((status = 200, body = Success<WorkspaceUse>), (status = 404, body = ErrorBody))
)]
async fn restore(
    State(app): State<Arc<Installation>>,
    Writable(Target { identity, name, .. }): Writable,
    body: Body,
) -> Result<Response, ApiError> {
    let RestoreBody { manifest_id } = body.json()?;
    audit::note(&identity, "workspace.restore", &name.to_string());
    let change = StateChange {
        source: ManifestSource::Restore,
        source_ref: Some(manifest_id.to_string()),
        by: identity.name.to_string(),
        message: None,
    };
    let restored = app.workspaces().restore(&identity.tenant, &name, ManifestId(manifest_id), change).await;
    Ok(success(restored.map_err(ApiError::outside_call)?).into_response())
}

async fn edit(app: &Installation, target: Target, edit: FileEdit) -> Result<Response, ApiError> {
    let Target { identity, name, message } = target;
    audit::note(&identity, "workspace.edit", &name.to_string());
    let source = match &edit {
        FileEdit::Write { .. } => ManifestSource::UserUpload,
        FileEdit::Delete { .. } => ManifestSource::Edit,
    };
    let change = StateChange { source, source_ref: None, by: identity.name.to_string(), message };
    let edited = app.workspaces().edit(&identity.tenant, &name, vec![edit], change).await;
    Ok(success(edited.map_err(ApiError::outside_call)?).into_response())
}

fn manifest_param(params: &Params, name: &str) -> Result<Option<ManifestId>, ApiError> {
    params.parsed(name, "the id of a state")
}

/// Returns the precondition of a change of a file, from `If-Match` and `If-None-Match`.
fn expected(headers: &HeaderMap) -> Result<Expected, ApiError> {
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
