//! Reads an OpenAPI document and resolves its references.

use std::collections::HashSet;

use serde_json::{Map, Value};

use haft_core::problem::{Problem, excerpt};
use haft_definition::dialect::{Bounds, read_foreign};

use super::swagger;
use crate::api::{ImportOptions, Selectable};

/// The maximum length of a chain of references.
const MAX_CHAIN: usize = 32;
/// The supported methods.
const METHODS: [&str; 8] = ["get", "put", "post", "delete", "options", "head", "patch", "query"];

/// The version of OpenAPI, which determines the schema dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OpenApiVersion {
    /// 3.0, with `nullable`, `exclusiveMinimum: true`, and nothing next to `$ref`.
    V30,
    /// 3.1 and 3.2, with JSON Schema 2020-12.
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

/// The form that a document was written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    OpenApi,
    /// Swagger 2.0, converted to OpenAPI 3.0.
    Swagger,
}

/// An OpenAPI 3 document.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) root: Value,
    pub(super) openapi_version: OpenApiVersion,
    pub(super) origin: Origin,
    /// The URI that references may start with, `$self` of OpenAPI 3.2.
    own_uri: String,
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

    pub(super) fn text(&self, key: &str) -> &'d str {
        self.value.get(key).and_then(Value::as_str).unwrap_or_default().trim()
    }

    pub(super) fn is_deprecated(&self) -> bool {
        self.value.get("deprecated") == Some(&Value::Bool(true))
    }
}

impl Selectable for Operation<'_> {
    fn key(&self) -> &str {
        &self.key
    }

    fn id(&self) -> Option<&str> {
        Operation::id(self)
    }

    fn path(&self) -> &str {
        self.path
    }

    fn tags(&self) -> Vec<&str> {
        self.value
            .get("tags")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect()
    }
}

impl Document {
    /// Parses a document; converts Swagger 2.0.
    pub(super) fn read(text: &str, options: &ImportOptions) -> Result<Self, Problem> {
        options.limits.check_size(text.len())?;
        let bounds = Bounds { nodes: 2_000_000, bytes: options.limits.bytes.saturating_mul(2) };
        let mut root = read_foreign(text, bounds)?;
        let openapi_version = openapi_version(&root)?;
        let origin = if root.get("swagger").is_some() {
            swagger::convert(&mut root, options.document_url.is_some());
            Origin::Swagger
        } else {
            Origin::OpenApi
        };
        let own_uri = root.get("$self").and_then(Value::as_str).unwrap_or_default().to_owned();
        Ok(Self { root, openapi_version, origin, own_uri })
    }

    /// Returns the title, or `untitled`.
    pub(super) fn title(&self) -> String {
        let title = self.root.pointer("/info/title").and_then(Value::as_str).unwrap_or_default();
        let title = crate::api::text::line(title, 120);
        if title.is_empty() { "untitled".to_owned() } else { title }
    }

    /// Returns the version of the described API.
    pub(super) fn version(&self) -> String {
        match self.root.pointer("/info/version") {
            Some(Value::String(text)) => crate::api::text::line(text, 60),
            Some(Value::Number(number)) => number.to_string(),
            _ => String::new(),
        }
    }

    /// Returns the target of a reference, which may be another reference.
    pub(super) fn at(&self, reference: &str) -> Result<&Value, RefError> {
        let shown = || excerpt(reference, 80);
        let local = reference.strip_prefix(self.own_uri.as_str()).unwrap_or(reference);
        let Some(pointer) = local.strip_prefix('#') else { return Err(RefError::Remote(shown())) };
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
            let additional = item.get("additionalOperations").and_then(Value::as_object);
            let unsupported = additional.into_iter().flat_map(Map::keys).map(String::as_str);
            let trace = item.get("trace").map(|_| "TRACE");
            warnings.extend(unsupported.chain(trace).map(|method| {
                let message = format!("skipped: the method `{}` is not supported", excerpt(method, 20));
                warning("invalid_method", message)
            }));
            for (key, value) in item {
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
        let version = version_text(version);
        if !matches!(version.as_str(), "2" | "2.0") {
            let shown = excerpt(&version, 20);
            let message =
                format!("Swagger {shown} is not supported; supported are Swagger 2.0 and OpenAPI 3");
            return Err(Problem::new("swagger", "unsupported_version", message));
        }
        require_paths(map)?;
        return Ok(OpenApiVersion::V30);
    }
    let Some(version) = map.get("openapi").map(version_text) else {
        let message = "not an OpenAPI document: missing field `openapi`, such as `openapi: 3.1.0`";
        return Err(Problem::new("openapi", "not_openapi", message));
    };
    let openapi_version = match version.as_str() {
        v if v == "3.0" || v.starts_with("3.0.") => OpenApiVersion::V30,
        v if matches!(v, "3" | "3.1" | "3.2") || v.starts_with("3.1.") || v.starts_with("3.2.") => {
            OpenApiVersion::V31
        }
        other => {
            let message = format!(
                "unsupported OpenAPI version `{}`; supported are 3.0, 3.1, 3.2 and Swagger 2.0",
                excerpt(other, 20)
            );
            return Err(Problem::new("openapi", "unsupported_version", message));
        }
    };
    require_paths(map)?;
    Ok(openapi_version)
}

fn require_paths(map: &Map<String, Value>) -> Result<(), Problem> {
    if map.get("paths").is_some_and(Value::is_object) {
        return Ok(());
    }
    let message = "missing `paths`: the document has no operations";
    Err(Problem::new("paths", "missing_field", message))
}

/// Returns a version as a string; YAML reads `3.0` as a number.
fn version_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.as_f64().map_or_else(String::new, |number| format!("{number:.1}")),
        _ => String::new(),
    }
}
