//! `/toolsets`: packages of tools.

use std::path::PathBuf;
use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use haft_core::name::BundleSlug;
use haft_core::token::Role;
use haft_core::toolset::{InstalledToolset, PackageSource};
use haft_package::inspect;
use haft_package::package::Package;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::authentication::Caller;
use crate::body::Body;
use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::package_view;
use crate::params::{PageParams, Params};
use crate::reply::{self, Message, Success, created, success};
use haft_api::toolset::{
    ImportResult, InstalledReport, ToolsetDetail, ToolsetList, ToolsetPreview, ToolsetView,
};
use haft_platform::Installation;
use haft_platform::audit;
use haft_platform::bundles;
use haft_platform::identity::Identity;
use haft_platform::multipart;
use haft_platform::toolsets::{
    InstallOptions, MAX_PACKAGE_BYTES, Origin, export_bundle, export_toolset, fetch_package, install,
    is_readable, open_folder, open_zip, package_of, read_file, rollback, uninstall,
};
use haft_store::ListPage;

/// Where a package comes from. A ZIP file can also be the body itself (`application/zip`).
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default, expecting = "an object")]
pub(crate) struct ImportToolset {
    /// The URL of a ZIP file.
    #[schema(example = "https://example.com/app-builder.zip")]
    url: Option<String>,
    /// A folder of the machine that haft runs on; platform admins only.
    #[schema(example = "/srv/toolsets/app-builder")]
    path: Option<String>,
}

/// Whether a toolset is enabled. Default: true.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default, expecting = "an object")]
pub(crate) struct EnableToolset {
    enabled: bool,
}

impl Default for EnableToolset {
    fn default() -> Self {
        Self { enabled: true }
    }
}

fn view(app: &Installation, identity: &Identity, toolset: InstalledToolset) -> ToolsetView {
    let snapshot = app.registry().snapshot();
    let tools = snapshot.tools(&identity.tenant);
    let own = tools.filter(|entry| entry.tool.tenant == identity.tenant && entry.tool.bundle == toolset.id);
    let tools = own.count();
    let bundle = snapshot.bundles(&identity.tenant).find(|bundle| bundle.slug == toolset.id);
    let enabled = bundle.is_some_and(|bundle| bundle.enabled);
    ToolsetView { toolset, enabled, tools }
}

async fn find(app: &Installation, identity: &Identity, id: &str) -> Result<InstalledToolset, ApiError> {
    let missing = || ApiError::not_found("toolset", id);
    let slug: BundleSlug = id.parse().map_err(|_| missing())?;
    let found = app.store().catalog().toolset(&identity.tenant, &slug).await?;
    found.filter(|found| is_readable(app, identity, &found.id)).ok_or_else(missing)
}

/// List the installed toolsets by id.
#[utoipa::path(
    get, path = "/toolsets", tag = "toolsets", params(PageParams),
    responses((status = 200, body = Success<ToolsetList>))
)]
pub(crate) async fn list(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    params: Params,
) -> Result<Response, ApiError> {
    let page = params.page("toolsets")?;
    // An allow-list is applied to the tools of a toolset, which the store does not know.
    let (found, total, next_page_token) = if identity.principal().tools.is_unlimited() {
        let mut found = app.store().catalog().toolsets(&identity.tenant, &page.of_store()).await?;
        let total = app.store().catalog().toolset_count(&identity.tenant).await?;
        let next_page_token = page.truncate(&mut found, |toolset| toolset.id.to_string());
        (found, total, next_page_token)
    } else {
        let mut found = app.store().catalog().toolsets(&identity.tenant, &ListPage::ALL).await?;
        found.retain(|toolset| is_readable(&app, &identity, &toolset.id));
        let total = found.len();
        let (found, next_page_token) = page.select(found, |toolset| toolset.id.to_string());
        (found, total, next_page_token)
    };
    let toolsets = found.into_iter().map(|toolset| view(&app, &identity, toolset)).collect();
    Ok(success(ToolsetList { toolsets, total, next_page_token }).into_response())
}

/// Install a package, or update the toolset with its id: a ZIP file as the body (`application/zip`), a URL, or a folder.
#[utoipa::path(
    post, path = "/toolsets", tag = "toolsets",
    params(
        ("dry_run" = Option<bool>, Query, description = "Report what would be installed, and install nothing"),
        ("allow_unsandboxed" = Option<bool>, Query, description = "Let tools that ask for it run without isolation"),
    ),
    request_body(content(
        (ImportToolset = "application/json"),
        (Vec<u8> = "application/zip"), (Vec<u8> = "multipart/form-data"),
    )),
    responses(
        (status = 200, body = Success<ImportResult>, description = "What would be installed"),
        (status = 201, body = Success<ImportResult>, description = "What was installed"),
        (status = 400, body = ErrorBody), (status = 409, body = ErrorBody), (status = 413, body = ErrorBody),
    )
)]
pub(crate) async fn import(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    params: Params,
    request: Request,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let (is_preview, allow_unsandboxed) = (params.flag("dry_run")?, params.flag("allow_unsandboxed")?);
    let content_type = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let content_type = content_type.unwrap_or_default().to_owned();
    let body = Body::read(request, MAX_PACKAGE_BYTES, "the package").await?;
    let (package, origin) = match body.media_type.as_str() {
        "multipart/form-data" => open_form(&content_type, &body).await?,
        _ => open(&app, &identity, body).await?,
    };
    let id = package.toolset.id.clone();
    if is_preview {
        let replaces = app.store().catalog().toolset(&identity.tenant, &id).await?;
        let package = inspect::inspect(&package, &app.settings().toolsets.trusted_keys);
        let package = package_view::inspection(package);
        let preview = ImportResult::Preview(Box::new(ToolsetPreview { package, replaces }));
        return Ok(success(preview).into_response());
    }
    if allow_unsandboxed {
        identity.require(Role::Admin)?;
    }
    audit::note(&identity, "toolset.install", id.as_str());
    let report = install(&app, &identity, package, origin, InstallOptions { allow_unsandboxed }).await?;
    Ok(created(ImportResult::Installed(Box::new(package_view::installed(report)))))
}

