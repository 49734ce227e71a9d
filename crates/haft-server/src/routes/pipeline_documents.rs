//! `/pipelines/{ref}/documents`: uploads, URLs, folders.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use haft_core::id::DocumentId;
use haft_core::outcome::ErrorCode;
use haft_core::problem::excerpt;
use haft_core::retrieval::{DocumentInfo, DocumentSource, MAX_DOCUMENT_NAME, Pipeline};
use haft_core::token::Role;
use haft_retrieval::Metadata;
use haft_store::NewDocument;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use url::Url;
use utoipa::ToSchema;

use super::pipelines::find;
use crate::app::App;
use crate::audit;
use crate::body::Body;
use crate::error::ApiError;
use crate::error_response::ErrorBody;
use crate::identity::Identity;
use crate::params::{PageParams, Params};
use crate::reply::{self, Message, Success, success};
use crate::retrieval::{FolderFile, multipart, read_folder};

/// The most URLs of one request.
const MAX_URLS: usize = 1000;
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

/// The documents that were added.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AddedDocuments {
    /// The documents; they are read in the background.
    documents: Vec<DocumentInfo>,
}

/// A page of documents, by name.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DocumentList {
    documents: Vec<DocumentInfo>,
    #[schema(required)]
    next_page_token: Option<String>,
}

/// List the documents of a pipeline by name.
#[utoipa::path(
    get, path = "/pipelines/{ref}/documents", tag = "retrieval",
    params(("ref" = String, Path, description = "Id or slug", example = "handbook"), PageParams),
    responses((status = 200, body = Success<DocumentList>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(reference): Path<String>,
    params: Params,
) -> Result<Response, ApiError> {
    let pipeline = find(&app, &identity, &reference).await?;
    let page = params.page("documents")?;
    let documents = app.store().documents(&pipeline, &[], page.after.as_deref(), page.size).await?;
    let next_page_token = page.token_after(&documents, page.size, |document| document.name.clone());
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
    State(app): State<Arc<App>>,
    identity: Identity,
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
        add_json(&app, &identity, &pipeline, body.json()?).await?
    };
    app.retrieval().ingest();
    Ok((StatusCode::ACCEPTED, success(AddedDocuments { documents })).into_response())
}

async fn add_json(
    app: &App,
    identity: &Identity,
    pipeline: &Pipeline,
    body: NewDocuments,
) -> Result<Vec<DocumentInfo>, ApiError> {
    let metadata = check_metadata(body.metadata.unwrap_or_default())?;
    match (body.text, body.urls, body.path) {
        (Some(text), None, None) => {
            let name = body.name.unwrap_or_else(|| "document.md".to_owned());
            let new = upload(&name, None, metadata, text.into_bytes())?;
            add_all(app, pipeline, vec![new]).await
        }
        (None, Some(urls), None) => {
            let new = urls_of(urls, &metadata)?;
            add_all(app, pipeline, new).await
        }
        (None, None, Some(path)) => {
            // Whoever reads folders of the machine sees what the server's user sees.
            identity.require_platform()?;
            add_folder(app, pipeline, path, metadata).await
        }
        _ => Err(ApiError::bad_request(
            "expected one of `text`, `urls` and `path`, a form with files, or a file with `?name=`",
        )),
    }
}

async fn add_all(
    app: &App,
    pipeline: &Pipeline,
    new: Vec<NewDocument>,
) -> Result<Vec<DocumentInfo>, ApiError> {
    let mut added = Vec::with_capacity(new.len());
    for document in new {
        added.push(app.store().add_document(pipeline, document).await?);
    }
    Ok(added)
}

fn upload(
    name: &str,
    media_type: Option<String>,
    metadata: BTreeMap<String, Value>,
    content: Vec<u8>,
) -> Result<NewDocument, ApiError> {
    check_name(name)?;
    Ok(NewDocument {
        name: name.to_owned(),
        source: DocumentSource::Upload,
        media_type,
        metadata,
        content: Some(content),
        error: None,
    })
}

fn check_name(name: &str) -> Result<(), ApiError> {
    if name.trim().is_empty() || name.len() > MAX_DOCUMENT_NAME || name.chars().any(char::is_control) {
        let message = format!(
            "invalid `name`: `{}`; expected 1 to {MAX_DOCUMENT_NAME} bytes without control characters",
            excerpt(name, 60)
        );
        return Err(ApiError::bad_request(message));
    }
    Ok(())
}

/// Checks that metadata can be indexed; its sizes are checked with the document.
fn check_metadata(metadata: BTreeMap<String, Value>) -> Result<BTreeMap<String, Value>, ApiError> {
    let value = serde_json::to_value(&metadata).unwrap_or_default();
    if value.to_string().len() > 64 * 1024 {
        return Err(ApiError::bad_request("`metadata` exceeds the limit of 64 KiB"));
    }
    serde_json::from_value::<Metadata>(value).map_err(|_| {
        ApiError::bad_request("invalid `metadata`: expected texts, numbers, booleans, and arrays of these")
    })?;
    Ok(metadata)
}

fn query_metadata(params: &Params) -> Result<BTreeMap<String, Value>, ApiError> {
    parse_metadata(params.get("metadata").unwrap_or("{}"))
}

fn parse_metadata(text: &str) -> Result<BTreeMap<String, Value>, ApiError> {
    let parsed = serde_json::from_str(text);
    check_metadata(parsed.map_err(|error| ApiError::bad_request(format!("invalid `metadata`: {error}")))?)
}

