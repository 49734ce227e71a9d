//! Metadata of documents and chunks, by which searches filter.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The maximum number of keys.
const MAX_KEYS: usize = 64;
/// The maximum length of a key in bytes.
const MAX_KEY: usize = 128;
/// The maximum length of a string in bytes.
pub(crate) const MAX_STRING: usize = 1024;
/// The maximum number of elements of an array.
const MAX_ARRAY: usize = 256;

/// Metadata by key.
pub type Metadata = BTreeMap<String, MetadataValue>;

/// A value of metadata.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum MetadataValue {
    /// True or false.
    Bool(bool),
    /// A number; integers beyond 2^53 lose precision.
    Number(f64),
    /// A string.
    String(String),
    /// An array, each of whose elements matches; arrays do not nest.
    Array(Vec<MetadataValue>),
}

/// Metadata that is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MetadataError {
    /// More keys than the limit.
    #[error("metadata has {0} keys; the limit is {MAX_KEYS}")]
    TooManyKeys(usize),
    /// A key that is empty, too long, or has control characters.
    #[error("metadata key {0:?} is invalid: use 1 to {MAX_KEY} bytes without control characters")]
    Key(String),
    /// A value that is too long.
    #[error("metadata value of `{0}` is too long; the limit is {MAX_STRING} bytes for a string")]
    TooLong(String),
    /// An array that is too long.
    #[error("metadata value of `{0}` has too many elements; the limit is {MAX_ARRAY}")]
    TooManyElements(String),
    /// An array within an array.
    #[error("metadata value of `{0}` is a nested array; use an array of strings, numbers and booleans")]
    Nested(String),
    /// A number that is infinite or not a number.
    #[error("metadata value of `{0}` is not a finite number")]
    NotFinite(String),
}

/// Checks keys and values against the limits.
pub(crate) fn check(metadata: &Metadata) -> Result<(), MetadataError> {
    if metadata.len() > MAX_KEYS {
        return Err(MetadataError::TooManyKeys(metadata.len()));
    }
    for (key, value) in metadata {
        check_key(key)?;
        match value {
            MetadataValue::Array(elements) if elements.len() > MAX_ARRAY => {
                return Err(MetadataError::TooManyElements(key.clone()));
            }
            MetadataValue::Array(elements) => {
                for element in elements {
                    check_scalar(key, element)?;
                }
            }
            scalar => check_scalar(key, scalar)?,
        }
    }
    Ok(())
}

pub(crate) fn check_key(key: &str) -> Result<(), MetadataError> {
    if key.is_empty() || key.len() > MAX_KEY || key.chars().any(char::is_control) {
        return Err(MetadataError::Key(key.chars().take(MAX_KEY).collect()));
    }
    Ok(())
}

pub(crate) fn check_scalar(key: &str, value: &MetadataValue) -> Result<(), MetadataError> {
    match value {
        MetadataValue::Bool(_) => Ok(()),
        MetadataValue::Number(number) if number.is_finite() => Ok(()),
        MetadataValue::Number(_) => Err(MetadataError::NotFinite(key.to_owned())),
        MetadataValue::String(text) if text.len() <= MAX_STRING => Ok(()),
        MetadataValue::String(_) => Err(MetadataError::TooLong(key.to_owned())),
        MetadataValue::Array(_) => Err(MetadataError::Nested(key.to_owned())),
    }
}

impl MetadataValue {
    /// Returns the value itself, or the elements of an array.
    pub(crate) fn scalars(&self) -> &[Self] {
        match self {
            Self::Array(elements) => elements,
            Self::Bool(_) | Self::Number(_) | Self::String(_) => std::slice::from_ref(self),
        }
    }
}

impl From<&str> for MetadataValue {
    fn from(value: &str) -> Self {
        Self::String(value.to_owned())
    }
}

impl From<String> for MetadataValue {
    fn from(value: String) -> Self {
        Self::String(value)
    }
}

impl From<f64> for MetadataValue {
    fn from(value: f64) -> Self {
        Self::Number(value)
    }
}

impl From<bool> for MetadataValue {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_values_are_metadata() {
        let metadata: Metadata =
            serde_json::from_str(r#"{"team":"core","year":2026,"public":true,"tags":["a",1,false]}"#)
                .unwrap();
        assert_eq!(metadata["year"], MetadataValue::Number(2026.0));
        assert_eq!(metadata["tags"].scalars().len(), 3);
        assert_eq!(check(&metadata), Ok(()));
        assert!(serde_json::from_str::<Metadata>(r#"{"team":{"x":1}}"#).is_err());
        assert!(serde_json::from_str::<Metadata>(r#"{"team":null}"#).is_err());
    }

    #[test]
    fn metadata_beyond_the_limits_is_rejected() {
        let one = |key: &str, value: MetadataValue| check(&Metadata::from([(key.to_owned(), value)]));
        assert_eq!(one("", true.into()), Err(MetadataError::Key(String::new())));
        assert_eq!(one("a\0", true.into()), Err(MetadataError::Key("a\0".into())));
        assert_eq!(one("a", "x".repeat(MAX_STRING + 1).into()), Err(MetadataError::TooLong("a".into())));
        assert_eq!(one("a", f64::NAN.into()), Err(MetadataError::NotFinite("a".into())));
        let array = MetadataValue::Array(vec![true.into(); MAX_ARRAY + 1]);
        assert_eq!(one("a", array), Err(MetadataError::TooManyElements("a".into())));
        let nested = MetadataValue::Array(vec![MetadataValue::Array(vec![])]);
        assert_eq!(one("a", nested), Err(MetadataError::Nested("a".into())));
        let many = (0..=MAX_KEYS).map(|key| (key.to_string(), true.into())).collect();
        assert_eq!(check(&many), Err(MetadataError::TooManyKeys(MAX_KEYS + 1)));
    }
}
