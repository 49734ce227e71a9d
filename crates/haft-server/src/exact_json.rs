//! Arguments as the client sent them: an object in which no key is lost and no integer is rounded.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Deserializes an object and rejects duplicate keys at any depth; JSON readers would keep only one of them.
pub(crate) fn object<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Map<String, Value>, D::Error> {
    match deserializer.deserialize_map(ExactVisitor)? {
        Value::Object(map) => Ok(map),
        other => Err(D::Error::custom(format!("expected an object, not `{other}`"))),
    }
}

/// Returns the first integer of a JSON text that does not fit in 64 bits, and would be rounded.
pub(crate) fn rounded_integer(json: &[u8]) -> Option<&str> {
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
