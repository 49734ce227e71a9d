//! Arguments as models write them.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::arguments::parse_arguments;

#[test]
fn arguments_of_models() {
    for (text, expected) in [
        ("", json!({})),
        ("  ", json!({})),
        ("null", json!({})),
        ("{}", json!({})),
        (r#"{"city": "Oslo"}"#, json!({"city": "Oslo"})),
        // Sent twice, or JSON in a string.
        (r#"{"a":1}{"a":1}"#, json!({"a": 1})),
        (r#"{"a":1} {"a":1} {"a":1}"#, json!({"a": 1})),
        (r#""{\"a\":1}""#, json!({"a": 1})),
        // Two different objects are ambiguous.
        (r#"{"a":1}{"a":2}"#, json!(r#"{"a":1}{"a":2}"#)),
        (r#"{"a":1}{"a":1"#, json!(r#"{"a":1}{"a":1"#)),
        (r#"{"a":1"#, json!(r#"{"a":1"#)),
        ("Oslo", json!("Oslo")),
        (r#""Oslo""#, json!("Oslo")),
        ("[1]", json!("[1]")),
        ("7", json!("7")),
    ] {
        assert_eq!(parse_arguments(text), expected, "{text}");
    }
    let deep = "[".repeat(100_000);
    assert_eq!(parse_arguments(&deep), Value::String(deep));
}

proptest! {
    #[test]
    fn every_text_becomes_an_object_or_a_string(text in any::<String>()) {
        let value = parse_arguments(&text);
        prop_assert!(value.is_object() || value.is_string());
    }
}
