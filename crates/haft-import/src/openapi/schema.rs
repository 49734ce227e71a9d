//! Converts the schemas of a document to JSON Schema 2020-12.
//!
//! A reference is replaced by its target. A recursive reference becomes a reference to an entry of `$defs`, and if
//! inlining all references would exceed the budget, all of them do.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};

use super::document::{Document, OpenApiVersion, Origin, RefError, target};
use crate::api::text::clean_and_cut;
use haft_core::problem::Problem;
use haft_core::schema::normalize::{is_supported_pattern, normalize_keywords};
use haft_core::schema::walk::{self, Subschemas, any_value};

/// The maximum number of bytes of a description within a schema.
const MAX_DESCRIPTION: usize = 1000;
/// The maximum nesting; the input schema adds some levels above it.
const MAX_DEPTH: usize = 56;
/// The maximum number of warnings per operation.
const MAX_WARNINGS: usize = 10;

/// Caches which patterns the validator supports.
pub(super) type PatternCache = RefCell<HashMap<String, bool>>;

/// How references are converted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum References {
    /// References are replaced by their targets, unless they are recursive.
    Inline,
    /// References are kept.
    Keep,
}

/// The position of the converter: the field that the schema belongs to, and the depth.
#[derive(Debug, Clone, Copy)]
struct Position<'f> {
    field: &'f str,
    depth: usize,
}

impl Position<'_> {
    fn down(self, levels: usize) -> Self {
        Self { depth: self.depth + levels, ..self }
    }
}

/// The maximum size of the schemas of one operation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Budget {
    pub(super) nodes: usize,
    pub(super) bytes: usize,
}

/// Converts the schemas of one operation.
pub(super) struct Converter<'d> {
    document: &'d Document,
    patterns: &'d PatternCache,
    references: References,
    left: Budget,
    /// Whether something was dropped because it was too large or too deep.
    pub(super) cut: bool,
    /// Whether a description was truncated.
    has_cut_text: bool,
    /// The references that are being inlined.
    open: Vec<&'d str>,
    /// The references that are kept, in order of appearance.
    kept: Vec<&'d str>,
    /// The names of their `$defs`, and the names in use.
    names: HashMap<&'d str, String>,
    taken: HashSet<String>,
    pub(super) warnings: Vec<Problem>,
}

impl<'d> Converter<'d> {
    pub(super) fn new(
        document: &'d Document,
        patterns: &'d PatternCache,
        references: References,
        budget: Budget,
    ) -> Self {
        Self {
            document,
            patterns,
            references,
            left: budget,
            cut: false,
            has_cut_text: false,
            open: Vec::new(),
            kept: Vec::new(),
            names: HashMap::new(),
            taken: HashSet::new(),
            warnings: Vec::new(),
        }
    }

    /// Adds a warning.
    pub(super) fn warn(&mut self, field: &str, code: &str, message: impl Into<String>) {
        if self.warnings.len() < MAX_WARNINGS {
            self.warnings.push(Problem::new(field, code, message));
        }
    }

    /// Converts a schema.
    pub(super) fn convert(&mut self, schema: &'d Value, field: &str) -> Value {
        self.schema(schema, Position { field, depth: 3 })
    }

    /// Returns the definitions that the converted schemas refer to.
    pub(super) fn definitions(&mut self, field: &str) -> Map<String, Value> {
        let mut definitions = Map::new();
        let mut done = 0;
        while let Some(reference) = self.kept.get(done).copied() {
            done += 1;
            let name = self.definition_name(reference);
            let value = self.document.at(reference).ok();
            self.open.push(reference);
            let schema =
                value.map_or_else(|| json!({}), |value| self.schema(value, Position { field, depth: 2 }));
            self.open.pop();
            definitions.insert(name, schema);
        }
        definitions
    }

    fn spend(&mut self, nodes: usize, bytes: usize) -> bool {
        let left = self.left.nodes.checked_sub(nodes).zip(self.left.bytes.checked_sub(bytes));
        self.cut |= left.is_none();
        let (nodes, bytes) = left.unwrap_or_default();
        self.left = Budget { nodes, bytes };
        left.is_some()
    }

