//! Reads the response schema of an operation, as far as it is reliable.

use serde_json::{Map, Value, json};

use super::document::{Document, Operation};
use super::schema::types;

/// The maximum number of schemas of an outline; a larger one does not help a model.
const MAX_COUNT: usize = 150;
/// The maximum nesting of an outline.
const MAX_DEPTH: usize = 8;

/// Information about the success response.
#[derive(Debug, Default)]
pub(super) struct ResponseInfo {
    /// The outline of the value, or `{}`.
    pub(super) schema: Value,
    /// The JSON media type of the response.
    pub(super) accept: Option<String>,
}

/// Reads what an operation answers when all goes well.
///
/// Responses often differ from their descriptions, and a response that does not match the schema fails the call. The
/// schema is therefore only an outline: names and types, nothing required, `null` everywhere; and only if there is one
/// success response, in JSON, of moderate size. Otherwise it is `{}`.
pub(super) fn read(document: &Document, operation: &Operation<'_>) -> ResponseInfo {
    let mut info = ResponseInfo { schema: json!({}), accept: None };
    let responses = operation.value.get("responses").and_then(Value::as_object);
    let success: Vec<_> = responses.into_iter().flatten().filter(|(code, _)| code.starts_with('2')).collect();
    let contents = success.iter().filter_map(|(_, response)| {
        document.follow(response).ok()?.get("content").and_then(Value::as_object)
    });
    let json: Vec<_> =
        contents.filter_map(|content| content.iter().find(|(media, _)| is_json(media))).collect();
    let Some((media, value)) = json.first() else { return info };
    info.accept = Some((*media).clone()).filter(|media| super::body::is_media(media) && !media.contains('*'));
    if success.len() == 1
        && json.len() == 1
        && let Some(schema) = document.follow(value).ok().and_then(|value| value.get("schema"))
    {
        let mut left = MAX_COUNT;
        info.schema = outline(document, schema, 0, &mut left).unwrap_or_else(|| json!({}));
    }
    info
}

fn is_json(media: &str) -> bool {
    let media = media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    media == "application/json" || media.ends_with("+json")
}

/// Returns the outline of a schema; `None` if it is too large, too deep, recursive or has alternatives.
fn outline(document: &Document, schema: &Value, depth: usize, left: &mut usize) -> Option<Value> {
    *left = left.checked_sub(1)?;
    if depth > MAX_DEPTH {
        return None;
    }
    let schema = document.follow(schema).ok()?.as_object()?;
    if ["oneOf", "anyOf", "allOf", "not", "$defs"].iter().any(|key| schema.contains_key(*key)) {
        return if depth == 0 { None } else { Some(json!({})) };
    }
    let mut out = Map::new();
    if let Some(kind) = schema.get("type").and_then(types) {
        out.insert("type".to_owned(), with_null(kind, depth));
    }
    if let Some(Value::String(text)) = schema.get("description") {
        out.insert("description".to_owned(), json!(crate::api::text::line(text, 120)));
    }
    if let Some(Value::Object(properties)) = schema.get("properties") {
        let mut inner = Map::new();
        for (name, property) in properties {
            if name.starts_with('$') {
                return None;
            }
            inner.insert(name.clone(), outline(document, property, depth + 1, left)?);
        }
        out.insert("properties".to_owned(), Value::Object(inner));
    }
    if let Some(items @ Value::Object(_)) = schema.get("items") {
        out.insert("items".to_owned(), outline(document, items, depth + 1, left)?);
    }
    Some(Value::Object(out))
}

/// Adds `null` below the root, because servers often return it for missing values.
fn with_null(kind: Value, depth: usize) -> Value {
    let mut kinds = match kind {
        Value::Array(kinds) => kinds,
        kind if depth == 0 => return kind,
        kind => vec![kind],
    };
    if !kinds.contains(&json!("null")) {
        kinds.push(json!("null"));
    }
    Value::Array(kinds)
}
