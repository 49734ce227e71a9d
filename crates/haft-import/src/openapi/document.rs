//! Reads an OpenAPI document and resolves its references.

use std::collections::HashSet;

use serde_json::{Map, Value};

use haft_core::problem::{Problem, excerpt};
use haft_definition::dialect::{Bounds, read_foreign};

/// The default maximum size of a document, in bytes.
pub const MAX_DOCUMENT: usize = 32 * 1024 * 1024;
/// The maximum length of a chain of references.
const MAX_CHAIN: usize = 32;
/// The supported methods.
const METHODS: [&str; 7] = ["get", "put", "post", "delete", "options", "head", "patch"];

/// The limits of an import.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The maximum size of the document, in bytes.
    pub bytes: usize,
    /// The maximum number of imported operations.
    pub operations: usize,
    /// The maximum total size of the schemas of all tools, in bytes; shared schemas are copied for each operation.
    pub schemas: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes: MAX_DOCUMENT, operations: 5000, schemas: 64 * 1024 * 1024 }
    }
}

/// The version of OpenAPI, which determines the schema dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OpenApiVersion {
    /// 3.0, with `nullable`, `exclusiveMinimum: true`, and nothing next to `$ref`.
    V30,
    /// 3.1, with JSON Schema 2020-12.
    V31,
}

/// An error of resolving a reference.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum RefError {
    #[error(
        "the reference `{0}` points to another document, which is not supported; merge all parts into one file"
    )]
    Remote(String),
    #[error("the reference `{0}` was not found")]
    Missing(String),
    #[error("the reference `{0}` refers to itself")]
    Loop(String),
}

impl RefError {
    pub(super) fn code(&self) -> &'static str {
        match self {
            Self::Remote(_) => "remote_reference",
            Self::Missing(_) => "missing_reference",
            Self::Loop(_) => "reference_loop",
        }
    }
}

/// An OpenAPI 3.0 or 3.1 document.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) root: Value,
    pub(super) openapi_version: OpenApiVersion,
}

/// One operation.
pub(super) struct Operation<'d> {
    /// `GET /pets/{id}`.
    pub(super) key: String,
    /// The method, in lower case.
    pub(super) method: &'static str,
    pub(super) path: &'d str,
    pub(super) item: &'d Map<String, Value>,
    pub(super) value: &'d Map<String, Value>,
}

impl<'d> Operation<'d> {
    /// Returns the `operationId`.
    pub(super) fn id(&self) -> Option<&'d str> {
        self.value.get("operationId").and_then(Value::as_str).map(str::trim).filter(|id| !id.is_empty())
    }

    pub(super) fn tags(&self) -> impl Iterator<Item = &'d str> {
        self.value.get("tags").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    }

    pub(super) fn text(&self, key: &str) -> &'d str {
        self.value.get(key).and_then(Value::as_str).unwrap_or_default().trim()
    }

    pub(super) fn is_deprecated(&self) -> bool {
        self.value.get("deprecated") == Some(&Value::Bool(true))
    }
}

impl Document {
    /// Parses a document.
    pub(super) fn read(text: &str, limits: Limits) -> Result<Self, Problem> {
        if text.len() > limits.bytes {
            let message = format!(
                "the document has {} bytes; the limit is {} (`import.max_document_bytes`)",
                text.len(),
                limits.bytes
            );
            return Err(Problem::new("", "too_large", message));
        }
        let bounds = Bounds { nodes: 2_000_000, bytes: limits.bytes.saturating_mul(2) };
        let root = read_foreign(text, bounds)?;
        Ok(Self { openapi_version: openapi_version(&root)?, root })
    }

    /// Returns the title, or `untitled`.
    pub(super) fn title(&self) -> String {
        let title = self.root.pointer("/info/title").and_then(Value::as_str).unwrap_or_default();
        let title = super::text::line(title, 120);
        if title.is_empty() { "untitled".to_owned() } else { title }
    }

    /// Returns the version of the described API.
    pub(super) fn version(&self) -> String {
        match self.root.pointer("/info/version") {
            Some(Value::String(text)) => super::text::line(text, 60),
            Some(Value::Number(number)) => number.to_string(),
            _ => String::new(),
        }
    }

    /// Returns the target of a reference, which may be another reference.
    pub(super) fn at(&self, reference: &str) -> Result<&Value, RefError> {
        let shown = || excerpt(reference, 80);
        let Some(pointer) = reference.strip_prefix('#') else { return Err(RefError::Remote(shown())) };
        let decoded = percent_encoding::percent_decode_str(pointer).decode_utf8();
        let decoded = decoded.map_err(|_| RefError::Missing(shown()))?;
        self.root.pointer(&decoded).ok_or_else(|| RefError::Missing(shown()))
    }

