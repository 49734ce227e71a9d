//! `POST /import/api` and `POST /import/openapi`.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use haft_core::outcome::ErrorCode;
use haft_core::token::Role;
use haft_core::tool::Tool;
use haft_import::api::{self, ApiImport, ApiKind, ImportOptions, Limits};

use crate::authentication::Caller;
use crate::body::Body;
use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::import_request::{DocumentSource, ImportBody};
use crate::params::Params;
use crate::reply::{Success, success};
use crate::report_view;
use haft_api::import::ImportReport;
use haft_platform::Installation;
use haft_platform::audit;
use haft_platform::error::ServiceError;
use haft_platform::identity::Identity;
use haft_platform::importing::{self, ImportRun};

const SETTING: &str = "import.max_document_bytes";

/// Create a tool for each operation of an API description, or update the tools of an earlier import. A description is an
/// OpenAPI 3 or Swagger 2.0 document, a Postman or Bruno collection, or a GraphQL schema or endpoint.
#[utoipa::path(
    post, path = "/import/api", tag = "tools",
    params(
        ("kind" = Option<String>, Query, description = "If the body is the document, as the following parameters: `openapi`, `postman`, `bruno` or `graphql`; default: detected"),
        ("bundle" = Option<String>, Query, description = "The bundle for the tools"),
        ("base_url" = Option<String>, Query, description = "The base URL of the operations, or the GraphQL endpoint"),
        ("tags" = Option<String>, Query, description = "Comma-separated, like `paths`, `include` and `exclude`"),
        ("paths" = Option<String>, Query), ("include" = Option<String>, Query), ("exclude" = Option<String>, Query),
        ("dry_run" = Option<bool>, Query), ("delete_missing" = Option<bool>, Query),
    ),
    request_body(content = ImportBody,
        description = "An object with `url` or `document`; or the document itself, or a ZIP archive of a Bruno collection, with options in the query"),
    responses((status = 200, body = Success<ImportReport>), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody),
        (status = 415, body = ErrorBody))
)]
pub(crate) async fn api(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    params: Params,
    request: Request,
) -> Result<Response, ApiError> {
    import(&app, &identity, &params, request, None).await
}

/// Create a tool for each operation of an OpenAPI document, or update the tools of an earlier import; as `/import/api` with
/// `kind: openapi`.
#[utoipa::path(
    post, path = "/import/openapi", tag = "tools",
    params(
        ("bundle" = Option<String>, Query, description = "If the body is the document, as the following parameters: the bundle for the tools"),
        ("base_url" = Option<String>, Query, description = "The base URL of the operations"),
        ("tags" = Option<String>, Query, description = "Comma-separated, like `paths`, `include` and `exclude`"),
        ("paths" = Option<String>, Query), ("include" = Option<String>, Query), ("exclude" = Option<String>, Query),
        ("dry_run" = Option<bool>, Query), ("delete_missing" = Option<bool>, Query),
    ),
    request_body(content = ImportBody,
        description = "An object with `url` or `document`; or the document itself in JSON or YAML, with options in the query"),
    responses((status = 200, body = Success<ImportReport>), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody),
        (status = 415, body = ErrorBody))
)]
pub(crate) async fn openapi(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    params: Params,
    request: Request,
) -> Result<Response, ApiError> {
    import(&app, &identity, &params, request, Some(ApiKind::Openapi)).await
}

async fn import(
    app: &Installation,
    identity: &Identity,
    params: &Params,
    request: Request,
    default_kind: Option<ApiKind>,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let limit = app.settings().import.max_document_bytes;
    // Escaped in a JSON string, a document may double in size.
    let body = Body::read(request, limit.saturating_mul(2).saturating_add(64 * 1024), SETTING).await?;
    let import_request = crate::import_request::parse(&body, params)?;
    drop(body);
    let mut kind = import_request.kind.or(default_kind);
    let (text, document_url) = match import_request.source {
        DocumentSource::Bytes(bytes) => (importing::document_text(bytes).await?, None),
        DocumentSource::Url(url) => {
            if kind.is_none() && is_graphql_endpoint(&url) {
                kind = Some(ApiKind::Graphql);
            }
            let (text, url) = match kind {
                Some(ApiKind::Graphql) => importing::introspect(app, &url).await?,
                _ => importing::fetch_document(app, &url).await?,
            };
            (text, Some(url))
        }
    };
    let options = ImportOptions {
        base_url: import_request.base_url,
        document_url,
        auth: import_request.auth,
        bundle: import_request.bundle,
        selection: import_request.selection,
        limits: Limits { bytes: limit, ..Limits::default() },
    };
    let import = parse(text, kind, options).await?;
    let bundle = import.bundle.clone();
    if let Ok(existing) = haft_platform::bundles::find(app, identity, bundle.as_str()) {
        haft_platform::bundles::require_enabled(&existing)?;
    }
    let existing = tools(app, identity, bundle.as_str());
    let run = ImportRun {
        app,
        identity,
        bundle,
        dry_run: import_request.dry_run,
        delete_missing: import_request.delete_missing,
    };
    let report = run.run(import, &existing).await?;
    let action = if default_kind.is_some() { "import.openapi" } else { "import.api" };
    audit::note(identity, action, &report.summary());
    Ok(success(report_view::import(report)).into_response())
}

/// Returns whether a URL looks like a GraphQL endpoint, which has no document to fetch.
fn is_graphql_endpoint(url: &str) -> bool {
    let path = url.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
    path.to_ascii_lowercase().ends_with("/graphql")
}

/// Parses the document on the blocking pool: a large one takes a while.
async fn parse(text: String, kind: Option<ApiKind>, options: ImportOptions) -> Result<ApiImport, ApiError> {
    let parsing = tokio::task::spawn_blocking(move || api::read(&text, kind, &options)).await;
    let parsed = parsing.map_err(|error| {
        tracing::error!(%error, "the parser of an API description failed");
        ApiError::new(ErrorCode::Internal, "internal error while parsing the document; see the server log")
    })?;
    parsed.map_err(|problem| {
        let code =
            if problem.code == "too_large" { ErrorCode::TooLarge } else { ErrorCode::InvalidDefinition };
        ServiceError { code, ..ServiceError::invalid_definition(&[problem]) }.into()
    })
}

/// Returns the tools of a bundle.
fn tools(app: &Installation, identity: &Identity, bundle: &str) -> Vec<Tool> {
    let snapshot = app.registry().snapshot();
    let own = snapshot.tools(&identity.tenant).filter(|entry| entry.tool.bundle.as_str() == bundle);
    own.map(|entry| entry.tool.clone()).collect()
}
