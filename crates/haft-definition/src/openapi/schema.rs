//! Schemas of a document to JSON Schema 2020-12: references put in, what only OpenAPI knows translated.
//!
//! A reference is replaced by what it names. One that comes back to itself stays a reference, to an entry of `$defs`;
//! and where putting all of them in would come to too much, all of them stay references.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};

use super::data::{is_quotable, refers, weight};
use super::document::{Document, Edition, RefError, target};
use super::keywords::{Holds, fits, holds, types};
use super::text::clean;
use haft_core::problem::Problem;
use haft_core::schema::normalize::{is_supported_pattern, normalize_keywords};
use haft_core::schema::walk::Subschemas;

/// The most bytes of a description within a schema.
const MAX_DESCRIPTION: usize = 1000;
/// The deepest nesting, in values; above it stand the levels that an input schema adds.
const MAX_DEPTH: usize = 56;
/// More doubts about one operation help nobody.
const MAX_WARNINGS: usize = 10;

/// Which patterns the validator can compile: asked once for each.
pub(super) type Patterns = RefCell<HashMap<String, bool>>;

/// What becomes of references.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum References {
    /// They are replaced by what they name, unless that comes back to itself.
    PutIn,
    /// They stay.
    Keep,
}

/// Where in a schema the converter is: the field that it belongs to, and how deep.
#[derive(Debug, Clone, Copy)]
struct At<'f> {
    field: &'f str,
    depth: usize,
}

impl At<'_> {
    fn down(self, levels: usize) -> Self {
        Self { depth: self.depth + levels, ..self }
    }
}

/// What the schemas of one operation may come to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Budget {
    pub(super) nodes: usize,
    pub(super) bytes: usize,
}

/// Converts the schemas of one operation.
pub(super) struct Converter<'d> {
    document: &'d Document,
    patterns: &'d Patterns,
    references: References,
    left: Budget,
    /// Whether something was left out because it was too large or too deep.
    pub(super) cut: bool,
    /// The references that are being put in.
    open: Vec<&'d str>,
    /// The references that stay, in the order in which they were met.
    kept: Vec<&'d str>,
    /// The names of their `$defs`, and the names that are taken.
    names: HashMap<&'d str, String>,
    taken: HashSet<String>,
    pub(super) warnings: Vec<Problem>,
}

impl<'d> Converter<'d> {
    pub(super) fn new(
        document: &'d Document,
        patterns: &'d Patterns,
        references: References,
        budget: Budget,
    ) -> Self {
        Self {
            document,
            patterns,
            references,
            left: budget,
            cut: false,
            open: Vec::new(),
            kept: Vec::new(),
            names: HashMap::new(),
            taken: HashSet::new(),
            warnings: Vec::new(),
        }
    }

    /// Notes a doubt.
    pub(super) fn warn(&mut self, field: &str, code: &str, message: impl Into<String>) {
        if self.warnings.len() < MAX_WARNINGS {
            self.warnings.push(Problem::new(field, code, message));
        }
    }

    /// Converts a schema.
    pub(super) fn convert(&mut self, schema: &'d Value, field: &str) -> Value {
        self.schema(schema, At { field, depth: 3 })
    }

    /// Returns the definitions that what was converted refers to.
    pub(super) fn definitions(&mut self, field: &str) -> Map<String, Value> {
        let mut definitions = Map::new();
        let mut done = 0;
        while let Some(reference) = self.kept.get(done).copied() {
            done += 1;
            let name = self.definition_name(reference);
            let value = self.document.at(reference).ok();
            self.open.push(reference);
            let schema = value.map_or_else(|| json!({}), |value| self.schema(value, At { field, depth: 2 }));
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

    fn schema(&mut self, schema: &'d Value, at: At<'_>) -> Value {
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
                self.warn(at.field, "invalid_schema", "is not a schema, and so accepts anything");
                json!({})
            }
        }
    }

