//! What an operation answers, as far as that can be said safely.

use serde_json::{Map, Value, json};

use super::document::{Document, Operation};
use super::keywords::types;

/// The most schemas of an outline: what is larger helps no model.
const MAX_COUNT: usize = 150;
/// The deepest nesting of an outline.
const MAX_DEPTH: usize = 8;

/// What is known of the answer.
#[derive(Debug, Default)]
pub(super) struct Answer {
    /// The outline of the value, or `{}`.
    pub(super) schema: Value,
    /// The JSON type that the server offers.
    pub(super) accept: Option<String>,
}

/// Reads what an operation answers when all goes well.
///
/// Servers answer more and less than their descriptions say, and an answer that does not fit fails the call. So only
/// an outline is taken: names and types, nothing required, `null` everywhere; and only where there is one success,
/// in JSON, of a moderate size. Everything else is `{}`.
pub(super) fn read(document: &Document, operation: &Operation<'_>) -> Answer {
    let mut answer = Answer { schema: json!({}), accept: None };
    let responses = operation.value.get("responses").and_then(Value::as_object);
    let success: Vec<_> = responses.into_iter().flatten().filter(|(code, _)| code.starts_with('2')).collect();
    let contents = success.iter().filter_map(|(_, response)| {
        document.follow(response).ok()?.get("content").and_then(Value::as_object)
    });
    let json: Vec<_> =
        contents.filter_map(|content| content.iter().find(|(media, _)| is_json(media))).collect();
    let Some((media, value)) = json.first() else { return answer };
    answer.accept =
        Some((*media).clone()).filter(|media| super::body::is_media(media) && !media.contains('*'));
    if success.len() == 1
        && json.len() == 1
        && let Some(schema) = value.get("schema")
    {
        let mut left = MAX_COUNT;
        answer.schema = outline(document, schema, 0, &mut left).unwrap_or_else(|| json!({}));
    }
    answer
}

fn is_json(media: &str) -> bool {
    let media = media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    media == "application/json" || media.ends_with("+json")
}

/// Returns the outline of a schema; `None` where it is too large, too deep, recursive or a choice.
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
        out.insert("description".to_owned(), json!(super::text::line(text, 120)));
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

/// Numbers and texts are mixed up often; `null` stands for what is missing.
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
