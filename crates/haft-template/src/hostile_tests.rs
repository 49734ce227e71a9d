//! Whatever a value contains, it cannot change the structure of its context.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// Texts with plenty of the characters that mean something somewhere.
fn hostile() -> impl Strategy<Value = String> {
    let pieces = prop_oneof![
        Just("..".to_owned()),
        Just("%2e%2E".to_owned()),
        Just("\r\nX: y".to_owned()),
        Just("]]>".to_owned()),
        Just("${KEY}".to_owned()),
        Just("{{if x}}".to_owned()),
        Just("\\\"".to_owned()),
        Just("\\u0022".to_owned()),
        Just("-->".to_owned()),
        "[/?#&=+%@:;\\\\\"'<>{}$|. \\[\\]-]{1,4}",
        any::<String>(),
        "[a-z0-9.]{0,5}",
    ];
    prop::collection::vec(pieces, 0..6).prop_map(|parts| parts.concat())
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        hostile().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(hostile(), inner, 0..4).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

fn render(place: EscapeContext<'_>, template: &str, x: &Value) -> Result<String, RenderError> {
    let scope = Scope::from_schema(&json!({"properties": {"x": {}}}));
    let template = Template::parse(Notation::Dollar, template, &scope).unwrap();
    let (args, steps, secrets) = (json!({"x": x}), serde_json::Map::new(), BTreeMap::new());
    let values = Values { args: args.as_object().unwrap(), steps: &steps, secrets: &secrets, version: "1" };
    template.render(place, &values).map(|rendered| rendered.text)
}

proptest! {
    #[test]
    fn urls_keep_host_segments_and_parameters(x in hostile()) {
        if let Ok(text) = render(EscapeContext::Url, "https://api.test/a/${x}/b/p${x}?q=${x}&r=1&s=${x}#f${x}", &json!(x)) {
            let url = url::Url::parse(&text).unwrap();
            prop_assert_eq!(url.host_str(), Some("api.test"));
            prop_assert_eq!(url.port(), None);
            prop_assert_eq!(url.username(), "");
            let segments: Vec<_> = url.path_segments().unwrap().collect();
            prop_assert_eq!(segments.len(), 4);
            prop_assert_eq!((segments[0], segments[2]), ("a", "b"));
            let decoded = percent_encoding::percent_decode_str(segments[1]).decode_utf8().unwrap();
            prop_assert_eq!(decoded.as_ref(), &x);
            let pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
            let expected = [("q", x.as_str()), ("r", "1"), ("s", x.as_str())];
            prop_assert_eq!(pairs, expected.map(|(k, v)| (k.to_owned(), v.to_owned())));
        } else {
            prop_assert!(matches!(x.as_str(), "." | ".."), "{:?} was refused", x);
        }
    }

    #[test]
    fn a_value_in_the_authority_stays_below_the_literal_domain(x in hostile()) {
        if let Ok(text) = render(EscapeContext::Url, "https://t-${x}.api.test/p", &json!(x))
            && let Ok(url) = url::Url::parse(&text)
        {
            prop_assert!(url.host_str().unwrap().ends_with(".api.test"), "{}", text);
            prop_assert_eq!(url.path(), "/p");
        }
    }

    #[test]
    fn headers_stay_one_line(x in hostile()) {
        if let Ok(text) = render(EscapeContext::Header("X-A"), "a ${x} b", &json!(x)) {
            prop_assert!(text.bytes().all(|b| b == b'\t' || (b' '..=b'~').contains(&b)));
            prop_assert_eq!(text, format!("a {x} b"));
        } else {
            prop_assert!(!x.bytes().all(|b| (b' '..=b'~').contains(&b)));
        }
    }

    #[test]
    fn json_texts_carry_values_back_equal(x in json_value()) {
        let text = render(EscapeContext::Json, r#"{"a":"<${x}>","b":${x},"c":[${x},"k\\"]}"#, &x).unwrap();
        let parsed: Value = serde_json::from_str(&text).unwrap();
        let inner = match &x { Value::String(s) => s.clone(), Value::Null => String::new(), other => other.to_string() };
        prop_assert_eq!(parsed, json!({"a": format!("<{inner}>"), "b": x, "c": [x, "k\\"]}));
    }

    #[test]
    fn forms_keep_their_fields(x in hostile()) {
        let text = render(EscapeContext::Form, "a=${x}&b=2", &json!(x)).unwrap();
        let pairs: Vec<(String, String)> = url::form_urlencoded::parse(text.as_bytes()).into_owned().collect();
        prop_assert_eq!(pairs, vec![("a".to_owned(), x), ("b".to_owned(), "2".to_owned())]);
    }

    #[test]
    fn xml_texts_gain_no_markup(x in hostile()) {
        if let Ok(text) = render(EscapeContext::Xml, r#"<a b="${x}">${x}</a>"#, &json!(x)) {
            prop_assert_eq!(text.matches('<').count(), 2);
            prop_assert_eq!(text.matches('>').count(), 2);
            prop_assert_eq!(text.matches('"').count(), 2);
        }
        if let Ok(text) = render(EscapeContext::Xml, "<a><![CDATA[]${x}>]]></a>", &json!(x)) {
            // Read the sections back the way a parser does.
            let (mut rest, mut content) = (text.strip_prefix("<a>").unwrap(), String::new());
            while let Some(section) = rest.strip_prefix("<![CDATA[") {
                let end = section.find("]]>").unwrap();
                content.push_str(&section[..end]);
                rest = &section[end + 3..];
            }
            prop_assert_eq!(rest, "</a>");
            prop_assert_eq!(content, format!("]{x}>"));
        }
    }

    #[test]
    fn parsing_never_panics(text in hostile(), key in hostile()) {
        let scope = Scope::from_schema(&json!({"properties": {"x": {}}}));
        for notation in [Notation::Dollar, Notation::Braces] {
            let _ = Template::parse(notation, &text, &scope);
            let _ = Template::parse(notation, &format!("{{{{{text}}}}}${{{key}}}"), &scope);
            let _ = ValueTemplate::parse(notation, &json!([{key.clone(): [text.clone(), {text.clone(): key.clone()}]}]), &scope);
        }
    }

    #[test]
    fn a_literal_is_rendered_unchanged(text in "[^$]*") {
        prop_assert_eq!(render(EscapeContext::Text, &text, &Value::Null).unwrap(), text);
    }
}