fn form(
    content_type: &str,
    body: &Bytes,
    mut metadata: BTreeMap<String, Value>,
    limit: usize,
) -> Result<Vec<NewDocument>, ApiError> {
    let parts = multipart::parse(content_type, body)
        .map_err(|error| ApiError::bad_request(format!("invalid form: {error}")))?;
    for part in parts.iter().filter(|part| part.file.is_none() && part.field == "metadata") {
        let text = std::str::from_utf8(&part.bytes);
        metadata.extend(parse_metadata(
            text.map_err(|_| ApiError::bad_request("`metadata` is not valid UTF-8"))?,
        )?);
    }
    let mut documents = Vec::new();
    for part in parts {
        let Some(name) = part.file else { continue };
        if part.bytes.len() > limit {
            let message = format!(
                "`{}` has {} bytes; the limit is {limit} (`retrieval.max_document_bytes`)",
                excerpt(&name, 100),
                part.bytes.len()
            );
            return Err(ApiError::new(ErrorCode::TooLarge, message));
        }
        let media_type = part.media_type.map(|text| excerpt(&text, 200));
        documents.push(upload(&name, media_type, metadata.clone(), part.bytes.to_vec())?);
    }
    if documents.is_empty() {
        return Err(ApiError::bad_request("the form has no file"));
    }
    Ok(documents)
}

fn urls_of(urls: Vec<String>, metadata: &BTreeMap<String, Value>) -> Result<Vec<NewDocument>, ApiError> {
    if urls.is_empty() || urls.len() > MAX_URLS {
        return Err(ApiError::bad_request(format!(
            "`urls` has {} URLs; expected 1 to {MAX_URLS}",
            urls.len()
        )));
    }
    let document = |url: String| {
        let invalid =
            |why: &str| ApiError::bad_request(format!("invalid URL `{}`: {why}", excerpt(&url, 200)));
        let parsed = Url::parse(&url).map_err(|error| invalid(&error.to_string()))?;
        if !matches!(parsed.scheme(), "http" | "https") {
            return Err(invalid("expected `http` or `https`"));
        }
        if !parsed.username().is_empty() || parsed.password().is_some() {
            return Err(invalid("a URL with a password would be shown to everyone; remove it"));
        }
        check_name(&url)?;
        let source = DocumentSource::Url { url: url.clone() };
        let metadata = metadata.clone();
        Ok(NewDocument { name: url, source, media_type: None, metadata, content: None, error: None })
    };
    urls.into_iter().map(document).collect()
}

/// Adds the files of a folder, one at a time. Files that are too large are listed with their error.
async fn add_folder(
    app: &App,
    pipeline: &Pipeline,
    path: String,
    metadata: BTreeMap<String, Value>,
) -> Result<Vec<DocumentInfo>, ApiError> {
    let limit = app.settings().retrieval.max_document_bytes;
    let (sender, mut receiver) = tokio::sync::mpsc::channel::<FolderFile>(1);
    let folder = PathBuf::from(&path);
    let reading = tokio::task::spawn_blocking(move || {
        read_folder(&folder, limit, &mut |file| sender.blocking_send(file).map_err(std::io::Error::other))
    });
    let mut added = Vec::new();
    while let Some(FolderFile { name, bytes }) = receiver.recv().await {
        let is_too_large = bytes.len() > limit;
        let error = is_too_large.then(|| {
            format!("document has more than {limit} bytes, the limit (`retrieval.max_document_bytes`)")
        });
        let new = NewDocument {
            name: excerpt(&name, 250),
            source: DocumentSource::Folder { path: path.clone() },
            media_type: None,
            metadata: metadata.clone(),
            content: (!is_too_large).then_some(bytes),
            error,
        };
        added.push(app.store().add_document(pipeline, new).await?);
    }
    let read = reading.await.map_err(|error| ApiError::new(ErrorCode::Internal, error.to_string()))?;
    read.map_err(|error| {
        let message = format!("cannot read the folder `{}`: {error}", excerpt(&path, 200));
        ApiError::bad_request(message)
    })?;
    if added.is_empty() {
        return Err(ApiError::bad_request(format!("the folder `{}` has no files", excerpt(&path, 200))));
    }
    Ok(added)
}

async fn document(app: &App, pipeline: &Pipeline, id: &str) -> Result<DocumentInfo, ApiError> {
    let missing = || ApiError::not_found("document", id);
    let parsed: DocumentId = id.parse().map_err(|_| missing())?;
    app.store().document(pipeline, parsed).await?.ok_or_else(missing)
}

/// Get a document and how far it is.
#[utoipa::path(
    get, path = "/pipelines/{ref}/documents/{id}", tag = "retrieval",
    params(("ref" = String, Path, description = "Id or slug", example = "handbook"), ("id" = Uuid, Path)),
    responses((status = 200, body = Success<DocumentInfo>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn get(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path((reference, id)): Path<(String, String)>,
) -> Result<Response, ApiError> {
    let pipeline = find(&app, &identity, &reference).await?;
    Ok(success(document(&app, &pipeline, &id).await?).into_response())
}

/// Delete a document with its chunks.
#[utoipa::path(
    delete, path = "/pipelines/{ref}/documents/{id}", tag = "retrieval",
    params(("ref" = String, Path, description = "Id or slug", example = "handbook"), ("id" = Uuid, Path)),
    responses((status = 200, body = Success<Message>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path((reference, id)): Path<(String, String)>,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let pipeline = find(&app, &identity, &reference).await?;
    let found = document(&app, &pipeline, &id).await?;
    audit::note(&identity, "pipeline.delete_document", &found.name);
    app.store().delete_document(&pipeline, found.id).await?;
    Ok(reply::message(format!("Document '{}' deleted", excerpt(&found.name, 100))))
}
