//! Request bodies.

use serde_json::{Map, Value, json};

use super::arguments::ParamLocation;
use super::document::{Document, Operation};
use super::operation::{Draft, SkipError};
use super::parameters::{ParamEncoding, param_encoding};
use crate::api::templates::file_schema;
use haft_core::problem::excerpt;

/// The maximum nesting of `allOf` in a body whose fields become arguments.
const MAX_DEPTH: usize = 8;

/// The maximum number of fields that become arguments; a larger body is one argument.
const MAX_FIELDS: usize = 300;

/// The encoding of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BodyEncoding {
    Json,
    Form,
    Text,
    Multipart,
    /// A body that is one file.
    File,
}

/// The fields of a body that is an object.
#[derive(Default)]
struct Fields<'d> {
    properties: Vec<(&'d str, &'d Value)>,
    required: Vec<&'d str>,
}

/// Adds the body of an operation to the draft of its tool.
pub(super) fn read<'d>(
    document: &'d Document,
    operation: &Operation<'d>,
    draft: &mut Draft<'d>,
) -> Result<(), SkipError> {
    let Some(body) = operation.value.get("requestBody") else { return Ok(()) };
    let body = document.follow(body).map_err(|error| SkipError::Body(error.to_string()))?;
    let required = body.get("required") == Some(&Value::Bool(true));
    // Few authors mark a body as required; one with required fields is optional only if it says so.
    let needs_fields = body.get("required") != Some(&Value::Bool(false));
    let content = body.get("content").and_then(Value::as_object);
    let Some(content) = content.filter(|content| !content.is_empty()) else { return Ok(()) };
    let Some((media, form, value)) = choose(content) else {
        return unsupported(content, required, draft);
    };
    let value = document.follow(value).map_err(|error| SkipError::Body(error.to_string()))?;
    let schema = value.get("schema");
    let fields =
        schema.and_then(|schema| fields(document, schema, MAX_DEPTH)).filter(|f| !f.properties.is_empty());
    match (form, fields) {
        (BodyEncoding::Json, Some(fields)) => {
            draft.request.body = Some(flat(&fields, needs_fields, draft));
            if media != "application/json" {
                draft.content_type(media);
            }
        }
        (BodyEncoding::Form, Some(fields)) => {
            styles(document, value, &fields, draft);
            draft.request.body = Some(flat(&fields, needs_fields, draft));
            draft.content_type(media);
        }
        (BodyEncoding::Multipart, Some(fields)) => {
            draft.request.files = files(document, value, &fields);
            draft.request.body = Some(flat(&fields, needs_fields, draft));
            draft.content_type("multipart/form-data");
        }
        (BodyEncoding::Form | BodyEncoding::Multipart, None) => return unsupported(content, required, draft),
        (BodyEncoding::File, _) => whole_file(body, media, draft),
        (BodyEncoding::Json | BodyEncoding::Text, _) => whole(body, media, schema, form, draft),
    }
    draft.request.optional_body = !required && draft.request.body.is_some();
    Ok(())
}

/// Selects the best supported media type.
fn choose(content: &Map<String, Value>) -> Option<(&str, BodyEncoding, &Value)> {
    let plain = |media: &str| media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let form = |media: &str| -> Option<(u8, BodyEncoding, &'static str)> {
        match plain(media).as_str() {
            "application/json" => Some((0, BodyEncoding::Json, "application/json")),
            "*/*" | "application/*" => Some((2, BodyEncoding::Json, "application/json")),
            "multipart/form-data" => Some((5, BodyEncoding::Multipart, "")),
            other if other.starts_with("multipart/") => None,
            // One JSON value per line is not JSON.
            "application/jsonl" | "application/x-ndjson" | "application/json-seq" => {
                Some((4, BodyEncoding::Text, ""))
            }
            other if other.ends_with("+json") || other.contains("/json") => Some((1, BodyEncoding::Json, "")),
            "application/x-www-form-urlencoded" => Some((3, BodyEncoding::Form, "")),
            other if other.starts_with("text/") && !other.contains("xml") => {
                Some((4, BodyEncoding::Text, ""))
            }
            other if is_file(other) => Some((6, BodyEncoding::File, "")),
            _ => None,
        }
    };
    let known = content.iter().filter_map(|(media, value)| Some((form(media)?, media, value)));
    let ((_, form, name), media, value) = known.min_by_key(|((rank, ..), ..)| *rank)?;
    let media = if name.is_empty() { media.as_str() } else { name };
    is_media(media).then_some((media, form, value))
}

