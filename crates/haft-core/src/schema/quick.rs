//! A quick look at values of plain schemas, as most arguments have: it says yes, or nothing.
//!
//! Whatever it does not know, and whatever it does not accept, is the library's to judge.

use serde_json::{Map, Number, Value};

/// The most properties of one object: each is looked for among them.
const MAX_PROPERTIES: usize = 16;
/// The most texts to choose from.
const MAX_CHOICES: usize = 16;

const NULL: u8 = 1;
const BOOLEAN: u8 = 1 << 1;
const NUMBER: u8 = 1 << 2;
const TEXT: u8 = 1 << 3;
const LIST: u8 = 1 << 4;
const OBJECT: u8 = 1 << 5;

/// A schema of which every rule is known here.
pub(super) struct Quick {
    /// The types that it takes.
    types: u8,
    /// Of whole numbers; others are the library's.
    least: i64,
    most: i64,
    /// Of texts, where only some are taken.
    choices: Option<Vec<String>>,
    items: Option<Box<Quick>>,
    properties: Vec<(String, Quick)>,
    /// Those that have to be there, a bit each.
    required: u32,
    /// Whether others are refused.
    closed: bool,
}

impl Quick {
    /// Reads a schema; nothing where it has a rule that is not known here.
    pub(super) fn of(schema: &Value) -> Option<Self> {
        let mut quick = Self {
            types: u8::MAX,
            least: i64::MIN,
            most: i64::MAX,
            choices: None,
            items: None,
            properties: Vec::new(),
            required: 0,
            closed: false,
        };
        let rules = match schema {
            Value::Bool(true) => return Some(quick),
            Value::Object(rules) => rules,
            _ => return None,
        };
        for (rule, value) in rules {
            match rule.as_str() {
                "type" => quick.types = types(value)?,
                "minimum" => quick.least = value.as_i64()?,
                "maximum" => quick.most = value.as_i64()?,
                "enum" => quick.choices = Some(texts(value, MAX_CHOICES)?),
                "items" => quick.items = Some(Box::new(Self::of(value)?)),
                "properties" => quick.properties = properties(value)?,
                "additionalProperties" => quick.closed = !value.as_bool()?,
                "format" if !is_size_of_number(value) => return None,
                // Read once all properties are known; the others say nothing of values.
                "required" | "format" | "title" | "description" | "default" | "examples" | "deprecated"
                | "$schema" | "$comment" => {}
                _ => return None,
            }
        }
        if quick.choices.is_some() {
            if !quick.takes(TEXT) {
                return None;
            }
            // No type is taken as such any more, only what is among them.
            quick.types = 0;
        }
        if let Some(required) = rules.get("required") {
            for name in texts(required, MAX_PROPERTIES)? {
                quick.required |= 1 << quick.find(&name, 0)?.0;
            }
        }
        Some(quick)
    }

    /// Finds a property, and its number; most come in the order in which they are declared.
    #[inline]
    fn find(&self, name: &str, expected: usize) -> Option<(usize, &Quick)> {
        match self.properties.get(expected) {
            Some((property, quick)) if property == name => Some((expected, quick)),
            _ => {
                let mut all = self.properties.iter().enumerate();
                all.find_map(|(number, (property, quick))| (property == name).then_some((number, quick)))
            }
        }
    }

    /// Tells whether a value certainly fits.
    pub(super) fn accepts(&self, value: &Value) -> bool {
        match value {
            Value::Array(items) => self.takes(LIST) && self.accepts_each(items),
            Value::Object(map) => self.takes(OBJECT) && self.accepts_all(map),
            plain => self.accepts_plain(plain),
        }
    }

    /// The same, without a call for what holds no others.
    #[inline]
    fn accepts_plain(&self, value: &Value) -> bool {
        match value {
            Value::Null => self.takes(NULL),
            Value::Bool(_) => self.takes(BOOLEAN),
            Value::Number(number) => self.takes(NUMBER) && self.has_within(number),
            Value::String(text) => {
                self.takes(TEXT) || self.choices.as_ref().is_some_and(|choices| choices.contains(text))
            }
            Value::Array(_) | Value::Object(_) => self.accepts(value),
        }
    }

    fn takes(&self, kind: u8) -> bool {
        self.types & kind != 0
    }

    fn has_within(&self, number: &Number) -> bool {
        number.as_i64().is_some_and(|whole| self.least <= whole && whole <= self.most)
    }

    fn accepts_each(&self, items: &[Value]) -> bool {
        self.items.as_ref().is_none_or(|schema| items.iter().all(|item| schema.accepts_plain(item)))
    }

    fn accepts_all(&self, map: &Map<String, Value>) -> bool {
        let mut found = 0;
        for (expected, (name, value)) in map.iter().enumerate() {
            match self.find(name, expected) {
                Some((number, quick)) if quick.accepts_plain(value) => found |= 1 << number,
                None if !self.closed => {}
                _ => return false,
            }
        }
        found & self.required == self.required
    }
}

