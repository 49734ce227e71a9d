//! Coercion of arguments: fixes common mistakes of models so that the arguments match their schema.
//!
//! It applies these steps in this order:
//!
//! 1. arguments that are a string with a JSON object become that object;
//! 2. other arguments that are not an object become the value of the only required property;
//! 3. if a declared property `query` is missing, the first of `q`, `search`, `search_query`, `question`, `text` and
//!    `input` that is present and not declared is renamed to it; if the only required property is missing and there is
//!    a single undeclared scalar, that is renamed to it;
//! 4. a string in a declared property or array item whose schema does not accept strings is parsed as the declared
//!    object, array, number or boolean, if possible.
//!
//! Everything else stays as it is and is reported by validation. Only `type`, `properties`, `required` and `items` are
//! read; `$ref` and `anyOf` are not followed.

use serde_json::{Map, Value};

use crate::schema::walk::{includes_type, visit_declared};

/// Aliases of `query`.
const QUERY_ALIASES: [&str; 6] = ["q", "search", "search_query", "question", "text", "input"];
/// The maximum depth of coercion.
const MAX_DEPTH: usize = 16;

/// The largest integer that a float represents exactly.
const MAX_SAFE_INTEGER: f64 = 9_007_199_254_740_991.0;

/// Coerces arguments to their schema.
pub fn coerce(schema: &Value, args: Value) -> Value {
    let mut args = match to_object(schema, args) {
        Value::Object(args) => args,
        other => return other,
    };
    rename_aliases(schema, &mut args);
    let mut args = Value::Object(args);
    visit_declared(schema, &mut args, MAX_DEPTH, &|schema, value| {
        if let Value::String(text) = &*value
            && let Some(parsed) = parse_declared(schema, text)
        {
            *value = parsed;
        }
    });
    args
}

/// Converts arguments that are not an object.
fn to_object(schema: &Value, args: Value) -> Value {
    let args = match args {
        Value::Object(_) => return args,
        Value::String(text) => match serde_json::from_str(&text) {
            Ok(Value::Object(parsed)) => return Value::Object(parsed),
            _ => Value::String(text),
        },
        other => other,
    };
    match only_required(schema) {
        Some(name) if !args.is_null() => Value::Object(Map::from_iter([(name.to_owned(), args)])),
        _ => args,
    }
}

fn rename_aliases(schema: &Value, args: &mut Map<String, Value>) {
    let declares = |name: &str| schema.get("properties").is_some_and(|all| all.get(name).is_some());
    if declares("query") && !args.contains_key("query") {
        let alias = QUERY_ALIASES.into_iter().find(|alias| !declares(alias) && args.contains_key(*alias));
        if let Some(value) = alias.and_then(|alias| args.remove(alias)) {
            args.insert("query".to_owned(), value);
        }
    }
    let Some(required) = only_required(schema).filter(|name| !args.contains_key(*name)) else { return };
    let mut strays = args.iter().filter(|(name, _)| !declares(name));
    if let (Some((stray, value)), None) = (strays.next(), strays.next())
        && !value.is_object()
        && !value.is_array()
    {
        let stray = stray.clone();
        if let Some(value) = args.remove(&stray) {
            args.insert(required.to_owned(), value);
        }
    }
}

fn only_required(schema: &Value) -> Option<&str> {
    match schema.get("required")?.as_array()?.as_slice() {
        [only] => only.as_str(),
        _ => None,
    }
}

/// Parses a string as the type that the schema declares; `None` if the schema accepts strings or the text is not of
/// that type.
fn parse_declared(schema: &Value, text: &str) -> Option<Value> {
    let accepts = |kind: &str| includes_type(schema.get("type"), kind);
    if accepts("string") {
        return None;
    }
    let text = text.trim();
    if accepts("boolean") {
        for (word, value) in [("true", true), ("false", false)] {
            if text.eq_ignore_ascii_case(word) {
                return Some(Value::Bool(value));
            }
        }
    }
    let parsed: Value = serde_json::from_str(text).ok()?;
    let fits = match &parsed {
        Value::Object(_) => accepts("object"),
        Value::Array(_) => accepts("array"),
        Value::Number(number) => accepts("number") || (accepts("integer") && !number.is_f64()),
        Value::Null | Value::Bool(_) | Value::String(_) => false,
    };
    fits.then_some(parsed)
}