/// Opens the package of a form: its only file.
async fn open_form(content_type: &str, body: &Body) -> Result<(Package, Origin), ApiError> {
    let parts = multipart::parse(content_type, &body.bytes)
        .map_err(|reason| ApiError::bad_request(format!("invalid multipart form: {reason}")))?;
    let mut files = parts.into_iter().filter(|part| part.file.is_some());
    let (Some(file), None) = (files.next(), files.next()) else {
        return Err(ApiError::bad_request("expected a form with exactly one file, the ZIP of the package"));
    };
    let origin = Origin { kind: PackageSource::Zip, reference: None };
    Ok((open_zip(file.bytes.to_vec()).await?, origin))
}

async fn open(app: &Installation, identity: &Identity, body: Body) -> Result<(Package, Origin), ApiError> {
    let is_zip = body.media_type.ends_with("zip") || body.bytes.starts_with(b"PK\x03\x04");
    if is_zip || body.media_type == "application/octet-stream" {
        let origin = Origin { kind: PackageSource::Zip, reference: None };
        return Ok((open_zip(body.bytes.to_vec()).await?, origin));
    }
    match body.json::<ImportToolset>()? {
        ImportToolset { url: Some(url), path: None } => {
            let package = fetch_package(app, &url).await?;
            Ok((package, Origin { kind: PackageSource::Url, reference: Some(url) }))
        }
        ImportToolset { url: None, path: Some(path) } => {
            // A caller who reads server folders has the file access of the server's user.
            identity.require_platform()?;
            let package = open_folder(PathBuf::from(&path)).await?;
            Ok((package, Origin { kind: PackageSource::Local, reference: Some(path) }))
        }
        _ => Err(ApiError::bad_request(
            "expected a ZIP file (`Content-Type: application/zip`, or the file of a `multipart/form-data` form), or one \
             of `url` and `path`",
        )),
    }
}

