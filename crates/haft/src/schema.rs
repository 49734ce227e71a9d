//! JSON Schema of Rust types and of the parameters of `#[tool]` functions.

use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform as _};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::args::deserialize_missing;

/// Returns the input schema of a tool whose arguments are deserialized into `P`. Keywords that no model uses are
/// left out, because models pay for each token.
pub(crate) fn input_schema<P: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.meta_schema = None);
    let mut schema = settings.into_generator().into_root_schema_for::<P>();
    schema.remove("title");
    RecursiveTransform(remove_number_formats).transform(&mut schema);
    match schema.to_value() {
        // `true` accepts any value, so it accepts any object.
        Value::Bool(_) => Value::Object(Map::new()),
        // The unit type: the function is called with an empty map.
        schema if schema.get("type").is_some_and(|kind| kind == "null") => json!({}),
        schema => schema,
    }
}

/// Removes formats such as `uint32`, which neither validators nor models know; the bounds stay.
fn remove_number_formats(schema: &mut Schema) {
    let is_number_format = schema.get("format").and_then(Value::as_str).is_some_and(|format| {
        format.starts_with("int") || format.starts_with("uint") || format == "float" || format == "double"
    });
    if is_number_format {
        schema.remove("format");
    }
}

/// Builds the input schema from the parameters of a function.
#[doc(hidden)]
pub struct Properties<'g> {
    generator: &'g mut SchemaGenerator,
    by_name: Map<String, Value>,
    required: Vec<Value>,
}

impl<'g> Properties<'g> {
    /// Creates an empty set of properties.
    pub fn new(generator: &'g mut SchemaGenerator) -> Self {
        Self { generator, by_name: Map::new(), required: Vec::new() }
    }

    /// Adds a parameter of this type. It is optional if it has a default or if the type deserializes from a missing
    /// value, as `Option` does; so the schema always agrees with the function.
    pub fn add<'de, T: JsonSchema + Deserialize<'de>>(&mut self, property: Property) {
        let Property { name, keywords, one_of, has_default } = property;
        if !has_default && deserialize_missing::<T>().is_none() {
            self.required.push(name.into());
        }
        let mut schema = self.generator.subschema_for::<T>();
        if let Some(mut values) = one_of {
            if accepts_null(&schema) {
                values.push(Value::Null);
            }
            schema.insert("enum".into(), values.into());
        }
        for (keyword, value) in keywords {
            schema.insert(keyword.into(), value);
        }
        self.by_name.insert(name.to_owned(), schema.to_value());
    }

    /// Returns the schema of an object with these properties and no others.
    pub fn schema(self) -> Schema {
        let mut schema = Map::new();
        schema.insert("type".into(), "object".into());
        schema.insert("properties".into(), self.by_name.into());
        if !self.required.is_empty() {
            schema.insert("required".into(), self.required.into());
        }
        schema.insert("additionalProperties".into(), false.into());
        schema.into()
    }
}

fn accepts_null(schema: &Schema) -> bool {
    let null = json!("null");
    schema.get("type").and_then(Value::as_array).is_some_and(|types| types.contains(&null))
}

/// The name, keywords and default of a parameter.
#[doc(hidden)]
pub struct Property {
    name: &'static str,
    keywords: Vec<(&'static str, Value)>,
    one_of: Option<Vec<Value>>,
    has_default: bool,
}

impl Property {
    /// Creates a property without keywords.
    pub fn new(name: &'static str) -> Self {
        Self { name, keywords: Vec::new(), one_of: None, has_default: false }
    }

    /// Adds a keyword of JSON Schema.
    #[must_use]
    pub fn keyword(mut self, keyword: &'static str, value: impl Into<Value>) -> Self {
        self.keywords.push((keyword, value.into()));
        self
    }

    /// Restricts it to these values.
    #[must_use]
    pub fn one_of(mut self, values: Vec<Value>) -> Self {
        self.one_of = Some(values);
        self
    }

    /// Makes it optional, and adds the default to the schema if it can be serialized.
    #[must_use]
    pub fn default_value(mut self, value: Option<Value>) -> Self {
        self.has_default = true;
        self.keywords.extend(value.map(|value| ("default", value)));
        self
    }
}

/// The default of a parameter. Method resolution picks [`SerializableDefault`] if the type implements `Serialize`,
/// and [`OpaqueDefault`] otherwise.
#[doc(hidden)]
pub struct DefaultValue<T>(pub T);

/// A default that can be serialized.
#[doc(hidden)]
pub trait SerializableDefault {
    /// Returns the default as JSON.
    fn to_json(&self) -> Option<Value>;
}

impl<T: Serialize> SerializableDefault for DefaultValue<T> {
    fn to_json(&self) -> Option<Value> {
        // Through a string: `to_value` would widen an `f32` and show digits that nobody wrote.
        serde_json::from_str(&serde_json::to_string(&self.0).ok()?).ok()
    }
}

/// A default that cannot be serialized and is left out of the schema.
#[doc(hidden)]
pub trait OpaqueDefault {
    /// Returns `None`.
    fn to_json(&self) -> Option<Value> {
        None
    }
}

// The extra reference makes method resolution try this implementation second.
impl<T> OpaqueDefault for &DefaultValue<T> {}