fn types(value: &Value) -> Option<u8> {
    let named = |name: &Value| match name.as_str()? {
        "null" => Some(NULL),
        "boolean" => Some(BOOLEAN),
        // Only whole numbers are judged, and they are both.
        "integer" | "number" => Some(NUMBER),
        "string" => Some(TEXT),
        "array" => Some(LIST),
        "object" => Some(OBJECT),
        _ => None,
    };
    match value {
        Value::Array(several) => several.iter().try_fold(0, |types, name| Some(types | named(name)?)),
        one => named(one),
    }
}

fn texts(value: &Value, most: usize) -> Option<Vec<String>> {
    let list = value.as_array().filter(|list| list.len() <= most)?;
    list.iter().map(|text| text.as_str().map(str::to_owned)).collect()
}

fn properties(value: &Value) -> Option<Vec<(String, Quick)>> {
    let map = value.as_object().filter(|map| map.len() <= MAX_PROPERTIES)?;
    map.iter().map(|(name, schema)| Some((name.clone(), Quick::of(schema)?))).collect()
}

/// The formats that types of Rust have, of which JSON Schema knows nothing.
const SIZES: [&str; 10] =
    ["int8", "int16", "int32", "int64", "int", "uint8", "uint16", "uint32", "uint64", "uint"];

fn is_size_of_number(format: &Value) -> bool {
    format.as_str().is_some_and(|format| SIZES.contains(&format))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::schema::Schema;

    #[test]
    fn plain_schemas_are_known_and_others_are_not() {
        for plain in [
            json!({"type": "object", "properties": {"a": {"type": "integer", "format": "uint8", "minimum": 0}}}),
            json!({"type": ["string", "null"], "enum": ["a", "b"], "description": "one of two"}),
            json!({"type": "array", "items": {"type": "object", "additionalProperties": false}}),
            json!(true),
        ] {
            assert!(Quick::of(&plain).is_some(), "{plain}");
        }
        for other in [
            json!({"properties": {"a": {"pattern": "^x"}}}),
            json!({"format": "date"}),
            json!({"minimum": 0.5}),
            json!({"enum": [1]}),
            json!({"enum": ["a"], "type": "integer"}),
            json!({"required": ["undeclared"]}),
            json!({"additionalProperties": {"type": "string"}}),
            json!({"anyOf": [true]}),
            json!({"$ref": "#"}),
            json!(false),
        ] {
            assert!(Quick::of(&other).is_none(), "{other}");
        }
    }

    #[test]
    fn the_library_takes_no_size_for_a_rule() {
        for size in SIZES {
            let schema = Schema::compile("schema", &json!({"format": size})).unwrap();
            for value in [json!(i64::MIN), json!(i64::MAX), json!("text")] {
                assert!(schema.fits_exactly(&value), "{size} {value}");
            }
        }
    }

    fn schema() -> impl Strategy<Value = Value> {
        let kinds = prop::sample::subsequence(
            vec!["null", "boolean", "integer", "number", "string", "array", "object"],
            1..4,
        );
        let leaf = (kinds, -3_i64..3, 0_i64..5, 0..4).prop_map(|(kinds, least, more, rules)| match rules {
            0 => json!({"type": kinds}),
            1 => json!({"type": kinds[0]}),
            2 => json!({"type": kinds, "minimum": least, "maximum": least + more, "format": "int32"}),
            _ => json!({"enum": ["a", "b"]}),
        });
        leaf.prop_recursive(3, 12, 3, |inner| {
            let properties = prop::collection::btree_map("[abc]", inner.clone(), 0..3);
            prop_oneof![
                inner.clone().prop_map(|items| json!({"type": "array", "items": items})),
                inner.prop_map(|items| json!({"items": items})),
                (properties, any::<bool>(), any::<bool>()).prop_map(|(properties, open, needed)| {
                    let required: Vec<_> = properties.keys().take(usize::from(needed)).cloned().collect();
                    json!({"properties": properties, "required": required, "additionalProperties": open})
                }),
            ]
        })
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (-4_i64..8).prop_map(Value::from),
            prop::sample::select(vec![0.0, 1.0, 2.5]).prop_map(Value::from),
            Just(json!(u64::MAX)),
            "[abc]".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[abcd]", inner, 0..3)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn what_is_accepted_fits(schema in schema(), value in value()) {
            let quick = Quick::of(&schema).unwrap();
            let exact = Schema::compile("schema", &schema).unwrap().fits_exactly(&value);
            prop_assert!(exact || !quick.accepts(&value), "{schema} {value}");
            // Of values without odd numbers nothing is left to the library that fits.
            if !value.to_string().contains(['.', '8']) {
                prop_assert_eq!(exact, quick.accepts(&value), "{} {}", schema, value);
            }
        }
    }
}