/// Get a toolset and what its package contains.
#[utoipa::path(
    get, path = "/toolsets/{id}", tag = "toolsets", params(("id" = String, Path, example = "app-builder")),
    responses((status = 200, body = Success<ToolsetDetail>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn get(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let toolset = find(&app, &identity, &id).await?;
    let package = package_of(&app, &identity, &toolset.package).await?;
    let content = inspect::inspect(&package, &app.settings().toolsets.trusted_keys);
    let content = package_view::inspection(content);
    Ok(success(ToolsetDetail { view: view(&app, &identity, toolset), content }).into_response())
}

/// Uninstall a toolset with its tools, and the MCP servers that came with it and that no other toolset has.
#[utoipa::path(
    delete, path = "/toolsets/{id}", tag = "toolsets", params(("id" = String, Path, example = "app-builder")),
    responses((status = 200, body = Success<Message>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn delete(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let toolset = find(&app, &identity, &id).await?;
    identity.require(if toolset.mcp_servers.is_empty() { Role::Editor } else { Role::Admin })?;
    audit::note(&identity, "toolset.uninstall", &id);
    uninstall(&app, &identity, &toolset.id).await?;
    Ok(reply::message(format!("Toolset '{id}' uninstalled")))
}

/// Enable or disable a toolset.
#[utoipa::path(
    post, path = "/toolsets/{id}/enable", tag = "toolsets", params(("id" = String, Path, example = "app-builder")),
    request_body = Option<EnableToolset>,
    responses((status = 200, body = Success<ToolsetView>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn enable(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let toolset = find(&app, &identity, &id).await?;
    let EnableToolset { enabled } = body.json_or_default()?;
    let snapshot = app.registry().snapshot();
    let bundle =
        snapshot.bundles(&identity.tenant).find(|bundle| bundle.slug == toolset.id).map(|bundle| bundle.id);
    drop(snapshot);
    let bundle = bundle.ok_or_else(|| ApiError::not_found("toolset", &id))?;
    app.store().catalog().enable_bundle(bundle, enabled).await?;
    audit::note(&identity, "toolset.enable", &id);
    Ok(success(view(&app, &identity, toolset)).into_response())
}

/// Install the version that a toolset had before.
#[utoipa::path(
    post, path = "/toolsets/{id}/rollback", tag = "toolsets", params(("id" = String, Path, example = "app-builder")),
    responses(
        (status = 200, body = Success<InstalledReport>), (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody),
    )
)]
pub(crate) async fn roll_back(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let toolset = find(&app, &identity, &id).await?;
    audit::note(&identity, "toolset.rollback", &id);
    let report = rollback(&app, &identity, toolset).await?;
    Ok(success(package_view::installed(report)).into_response())
}

/// Read the URL or folder of a toolset again, and install what is there.
#[utoipa::path(
    post, path = "/toolsets/{id}/update", tag = "toolsets", params(("id" = String, Path, example = "app-builder")),
    responses(
        (status = 200, body = Success<InstalledReport>), (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody),
    )
)]
pub(crate) async fn update(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let toolset = find(&app, &identity, &id).await?;
    let package = match (toolset.source_type, &toolset.source_ref) {
        (PackageSource::Url, Some(url)) => fetch_package(&app, url).await?,
        (PackageSource::Local, Some(path)) => {
            identity.require_platform()?;
            open_folder(PathBuf::from(path)).await?
        }
        _ => {
            let message = format!(
                "toolset `{id}` was uploaded: there is no URL or folder to read again; upload the new version"
            );
            return Err(ApiError::new(haft_core::outcome::ErrorCode::Conflict, message));
        }
    };
    if package.toolset.id != toolset.id {
        let message = format!("the package there is `{}`, not `{id}`", package.toolset.id);
        return Err(ApiError::new(haft_core::outcome::ErrorCode::Conflict, message));
    }
    audit::note(&identity, "toolset.update", &id);
    let origin = Origin { kind: toolset.source_type, reference: toolset.source_ref };
    let report = install(&app, &identity, package, origin, InstallOptions::default()).await?;
    Ok(success(package_view::installed(report)).into_response())
}

/// Export a toolset as a ZIP file, with its tools as they are now. Secrets become `${VAR}`.
#[utoipa::path(
    get, path = "/toolsets/{id}/export", tag = "toolsets", params(("id" = String, Path, example = "app-builder")),
    responses(
        (status = 200, body = Vec<u8>, content_type = "application/zip", description = "The package"),
        (status = 404, body = ErrorBody),
    )
)]
pub(crate) async fn export(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let toolset = find(&app, &identity, &id).await?;
    let archive = export_toolset(&app, &identity, &toolset).await?;
    Ok(zip_response(&format!("{id}-{}.zip", toolset.version), archive))
}

/// Export any bundle as a ZIP file that can be installed as a toolset elsewhere. Secrets become `${VAR}`.
#[utoipa::path(
    get, path = "/tools/bundles/{id}/export", tag = "bundles", params(("id" = String, Path, example = "user-created")),
    responses(
        (status = 200, body = Vec<u8>, content_type = "application/zip", description = "The package"),
        (status = 404, body = ErrorBody),
    )
)]
pub(crate) async fn export_any(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let bundle = bundles::find(&app, &identity, &id)?;
    if !is_readable(&app, &identity, &bundle.slug) {
        return Err(ApiError::not_found("bundle", &id));
    }
    let name = format!("{}.zip", bundle.slug);
    let archive = match app.store().catalog().toolset(&identity.tenant, &bundle.slug).await? {
        Some(toolset) => export_toolset(&app, &identity, &toolset).await?,
        None => export_bundle(&app, &identity, &bundle).await?,
    };
    Ok(zip_response(&name, archive))
}

/// Read a file of a toolset.
#[utoipa::path(
    get, path = "/toolsets/{id}/files/{*path}", tag = "toolsets",
    params(("id" = String, Path, example = "app-builder"), ("path" = String, Path, example = "tools/files.py")),
    responses(
        (status = 200, content(
            (Vec<u8> = "application/octet-stream"), (String = "text/plain"), (Vec<u8> = "image/png"),
            (Vec<u8> = "image/jpeg"), (Vec<u8> = "image/gif"), (Vec<u8> = "image/webp"),
        ), description = "The file"),
        (status = 404, body = ErrorBody),
    )
)]
pub(crate) async fn file(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path((id, path)): Path<(String, String)>,
) -> Result<Response, ApiError> {
    let toolset = find(&app, &identity, &id).await?;
    let bytes = read_file(&app, &toolset.package, &path).await;
    let bytes = bytes.ok_or_else(|| ApiError::not_found("file", &path))?;
    Ok(super::workspace_files::shown_file(&path, bytes))
}

pub(super) fn zip_response(name: &str, archive: Vec<u8>) -> Response {
    let mut response = archive.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/zip"));
    // Names of bundles may have letters of any script.
    let encoded: String = url::form_urlencoded::byte_serialize(name.as_bytes()).collect();
    let disposition =
        format!("attachment; filename=\"package.zip\"; filename*=UTF-8''{}", encoded.replace('+', "%20"));
    if let Ok(value) = HeaderValue::from_str(&disposition) {
        headers.insert(header::CONTENT_DISPOSITION, value);
    }
    response
}
