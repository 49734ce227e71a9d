//! Parameters said one by one, for tools whose schema no type tells.

use serde_json::{Map, Value, json};

/// The parameters of a tool, in their order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Params {
    params: Vec<(String, Param)>,
}

impl Params {
    /// Starts without any.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one; a later one of the same name replaces an earlier one.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, param: Param) -> Self {
        let name = name.into();
        self.params.retain(|(other, _)| *other != name);
        self.params.push((name, param));
        self
    }

    /// Returns the schema of an object with these properties.
    pub(crate) fn schema(self) -> Value {
        let mut properties = Map::new();
        let mut required = Vec::new();
        for (name, param) in self.params {
            if param.required {
                required.push(Value::from(name.as_str()));
            }
            properties.insert(name, Value::Object(param.schema));
        }
        let mut schema = Map::new();
        schema.insert("type".into(), "object".into());
        schema.insert("properties".into(), Value::Object(properties));
        if !required.is_empty() {
            schema.insert("required".into(), Value::Array(required));
        }
        Value::Object(schema)
    }
}

/// One parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct Param {
    schema: Map<String, Value>,
    required: bool,
}

impl Param {
    fn of(kind: &str) -> Self {
        let mut schema = Map::new();
        schema.insert("type".into(), kind.into());
        Self { schema, required: false }
    }

    /// A text.
    pub fn string() -> Self {
        Self::of("string")
    }

    /// A whole number.
    pub fn integer() -> Self {
        Self::of("integer")
    }

    /// A number.
    pub fn number() -> Self {
        Self::of("number")
    }

    /// True or false.
    pub fn boolean() -> Self {
        Self::of("boolean")
    }

    /// A list whose items are all like this one.
    pub fn array(items: Param) -> Self {
        Self::of("array").keyword("items", Value::Object(items.schema))
    }

    /// An object with these properties.
    pub fn object(properties: Params) -> Self {
        let schema = properties.schema().as_object().cloned().unwrap_or_default();
        Self { schema, required: false }
    }

    /// Says what it is for, to the model.
    #[must_use]
    pub fn describe(self, text: impl Into<String>) -> Self {
        self.keyword("description", text.into())
    }

    /// Says that a call must have it.
    #[must_use]
    pub fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// Says what it is where a call does not have it.
    #[must_use]
    pub fn default(self, value: impl Into<Value>) -> Self {
        self.keyword("default", value)
    }

    /// Restricts it to these values.
    #[must_use]
    pub fn one_of<V: Into<Value>>(self, values: impl IntoIterator<Item = V>) -> Self {
        let values: Vec<Value> = values.into_iter().map(Into::into).collect();
        self.keyword("enum", values)
    }

    /// Restricts a number to this range, both ends included.
    #[must_use]
    pub fn range(self, least: impl Into<Value>, most: impl Into<Value>) -> Self {
        self.keyword("minimum", least).keyword("maximum", most)
    }

    /// Sets any other keyword of JSON Schema.
    #[must_use]
    pub fn keyword(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.schema.insert(name.to_owned(), json!(value.into()));
        self
    }
}
