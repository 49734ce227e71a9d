//! Parameters of a tool, declared one by one instead of by a type.

use serde_json::{Map, Value, json};

/// The parameters of a tool, in order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Params {
    params: Vec<(String, Param)>,
}

impl Params {
    /// Creates an empty list of parameters.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a parameter; it replaces an earlier one with the same name.
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

/// The schema of one parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct Param {
    schema: Map<String, Value>,
    required: bool,
}

impl Param {
    fn of_type(kind: &str) -> Self {
        let mut schema = Map::new();
        schema.insert("type".into(), kind.into());
        Self { schema, required: false }
    }

    /// Creates a string parameter.
    pub fn string() -> Self {
        Self::of_type("string")
    }

    /// Creates an integer parameter.
    pub fn integer() -> Self {
        Self::of_type("integer")
    }

    /// Creates a number parameter.
    pub fn number() -> Self {
        Self::of_type("number")
    }

    /// Creates a boolean parameter.
    pub fn boolean() -> Self {
        Self::of_type("boolean")
    }

    /// Creates an array parameter with items of this type.
    pub fn array(items: Param) -> Self {
        Self::of_type("array").keyword("items", Value::Object(items.schema))
    }

    /// Creates an object parameter with these properties.
    pub fn object(properties: Params) -> Self {
        let schema = properties.schema().as_object().cloned().unwrap_or_default();
        Self { schema, required: false }
    }

    /// Sets the description that the model reads.
    #[must_use]
    pub fn describe(self, text: impl Into<String>) -> Self {
        self.keyword("description", text.into())
    }

    /// Makes the parameter required.
    #[must_use]
    pub fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// Sets the value that a call without this argument uses.
    #[must_use]
    pub fn default(self, value: impl Into<Value>) -> Self {
        self.keyword("default", value)
    }

    /// Restricts the parameter to these values.
    #[must_use]
    pub fn one_of<V: Into<Value>>(self, values: impl IntoIterator<Item = V>) -> Self {
        let values: Vec<Value> = values.into_iter().map(Into::into).collect();
        self.keyword("enum", values)
    }

    /// Restricts a number to a range; both bounds are included.
    #[must_use]
    pub fn range(self, min: impl Into<Value>, max: impl Into<Value>) -> Self {
        self.keyword("minimum", min).keyword("maximum", max)
    }

    /// Sets any other JSON Schema keyword.
    #[must_use]
    pub fn keyword(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.schema.insert(name.to_owned(), json!(value.into()));
        self
    }
}
