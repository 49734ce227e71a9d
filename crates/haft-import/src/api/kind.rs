//! The kinds of API descriptions.

use std::collections::BTreeMap;

use haft_core::problem::Problem;
use serde_json::{Value, json};

use super::import::{ApiImport, ImportOptions};
use crate::{bruno, graphql, openapi, postman};

/// A kind of API description.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApiKind {
    /// OpenAPI 3, or Swagger 2.0.
    Openapi,
    /// A Postman collection.
    Postman,
    /// A Bruno collection.
    Bruno,
    /// A GraphQL schema.
    Graphql,
}

impl ApiKind {
    /// Every kind.
    pub const ALL: [ApiKind; 4] = [Self::Openapi, Self::Postman, Self::Bruno, Self::Graphql];

    /// Returns the name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Openapi => "openapi",
            Self::Postman => "postman",
            Self::Bruno => "bruno",
            Self::Graphql => "graphql",
        }
    }

    /// Returns the kind with a name; Swagger is read as OpenAPI.
    pub fn from_name(name: &str) -> Option<Self> {
        if name == "swagger" {
            return Some(Self::Openapi);
        }
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

/// The keys that distinguish JSON documents.
#[derive(serde::Deserialize)]
struct TopLevel {
    item: Option<serde::de::IgnoredAny>,
    collection: Option<serde::de::IgnoredAny>,
    files: Option<serde::de::IgnoredAny>,
    data: Option<serde::de::IgnoredAny>,
    #[serde(rename = "__schema")]
    schema: Option<serde::de::IgnoredAny>,
}

/// Returns the kind of a document. A text that is nothing else is read as OpenAPI, whose reader says what is missing.
pub fn detect(text: &str) -> ApiKind {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    if text.starts_with('{') {
        let Ok(top) = serde_json::from_str::<TopLevel>(text) else { return ApiKind::Openapi };
        return if top.item.is_some() || top.collection.is_some() {
            ApiKind::Postman
        } else if top.files.is_some() {
            ApiKind::Bruno
        } else if top.schema.is_some() || top.data.is_some() {
            ApiKind::Graphql
        } else {
            ApiKind::Openapi
        };
    }
    let mut lines = text.lines().map(str::trim_end);
    if lines.clone().any(|line| line == "meta {") && lines.clone().any(|line| line == "}") {
        return ApiKind::Bruno;
    }
    let is_root = |line: &str| {
        ["type Query", "type Mutation", "extend type Query", "schema {", "schema @"]
            .iter()
            .any(|start| line.starts_with(start))
    };
    if lines.any(is_root) { ApiKind::Graphql } else { ApiKind::Openapi }
}

/// Returns whether a file belongs to a collection that is a folder.
pub fn is_collection_file(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name == "bruno.json" || name.rsplit_once('.').is_some_and(|(_, end)| end.eq_ignore_ascii_case("bru"))
}

/// Returns the document of a folder: the paths and texts of the files of its collection.
pub fn files_document<'a>(files: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> String {
    let files = files.into_iter().filter(|(path, _)| is_collection_file(path));
    let texts: BTreeMap<&str, std::borrow::Cow<'_, str>> =
        files.map(|(path, bytes)| (path, String::from_utf8_lossy(bytes))).collect();
    json!({"files": texts}).to_string()
}

/// Imports a document of a kind, or of the kind that it appears to be.
pub fn read(text: &str, kind: Option<ApiKind>, options: &ImportOptions) -> Result<ApiImport, Problem> {
    options.limits.check_size(text.len())?;
    match kind.unwrap_or_else(|| detect(text)) {
        ApiKind::Openapi => openapi::read(text, options),
        ApiKind::Postman => postman::read(text, options),
        ApiKind::Graphql => graphql::read(text, options),
        ApiKind::Bruno => bruno::read(&files(text)?, options),
    }
}

/// Returns the files of a folder, or the only one.
fn files(text: &str) -> Result<BTreeMap<String, String>, Problem> {
    if !text.trim_start().starts_with('{') {
        return Ok(BTreeMap::from([("request.bru".to_owned(), text.to_owned())]));
    }
    let root: Value = serde_json::from_str(text)
        .map_err(|error| Problem::new("", "syntax", format!("not valid JSON: {error}")))?;
    let files = root.get("files").and_then(Value::as_object).ok_or_else(|| {
        let message = "not a Bruno collection: expected a folder of `.bru` files, or a ZIP archive of it";
        Problem::new("files", "not_bruno", message)
    })?;
    let texts = files.iter().filter_map(|(path, text)| Some((path.clone(), text.as_str()?.to_owned())));
    Ok(texts.collect())
}
