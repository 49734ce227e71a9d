//! Builds the schema of a map with fixed keys.

use serde_json::{Map, Value, json};

/// The schema of a map. Keys in snake case are accepted in camel case, too, as the readers do.
#[derive(Debug, Default, Clone)]
pub(super) struct Object {
    properties: Map<String, Value>,
    all_of: Vec<Value>,
}

impl Object {
    /// Adds a key.
    pub(super) fn key(self, key: &str, schema: Value, help: &str) -> Self {
        self.keys(&[key], schema, help)
    }

    /// Adds a key with its other spellings.
    pub(super) fn keys(mut self, keys: &[&str], mut schema: Value, help: &str) -> Self {
        if let (Value::Object(map), false) = (&mut schema, help.is_empty()) {
            // Draft 7 ignores all keywords next to `$ref`.
            if map.contains_key("$ref") {
                schema = json!({"allOf": [schema.clone()], "description": help});
            } else {
                map.insert("description".to_owned(), json!(help));
            }
        }
        for key in keys {
            for spelling in spellings(key) {
                self.properties.insert(spelling, schema.clone());
            }
        }
        self
    }

    /// Adds keys that are ignored, such as the other fields of an API response.
    pub(super) fn ignored(mut self, keys: &[&str]) -> Self {
        for spelling in keys.iter().flat_map(|key| spellings(key)) {
            self.properties.entry(spelling).or_insert(Value::Bool(true));
        }
        self
    }

    /// Requires one of several keys, in any spelling.
    pub(super) fn needs(mut self, keys: &[&str]) -> Self {
        let each = keys.iter().flat_map(|key| spellings(key)).map(|key| json!({"required": [key]}));
        self.all_of.push(json!({"anyOf": each.collect::<Vec<_>>()}));
        self
    }

    /// Adds a schema to `allOf`.
    pub(super) fn also(mut self, schema: Value) -> Self {
        self.all_of.push(schema);
        self
    }

    /// Returns the schema; other keys are errors.
    pub(super) fn closed(self) -> Value {
        self.build(false)
    }

    /// Returns the schema; other keys are allowed.
    pub(super) fn open(self) -> Value {
        self.build(true)
    }

    fn build(self, open: bool) -> Value {
        let mut schema = Map::new();
        schema.insert("type".to_owned(), json!("object"));
        schema.insert("properties".to_owned(), Value::Object(self.properties));
        if !open {
            schema.insert("additionalProperties".to_owned(), Value::Bool(false));
        }
        if !self.all_of.is_empty() {
            schema.insert("allOf".to_owned(), Value::Array(self.all_of));
        }
        Value::Object(schema)
    }
}

/// Returns a key, and its camel case if it has several words.
fn spellings(key: &str) -> Vec<String> {
    let mut words = key.split('_');
    let mut camel = words.next().unwrap_or_default().to_owned();
    for word in words {
        let mut letters = word.chars();
        camel.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
        camel.push_str(letters.as_str());
    }
    if camel == key { vec![key.to_owned()] } else { vec![key.to_owned(), camel] }
}

/// Returns the schema of a string.
pub(super) fn text() -> Value {
    json!({"type": "string"})
}

/// Returns the schema of `true` or `false`.
pub(super) fn flag() -> Value {
    json!({"type": "boolean"})
}

/// Returns the schema of an integer that is not negative.
pub(super) fn count() -> Value {
    json!({"type": "integer", "minimum": 0})
}

/// Returns the schema of any map.
pub(super) fn map() -> Value {
    json!({"type": "object"})
}

/// Returns the schema of a list of texts.
pub(super) fn texts() -> Value {
    json!({"type": "array", "items": {"type": "string"}})
}

/// Returns the schema of a text; numbers and booleans become one.
pub(super) fn scalar() -> Value {
    json!({"type": ["string", "number", "boolean"]})
}

/// Returns the schema of a list of texts; numbers and booleans become one.
pub(super) fn scalars() -> Value {
    json!({"type": "array", "items": scalar()})
}

/// Returns the schema of a map of texts.
pub(super) fn text_map() -> Value {
    json!({"type": "object", "additionalProperties": scalar()})
}

/// Returns the schema of an enum of strings.
pub(super) fn words(words: &[&str]) -> Value {
    json!({"type": "string", "enum": words})
}

/// Returns the schema of a duration: a text such as `30s`, or a number of seconds.
pub(super) fn duration() -> Value {
    json!({"type": ["string", "number"]})
}

/// Returns a reference to a shared schema.
pub(super) fn shared(name: &str) -> Value {
    json!({"$ref": format!("#/definitions/{name}")})
}

/// Adds the shared schemas to a document.
pub(super) fn with_definitions(mut schema: Value, definitions: Vec<(&str, Value)>) -> Value {
    if let Value::Object(map) = &mut schema {
        let definitions = definitions.into_iter().map(|(name, schema)| (name.to_owned(), schema));
        map.insert("definitions".to_owned(), Value::Object(definitions.collect()));
    }
    schema
}