/// Returns whether a media type is that of a file, rather than of a format that a model writes.
fn is_file(media: &str) -> bool {
    let is_binary = ["image/", "audio/", "video/", "font/"].iter().any(|start| media.starts_with(start));
    let is_known = matches!(
        media,
        "application/octet-stream" | "application/pdf" | "application/zip" | "application/gzip"
    );
    let is_office = media.starts_with("application/vnd.") && !media.ends_with("+xml");
    (is_binary && !media.ends_with("+xml")) || is_known || is_office
}

/// Returns whether a text is a valid content type.
pub(super) fn is_media(media: &str) -> bool {
    media.len() <= 120 && media.bytes().all(|b| b.is_ascii_alphanumeric() || b"/.+-;= _*".contains(&b))
}

fn unsupported(content: &Map<String, Value>, required: bool, draft: &mut Draft<'_>) -> Result<(), SkipError> {
    let media: Vec<String> =
        content.keys().take(3).map(|media| format!("`{}`", excerpt(media, 60))).collect();
    let media = media.join(", ");
    if required {
        return Err(SkipError::Media(media));
    }
    draft.warn("unsupported_body", format!("the optional request body is omitted: {media} is not supported"));
    Ok(())
}

/// Returns the fields of a plain object; `None` if the body has to be one argument.
fn fields<'d>(document: &'d Document, schema: &'d Value, left: usize) -> Option<Fields<'d>> {
    let left = left.checked_sub(1)?;
    let map = document.follow(schema).ok()?.as_object()?;
    let known = |key: &str| {
        matches!(
            key,
            "type"
                | "properties"
                | "required"
                | "description"
                | "title"
                | "example"
                | "examples"
                | "default"
                | "minProperties"
                | "maxProperties"
                | "externalDocs"
                | "xml"
                | "deprecated"
                | "allOf"
                | "additionalProperties"
                | "nullable"
        ) || key.starts_with("x-")
    };
    let object = map.get("type").is_none_or(|kind| kind == "object");
    let closed = map.get("additionalProperties").is_none_or(|more| *more == Value::Bool(false));
    if !object || !closed || !map.keys().all(|key| known(key)) {
        return None;
    }
    let mut found = Fields::default();
    for part in map.get("allOf").and_then(Value::as_array).into_iter().flatten() {
        let part = fields(document, part, left)?;
        part.properties.into_iter().for_each(|(name, schema)| found.put(name, schema));
        found.required.extend(part.required);
    }
    let properties = map.get("properties").and_then(Value::as_object);
    if found.properties.len() + properties.map_or(0, Map::len) > MAX_FIELDS {
        return None;
    }
    for (name, schema) in properties.into_iter().flatten() {
        found.put(name, schema);
    }
    let required = map.get("required").and_then(Value::as_array).into_iter().flatten();
    found.required.extend(required.filter_map(Value::as_str));
    Some(found)
}

impl<'d> Fields<'d> {
    fn put(&mut self, name: &'d str, schema: &'d Value) {
        match self.properties.iter_mut().find(|(known, _)| *known == name) {
            Some(known) => known.1 = schema,
            None => self.properties.push((name, schema)),
        }
    }
}

/// Makes every field an argument. If the body is optional, none of them is required.
fn flat<'d>(fields: &Fields<'d>, required: bool, draft: &mut Draft<'d>) -> Value {
    let mut body = Map::new();
    for (name, schema) in &fields.properties {
        let field = format!("body.{}", excerpt(name, 60));
        let mut converted = draft.converter.convert(schema, &field);
        if converted.get("readOnly") == Some(&Value::Bool(true)) {
            continue;
        }
        if draft.request.files.iter().any(|file| file == name) {
            converted = file_argument(&converted);
        }
        let needed = required && fields.required.contains(name);
        let template = draft.arguments.add(ParamLocation::Body, name, converted, needed);
        body.insert((*name).to_owned(), json!(template));
    }
    Value::Object(body)
}

