//! Arguments as the client sent them: an object in which no key is lost and no integer is rounded.

use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::problem::excerpt;

/// How many characters of a client's text an error message repeats.
const MAX_EXCERPT: usize = 60;
/// How many levels of an argument an error message names; each level is one more pass over the text.
const MAX_PATH_DEPTH: usize = 8;

/// Something in a JSON text that a JSON reader would change silently.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InexactJson {
    /// A key that occurs twice in one object; a reader keeps one of its values.
    #[error("duplicate key `{}`", excerpt(.0, MAX_EXCERPT))]
    DuplicateKey(String),
    /// An integer that does not fit in 64 bits.
    #[error(
        "the integer `{}` does not fit in 64 bits and would be rounded; send it as a string",
        excerpt(.0, MAX_EXCERPT)
    )]
    RoundedInteger(String),
}

/// Something in the arguments of a call that a JSON reader would change silently.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{source}", in_argument(path))]
pub struct InexactArguments {
    /// The dotted path of the argument; empty for the arguments as a whole.
    pub path: String,
    /// What would be changed.
    pub source: InexactJson,
}

fn in_argument(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!("argument `{}`: ", excerpt(path, MAX_EXCERPT)) }
}

/// Checks that a JSON text means the same to every reader: no duplicate key, no integer beyond 64 bits.
///
/// A text that is not valid JSON passes; reading it reports that.
pub fn check(json: &str) -> Result<(), InexactJson> {
    if let Some(key) = duplicate_key(json.as_bytes()) {
        return Err(InexactJson::DuplicateKey(key));
    }
    match rounded_integer(json.as_bytes()) {
        Some(number) => Err(InexactJson::RoundedInteger(number.to_owned())),
        None => Ok(()),
    }
}

/// Checks the arguments of a call as [`check`] does; the error names the argument.
pub fn check_arguments(json: &str) -> Result<(), InexactArguments> {
    let Err(mut source) = check(json) else { return Ok(()) };
    let (mut path, mut object) = (String::new(), json);
    // Descends to the innermost object with the problem.
    for _ in 0..MAX_PATH_DEPTH {
        let Ok(fields) = serde_json::from_str::<Fields<'_>>(object) else { break };
        let Some((key, value, inner)) = fields.first_inexact() else { break };
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(&key);
        (object, source) = (value, inner);
    }
    Err(InexactArguments { path, source })
}

/// Returns the first key that occurs twice in one object, at any depth.
pub fn duplicate_key(json: &[u8]) -> Option<String> {
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    DuplicateKeyVisitor.deserialize(&mut deserializer).ok().flatten()
}

/// Deserializes an object and rejects duplicate keys at any depth; JSON readers would keep only one of them.
pub fn object<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Map<String, Value>, D::Error> {
    match deserializer.deserialize_map(ExactVisitor)? {
        Value::Object(map) => Ok(map),
        other => Err(D::Error::custom(format!("expected an object, not `{other}`"))),
    }
}