    /// Returns all operations, and warnings about invalid ones.
    pub(super) fn operations(&self) -> (Vec<Operation<'_>>, Vec<Problem>) {
        let (mut operations, mut warnings) = (Vec::new(), Vec::new());
        let paths = self.root.get("paths").and_then(Value::as_object);
        for (path, item) in paths.into_iter().flatten().filter(|(path, _)| !path.starts_with("x-")) {
            let shown = excerpt(path, 80);
            let warning = |code: &str, message: String| Problem::new(format!("paths.{shown}"), code, message);
            if !path.starts_with('/') {
                warnings.push(warning("invalid_path", "skipped: a path must start with `/`".to_owned()));
                continue;
            }
            let item = match self.follow(item) {
                Ok(Value::Object(item)) => item,
                Ok(_) => {
                    warnings.push(warning("wrong_type", "skipped: expected a map of methods".to_owned()));
                    continue;
                }
                Err(error) => {
                    warnings.push(warning(error.code(), error.to_string()));
                    continue;
                }
            };
            for (key, value) in item {
                if key == "trace" {
                    warnings.push(warning(
                        "invalid_method",
                        "skipped: the method `TRACE` is not supported".to_owned(),
                    ));
                }
                let Some(method) = METHODS.into_iter().find(|method| method == key) else { continue };
                let Value::Object(value) = value else {
                    warnings.push(warning("wrong_type", format!("skipped: `{method}` is not a map")));
                    continue;
                };
                let name = format!("{} {path}", method.to_ascii_uppercase());
                operations.push(Operation { key: name, method, path, item, value });
            }
        }
        (operations, warnings)
    }

    /// Returns the value, or the target if it is a reference.
    pub(super) fn follow<'a>(&'a self, value: &'a Value) -> Result<&'a Value, RefError> {
        match target(value) {
            Some(reference) => self.last_reference(reference).map(|(_, value)| value),
            None => Ok(value),
        }
    }

    /// Returns the last reference of a chain and its target, so that each target has one name.
    pub(super) fn last_reference<'a>(&'a self, reference: &'a str) -> Result<(&'a str, &'a Value), RefError> {
        let mut seen = HashSet::new();
        let mut name = reference;
        loop {
            let value = self.at(name)?;
            match target(value) {
                None => return Ok((name, value)),
                Some(next) if seen.len() < MAX_CHAIN && seen.insert(next) => name = next,
                Some(_) => return Err(RefError::Loop(excerpt(reference, 80))),
            }
        }
    }
}

/// Returns the `$ref` of a value.
pub(super) fn target(value: &Value) -> Option<&str> {
    value.get("$ref").and_then(Value::as_str)
}

fn openapi_version(root: &Value) -> Result<OpenApiVersion, Problem> {
    let Value::Object(map) = root else {
        let message = "not an OpenAPI document: expected a map with `openapi`, `info` and `paths`";
        return Err(Problem::new("", "not_openapi", message));
    };
    if let Some(version) = map.get("swagger") {
        let shown = excerpt(&version_text(version), 20);
        let message = format!(
            "Swagger {shown} is not supported, only OpenAPI 3.0 and 3.1; convert the document first, for example with \
             `npx swagger2openapi`"
        );
        return Err(Problem::new("swagger", "unsupported_version", message));
    }
    let Some(version) = map.get("openapi").map(version_text) else {
        let message = "not an OpenAPI document: missing field `openapi`, such as `openapi: 3.1.0`";
        return Err(Problem::new("openapi", "not_openapi", message));
    };
    let openapi_version = match version.as_str() {
        v if v == "3.0" || v.starts_with("3.0.") => OpenApiVersion::V30,
        v if v == "3" || v == "3.1" || v.starts_with("3.1.") => OpenApiVersion::V31,
        other => {
            let message =
                format!("unsupported OpenAPI version `{}`; supported are 3.0 and 3.1", excerpt(other, 20));
            return Err(Problem::new("openapi", "unsupported_version", message));
        }
    };
    if !map.get("paths").is_some_and(Value::is_object) {
        let message = "missing `paths`: the document has no operations";
        return Err(Problem::new("paths", "missing_field", message));
    }
    Ok(openapi_version)
}

/// Returns a version as a string; YAML reads `3.0` as a number.
fn version_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.as_f64().map_or_else(String::new, |number| format!("{number:.1}")),
        _ => String::new(),
    }
}