/// Returns the fields of a multipart body that are files: binary strings, lists of them, and fields that the encoding gives
/// a binary media type.
fn files(document: &Document, value: &Value, fields: &Fields<'_>) -> Vec<String> {
    let is_binary = |schema: &Value| {
        let text = |key: &str| schema.get(key).and_then(Value::as_str).unwrap_or_default();
        matches!(text("format"), "binary" | "file")
            || text("type") == "file"
            || !text("contentMediaType").is_empty() && text("contentEncoding").is_empty()
    };
    let encoding = |name: &str| value.get("encoding")?.get(name)?.get("contentType")?.as_str();
    let is_file_field = |(name, schema): &&(&str, &Value)| {
        let Ok(schema) = document.follow(schema) else { return false };
        let items = schema.get("items").and_then(|items| document.follow(items).ok());
        // A schema of 3.1 may say nothing, as its media type does.
        let is_free = schema.as_object().is_some_and(|map| !map.contains_key("type"));
        is_binary(schema)
            || items.is_some_and(is_binary)
            || (is_free
                && encoding(name)
                    .is_some_and(|media| is_file(media.split([';', ',']).next().unwrap_or_default())))
    };
    fields.properties.iter().filter(is_file_field).map(|(name, _)| (*name).to_owned()).collect()
}

/// Returns the schema of an argument that is a file, or a list of files.
fn file_argument(converted: &Value) -> Value {
    let description = converted.get("description").and_then(Value::as_str).unwrap_or_default();
    if converted.get("type").is_some_and(|kind| kind == "array") {
        return json!({"type": "array", "items": file_schema(""), "description": description});
    }
    file_schema(description)
}

/// Makes a body that is one file an argument.
fn whole_file(body: &Value, media: &str, draft: &mut Draft<'_>) {
    let words =
        crate::api::text::clean(body.get("description").and_then(Value::as_str).unwrap_or_default(), 1000);
    let required = body.get("required") != Some(&Value::Bool(false));
    let template = draft.arguments.add(ParamLocation::Body, "file", file_schema(&words), required);
    draft.request.body = Some(json!({"file": template}));
    draft.request.files = vec!["file".to_owned()];
    draft.content_type(if media.contains('*') { "application/octet-stream" } else { media });
}

fn styles<'d>(document: &'d Document, value: &'d Value, fields: &Fields<'d>, draft: &mut Draft<'d>) {
    for (name, encoding) in value.get("encoding").and_then(Value::as_object).into_iter().flatten() {
        let schema = fields.properties.iter().find(|(field, _)| field == name).map(|(_, schema)| *schema);
        let Some(schema) = schema.and_then(|schema| document.follow(schema).ok()) else { continue };
        let is_map = schema.get("type").is_some_and(|kind| kind == "object");
        if encoding.get("allowReserved") == Some(&Value::Bool(true)) {
            draft.request.allow_reserved.push(name.clone());
        }
        if !is_map && schema.get("type").is_some_and(|kind| kind != "array") {
            continue;
        }
        let style = encoding.get("style").and_then(Value::as_str).unwrap_or_default();
        let explode = encoding.get("explode").and_then(Value::as_bool);
        if style.is_empty() && explode.is_none() {
            continue;
        }
        match param_encoding(style, explode, is_map) {
            Some(ParamEncoding::As(style)) => drop(draft.request.styles.insert(name.clone(), style)),
            Some(ParamEncoding::Repeated) => {}
            None => {
                let message = format!(
                    "unsupported style of the field `{}`; lists are sent as repeated fields",
                    excerpt(name, 60)
                );
                draft.warn("unsupported_style", message);
            }
        }
    }
}

/// Makes the whole body one argument.
fn whole<'d>(
    body: &'d Value,
    media: &str,
    schema: Option<&'d Value>,
    form: BodyEncoding,
    draft: &mut Draft<'d>,
) {
    let converted = match (form, schema) {
        (BodyEncoding::Text, _) => json!({"type": "string"}),
        (_, Some(schema)) => draft.converter.convert(schema, "body"),
        (_, None) => json!({}),
    };
    let mut map = match converted {
        Value::Object(map) if map.contains_key("$ref") => {
            Map::from_iter([("allOf".to_owned(), json!([map]))])
        }
        Value::Object(map) => map,
        _ => Map::new(),
    };
    let words =
        crate::api::text::clean(body.get("description").and_then(Value::as_str).unwrap_or_default(), 1000);
    if !map.contains_key("description") {
        let words = if words.is_empty() { "The request body".to_owned() } else { words };
        map.insert("description".to_owned(), json!(words));
    }
    let required = body.get("required") == Some(&Value::Bool(true));
    let template = draft.arguments.add(ParamLocation::Body, "body", Value::Object(map), required);
    draft.request.body = Some(json!(template));
    // With an explicit content type the template is the JSON value itself, not a string.
    draft.content_type(media);
}
