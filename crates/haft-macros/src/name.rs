//! Validates tool names at compile time, by the rules of registration.

use proc_macro2::{Ident, Span};
use syn::LitStr;
use syn::ext::IdentExt as _;

use crate::errors::Errors;

/// The maximum number of characters of a tool name.
const MAX_LENGTH: usize = 64;

/// Returns the name of a tool: that of the `name` option, or that of the function.
pub(crate) fn tool_name(option: Option<&LitStr>, function: &Ident, errors: &mut Errors) -> String {
    let (name, span) = match option {
        Some(literal) => (literal.value(), literal.span()),
        None => (function.unraw().to_string(), function.span()),
    };
    check(&name, span, errors);
    name
}

fn check(name: &str, span: Span, errors: &mut Errors) {
    let length = name.chars().count();
    if let Some(bad) = name.chars().find(|c| !c.is_alphanumeric() && !matches!(c, '-' | '_')) {
        let message = format!("invalid tool name: {bad:?} is not allowed; use letters, digits, `-` and `_`");
        errors.at_span(span, message);
    } else if length == 0 || length > MAX_LENGTH {
        errors.at_span(span, format!("a tool name must have 1 to {MAX_LENGTH} characters, got {length}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(name: &str) -> Option<String> {
        let mut errors = Errors::default();
        check(name, Span::call_site(), &mut errors);
        errors.report().map(|report| report.to_string())
    }

    #[test]
    fn names_are_validated() {
        let long = "x".repeat(65);
        for (name, problem) in [
            ("greet", None),
            ("web-search_2", None),
            ("größe", None),
            ("", Some("got 0")),
            (long.as_str(), Some("got 65")),
            ("a b", Some("' ' is not allowed")),
            ("search", None),
        ] {
            match (error(name), problem) {
                (None, None) => {}
                (Some(found), Some(expected)) if found.contains(expected) => {}
                (found, _) => panic!("{name}: {found:?} instead of {problem:?}"),
            }
        }
    }
}
