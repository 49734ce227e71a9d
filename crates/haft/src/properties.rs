//! The schema of a function's parameters, as `#[tool]` reads them of its signature.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::args::absent;

/// The properties of the schema of a function's arguments.
#[doc(hidden)]
pub struct Properties<'g> {
    generator: &'g mut SchemaGenerator,
    by_name: Map<String, Value>,
    required: Vec<Value>,
}

impl<'g> Properties<'g> {
    /// Starts without any.
    pub fn new(generator: &'g mut SchemaGenerator) -> Self {
        Self { generator, by_name: Map::new(), required: Vec::new() }
    }

    /// Adds a parameter of this type. It may be missing where it has a default, or where the type reads something
    /// of nothing, as `Option` does: the schema and the function cannot disagree.
    pub fn add<'de, T: JsonSchema + Deserialize<'de>>(&mut self, property: Property) {
        let Property { name, keywords, one_of, is_optional } = property;
        if !is_optional && absent::<T>().is_none() {
            self.required.push(name.into());
        }
        let mut schema = self.generator.subschema_for::<T>();
        if let Some(mut values) = one_of {
            if takes_null(&schema) {
                values.push(Value::Null);
            }
            schema.insert("enum".into(), values.into());
        }
        for (keyword, value) in keywords {
            schema.insert(keyword.into(), value);
        }
        self.by_name.insert(name.to_owned(), schema.to_value());
    }

    /// Returns the schema, which refuses what is no parameter.
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

fn takes_null(schema: &Schema) -> bool {
    let null = json!("null");
    schema.get("type").and_then(Value::as_array).is_some_and(|types| types.contains(&null))
}

/// A parameter besides its type.
#[doc(hidden)]
pub struct Property {
    name: &'static str,
    keywords: Vec<(&'static str, Value)>,
    one_of: Option<Vec<Value>>,
    is_optional: bool,
}

impl Property {
    /// Starts with a name alone.
    pub fn new(name: &'static str) -> Self {
        Self { name, keywords: Vec::new(), one_of: None, is_optional: false }
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

    /// Says that it may be missing, and what it is then, where that has a JSON form.
    #[must_use]
    pub fn default_value(mut self, value: Option<Value>) -> Self {
        self.is_optional = true;
        self.keywords.extend(value.map(|value| ("default", value)));
        self
    }
}

/// A default, whose type may have a JSON form. The compiler finds the first of the two traits that fits.
#[doc(hidden)]
pub struct Sample<T>(pub T);

/// What has a JSON form.
#[doc(hidden)]
pub trait Sampled {
    /// Returns it.
    fn value(&self) -> Option<Value>;
}

impl<T: Serialize> Sampled for Sample<T> {
    fn value(&self) -> Option<Value> {
        // By way of a text: there an `f32` is as short as it was written.
        serde_json::from_str(&serde_json::to_string(&self.0).ok()?).ok()
    }
}

/// What has none.
#[doc(hidden)]
pub trait Unsampled {
    /// Returns nothing.
    fn value(&self) -> Option<Value> {
        None
    }
}

// One reference more, so that the compiler looks here second.
impl<T> Unsampled for &Sample<T> {}
