//! Parses JSON and rejects duplicate keys, of which the last would otherwise win silently.

use std::cell::RefCell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use haft_core::problem::{Problem, excerpt};

/// The maximum nesting depth; below the recursion limit of the parser.
const MAX_DEPTH: usize = 120;

/// Parses one document.
pub(super) fn parse(text: &str) -> Result<Value, Problem> {
    let violation = RefCell::new(None);
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let parsed = ValueSeed { violation: &violation, depth: 0 }
        .deserialize(&mut deserializer)
        .and_then(|value| deserializer.end().map(|()| value));
    parsed.map_err(|error| {
        let line = u32::try_from(error.line()).unwrap_or(u32::MAX);
        let column = u32::try_from(error.column()).ok().filter(|column| *column > 0);
        let (code, message) = match violation.take() {
            Some(Violation::DuplicateKey(key)) => {
                ("duplicate_key", format!("invalid JSON: duplicate key `{key}`"))
            }
            Some(Violation::TooDeep) => {
                ("syntax", format!("the nesting exceeds the limit of {MAX_DEPTH} levels"))
            }
            None => {
                let text = error.to_string();
                let message = text.rsplit_once(" at line ").map_or(text.as_str(), |(message, _)| message);
                ("syntax", format!("invalid JSON: {message}"))
            }
        };
        Problem::new("", code, message).at(line.max(1), column)
    })
}

/// What this parser rejects although it is JSON.
#[derive(Debug)]
enum Violation {
    DuplicateKey(String),
    TooDeep,
}

/// Deserializes a value at a depth, and notes why it was rejected.
#[derive(Clone, Copy)]
struct ValueSeed<'v> {
    violation: &'v RefCell<Option<Violation>>,
    depth: usize,
}

impl ValueSeed<'_> {
    fn reject<E: serde::de::Error>(self, violation: Violation) -> E {
        self.violation.replace(Some(violation));
        E::custom("rejected")
    }

    fn nested<E: serde::de::Error>(self) -> Result<Self, E> {
        let depth = self.depth + 1;
        if depth > MAX_DEPTH { Err(self.reject(Violation::TooDeep)) } else { Ok(Self { depth, ..self }) }
    }
}

impl<'de> DeserializeSeed<'de> for ValueSeed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueSeed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
        Ok(flag.into())
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let seed = self.nested::<A::Error>()?;
        let mut items = Vec::new();
        while let Some(item) = access.next_element_seed(seed)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let seed = self.nested::<A::Error>()?;
        let mut map = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            if map.contains_key(&key) {
                return Err(self.reject(Violation::DuplicateKey(excerpt(&key, 60))));
            }
            let value = access.next_value_seed(seed)?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}