/// Returns the first integer of a JSON text that does not fit in 64 bits, and would be rounded.
pub fn rounded_integer(json: &[u8]) -> Option<&str> {
    let (mut at, mut in_string) = (0, false);
    while let Some(byte) = json.get(at) {
        match byte {
            b'\\' if in_string => at += 1,
            b'"' => in_string = !in_string,
            b'-' | b'0'..=b'9' if !in_string => {
                let rest = json.get(at..).unwrap_or_default();
                let length = rest
                    .iter()
                    .take_while(|byte| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'))
                    .count();
                let number = std::str::from_utf8(rest.get(..length).unwrap_or_default()).unwrap_or_default();
                let is_integer = !number.contains(['.', 'e', 'E']);
                if is_integer && number.parse::<i64>().is_err() && number.parse::<u64>().is_err() {
                    return Some(number);
                }
                at += length - 1;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// The fields of an object, unread.
struct Fields<'a>(Vec<(String, &'a RawValue)>);

impl<'a> Fields<'a> {
    /// Returns the first field whose value does not pass [`check`].
    fn first_inexact(self) -> Option<(String, &'a str, InexactJson)> {
        self.0.into_iter().find_map(|(key, value)| {
            let source = check(value.get()).err()?;
            Some((key, value.get(), source))
        })
    }
}

impl<'de> serde::Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;

        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = Fields<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Fields<'de>, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = entries.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }

        deserializer.deserialize_map(FieldsVisitor)
    }
}

/// Finds the first duplicate key of any value.
struct DuplicateKeyVisitor;

impl<'de> DeserializeSeed<'de> for DuplicateKeyVisitor {
    type Value = Option<String>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<String>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for DuplicateKeyVisitor {
    type Value = Option<String>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Option<String>, E> {
        Ok(None)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Option<String>, E> {
        Ok(None)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Option<String>, E> {
        Ok(None)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Option<String>, E> {
        Ok(None)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Option<String>, E> {
        Ok(None)
    }

    fn visit_str<E>(self, _: &str) -> Result<Option<String>, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Option<String>, A::Error> {
        let mut found = None;
        while let Some(inner) = items.next_element_seed(DuplicateKeyVisitor)? {
            found = found.or(inner);
        }
        Ok(found)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Option<String>, A::Error> {
        let (mut found, mut keys) = (None, HashSet::new());
        while let Some(key) = entries.next_key::<String>()? {
            let is_duplicate = keys.contains(&key);
            let inner = entries.next_value_seed(DuplicateKeyVisitor)?;
            if is_duplicate {
                found = found.or(Some(key));
            } else {
                found = found.or(inner);
                keys.insert(key);
            }
        }
        Ok(found)
    }
}

/// Reads any value.
struct ExactVisitor;

impl<'de> DeserializeSeed<'de> for ExactVisitor {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ExactVisitor {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a map")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(ExactVisitor)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if map.contains_key(&key) {
                return Err(A::Error::custom(format!("duplicate field `{key}`")));
            }
            let value = entries.next_value_seed(ExactVisitor)?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_read_like_serde_json_does() {
        let text = r#"{"a": [1, -2, 1.5, 1e300, true, null, "x\n", {"b": {}}], "c": 18446744073709551615}"#;
        let read = object(&mut serde_json::Deserializer::from_str(text)).unwrap();
        assert_eq!(Value::Object(read), serde_json::from_str::<Value>(text).unwrap());
        for text in ["[]", "null", "1", r#""a""#] {
            let error = object(&mut serde_json::Deserializer::from_str(text)).unwrap_err().to_string();
            let usual = serde_json::from_str::<Map<String, Value>>(text).unwrap_err().to_string();
            assert_eq!(error, usual);
        }
    }

    #[test]
    fn duplicate_keys_are_rejected_at_any_depth() {
        for text in
            [r#"{"a": 1, "a": 1}"#, r#"{"x": [{"a": 1, "b": 2, "a": 3}]}"#, r#"{"a": 1, "\u0061": 2}"#]
        {
            let error = object(&mut serde_json::Deserializer::from_str(text)).unwrap_err();
            assert!(error.to_string().starts_with("duplicate field `a`"), "{error}");
        }
    }

    #[test]
    fn the_error_names_the_argument() {
        for (text, expected) in [
            (r#"{"a": {"b": [1, 2.5, null, "x"]}, "c": true}"#, None),
            ("{", None),
            (r#"{"a": 1, "a": 2}"#, Some("duplicate key `a`")),
            (r#"{"x": {"y": {"a": 1, "\u0061": 2}}}"#, Some("argument `x.y`: duplicate key `a`")),
            (r#"{"x": [{"a": 1, "a": 2}]}"#, Some("argument `x`: duplicate key `a`")),
            (
                r#"{"s": "99999999999999999999", "n": {"m": 99999999999999999999}}"#,
                Some(
                    "argument `n.m`: the integer `99999999999999999999` does not fit in 64 bits and would be rounded; \
                     send it as a string",
                ),
            ),
        ] {
            let error = check_arguments(text).err().map(|error| error.to_string());
            assert_eq!(error.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn integers_beyond_64_bits_are_found() {
        for (text, expected) in [
            (r#"{"n": 18446744073709551615, "m": -9223372036854775808}"#, None),
            (r#"{"n": 18446744073709551616}"#, Some("18446744073709551616")),
            (r#"{"n": [1, -9223372036854775809]}"#, Some("-9223372036854775809")),
            (r#"{"n": 1e30, "m": 123456789012345678901.5}"#, None),
            (r#"{"18446744073709551616": "a\"18446744073709551616"}"#, None),
            ("99999999999999999999", Some("99999999999999999999")),
            ("", None),
        ] {
            assert_eq!(rounded_integer(text.as_bytes()), expected, "{text}");
        }
    }
}
