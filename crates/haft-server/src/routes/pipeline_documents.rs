//! `/pipelines/{ref}/documents`: uploads, URLs, folders.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use haft_core::problem::excerpt;
use haft_core::token::Role;
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::authentication::Caller;
use crate::body::Body;
use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::params::{PageParams, Params};
use crate::reply::{self, Message, Success, success};
use haft_api::pipeline::{AddedDocuments, DocumentInfo, DocumentList};
use haft_platform::Installation;
use haft_platform::audit;
use haft_platform::pipelines::documents::{
    self, DocumentSources, add_all, document, form, parse_metadata, upload,
};
use haft_platform::pipelines::find;

/// What a form has besides its files.
const FORM_OVERHEAD: usize = 1 << 20;

/// Documents to add as JSON: one of `text`, `urls` and `path`.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default, expecting = "an object")]
pub(crate) struct NewDocuments {
    /// The text of a document.
    #[schema(example = "# Install\n\nRun the installer.")]
    text: Option<String>,
    /// Its name; the ending decides the format.
    #[schema(example = "install.md", max_length = 1024)]
    name: Option<String>,
    /// Addresses of documents; each is fetched in the background.
    #[schema(example = json!(["https://example.com/guide.html"]))]
    urls: Option<Vec<String>>,
    /// A folder of the machine that haft runs on; platform admins only.
    #[schema(example = "/srv/handbook")]
    path: Option<String>,
    /// Values that queries can filter by: texts, numbers, booleans, and arrays of these.
    #[schema(value_type = Option<std::collections::BTreeMap<String, Value>>)]
    metadata: Option<BTreeMap<String, Value>>,
}

/// List the documents of a pipeline by name.
#[utoipa::path(
    get, path = "/pipelines/{ref}/documents", tag = "retrieval",
    params(("ref" = String, Path, description = "Id or slug", example = "handbook"), PageParams),
    responses((status = 200, body = Success<DocumentList>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn list(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(reference): Path<String>,
    params: Params,
) -> Result<Response, ApiError> {
    let pipeline = find(&app, &identity, &reference).await?;
    let page = params.page("documents")?;
    let documents = app.store().documents().list(&pipeline, &[], page.after.as_deref(), page.size).await?;
    let next_page_token = page.token_after(&documents, page.size, |document| document.name.clone());
    let documents = documents.into_iter().map(Into::into).collect();
    Ok(success(DocumentList { documents, next_page_token }).into_response())
}

/// Add documents: files as `multipart/form-data`; one file as the body with `?name=`; or JSON with a text, URLs or a
/// folder. A document of the same name is replaced. They are read in the background.
#[utoipa::path(
    post, path = "/pipelines/{ref}/documents", tag = "retrieval",
    params(
        ("ref" = String, Path, description = "Id or slug", example = "handbook"),
        ("name" = Option<String>, Query, description = "The name of the document in the body; its ending decides the format", example = "guide.pdf"),
        ("metadata" = Option<String>, Query, description = "A JSON object with values that queries can filter by", example = "{\"team\":\"core\"}"),
    ),
    request_body(content(
        (NewDocuments = "application/json"), (Vec<u8> = "application/octet-stream"), (Vec<u8> = "multipart/form-data"),
    )),
    responses(
        (status = 202, body = Success<AddedDocuments>), (status = 400, body = ErrorBody), (status = 404, body = ErrorBody),
        (status = 413, body = ErrorBody),
    )
)]
pub(crate) async fn add(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(reference): Path<String>,
    params: Params,
    request: Request,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let pipeline = find(&app, &identity, &reference).await?;
    let content_type = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let content_type = content_type.unwrap_or_default().to_owned();
    let limit = app.settings().retrieval.max_document_bytes;
    let is_form = content_type.trim_start().to_ascii_lowercase().starts_with("multipart/form-data");
    let is_json = content_type.trim_start().to_ascii_lowercase().starts_with("application/json");
    let room = if is_form || is_json { limit.saturating_add(FORM_OVERHEAD) } else { limit };
    let body = Body::read(request, room, "retrieval.max_document_bytes").await?;
    audit::note(&identity, "pipeline.add_documents", pipeline.definition.slug.as_str());
    let metadata = query_metadata(&params)?;
    let documents = if is_form {
        add_all(&app, &pipeline, form(&content_type, &body.bytes, metadata, limit)?).await?
    } else if let Some(name) = params.get("name") {
        let media_type = Some(content_type).filter(|text| !text.is_empty()).map(|text| excerpt(&text, 200));
        let new = upload(name, media_type, metadata, body.bytes.to_vec())?;
        add_all(&app, &pipeline, vec![new]).await?
    } else {
        let NewDocuments { text, name, urls, path, metadata } = body.json()?;
        let sources = DocumentSources { text, name, urls, path, metadata };
        documents::add_sources(&app, &identity, &pipeline, sources).await?
    };
    app.retrieval().ingest();
    let documents = documents.into_iter().map(Into::into).collect();
    Ok((StatusCode::ACCEPTED, success(AddedDocuments { documents })).into_response())
}

fn query_metadata(params: &Params) -> Result<BTreeMap<String, Value>, ApiError> {
    Ok(parse_metadata(params.get("metadata").unwrap_or("{}"))?)
}

/// Get a document and how far it is.
#[utoipa::path(
    get, path = "/pipelines/{ref}/documents/{id}", tag = "retrieval",
    params(("ref" = String, Path, description = "Id or slug", example = "handbook"), ("id" = Uuid, Path)),
    responses((status = 200, body = Success<DocumentInfo>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn get(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path((reference, id)): Path<(String, String)>,
) -> Result<Response, ApiError> {
    let pipeline = find(&app, &identity, &reference).await?;
    Ok(success(DocumentInfo::from(document(&app, &pipeline, &id).await?)).into_response())
}

/// Delete a document with its chunks.
#[utoipa::path(
    delete, path = "/pipelines/{ref}/documents/{id}", tag = "retrieval",
    params(("ref" = String, Path, description = "Id or slug", example = "handbook"), ("id" = Uuid, Path)),
    responses((status = 200, body = Success<Message>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn delete(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path((reference, id)): Path<(String, String)>,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let pipeline = find(&app, &identity, &reference).await?;
    let found = documents::delete(&app, &identity, &pipeline, &id).await?;
    Ok(reply::message(format!("Document '{}' deleted", excerpt(&found.name, 100))))
}