    fn schema(&mut self, schema: &'d Value, at: Position<'_>) -> Value {
        if at.depth > MAX_DEPTH {
            self.cut = true;
            return json!({});
        }
        if !self.spend(1, 8) {
            return json!({});
        }
        match schema {
            Value::Bool(_) => schema.clone(),
            Value::Object(map) => match target(schema) {
                Some(reference) => self.reference(map, reference, at),
                None => self.object(map, at),
            },
            _ => {
                self.warn(at.field, "invalid_schema", "invalid schema; any value is accepted");
                json!({})
            }
        }
    }

    fn reference(&mut self, map: &'d Map<String, Value>, reference: &'d str, at: Position<'_>) -> Value {
        let (name, value) = match self.document.last_reference(reference) {
            Ok(found) => found,
            Err(error) => return self.unresolved(&error, at),
        };
        let stays = self.references == References::Keep || self.open.contains(&name);
        let converted = if stays {
            json!({"$ref": format!("#/$defs/{}", self.definition_name(name))})
        } else {
            self.open.push(name);
            let converted = self.schema(value, at);
            self.open.pop();
            converted
        };
        // Keywords next to a reference are ignored before 3.1.
        if self.document.openapi_version == OpenApiVersion::V30 || map.len() == 1 {
            return converted;
        }
        self.beside(map, converted, at)
    }

    fn unresolved(&mut self, error: &RefError, at: Position<'_>) -> Value {
        self.warn(at.field, error.code(), format!("{error}; any value is accepted"));
        json!({})
    }

    /// Adds the keywords next to a reference: annotations replace those of the target, constraints are added with `allOf`.
    fn beside(&mut self, map: &'d Map<String, Value>, target: Value, at: Position<'_>) -> Value {
        let rest = map.iter().filter(|(key, _)| *key != "$ref");
        let (annotations, constraints): (Vec<_>, Vec<_>) = rest.partition(|(key, _)| {
            matches!(
                key.as_str(),
                "title" | "description" | "default" | "deprecated" | "example" | "examples"
            )
        });
        let has_constraints =
            constraints.iter().any(|(key, _)| *key == "type" || keyword_value(key).is_some());
        let mut out = match target {
            Value::Object(target) if !has_constraints && !target.contains_key("$ref") => target,
            target => {
                let mut own = Map::new();
                for (key, value) in constraints {
                    self.keyword(key, value, at, &mut own);
                }
                own.insert("allOf".to_owned(), json!([target]));
                own
            }
        };
        for (key, value) in annotations {
            self.keyword(key, value, at, &mut out);
        }
        normalize_keywords(out)
    }

    /// Returns the name of a reference in `$defs`.
    fn definition_name(&mut self, reference: &'d str) -> String {
        if let Some(name) = self.names.get(reference) {
            return name.clone();
        }
        let plain = crate::api::names::argument_name(reference.rsplit('/').next().unwrap_or_default());
        let mut name = plain.clone();
        let mut number = self.kept.len() + 1;
        while !self.taken.insert(name.clone()) {
            number += 1;
            name = format!("{plain}_{number}");
        }
        self.kept.push(reference);
        self.names.insert(reference, name.clone());
        name
    }

    fn object(&mut self, map: &'d Map<String, Value>, at: Position<'_>) -> Value {
        let mut out = Map::new();
        for (key, value) in map {
            if self.left.nodes == 0 {
                break;
            }
            self.keyword(key, value, at, &mut out);
        }
        drop_read_only(&mut out);
        normalize_keywords(out)
    }

    fn keyword(&mut self, key: &str, value: &'d Value, at: Position<'_>, out: &mut Map<String, Value>) {
        let converted = match key {
            "type" => {
                let known = types(value);
                if known.is_none() {
                    let message = format!(
                        "unknown type {}, ignored",
                        haft_core::problem::excerpt(&value.to_string(), 40)
                    );
                    self.warn(at.field, "unknown_type", message);
                }
                known
            }
            "items" if value.is_array() => self.list(value, at),
            "nullable" => Some(value.clone()).filter(Value::is_boolean),
            // The extension that Swagger 2.0 documents use.
            "x-nullable" if self.document.origin == Origin::Swagger => {
                if value.is_boolean() {
                    out.insert("nullable".to_owned(), value.clone());
                }
                None
            }
            "exclusiveMinimum" | "exclusiveMaximum" => {
                Some(value.clone()).filter(|value| value.is_number() || value.is_boolean())
            }
            "example" if is_small_literal(value) => {
                out.insert("examples".to_owned(), json!([value]));
                None
            }
            "examples" => Some(value.clone()).filter(|value| value.is_array() && is_small_literal(value)),
            _ => self.plain(key, value, at),
        };
        if let Some(converted) = converted {
            out.insert(key.to_owned(), converted);
        }
    }

