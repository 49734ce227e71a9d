//! Deserializers of fields that are stricter than the derived ones.

use std::fmt;
use std::marker::PhantomData;

use haft_core::schema::RawSchema;
use serde::de::value::MapAccessDeserializer;
use serde::{Deserialize, Deserializer, de::MapAccess, de::Visitor};
use serde_json::Value;

/// Reads a value or `null`. Unlike the derived deserializer of an `Option`, it rejects a missing field, so that a client
/// detects fields that the server does not have.
pub(crate) fn nullable<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    Option::deserialize(deserializer)
}

/// Reads a JSON Schema or `null`. The derived deserializer needs the JSON text, which flattened fields do not keep.
pub(crate) fn nullable_schema<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<RawSchema>, D::Error> {
    Ok(Option::<Value>::deserialize(deserializer)?.map(RawSchema::from))
}

/// Reads a field that is present, so that `null` differs from a missing field.
pub(crate) fn some<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// Reads an object or `null`. The derived deserializer would also accept an array of the field values.
pub fn optional_object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    deserializer.deserialize_any(OptionalObject(PhantomData))
}

/// Deserializes an object field by field, so that errors name the field.
struct OptionalObject<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for OptionalObject<T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Option<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Some)
    }

    fn visit_unit<E>(self) -> Result<Option<T>, E> {
        Ok(None)
    }
}
