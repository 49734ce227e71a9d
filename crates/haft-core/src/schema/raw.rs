//! A JSON Schema as it is stored.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// A JSON Schema as compact text.
///
/// A catalog can hold many thousand schemas, and few of them are in use. As text they take a fraction of the memory of
/// a [`Value`]. Clones share the text.
#[derive(Clone)]
pub struct RawSchema(Arc<str>);

impl RawSchema {
    /// Returns the schema that accepts everything, `{}`.
    pub fn empty() -> Self {
        Self("{}".into())
    }

    /// Returns whether it is `{}`.
    pub fn is_empty(&self) -> bool {
        &*self.0 == "{}"
    }

    /// Parses the schema. Keep the result where it is needed more than once.
    pub fn value(&self) -> Value {
        // The text was valid JSON when it was stored here.
        serde_json::from_str(&self.0).unwrap_or_default()
    }

    /// Replaces the text by an equal one in `texts`, or adds it there. Imported tools share many schemas.
    pub fn share(&mut self, texts: &mut HashSet<Arc<str>>) {
        match texts.get(&self.0) {
            Some(text) => self.0 = Arc::clone(text),
            None => drop(texts.insert(Arc::clone(&self.0))),
        }
    }

    /// Returns the JSON text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for RawSchema {
    fn default() -> Self {
        Self::empty()
    }
}

impl From<Value> for RawSchema {
    fn from(schema: Value) -> Self {
        Self(schema.to_string().into())
    }
}

/// The order of keys does not matter.
impl PartialEq for RawSchema {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0 || self.value() == other.value()
    }
}

impl PartialEq<Value> for RawSchema {
    fn eq(&self, other: &Value) -> bool {
        self.value() == *other
    }
}

impl fmt::Debug for RawSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for RawSchema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serde_json::from_str::<&RawValue>(&self.0).map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RawSchema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Ok(Self(raw.get().into()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_survives_json_text_and_values() {
        let schema =
            RawSchema::from(json!({"type": "object", "properties": {"b": {}, "a": {"const": 1.50}}}));
        let text = serde_json::to_string(&schema).unwrap();
        assert_eq!(text, r#"{"type":"object","properties":{"b":{},"a":{"const":1.5}}}"#);
        assert_eq!(serde_json::from_str::<RawSchema>(&text).unwrap(), schema);
        let value = serde_json::to_value(&schema).unwrap();
        assert_eq!(value, schema.value());
        assert_eq!(serde_json::from_value::<RawSchema>(value).unwrap(), schema);
    }

    #[test]
    fn equal_texts_are_shared() {
        let [mut first, mut second, mut other] =
            [json!({"a": 1}), json!({"a": 1}), json!({"a": 2})].map(RawSchema::from);
        let mut texts = HashSet::new();
        for schema in [&mut first, &mut second, &mut other] {
            schema.share(&mut texts);
        }
        assert!(Arc::ptr_eq(&first.0, &second.0) && !Arc::ptr_eq(&first.0, &other.0));
        assert_eq!((other, texts.len()), (RawSchema::from(json!({"a": 2})), 2));
    }

    #[test]
    fn the_order_of_keys_does_not_matter() {
        let schema = RawSchema::from(json!({"a": 1, "b": [1, 2]}));
        assert_eq!(schema, RawSchema::from(json!({"b": [1, 2], "a": 1})));
        assert_ne!(schema, RawSchema::from(json!({"b": [2, 1], "a": 1})));
    }
}
