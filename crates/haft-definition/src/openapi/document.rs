//! The document: read, its version told, its references followed.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::dialect::{Bounds, read_foreign};
use haft_core::problem::{Problem, excerpt};

/// The most bytes of a document, where nothing else is said.
pub const MAX_DOCUMENT: usize = 32 * 1024 * 1024;
/// How many references may lead from one to the next.
const MAX_CHAIN: usize = 32;
/// The methods that an `http` tool can send.
const METHODS: [&str; 7] = ["get", "put", "post", "delete", "options", "head", "patch"];

/// What a document may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The most bytes of its text.
    pub bytes: usize,
    /// The most operations that one import takes.
    pub operations: usize,
    /// The most bytes that the schemas of all tools come to: what many operations share is written out for each.
    pub schemas: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes: MAX_DOCUMENT, operations: 5000, schemas: 64 * 1024 * 1024 }
    }
}

/// Which keywords schemas have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Edition {
    /// `nullable`, `exclusiveMinimum: true`, and nothing beside a `$ref`.
    V30,
    /// JSON Schema 2020-12.
    V31,
}

/// Why a reference could not be followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum RefError {
    #[error(
        "the reference `{0}` leads to another document, which is never fetched; put all parts into one file"
    )]
    Remote(String),
    #[error("the reference `{0}` leads nowhere")]
    Missing(String),
    #[error("the reference `{0}` leads back to itself")]
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

/// A document that says it is OpenAPI 3.0 or 3.1.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) root: Value,
    pub(super) edition: Edition,
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
    /// Returns the name that the document gives it.
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
    /// Reads a text.
    pub(super) fn read(text: &str, limits: Limits) -> Result<Self, Problem> {
        if text.len() > limits.bytes {
            let message = format!(
                "the document has {} bytes; at most {} are read (`import.max_document_bytes`)",
                text.len(),
                limits.bytes
            );
            return Err(Problem::new("", "too_large", message));
        }
        let bounds = Bounds { nodes: 2_000_000, bytes: limits.bytes.saturating_mul(2) };
        let root = read_foreign(text, bounds)?;
        Ok(Self { edition: edition(&root)?, root })
    }

    /// Returns the title, or a word for its absence.
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

    /// Returns what a reference names, without following it further.
    pub(super) fn at(&self, reference: &str) -> Result<&Value, RefError> {
        let shown = || excerpt(reference, 80);
        let Some(pointer) = reference.strip_prefix('#') else { return Err(RefError::Remote(shown())) };
        let decoded = percent_encoding::percent_decode_str(pointer).decode_utf8();
        let decoded = decoded.map_err(|_| RefError::Missing(shown()))?;
        self.root.pointer(&decoded).ok_or_else(|| RefError::Missing(shown()))
    }

    /// Returns all operations, and what stands where one should and is none.
    pub(super) fn operations(&self) -> (Vec<Operation<'_>>, Vec<Problem>) {
        let (mut found, mut faults) = (Vec::new(), Vec::new());
        let paths = self.root.get("paths").and_then(Value::as_object);
        for (path, item) in paths.into_iter().flatten().filter(|(path, _)| !path.starts_with("x-")) {
            let shown = excerpt(path, 80);
            let fault = |code: &str, message: String| Problem::new(format!("paths.{shown}"), code, message);
            if !path.starts_with('/') {
                faults.push(fault("invalid_path", "a path starts with `/`; it is left out".to_owned()));
                continue;
            }
            let item = match self.follow(item) {
                Ok(Value::Object(item)) => item,
                Ok(_) => {
                    faults.push(fault("wrong_type", "expected a map of methods; it is left out".to_owned()));
                    continue;
                }
                Err(error) => {
                    faults.push(fault(error.code(), error.to_string()));
                    continue;
                }
            };
            for (key, value) in item {
                if key == "trace" {
                    faults.push(fault("invalid_method", "`TRACE` is never sent; it is left out".to_owned()));
                }
                let Some(method) = METHODS.into_iter().find(|method| method == key) else { continue };
                let Value::Object(value) = value else {
                    faults.push(fault("wrong_type", format!("`{method}` is not a map; it is left out")));
                    continue;
                };
                let name = format!("{} {path}", method.to_ascii_uppercase());
                found.push(Operation { key: name, method, path, item, value });
            }
        }
        (found, faults)
    }

    /// Returns a thing itself, whether it stands there or is referred to.
    pub(super) fn follow<'a>(&'a self, value: &'a Value) -> Result<&'a Value, RefError> {
        match target(value) {
            Some(reference) => self.last_reference(reference).map(|(_, value)| value),
            None => Ok(value),
        }
    }

    /// Returns the reference at the end of a chain of references, so that each thing has one name.
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

/// Returns the target of what is a reference.
pub(super) fn target(value: &Value) -> Option<&str> {
    value.get("$ref").and_then(Value::as_str)
}

fn edition(root: &Value) -> Result<Edition, Problem> {
    let Value::Object(map) = root else {
        let message = "this is not an OpenAPI document: expected a map with `openapi`, `info` and `paths`";
        return Err(Problem::new("", "not_openapi", message));
    };
    if let Some(version) = map.get("swagger") {
        let shown = excerpt(&spelled(version), 20);
        let message = format!(
            "this is a Swagger {shown} document; OpenAPI 3.0 and 3.1 are read. Convert it first, for example with \
             `npx swagger2openapi`"
        );
        return Err(Problem::new("swagger", "unsupported_version", message));
    }
    let Some(version) = map.get("openapi").map(spelled) else {
        let message = "this is not an OpenAPI document: it has no `openapi`, such as `openapi: 3.1.0`";
        return Err(Problem::new("openapi", "not_openapi", message));
    };
    let edition = match version.as_str() {
        v if v == "3.0" || v.starts_with("3.0.") => Edition::V30,
        v if v == "3" || v == "3.1" || v.starts_with("3.1.") => Edition::V31,
        other => {
            let message = format!("OpenAPI `{}` is not known; 3.0 and 3.1 are read", excerpt(other, 20));
            return Err(Problem::new("openapi", "unsupported_version", message));
        }
    };
    if !map.get("paths").is_some_and(Value::is_object) {
        let message = "there is no map `paths`, so the document describes no operations";
        return Err(Problem::new("paths", "missing_field", message));
    }
    Ok(edition)
}

/// Returns a version as it is written; YAML reads `3.0` as a number.
fn spelled(value: &Value) -> String {
    match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.as_f64().map_or_else(String::new, |number| format!("{number:.1}")),
        _ => String::new(),
    }
}