/// Rewrites floats without a fraction as integers where the schema declares an integer: `5.0` is an integer to JSON
/// Schema but not to most functions.
pub fn normalize_integers(schema: &Value, args: &mut Value) {
    if has_float(args, MAX_DEPTH) {
        visit_declared(schema, args, MAX_DEPTH, &|schema, value| {
            let accepts = |kind: &str| includes_type(schema.get("type"), kind);
            if value.is_f64()
                && accepts("integer")
                && !accepts("number")
                && let Some(float) = value.as_f64().filter(|float| float.fract() == 0.0)
                && float.abs() <= MAX_SAFE_INTEGER
                // Formatting and parsing avoids a lossy cast.
                && let Ok(integer) = format!("{float:.0}").parse::<i64>()
            {
                *value = integer.into();
            }
        });
    }
}

fn has_float(value: &Value, depth: usize) -> bool {
    let Some(depth) = depth.checked_sub(1) else { return false };
    let within = |value: &Value| match value {
        Value::Number(number) => number.is_f64(),
        Value::Array(_) | Value::Object(_) => has_float(value, depth),
        Value::Null | Value::Bool(_) | Value::String(_) => false,
    };
    match value {
        Value::Array(items) => items.iter().any(within),
        Value::Object(map) => map.values().any(within),
        _ => within(value),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn check(schema: &Value, args: &Value, expected: &Value) {
        assert_eq!(coerce(schema, args.clone()), *expected, "{args} for {schema}");
    }

    #[test]
    fn floats_without_fraction_become_declared_integers() {
        let schema = json!({"properties": {
            "a": {"type": "integer"}, "b": {"type": ["integer", "null"]}, "c": {"type": "number"},
            "d": {"type": "array", "items": {"type": "integer"}}, "e": {"properties": {"f": {"type": "integer"}}},
        }});
        let args = json!({"a": 5.0, "b": -1e3, "c": 5.0, "d": [1.0, 2], "e": {"f": 0.0}, "other": 5.0});
        let mut made = args.clone();
        normalize_integers(&schema, &mut made);
        let expected = json!({"a": 5, "b": -1000, "c": 5.0, "d": [1, 2], "e": {"f": 0}, "other": 5.0});
        assert_eq!(made.to_string(), expected.to_string());
        for untouched in [json!({"a": 5.5}), json!({"a": 1e300}), json!({"a": "5.0"}), json!({"a": 5})] {
            let mut made = untouched.clone();
            normalize_integers(&schema, &mut made);
            assert_eq!(made.to_string(), untouched.to_string());
        }
    }

    #[test]
    fn strings_are_parsed_as_the_declared_type() {
        let typed = |kind: Value| json!({"type": "object", "properties": {"a": {"type": kind}}});
        for (kind, given, expected) in [
            (json!("integer"), json!("3"), json!(3)),
            (json!("integer"), json!(" -3 "), json!(-3)),
            (json!("integer"), json!("18446744073709551615"), json!(u64::MAX)),
            (json!("number"), json!("2.5"), json!(2.5)),
            (json!("number"), json!("1e3"), json!(1000.0)),
            (json!("boolean"), json!("true"), json!(true)),
            (json!("boolean"), json!("False"), json!(false)),
            (json!("array"), json!("[1, 2]"), json!([1, 2])),
            (json!("object"), json!("{\"b\": 1}"), json!({"b": 1})),
            (json!(["integer", "null"]), json!("7"), json!(7)),
        ] {
            check(&typed(kind), &json!({"a": given}), &json!({"a": expected}));
        }
        // Values that cannot be parsed, or that already match, are not changed.
        for (kind, given) in [
            (json!("integer"), json!("2.5")),
            (json!("integer"), json!("three")),
            (json!("integer"), json!("0x10")),
            (json!("integer"), json!("")),
            (json!("number"), json!("NaN")),
            (json!("boolean"), json!("yes")),
            (json!("boolean"), json!("1")),
            (json!("boolean"), json!(1)),
            (json!("array"), json!("{}")),
            (json!("object"), json!("{broken")),
            (json!("string"), json!("3")),
            (json!("string"), json!(3)),
            (json!(["string", "integer"]), json!("3")),
            (json!("null"), json!("null")),
            (json!(7), json!("3")),
        ] {
            check(&typed(kind), &json!({"a": given}), &json!({"a": given}));
        }
    }

    #[test]
    fn nested_properties_are_coerced() {
        let schema = json!({"properties": {
            "list": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}}},
        }});
        check(
            &schema,
            &json!({"list": "[{\"n\": \"1\"}, {\"n\": 2}]"}),
            &json!({"list": [{"n": 1}, {"n": 2}]}),
        );
        check(&schema, &json!({"other": "1"}), &json!({"other": "1"}));
    }

    #[test]
    fn arguments_that_are_not_an_object_are_wrapped() {
        let one = json!({"properties": {"city": {"type": "string"}, "days": {}}, "required": ["city"]});
        check(&one, &json!("Oslo"), &json!({"city": "Oslo"}));
        check(&one, &json!("{\"city\": \"Oslo\"}"), &json!({"city": "Oslo"}));
        check(&one, &json!(7), &json!({"city": 7}));
        check(&one, &json!(null), &json!(null));
        check(&json!({"required": ["a", "b"]}), &json!("Oslo"), &json!("Oslo"));
        check(
            &json!({"properties": {"n": {"type": "integer"}}, "required": ["n"]}),
            &json!("7"),
            &json!({"n": 7}),
        );
    }

    #[test]
    fn aliases_of_query_and_of_the_only_required_property_are_renamed() {
        let search = json!({"properties": {"query": {"type": "string"}, "text": {}}, "required": ["query"]});
        check(&search, &json!({"q": "cats"}), &json!({"query": "cats"}));
        check(&search, &json!({"input": "cats", "text": "x"}), &json!({"query": "cats", "text": "x"}));
        check(&search, &json!({"query": "dogs", "q": "cats"}), &json!({"query": "dogs", "q": "cats"}));
        // `text` is declared, so it means itself.
        check(&search, &json!({"text": "cats"}), &json!({"text": "cats"}));
        let city = json!({"properties": {"city": {}}, "required": ["city"]});
        check(&city, &json!({"place": "Oslo"}), &json!({"city": "Oslo"}));
        check(&city, &json!({"place": "Oslo", "day": 1}), &json!({"place": "Oslo", "day": 1}));
        check(&city, &json!({"place": {"name": "Oslo"}}), &json!({"place": {"name": "Oslo"}}));
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[a-z0-9{}\\[\\]\",:. ]{0,12}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::hash_map(
                    prop_oneof![
                        "[a-c]",
                        Just("type".to_owned()),
                        Just("properties".to_owned()),
                        Just("required".to_owned()),
                        Just("items".to_owned()),
                        Just("query".to_owned())
                    ],
                    inner,
                    0..4
                )
                .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        /// Whatever comes, it neither fails nor changes what already fits.
        #[test]
        fn valid_arguments_are_not_changed(schema in any_json(), args in any_json()) {
            let _ = coerce(&schema, args.clone());
            if let Ok(compiled) = crate::schema::Schema::compile("", &schema)
                && args.is_object()
                && schema["properties"].is_object()
                && compiled.check(&args).is_ok()
                && only_required(&schema).is_none()
                && schema["properties"].get("query").is_none()
            {
                prop_assert_eq!(coerce(&schema, args.clone()), args);
            }
        }
    }
}
