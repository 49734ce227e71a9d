//! `POST /import/openapi`.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use haft_core::outcome::ErrorCode;
use haft_core::token::Role;
use haft_core::tool::Tool;
use haft_definition::openapi::{self, ImportOptions, Limits, OpenApiImport};

use crate::app::App;
use crate::body::Body;
use crate::error::{ApiError, ErrorBody};
use crate::identity::Identity;
use crate::importing::{self, ImportBody, Origin, Plan, Report};
use crate::params::Params;
use crate::reply::{Success, success};

const SETTING: &str = "import.max_document_bytes";

/// Make a tool of every operation of an OpenAPI document, or bring those of an earlier import up to date.
#[utoipa::path(
    post, path = "/import/openapi", tag = "tools",
    params(
        ("bundle" = Option<String>, Query), ("base_url" = Option<String>, Query),
        ("tags" = Option<String>, Query, description = "Separated by commas, as are the next three"),
        ("paths" = Option<String>, Query), ("include" = Option<String>, Query), ("exclude" = Option<String>, Query),
        ("dry_run" = Option<bool>, Query), ("delete_missing" = Option<bool>, Query),
    ),
    request_body(content = ImportBody,
        description = "A map with `url` or `document`; or the document itself, JSON or YAML, with the rest in the query"),
    responses((status = 200, body = Success<Report>), (status = 400, body = ErrorBody), (status = 413, body = ErrorBody))
)]
pub(crate) async fn openapi(
    State(app): State<Arc<App>>,
    identity: Identity,
    params: Params,
    request: Request,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let most = app.settings().import.max_document_bytes;
    // Within a text of JSON many characters are two.
    let body = Body::read(request, most.saturating_mul(2).saturating_add(64 * 1024), SETTING).await?;
    let asked = importing::read(&body, &params)?;
    drop(body);
    let (text, document_url) = match asked.origin {
        Origin::Text(text) => (text, None),
        Origin::Url(url) => {
            let (text, from) = importing::document(&app, &url).await?;
            (text, Some(from))
        }
    };
    let options = ImportOptions {
        base_url: asked.base_url,
        document_url,
        auth: asked.auth,
        bundle: asked.bundle,
        selection: asked.selection,
        limits: Limits { bytes: most, ..Limits::default() },
    };
    let import = read(text, options).await?;
    let bundle = import.bundle.clone();
    if let Ok(existing) = super::bundles::find(&app, &identity, bundle.as_str()) {
        super::bundles::refuse_disabled(&existing)?;
    }
    let existing = tools(&app, &identity, bundle.as_str());
    let plan = Plan {
        app: &app,
        identity: &identity,
        bundle,
        dry_run: asked.dry_run,
        delete_missing: asked.delete_missing,
    };
    let report = plan.run(import, &existing).await?;
    app.audit(&identity, "import.openapi", &report.summary());
    Ok(success(report).into_response())
}

/// Reads the document away from the threads that serve others: a large one takes its time.
async fn read(text: String, options: ImportOptions) -> Result<OpenApiImport, ApiError> {
    let reading = tokio::task::spawn_blocking(move || openapi::read(&text, &options)).await;
    let read = reading.map_err(|error| {
        tracing::error!(%error, "a document could not be read");
        ApiError::new(ErrorCode::Internal, "the document could not be read; see the log")
    })?;
    read.map_err(|problem| {
        let code =
            if problem.code == "too_large" { ErrorCode::TooLarge } else { ErrorCode::InvalidDefinition };
        ApiError { code, ..ApiError::invalid_definition(&[problem]) }
    })
}

/// Returns the tools of a bundle.
fn tools(app: &App, identity: &Identity, bundle: &str) -> Vec<Tool> {
    let snapshot = app.registry().snapshot();
    let own = snapshot.tools(&identity.tenant).filter(|entry| entry.tool.bundle.as_str() == bundle);
    own.map(|entry| entry.tool.clone()).collect()
}
