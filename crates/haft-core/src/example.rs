//! Examples of tools: saved arguments, and the value that they should return.

use serde_json::{Map, Value};

use crate::outcome::Outcome;

/// The largest number of examples of one tool in a tenant.
pub const MAX_EXAMPLES: usize = 50;
/// The largest size of an example, as JSON in bytes.
pub const MAX_EXAMPLE_BYTES: usize = 64 * 1024;

/// Saved arguments of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolExample {
    /// The name, unique within the tool.
    pub name: String,
    /// The description.
    pub description: String,
    /// The arguments.
    pub args: Map<String, Value>,
    /// The value that the tool should return; `None` for any value.
    pub expect: Option<Value>,
}

/// Why an example is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExampleError {
    /// The name is invalid.
    #[error(
        "invalid example name `{0}`: expected 1 to 64 letters, digits, spaces, `.`, `_` or `-`, starting and ending \
         with a letter or digit"
    )]
    Name(String),
    /// The description has a character that a database rejects.
    #[error("`description` contains a NUL character")]
    Description,
    /// It is too large.
    #[error("the example has {0} bytes, which exceeds the limit of {MAX_EXAMPLE_BYTES}")]
    TooLarge(usize),
}

impl ToolExample {
    /// Checks the name and the size.
    pub fn check(&self) -> Result<(), ExampleError> {
        let is_inner = |c: char| c.is_alphanumeric() || matches!(c, ' ' | '.' | '_' | '-');
        let is_outer = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
        let name = self.name.as_str();
        let is_name = (1..=64).contains(&name.chars().count())
            && name.chars().all(is_inner)
            && is_outer(name.chars().next())
            && is_outer(name.chars().next_back());
        if !is_name {
            return Err(ExampleError::Name(crate::problem::excerpt(name, 80)));
        }
        if self.description.contains('\0') {
            return Err(ExampleError::Description);
        }
        let json = |value: &Value| value.to_string().len();
        let args: usize = self.args.iter().map(|(name, value)| name.len() + 4 + json(value)).sum();
        let size = args + self.expect.as_ref().map_or(0, json) + self.description.len();
        if size > MAX_EXAMPLE_BYTES { Err(ExampleError::TooLarge(size)) } else { Ok(()) }
    }

    /// Returns whether an outcome is the expected one: a success, with the expected value if there is one.
    pub fn matches(&self, outcome: &Outcome) -> bool {
        match (outcome, &self.expect) {
            (Err(_), _) => false,
            (Ok(_), None) => true,
            (Ok(value), Some(expected)) => value == expected,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::outcome::CallError;

    fn example(name: &str, args: &Value) -> ToolExample {
        let args = args.as_object().cloned().unwrap();
        ToolExample { name: name.to_owned(), description: String::new(), args, expect: None }
    }

    #[test]
    fn names_and_sizes_are_limited() {
        for name in ["a", "Ünïcode 1", "two words", "v1.2_x-y", &"n".repeat(64)] {
            assert_eq!(example(name, &json!({})).check(), Ok(()), "{name}");
        }
        for name in ["", " a", "a ", "a/b", "..", "a\nb", "-", &"n".repeat(65)] {
            assert!(matches!(example(name, &json!({})).check(), Err(ExampleError::Name(_))), "{name}");
        }
        let large = json!({"text": "x".repeat(MAX_EXAMPLE_BYTES)});
        assert!(matches!(example("a", &large).check(), Err(ExampleError::TooLarge(_))));
    }

    #[test]
    fn an_expected_value_is_compared() {
        let any = example("a", &json!({}));
        let exact = ToolExample { expect: Some(json!({"a": 1})), ..any.clone() };
        let failed = || Err(CallError::internal("x"));
        assert_eq!([any.matches(&Ok(json!(1))), any.matches(&failed())], [true, false]);
        let matched =
            [Ok(json!({"a": 1})), Ok(json!({"a": 2})), failed()].map(|outcome| exact.matches(&outcome));
        assert_eq!(matched, [true, false, false]);
    }
}
