//! The bodies of saved requests.

use haft_core::implementation::{HttpRequest, ResponseEncoding};
use haft_core::redact::is_sensitive;
use serde_json::{Map, Value, json};

use super::auth::credential;
use super::draft::{Draft, TextUse, has_variable, typed};
use super::{Field, SavedBody};
use crate::api::templates::{file_schema, literal};

/// The maximum number of fields.
const MAX_FIELDS: usize = 200;
/// The maximum nesting of a saved JSON body.
const MAX_DEPTH: usize = 64;

/// Adds the body to a request.
pub(super) fn convert(body: &SavedBody, request: &mut HttpRequest, draft: &mut Draft<'_>) {
    match body {
        SavedBody::Nothing => {}
        SavedBody::Text(text, media) => raw(text, *media, request, draft),
        SavedBody::Form(saved) => {
            request.body = Some(Value::Object(fields(saved, request, draft)));
            content_type(request, "application/x-www-form-urlencoded");
        }
        SavedBody::Multipart(saved) => {
            request.body = Some(Value::Object(fields(saved, request, draft)));
            content_type(request, "multipart/form-data");
        }
        SavedBody::Graphql { query, variables } => {
            let variables = json_body(variables, draft).unwrap_or_else(|| json!({}));
            request.body =
                Some(json!({"query": draft.template(query, TextUse::Plain), "variables": variables}));
            request.response = Some(ResponseEncoding::Graphql);
        }
        SavedBody::File => {
            if let Some(template) = draft.argument("file", file_schema(""), true) {
                request.body = Some(json!({"file": template}));
                request.files.push("file".to_owned());
                if !has_content_type(request) {
                    content_type(request, "application/octet-stream");
                }
            }
        }
    }
}

fn has_content_type(request: &HttpRequest) -> bool {
    request.headers.keys().any(|name| name.eq_ignore_ascii_case("content-type"))
}

/// Sets the content type; replaces another one.
fn content_type(request: &mut HttpRequest, media: &str) {
    request.headers.retain(|name, _| !name.eq_ignore_ascii_case("content-type"));
    request.headers.insert("Content-Type".to_owned(), media.to_owned());
}

fn raw(text: &str, media: Option<&str>, request: &mut HttpRequest, draft: &mut Draft<'_>) {
    if text.trim().is_empty() {
        return;
    }
    let declared = request.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    let declared = declared.map(|(_, value)| value.to_ascii_lowercase());
    let is_json = match (&declared, media) {
        (Some(declared), _) => declared.contains("json"),
        (None, Some(media)) => media.contains("json"),
        (None, None) => text.trim_start().starts_with(['{', '[']),
    };
    let body = if is_json { json_body(text, draft) } else { None };
    if declared.is_none() {
        let media = if is_json { "application/json" } else { media.unwrap_or("text/plain; charset=utf-8") };
        content_type(request, media);
    }
    request.body = Some(body.unwrap_or_else(|| Value::String(draft.template(text, TextUse::Plain))));
}

/// Returns a saved JSON body as a template whose fields are arguments; `None` if it is not JSON, for example because a
/// variable stands for a number.
fn json_body(text: &str, draft: &mut Draft<'_>) -> Option<Value> {
    let Value::Object(saved) = serde_json::from_str(text).ok()? else {
        let value: Value = serde_json::from_str(text).ok()?;
        return Some(constant(&value, draft, 0));
    };
    let mut out = Map::new();
    for (name, value) in saved.iter().take(MAX_FIELDS) {
        out.insert(name.clone(), field(name, value, "", draft));
    }
    Some(Value::Object(out))
}

/// Returns the template of a field: an argument, unless its value has variables or is a credential.
fn field(name: &str, saved: &Value, description: &str, draft: &mut Draft<'_>) -> Value {
    if let Value::String(text) = saved
        && is_sensitive(name)
        && !text.is_empty()
    {
        return json!(credential(text, name, draft));
    }
    if has_variables(saved, 0) {
        return constant(saved, draft, 0);
    }
    match draft.saved_argument(name, saved, description) {
        Some(template) => json!(template),
        None => constant(saved, draft, 0),
    }
}

fn has_variables(value: &Value, depth: usize) -> bool {
    match value {
        Value::String(text) => has_variable(text),
        Value::Array(items) => depth < MAX_DEPTH && items.iter().any(|item| has_variables(item, depth + 1)),
        Value::Object(map) => depth < MAX_DEPTH && map.values().any(|item| has_variables(item, depth + 1)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Returns a value as a template, with its variables replaced.
fn constant(value: &Value, draft: &mut Draft<'_>, depth: usize) -> Value {
    match value {
        _ if depth > MAX_DEPTH => Value::Null,
        Value::String(text) => Value::String(draft.template(text, TextUse::Plain)),
        Value::Array(items) => {
            Value::Array(items.iter().map(|item| constant(item, draft, depth + 1)).collect())
        }
        Value::Object(map) => {
            let entries = map.iter().map(|(key, value)| (key.clone(), constant(value, draft, depth + 1)));
            Value::Object(entries.collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn fields(saved: &[Field], request: &mut HttpRequest, draft: &mut Draft<'_>) -> Map<String, Value> {
    let mut out = Map::new();
    for saved in saved.iter().filter(|field| !field.name.is_empty()).take(MAX_FIELDS) {
        let template = if saved.is_file {
            let schema = file_schema(&crate::api::text::clean(&saved.description, 1000));
            request.files.push(saved.name.clone());
            draft.argument(&saved.name, schema, !saved.is_disabled).map_or_else(|| json!(""), Value::String)
        } else if saved.is_disabled {
            match draft.saved_argument(&saved.name, &json!(""), &saved.description) {
                Some(template) => json!(template),
                None => continue,
            }
        } else {
            field(&saved.name, &typed(&saved.value), &saved.description, draft)
        };
        out.insert(saved.name.clone(), template);
    }
    out
}

/// Returns the query of a request: parameters become arguments.
pub(super) fn query(saved: &[Field], draft: &mut Draft<'_>) -> Map<String, Value> {
    let mut out = Map::new();
    for saved in saved.iter().filter(|field| !field.name.is_empty() && !has_variable(&field.name)) {
        let template = if haft_core::redact::is_sensitive_parameter(&saved.name) && !saved.is_disabled {
            json!(credential(&saved.value, &saved.name, draft))
        } else if saved.is_disabled {
            match draft.saved_argument(&saved.name, &json!(""), &saved.description) {
                Some(template) => json!(template),
                None => continue,
            }
        } else {
            field(&saved.name, &typed(&saved.value), &saved.description, draft)
        };
        out.insert(literal(&saved.name), template);
    }
    out
}