    fn plain(&mut self, key: &str, value: &'d Value, at: Position<'_>) -> Option<Value> {
        let kind = keyword_value(key)?;
        match kind {
            KeywordValue::Subschemas(Subschemas::One) => Some(self.schema(value, at.down(1))),
            KeywordValue::Subschemas(Subschemas::List) => self.list(value, at),
            KeywordValue::Subschemas(Subschemas::Map) => self.map(key, value, at),
            _ if !is_valid(kind, key, value) => None,
            KeywordValue::Text => {
                let (text, is_cut) = clean_and_cut(value.as_str().unwrap_or_default(), MAX_DESCRIPTION);
                if is_cut && !std::mem::replace(&mut self.has_cut_text, true) {
                    let message = format!("descriptions of arguments are cut to {MAX_DESCRIPTION} bytes");
                    self.warn(at.field, "description_cut", message);
                }
                self.spend(1, text.len()).then(|| Value::String(text)).filter(|text| text != "")
            }
            KeywordValue::Pattern => {
                let pattern = value.as_str().unwrap_or_default();
                if !self.compiles(pattern) {
                    let shown = haft_core::problem::excerpt(pattern, 60);
                    let message = format!("unsupported pattern `{shown}`, ignored");
                    self.warn(at.field, "unsupported_pattern", message);
                    return None;
                }
                self.spend(1, pattern.len()).then(|| value.clone())
            }
            KeywordValue::Names => {
                let mut names: Vec<Value> = Vec::new();
                for name in value.as_array().into_iter().flatten() {
                    if !self.spend(1, 8) {
                        return None;
                    }
                    names.push(name.clone());
                }
                let mut seen = HashSet::new();
                names.retain(|name| seen.insert(name.to_string()));
                Some(Value::Array(names))
            }
            KeywordValue::Data | KeywordValue::Choices => {
                let (nodes, bytes) = weight(value, self.left.nodes);
                (self.spend(nodes, bytes) && !looks_like_reference(value)).then(|| value.clone())
            }
            KeywordValue::Number | KeywordValue::Count | KeywordValue::Flag => {
                self.spend(1, 8).then(|| value.clone())
            }
        }
    }

    fn list(&mut self, value: &'d Value, at: Position<'_>) -> Option<Value> {
        let items = value.as_array().filter(|items| !items.is_empty())?;
        let mut out = Vec::with_capacity(items.len().min(self.left.nodes));
        for item in items {
            if self.left.nodes == 0 {
                break;
            }
            out.push(self.schema(item, at.down(2)));
        }
        Some(Value::Array(out)).filter(|list| *list != json!([]))
    }

    fn map(&mut self, key: &str, value: &'d Value, at: Position<'_>) -> Option<Value> {
        let mut out = Map::new();
        for (name, schema) in value.as_object()? {
            if key == "patternProperties" && !self.compiles(name) {
                continue;
            }
            if !self.spend(1, name.len()) {
                break;
            }
            let schema = self.schema(schema, at.down(2));
            out.insert(name.clone(), schema);
        }
        Some(Value::Object(out))
    }

    fn compiles(&self, pattern: &str) -> bool {
        if pattern.len() > 1000 {
            return false;
        }
        if let Some(known) = self.patterns.borrow().get(pattern) {
            return *known;
        }
        let compiles = is_supported_pattern(pattern);
        self.patterns.borrow_mut().insert(pattern.to_owned(), compiles);
        compiles
    }
}

/// Removes read-only properties, which are not part of requests.
fn drop_read_only(out: &mut Map<String, Value>) {
    let Some(Value::Object(properties)) = out.get_mut("properties") else { return };
    let read_only = |schema: &Value| schema.get("readOnly") == Some(&Value::Bool(true));
    let gone: Vec<String> =
        properties.iter().filter(|(_, schema)| read_only(schema)).map(|(name, _)| name.clone()).collect();
    for name in &gone {
        properties.shift_remove(name);
    }
    if let Some(Value::Array(required)) = out.get_mut("required") {
        required.retain(|name| !gone.iter().any(|gone| name == gone));
    }
}