    fn reference(&mut self, map: &'d Map<String, Value>, reference: &'d str, at: At<'_>) -> Value {
        let (name, value) = match self.document.last_reference(reference) {
            Ok(found) => found,
            Err(error) => return self.lost(&error, at),
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
        // What stands beside a reference counts since 3.1 only.
        if self.document.edition == Edition::V30 || map.len() == 1 {
            return converted;
        }
        self.beside(map, converted, at)
    }

    fn lost(&mut self, error: &RefError, at: At<'_>) -> Value {
        self.warn(at.field, error.code(), format!("{error}; anything is accepted there"));
        json!({})
    }

    /// Adds what stands beside a reference: words replace those of the target, rules come on top of it.
    fn beside(&mut self, map: &'d Map<String, Value>, target: Value, at: At<'_>) -> Value {
        let rest = map.iter().filter(|(key, _)| *key != "$ref");
        let (words, rules): (Vec<_>, Vec<_>) = rest.partition(|(key, _)| {
            matches!(
                key.as_str(),
                "title" | "description" | "default" | "deprecated" | "example" | "examples"
            )
        });
        let has_rules =
            rules.iter().any(|(key, _)| *key == "type" || holds(key).is_some());
        let mut out = match target {
            Value::Object(target) if !has_rules && !target.contains_key("$ref") => target,
            target => {
                let mut own = Map::new();
                for (key, value) in rules {
                    self.keyword(key, value, at, &mut own);
                }
                own.insert("allOf".to_owned(), json!([target]));
                own
            }
        };
        for (key, value) in words {
            self.keyword(key, value, at, &mut out);
        }
        normalize_keywords(out)
    }

    /// Returns the name under which a reference stands in `$defs`.
    fn definition_name(&mut self, reference: &'d str) -> String {
        if let Some(name) = self.names.get(reference) {
            return name.clone();
        }
        let plain = super::names::of_argument(reference.rsplit('/').next().unwrap_or_default());
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

    fn object(&mut self, map: &'d Map<String, Value>, at: At<'_>) -> Value {
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

    fn keyword(&mut self, key: &str, value: &'d Value, at: At<'_>, out: &mut Map<String, Value>) {
        let converted = match key {
            "type" => {
                let known = types(value);
                if known.is_none() {
                    let message = format!(
                        "the type {} is not known and left out",
                        haft_core::problem::excerpt(&value.to_string(), 40)
                    );
                    self.warn(at.field, "unknown_type", message);
                }
                known
            }
            "items" if value.is_array() => self.list(value, at),
            "nullable" => Some(value.clone()).filter(Value::is_boolean),
            "exclusiveMinimum" | "exclusiveMaximum" => {
                Some(value.clone()).filter(|value| value.is_number() || value.is_boolean())
            }
            "example" if is_quotable(value) => {
                out.insert("examples".to_owned(), json!([value]));
                None
            }
            "examples" => Some(value.clone()).filter(|value| value.is_array() && is_quotable(value)),
            _ => self.plain(key, value, at),
        };
        if let Some(converted) = converted {
            out.insert(key.to_owned(), converted);
        }
    }

    fn plain(&mut self, key: &str, value: &'d Value, at: At<'_>) -> Option<Value> {
        let kind = holds(key)?;
        match kind {
            Holds::Subschemas(Subschemas::One) => Some(self.schema(value, at.down(1))),
            Holds::Subschemas(Subschemas::List) => self.list(value, at),
            Holds::Subschemas(Subschemas::Map) => self.map(key, value, at),
            _ if !fits(kind, key, value) => None,
            Holds::Text => {
                let text = clean(value.as_str().unwrap_or_default(), MAX_DESCRIPTION);
                self.spend(1, text.len()).then(|| Value::String(text)).filter(|text| text != "")
            }
            Holds::Pattern => {
                let pattern = value.as_str().unwrap_or_default();
                if !self.compiles(pattern) {
                    let shown = haft_core::problem::excerpt(pattern, 60);
                    let message = format!("the pattern `{shown}` cannot be checked here and is left out");
                    self.warn(at.field, "unsupported_pattern", message);
                    return None;
                }
                self.spend(1, pattern.len()).then(|| value.clone())
            }
            Holds::Names => {
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
            Holds::Data | Holds::Choices => {
                let (nodes, bytes) = weight(value, self.left.nodes);
                (self.spend(nodes, bytes) && !refers(value)).then(|| value.clone())
            }
            Holds::Number | Holds::Count | Holds::Flag => self.spend(1, 8).then(|| value.clone()),
        }
    }

    fn list(&mut self, value: &'d Value, at: At<'_>) -> Option<Value> {
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

    fn map(&mut self, key: &str, value: &'d Value, at: At<'_>) -> Option<Value> {
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

/// What only answers have is not sent.
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
