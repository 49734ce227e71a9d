//! Encodes values as `name=value` pairs of a query or a form.

use haft_core::encode::{percent_encode, percent_encode_into, percent_encode_reserved_into};
use haft_core::implementation::ParamStyle;
use serde_json::Value;

/// Which characters of a value are not percent-encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AllowedCharacters {
    /// The unreserved ones of RFC 3986.
    Unreserved,
    /// Also the reserved ones that cannot end a value: all but `&`, `+`, `;`, `#`, `[` and `]`.
    Reserved,
}

impl AllowedCharacters {
    /// Returns the allowed characters of a parameter.
    pub(super) fn of(allow_reserved: &[String], name: &str) -> Self {
        if allow_reserved.iter().any(|known| known == name) { Self::Reserved } else { Self::Unreserved }
    }

    fn write(self, text: &str, out: &mut String) {
        match self {
            Self::Unreserved => percent_encode_into(text, out),
            Self::Reserved => percent_encode_reserved_into(text, out),
        }
    }
}

/// The style of lists and maps, and the allowed characters.
pub(super) type PairEncoding = (Option<ParamStyle>, AllowedCharacters);

/// Appends a value: nothing if it is missing or `null`, and one pair per item of a list, unless the style differs. The
/// name must be encoded.
pub(super) fn push(name: &str, value: Option<Value>, (style, allowed): PairEncoding, out: &mut String) {
    let Some(value) = value.filter(|value| !value.is_null()) else { return };
    match (style, value) {
        (Some(ParamStyle::Json), value) => pair(name, &value.to_string(), allowed, out),
        (Some(ParamStyle::DeepObject), value @ (Value::Array(_) | Value::Object(_))) => {
            deep(name, value, allowed, out);
        }
        (Some(ParamStyle::Spread), Value::Object(map)) => {
            for (key, value) in map {
                push(&percent_encode(&key), Some(value), (None, allowed), out);
            }
        }
        (Some(style @ (ParamStyle::Comma | ParamStyle::Space | ParamStyle::Pipe)), value) => {
            joined(name, value, (style, allowed), out);
        }
        (_, Value::Array(items)) => {
            for item in items {
                pair(name, &text(item), allowed, out);
            }
        }
        (_, value) => pair(name, &text(value), allowed, out),
    }
}

/// Appends one pair to a query or form; the name must be encoded.
pub(super) fn push_pair(name: &str, value: &str, out: &mut String) {
    pair(name, value, AllowedCharacters::Unreserved, out);
}

fn pair(name: &str, value: &str, allowed: AllowedCharacters, out: &mut String) {
    push_name(name, out);
    allowed.write(value, out);
}

fn push_name(name: &str, out: &mut String) {
    if !out.is_empty() {
        out.push('&');
    }
    out.push_str(name);
    out.push('=');
}

/// Writes all items as one pair. The separator is not encoded, but a separator within an item is.
fn joined(name: &str, value: Value, (style, allowed): (ParamStyle, AllowedCharacters), out: &mut String) {
    let separator = match style {
        ParamStyle::Space => "%20",
        ParamStyle::Pipe => "|",
        _ => ",",
    };
    let items: Vec<String> = match value {
        Value::Array(items) => items.into_iter().map(text).collect(),
        Value::Object(map) => map.into_iter().flat_map(|(key, value)| [key, text(value)]).collect(),
        single => vec![text(single)],
    };
    if items.is_empty() {
        return;
    }
    push_name(name, out);
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push_str(separator);
        }
        // A comma within an item is always encoded.
        let mut parts = item.split(',');
        allowed.write(parts.next().unwrap_or_default(), out);
        for part in parts {
            out.push_str("%2C");
            allowed.write(part, out);
        }
    }
}

/// Writes `name[key][0]=value`. The depth is limited by that of the arguments.
fn deep(name: &str, value: Value, allowed: AllowedCharacters, out: &mut String) {
    match value {
        Value::Null => {}
        Value::Object(map) => {
            for (key, value) in map {
                deep(&format!("{name}%5B{}%5D", percent_encode(&key)), value, allowed, out);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.into_iter().enumerate() {
                deep(&format!("{name}%5B{index}%5D"), value, allowed, out);
            }
        }
        single => pair(name, &text(single), allowed, out),
    }
}

fn text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn styles_of_lists_and_maps() {
        let (list, map) = (json!(["a b", 2]), json!({"x": 1, "y": ["p", {"q": null, "r": "&"}]}));
        for (style, value, expected) in [
            (None, &list, "n=a%20b&n=2"),
            (
                None,
                &map,
                "n=%7B%22x%22%3A1%2C%22y%22%3A%5B%22p%22%2C%7B%22q%22%3Anull%2C%22r%22%3A%22%26%22%7D%5D%7D",
            ),
            (Some(ParamStyle::Comma), &list, "n=a%20b,2"),
            (Some(ParamStyle::Comma), &json!({"x": "1,2", "y": true}), "n=x,1%2C2,y,true"),
            (Some(ParamStyle::Comma), &json!("a,b"), "n=a%2Cb"),
            (Some(ParamStyle::Comma), &json!([]), ""),
            (Some(ParamStyle::Space), &list, "n=a%20b%202"),
            (Some(ParamStyle::Pipe), &list, "n=a%20b|2"),
            (Some(ParamStyle::DeepObject), &map, "n%5Bx%5D=1&n%5By%5D%5B0%5D=p&n%5By%5D%5B1%5D%5Br%5D=%26"),
            (Some(ParamStyle::DeepObject), &json!("s"), "n=s"),
            (Some(ParamStyle::Spread), &json!({"a b": 1, "c": ["x", "y"]}), "a%20b=1&c=x&c=y"),
            (Some(ParamStyle::Spread), &list, "n=a%20b&n=2"),
            (Some(ParamStyle::Json), &list, "n=%5B%22a%20b%22%2C2%5D"),
            (Some(ParamStyle::Json), &json!("s"), "n=%22s%22"),
            (Some(ParamStyle::Json), &json!(null), ""),
        ] {
            let mut out = String::new();
            push("n", Some(value.clone()), (style, AllowedCharacters::Unreserved), &mut out);
            assert_eq!(out, expected, "{style:?} {value}");
        }
    }

    #[test]
    fn reserved_characters_are_kept_unless_they_could_end_the_value() {
        let all = json!("a:/?@!$'()*,=&+;#[] %é");
        for (style, expected) in [
            (None, "n=a:/?@!$'()*,=%26%2B%3B%23%5B%5D%20%25%C3%A9"),
            (Some(ParamStyle::DeepObject), "n=a:/?@!$'()*,=%26%2B%3B%23%5B%5D%20%25%C3%A9"),
            // An item with the separator stays one item.
            (Some(ParamStyle::Comma), "n=a:/?@!$'()*%2C=%26%2B%3B%23%5B%5D%20%25%C3%A9"),
        ] {
            let mut out = String::new();
            push("n", Some(all.clone()), (style, AllowedCharacters::of(&["n".to_owned()], "n")), &mut out);
            assert_eq!(out, expected, "{style:?}");
        }
        assert_eq!(AllowedCharacters::of(&["m".to_owned()], "n"), AllowedCharacters::Unreserved);
    }
}
