//! What an import was asked to do.

use haft_core::implementation::Auth;
use haft_core::name::BundleSlug;
use haft_core::outcome::ErrorCode;
use haft_definition::openapi::OperationFilter;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use utoipa::ToSchema;

use crate::body::Body;
use crate::error::ApiError;
use crate::params::Params;

/// A document with what is to be done with it.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ImportBody {
    /// Where the document is fetched from.
    url: Option<String>,
    /// The document, as a text (JSON or YAML) or as a map.
    document: Option<Value>,
    /// The bundle that the tools go to; one after the title of the document where none is given.
    bundle: Option<String>,
    /// Where the operations are, in place of the document's servers.
    base_url: Option<String>,
    /// How all operations prove who sends them, as in the definition of an `http` tool.
    #[schema(value_type = Option<Object>)]
    auth: Option<Auth>,
    /// Take operations with one of these tags.
    tags: Vec<String>,
    /// Take operations whose path begins with one of these.
    paths: Vec<String>,
    /// Take operations whose id or `METHOD /path` fits one of these patterns.
    include: Vec<String>,
    /// Leave out what fits one of these patterns.
    exclude: Vec<String>,
    /// Only say what would be done.
    dry_run: bool,
    /// Delete tools of earlier imports whose operations are gone.
    delete_missing: bool,
}

/// Where a document comes from.
pub(crate) enum Origin {
    /// It is here.
    Text(String),
    /// It is to be fetched.
    Url(String),
}

/// What an import was asked to do.
pub(crate) struct Asked {
    pub(crate) origin: Origin,
    pub(crate) bundle: Option<BundleSlug>,
    pub(crate) base_url: Option<String>,
    pub(crate) auth: Option<Auth>,
    pub(crate) selection: OperationFilter,
    pub(crate) dry_run: bool,
    pub(crate) delete_missing: bool,
}

/// What tells a document from a request that holds one.
#[derive(Deserialize)]
struct Peek {
    openapi: Option<IgnoredAny>,
    swagger: Option<IgnoredAny>,
    url: Option<IgnoredAny>,
    document: Option<IgnoredAny>,
}

/// Reads a request: a body with `url` or `document`, or the document itself with the rest in the query.
pub(crate) fn read(body: &Body, params: &Params) -> Result<Asked, ApiError> {
    if body.media_type.starts_with("multipart/") {
        let message = "a document is not taken out of a multipart form; send the file itself as the body \
                       (`curl --data-binary @openapi.yaml`)";
        return Err(ApiError::new(ErrorCode::UnsupportedMediaType, message));
    }
    if !is_request(body) {
        return bare(body, params);
    }
    let asked: ImportBody = body.json()?;
    let origin = match (asked.url, asked.document) {
        (Some(url), None) => Origin::Url(url),
        (None, Some(Value::String(text))) => Origin::Text(text),
        (None, Some(document)) => Origin::Text(document.to_string()),
        (None, None) => {
            let message =
                "there is no document: give `url`, where it is fetched from, or `document`, which is it";
            return Err(ApiError::bad_request(message));
        }
        (Some(_), Some(_)) => {
            return Err(ApiError::bad_request("give the document by `url` or as `document`, not both"));
        }
    };
    Ok(Asked {
        origin,
        bundle: asked.bundle.as_deref().map(BundleSlug::new).transpose()?,
        base_url: asked.base_url,
        auth: asked.auth,
        selection: OperationFilter {
            tags: asked.tags,
            paths: asked.paths,
            include: asked.include,
            exclude: asked.exclude,
        },
        dry_run: asked.dry_run,
        delete_missing: asked.delete_missing,
    })
}

fn is_request(body: &Body) -> bool {
    let Ok(peek) = serde_json::from_slice::<Peek>(&body.bytes) else { return false };
    // A request that lacks its document is one too: no document has only keys of a request.
    let asks = peek.url.is_some()
        || peek.document.is_some()
        || serde_json::from_slice::<ImportBody>(&body.bytes).is_ok();
    asks && peek.openapi.is_none() && peek.swagger.is_none()
}

fn bare(body: &Body, params: &Params) -> Result<Asked, ApiError> {
    Ok(Asked {
        origin: Origin::Text(body.text()?.to_owned()),
        bundle: params.get("bundle").map(BundleSlug::new).transpose()?,
        base_url: params.get("base_url").map(str::to_owned),
        auth: None,
        selection: OperationFilter {
            tags: params.words("tags"),
            paths: params.words("paths"),
            include: params.words("include"),
            exclude: params.words("exclude"),
        },
        dry_run: params.flag("dry_run")?,
        delete_missing: params.flag("delete_missing")?,
    })
}