/// The kind of value that a keyword has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeywordValue {
    /// Schemas.
    Subschemas(Subschemas),
    /// Any value.
    Data,
    /// A list of values, not empty.
    Choices,
    Number,
    Count,
    Flag,
    Text,
    Names,
    Pattern,
}

/// Returns the kind of value of a keyword; `None` if it is unknown to JSON Schema 2020-12 or handled separately.
fn keyword_value(keyword: &str) -> Option<KeywordValue> {
    if let Some(subschemas) = walk::subschemas(keyword) {
        // Definitions are added where references need them.
        return Some(KeywordValue::Subschemas(subschemas))
            .filter(|_| !matches!(keyword, "$defs" | "definitions"));
    }
    Some(match keyword {
        "const" | "default" => KeywordValue::Data,
        "enum" => KeywordValue::Choices,
        "minimum" | "maximum" | "multipleOf" => KeywordValue::Number,
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties"
        | "minContains" | "maxContains" => KeywordValue::Count,
        "uniqueItems" | "deprecated" | "readOnly" | "writeOnly" => KeywordValue::Flag,
        "title" | "description" | "format" | "contentEncoding" | "contentMediaType" => KeywordValue::Text,
        "required" => KeywordValue::Names,
        "pattern" => KeywordValue::Pattern,
        _ => return None,
    })
}

/// Returns whether a value is valid for its keyword.
fn is_valid(kind: KeywordValue, keyword: &str, value: &Value) -> bool {
    match kind {
        KeywordValue::Number if keyword == "multipleOf" => value.as_f64().is_some_and(|number| number > 0.0),
        KeywordValue::Number => value.is_number(),
        KeywordValue::Count => value.is_u64(),
        KeywordValue::Flag => value.is_boolean(),
        KeywordValue::Text | KeywordValue::Pattern => value.is_string(),
        KeywordValue::Choices => value.as_array().is_some_and(|list| !list.is_empty()),
        KeywordValue::Names => value.as_array().is_some_and(|list| list.iter().all(Value::is_string)),
        KeywordValue::Data => true,
        KeywordValue::Subschemas(_) => false,
    }
}

/// Returns the valid types of a `type` keyword; `None` if one is unknown.
pub(super) fn types(value: &Value) -> Option<Value> {
    const KNOWN: [&str; 7] = ["string", "number", "integer", "boolean", "object", "array", "null"];
    let known = |value: &Value| value.as_str().is_some_and(|text| KNOWN.contains(&text));
    match value {
        Value::String(_) if known(value) => Some(value.clone()),
        Value::Array(list) if !list.is_empty() && list.iter().all(known) => {
            let mut unique: Vec<Value> = Vec::new();
            for item in list {
                if !unique.contains(item) {
                    unique.push(item.clone());
                }
            }
            Some(Value::Array(unique))
        }
        _ => None,
    }
}

/// Returns the number of nodes of a value and the size of its strings in bytes; stops counting at `limit`.
fn weight(value: &Value, limit: usize) -> (usize, usize) {
    let (mut nodes, mut bytes) = (0_usize, 0_usize);
    let mut pending = vec![value];
    while let Some(value) = pending.pop() {
        nodes += 1;
        match value {
            Value::String(text) => bytes += text.len(),
            Value::Array(items) => pending.extend(items),
            Value::Object(map) => {
                bytes += map.keys().map(String::len).sum::<usize>();
                pending.extend(map.values());
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => bytes += 8,
        }
        if nodes > limit || bytes > limit.saturating_mul(16) {
            break;
        }
    }
    (nodes, bytes)
}

/// Returns whether a value is small and contains nothing that looks like a reference.
pub(super) fn is_small_literal(value: &Value) -> bool {
    const MAX_NODES: usize = 20;
    weight(value, MAX_NODES).0 <= MAX_NODES
        && weight(value, MAX_NODES).1 <= 300
        && !looks_like_reference(value)
}

/// Returns whether a value contains something that looks like a reference.
fn looks_like_reference(value: &Value) -> bool {
    any_value(value, &|value| ["$ref", "$dynamicRef", "$id"].iter().any(|key| value.get(key).is_some()))
}
