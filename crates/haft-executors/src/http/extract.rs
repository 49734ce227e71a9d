//! Extracts a value from a response.

use haft_core::implementation::ResponseEncoding;
use haft_core::problem::excerpt;
use regex::{Regex, RegexBuilder};
use serde_json::Value;

use crate::jsonpath::{JsonPath, PathBudgetExceeded};

/// The maximum length of an expression in bytes.
const MAX_EXPRESSION_BYTES: usize = 1000;

/// A compiled expression.
pub(super) enum Extract {
    Path(JsonPath),
    Pattern(Regex),
}

impl Extract {
    pub(super) fn compile(text: &str, encoding: Option<ResponseEncoding>) -> Result<Self, String> {
        if text.len() > MAX_EXPRESSION_BYTES {
            return Err(format!("the expression exceeds the limit of {MAX_EXPRESSION_BYTES} bytes"));
        }
        if !text.starts_with('$') {
            return RegexBuilder::new(text).size_limit(1 << 20).build().map(Self::Pattern).map_err(|error| {
                // The last line is the message; the others point into the expression.
                let text = error.to_string();
                let last = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
                format!("invalid regular expression: {}", excerpt(last, 200))
            });
        }
        if encoding == Some(ResponseEncoding::Text) {
            return Err("a JSONPath needs a JSON response, but `response` is `text`".to_owned());
        }
        JsonPath::compile(text).map(Self::Path)
    }

    /// Returns the expression as written.
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Path(path) => path.as_str(),
            Self::Pattern(pattern) => pattern.as_str(),
        }
    }
}

/// Returns the only match, a list of several matches, or `None`.
pub(super) fn by_path(path: &JsonPath, value: &Value) -> Result<Option<Value>, PathBudgetExceeded> {
    let found = path.find(value)?;
    Ok(match found.as_slice() {
        [] => None,
        [one] => Some((*one).clone()),
        several => Some(several.iter().copied().cloned().collect()),
    })
}

/// Returns the first group of the first match, or the whole match if there is no group.
pub(super) fn by_pattern(pattern: &Regex, text: &str) -> Option<Value> {
    let found = pattern.captures(text)?;
    let part = if found.len() > 1 { found.get(1)? } else { found.get(0)? };
    Some(Value::String(part.as_str().to_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn extract(expression: &str, answer: &Value) -> Result<Option<Value>, String> {
        Extract::compile(expression, None).map(|compiled| match &compiled {
            Extract::Path(path) => by_path(path, answer).unwrap(),
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
}
