//! What is taken of an answer.

use haft_core::implementation::ResponseEncoding;
use haft_core::problem::excerpt;
use jsonpath_rust::parser::model::JpQuery;
use jsonpath_rust::parser::parse_json_path;
use jsonpath_rust::query::js_path_process;
use regex::{Regex, RegexBuilder};
use serde_json::Value;

/// The longest expression; the parser of paths is recursive.
const LONGEST: usize = 1000;

/// How often a path may search all depths: each `..` multiplies the work.
const MOST_DESCENTS: usize = 2;

/// A compiled expression.
pub(super) enum Extract {
    Path { text: String, query: Box<JpQuery> },
    Pattern(Regex),
}

impl Extract {
    pub(super) fn compile(text: &str, encoding: Option<ResponseEncoding>) -> Result<Self, String> {
        if text.len() > LONGEST {
            return Err(format!("the expression is longer than {LONGEST} bytes"));
        }
        if !text.starts_with('$') {
            return RegexBuilder::new(text)
                .size_limit(1 << 20)
                .build()
                .map(Self::Pattern)
                .map_err(|error| format!("not a regular expression: {}", excerpt(&error.to_string(), 200)));
        }
        if encoding == Some(ResponseEncoding::Text) {
            return Err("a JSONPath needs an answer in JSON, but `response` is `text`".to_owned());
        }
        if text.matches("..").count() > MOST_DESCENTS {
            return Err(format!("more than {MOST_DESCENTS} times `..` in one JSONPath"));
        }
        let query = parse_json_path(text)
            .map_err(|error| format!("not a JSONPath: {}", one_line(&error.to_string())))?;
        Ok(Self::Path { text: text.to_owned(), query: Box::new(query) })
    }

    /// Returns the expression as written.
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Path { text, .. } => text,
            Self::Pattern(pattern) => pattern.as_str(),
        }
    }
}

/// Takes position and reason out of the parser's drawing of several lines.
fn one_line(drawing: &str) -> String {
    let column = drawing.split_once("--> 1:").and_then(|(_, rest)| rest.lines().next());
    match (column, drawing.rsplit_once("= ")) {
        (Some(column), Some((_, reason))) => {
            format!("at character {column}: {}", excerpt(reason.trim(), 200))
        }
        _ => excerpt(drawing, 200),
    }
}

/// Returns the one match, a list of several, or `None`.
pub(super) fn by_path(query: &JpQuery, value: &Value) -> Option<Value> {
    let mut found: Vec<Value> = js_path_process(query, value)
        .unwrap_or_default()
        .into_iter()
        .map(|found| found.val().clone())
        .collect();
    if found.len() > 1 { Some(Value::Array(found)) } else { found.pop() }
}

/// Returns the first group of the first match, or the whole match where there is no group.
pub(super) fn by_pattern(pattern: &Regex, text: &str) -> Option<Value> {
    let found = pattern.captures(text)?;
    let part = if found.len() > 1 { found.get(1)? } else { found.get(0)? };
    Some(Value::String(part.as_str().to_owned()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn extract(expression: &str, answer: &Value) -> Result<Option<Value>, String> {
        Extract::compile(expression, None).map(|compiled| match &compiled {
            Extract::Path { query, .. } => by_path(query, answer),
            Extract::Pattern(pattern) => by_pattern(pattern, &answer.to_string()),
        })
    }

    #[test]
    fn expressions() {
        let answer = json!({"a": {"b": [1, 2, {"c": null}]}, "x-y": "z", "n": 5});
        for (expression, expected) in [
            ("$.a.b[0]", Some(json!(1))),
            ("$.a.b[0,1]", Some(json!([1, 2]))),
            ("$.a.b[-1].c", Some(json!(null))),
            ("$['x-y']", Some(json!("z"))),
            ("$..c", Some(json!(null))),
            ("$.a.b[?@ > 1]", Some(json!(2))),
            ("$.nope", None),
            ("$", Some(answer.clone())),
            (r#""x-y":"(\w)""#, Some(json!("z"))),
            (r#""n":\d"#, Some(json!("\"n\":5"))),
            ("(nope)?x-y", None),
            ("nope", None),
        ] {
            assert_eq!(extract(expression, &answer), Ok(expected), "{expression}");
        }
        for bad in ["$.", "$[", "(", "$..a..b..c", "a{1000000}", &"x".repeat(1001)] {
            assert!(extract(bad, &answer).is_err(), "{bad}");
        }
        assert!(Extract::compile("$.a", Some(ResponseEncoding::Text)).is_err());
    }

    proptest! {
        #[test]
        fn no_expression_panics(expression in "\\$[.\\[\\]a-c0-9*?@:,()'\"!<>=&| -]{0,20}", any in any::<String>()) {
            let answer = json!({"a": [1, {"b": "x", "c": [null, true]}], "b": {"a": -1.5}});
            let _ = extract(&expression, &answer);
            let _ = extract(&any, &answer);
            let _ = extract(&format!("${any}"), &answer);
        }
    }
}
