//! The request of an import.

use std::collections::HashMap;

use haft_core::implementation::Auth;
use haft_core::name::BundleSlug;
use haft_core::outcome::ErrorCode;
use haft_import::api::{ApiKind, OperationFilter};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::body::Body;
use crate::error::ApiError;
use crate::params::Params;

/// The body of an import request.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields, expecting = "an object")]
pub(crate) struct ImportBody {
    /// The URL of the document.
    #[schema(example = "https://api.example.com/openapi.json")]
    url: Option<String>,
    /// The kind of the document: `openapi` (also Swagger 2.0), `postman`, `bruno` or `graphql`; default: detected. A URL of
    /// the kind `graphql` is the endpoint, which is asked for its schema.
    kind: Option<String>,
    /// The document, as a string (JSON, YAML, GraphQL SDL, `.bru`) or as an object. A Bruno collection is an object with
    /// `files`: the text of each file by its path.
    #[schema(value_type = Option<ImportDocument>)]
    document: Option<Value>,
    /// The bundle for the tools; default: derived from the title of the document.
    bundle: Option<String>,
    /// The base URL of the operations, instead of the document's servers.
    base_url: Option<String>,
    /// Authentication for all operations, as in the definition of an `http` tool.
    auth: Option<Auth>,
    /// Import operations with one of these tags.
    tags: Vec<String>,
    /// Import operations whose path starts with one of these.
    paths: Vec<String>,
    /// Import operations whose id or `METHOD /path` matches one of these patterns.
    include: Vec<String>,
    /// Skip operations that match one of these patterns.
    exclude: Vec<String>,
    /// Report what would be done, and store nothing.
    dry_run: bool,
    /// Delete tools of earlier imports whose operations are no longer in the document.
    delete_missing: bool,
}

/// The document of an import request, as the OpenAPI document shows it.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only describes the body")]
pub(crate) enum ImportDocument {
    /// JSON or YAML.
    Text(String),
    /// The document itself.
    Object(HashMap<String, Value>),
}

/// Where a document comes from.
pub(crate) enum DocumentSource {
    /// The document, or a ZIP archive of a collection.
    Bytes(Vec<u8>),
    /// The URL to fetch it from.
    Url(String),
}

/// A parsed import request.
pub(crate) struct ImportRequest {
    pub(crate) source: DocumentSource,
    pub(crate) kind: Option<ApiKind>,
    pub(crate) bundle: Option<BundleSlug>,
    pub(crate) base_url: Option<String>,
    pub(crate) auth: Option<Auth>,
    pub(crate) selection: OperationFilter,
    pub(crate) dry_run: bool,
    pub(crate) delete_missing: bool,
}

/// The keys that distinguish a document from a request that contains one.
#[derive(Deserialize)]
struct TopLevelKeys {
    openapi: Option<IgnoredAny>,
    swagger: Option<IgnoredAny>,
    url: Option<IgnoredAny>,
    document: Option<IgnoredAny>,
}

/// Parses a request: a body with `url` or `document`, or the document itself with options in the query.
pub(crate) fn parse(body: &Body, params: &Params) -> Result<ImportRequest, ApiError> {
    if body.media_type.starts_with("multipart/") {
        let message = "multipart forms are unsupported; send the document as the request body \
                       (`curl --data-binary @openapi.yaml`)";
        return Err(ApiError::new(ErrorCode::UnsupportedMediaType, message));
    }
    if !is_request(body) {
        return from_document(body, params);
    }
    let request: ImportBody = body.json()?;
    let source = match (request.url, request.document) {
        (Some(url), None) => DocumentSource::Url(url),
        (None, Some(Value::String(text))) => DocumentSource::Bytes(text.into_bytes()),
        (None, Some(document)) => DocumentSource::Bytes(document.to_string().into_bytes()),
        (None, None) => {
            return Err(ApiError::bad_request("missing document: set `url` or `document`"));
        }
        (Some(_), Some(_)) => {
            return Err(ApiError::bad_request("set either `url` or `document`, not both"));
        }
    };
    Ok(ImportRequest {
        source,
        kind: kind(request.kind.as_deref())?,
        bundle: request.bundle.as_deref().map(BundleSlug::new).transpose()?,
        base_url: request.base_url,
        auth: request.auth,
        selection: OperationFilter {
            tags: request.tags,
            paths: request.paths,
            include: request.include,
            exclude: request.exclude,
        },
        dry_run: request.dry_run,
        delete_missing: request.delete_missing,
    })
}

fn kind(name: Option<&str>) -> Result<Option<ApiKind>, ApiError> {
    let Some(name) = name.filter(|name| !name.is_empty() && *name != "auto") else { return Ok(None) };
    let known = ApiKind::from_name(name).ok_or_else(|| {
        let names = ApiKind::ALL.map(|kind| format!("`{}`", kind.as_str())).join(", ");
        let shown = haft_core::problem::excerpt(name, 40);
        ApiError::bad_request(format!("unknown `kind` `{shown}`; expected one of {names}"))
    })?;
    Ok(Some(known))
}

fn is_request(body: &Body) -> bool {
    let Ok(keys) = serde_json::from_slice::<TopLevelKeys>(&body.bytes) else { return false };
    // A request without a document is still a request: no document consists of request keys only.
    let has_request_keys = keys.url.is_some()
        || keys.document.is_some()
        || serde_json::from_slice::<ImportBody>(&body.bytes).is_ok();
    has_request_keys && keys.openapi.is_none() && keys.swagger.is_none()
}

fn from_document(body: &Body, params: &Params) -> Result<ImportRequest, ApiError> {
    Ok(ImportRequest {
        source: DocumentSource::Bytes(body.bytes.to_vec()),
        kind: kind(params.get("kind"))?,
        bundle: params.get("bundle").map(BundleSlug::new).transpose()?,
        base_url: params.get("base_url").map(str::to_owned),
        auth: None,
        selection: OperationFilter {
            tags: params.list("tags"),
            paths: params.list("paths"),
            include: params.list("include"),
            exclude: params.list("exclude"),
        },
        dry_run: params.flag("dry_run")?,
        delete_missing: params.flag("delete_missing")?,
    })
}
