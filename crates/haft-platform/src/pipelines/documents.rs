//! Adding and deleting the documents of a pipeline: uploads, URLs, folders.

use std::collections::BTreeMap;
use std::path::PathBuf;

use bytes::Bytes;
use haft_core::id::DocumentId;
use haft_core::outcome::ErrorCode;
use haft_core::problem::excerpt;
use haft_core::retrieval::{DocumentInfo, DocumentSource, MAX_DOCUMENT_NAME, Pipeline};
use haft_retrieval::Metadata;
use haft_store::NewDocument;
use serde_json::Value;
use url::Url;

use super::folder::{FolderFile, read_folder};
use crate::audit;
use crate::context::Context;
use crate::error::ServiceError;
use crate::identity::Identity;
use crate::multipart;

/// The most URLs of one request.
const MAX_URLS: usize = 1000;

/// Adds documents, which are read in the background.
pub async fn add_all(
    app: &Context,
    pipeline: &Pipeline,
    new: Vec<NewDocument>,
) -> Result<Vec<DocumentInfo>, ServiceError> {
    let mut added = Vec::with_capacity(new.len());
    for document in new {
        added.push(app.store().documents().add(pipeline, document).await?);
    }
    Ok(added)
}

/// Returns an uploaded document.
pub fn upload(
    name: &str,
    media_type: Option<String>,
    metadata: BTreeMap<String, Value>,
    content: Vec<u8>,
) -> Result<NewDocument, ServiceError> {
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

fn check_name(name: &str) -> Result<(), ServiceError> {
    if name.trim().is_empty() || name.len() > MAX_DOCUMENT_NAME || name.chars().any(char::is_control) {
        let message = format!(
            "invalid `name`: `{}`; expected 1 to {MAX_DOCUMENT_NAME} bytes without control characters",
            excerpt(name, 60)
        );
        return Err(ServiceError::bad_request(message));
    }
    Ok(())
}

/// Checks that metadata can be indexed; its sizes are checked with the document.
fn check_metadata(metadata: BTreeMap<String, Value>) -> Result<BTreeMap<String, Value>, ServiceError> {
    let value = serde_json::to_value(&metadata).unwrap_or_default();
    if value.to_string().len() > 64 * 1024 {
        return Err(ServiceError::bad_request("`metadata` exceeds the limit of 64 KiB"));
    }
    serde_json::from_value::<Metadata>(value).map_err(|_| {
        ServiceError::bad_request(
            "invalid `metadata`: expected texts, numbers, booleans, and arrays of these",
        )
    })?;
    Ok(metadata)
}

/// Parses metadata: a JSON object whose values can be indexed.
pub fn parse_metadata(text: &str) -> Result<BTreeMap<String, Value>, ServiceError> {
    let parsed = serde_json::from_str(text);
    check_metadata(parsed.map_err(|error| ServiceError::bad_request(format!("invalid `metadata`: {error}")))?)
}

/// Returns the files of a form.
pub fn form(
    content_type: &str,
    body: &Bytes,
    mut metadata: BTreeMap<String, Value>,
    limit: usize,
) -> Result<Vec<NewDocument>, ServiceError> {
    let parts = multipart::parse(content_type, body)
        .map_err(|error| ServiceError::bad_request(format!("invalid form: {error}")))?;
    for part in parts.iter().filter(|part| part.file.is_none() && part.field == "metadata") {
        let text = std::str::from_utf8(&part.bytes);
        metadata.extend(parse_metadata(
            text.map_err(|_| ServiceError::bad_request("`metadata` is not valid UTF-8"))?,
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
            return Err(ServiceError::new(ErrorCode::TooLarge, message));
        }
        let media_type = part.media_type.map(|text| excerpt(&text, 200));
        documents.push(upload(&name, media_type, metadata.clone(), part.bytes.to_vec())?);
    }
    if documents.is_empty() {
        return Err(ServiceError::bad_request("the form has no file"));
    }
    Ok(documents)
}

fn urls_of(urls: Vec<String>, metadata: &BTreeMap<String, Value>) -> Result<Vec<NewDocument>, ServiceError> {
    if urls.is_empty() || urls.len() > MAX_URLS {
        return Err(ServiceError::bad_request(format!(
            "`urls` has {} URLs; expected 1 to {MAX_URLS}",
            urls.len()
        )));
    }
    let document = |url: String| {
        let invalid =
            |why: &str| ServiceError::bad_request(format!("invalid URL `{}`: {why}", excerpt(&url, 200)));
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
    app: &Context,
    pipeline: &Pipeline,
    path: String,
    metadata: BTreeMap<String, Value>,
) -> Result<Vec<DocumentInfo>, ServiceError> {
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
        added.push(app.store().documents().add(pipeline, new).await?);
    }
    let read = reading.await.map_err(|error| ServiceError::new(ErrorCode::Internal, error.to_string()))?;
    read.map_err(|error| {
        let message = format!("cannot read the folder `{}`: {error}", excerpt(&path, 200));
        ServiceError::bad_request(message)
    })?;
    if added.is_empty() {
        return Err(ServiceError::bad_request(format!("the folder `{}` has no files", excerpt(&path, 200))));
    }
    Ok(added)
}

/// Finds a document of a pipeline.
pub async fn document(app: &Context, pipeline: &Pipeline, id: &str) -> Result<DocumentInfo, ServiceError> {
    let missing = || ServiceError::not_found("document", id);
    let parsed: DocumentId = id.parse().map_err(|_| missing())?;
    app.store().documents().get(pipeline, parsed).await?.ok_or_else(missing)
}

/// Documents to add without an upload: one of `text`, `urls` and `path`.
pub struct DocumentSources {
    /// The text of a document.
    pub text: Option<String>,
    /// Its name; the ending decides the format.
    pub name: Option<String>,
    /// Addresses of documents.
    pub urls: Option<Vec<String>>,
    /// A folder of the machine; platform admins only.
    pub path: Option<String>,
    /// Values that queries can filter by.
    pub metadata: Option<BTreeMap<String, Value>>,
}

/// Adds documents that are a text, addresses or a folder.
pub async fn add_sources(
    app: &Context,
    identity: &Identity,
    pipeline: &Pipeline,
    sources: DocumentSources,
) -> Result<Vec<DocumentInfo>, ServiceError> {
    let metadata = check_metadata(sources.metadata.unwrap_or_default())?;
    match (sources.text, sources.urls, sources.path) {
        (Some(text), None, None) => {
            let name = sources.name.unwrap_or_else(|| "document.md".to_owned());
            let new = upload(&name, None, metadata, text.into_bytes())?;
            add_all(app, pipeline, vec![new]).await
        }
        (None, Some(urls), None) => {
            let new = urls_of(urls, &metadata)?;
            add_all(app, pipeline, new).await
        }
        (None, None, Some(path)) => {
            // A caller who reads server folders has the file access of the server's user.
            identity.require_platform()?;
            add_folder(app, pipeline, path, metadata).await
        }
        _ => Err(ServiceError::bad_request(
            "expected one of `text`, `urls` and `path`, a form with files, or a file with `?name=`",
        )),
    }
}

/// Deletes a document with its chunks; returns what it was.
pub async fn delete(
    app: &Context,
    identity: &Identity,
    pipeline: &Pipeline,
    id: &str,
) -> Result<DocumentInfo, ServiceError> {
    let found = document(app, pipeline, id).await?;
    audit::note(identity, "pipeline.delete_document", &found.name);
    app.store().documents().delete(pipeline, found.id).await?;
    Ok(found)
}
