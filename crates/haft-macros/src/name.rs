//! Names of tools, checked when the program is compiled by the rule that registration has too.

use proc_macro2::{Ident, Span};
use syn::LitStr;
use syn::ext::IdentExt as _;

use crate::faults::Faults;

/// The most characters of a name.
const MAX_LENGTH: usize = 64;

/// Returns the name of a tool: the one that was said, or the function's.
pub(crate) fn of_tool(said: Option<&LitStr>, function: &Ident, faults: &mut Faults) -> String {
    let (name, span) = match said {
        Some(said) => (said.value(), said.span()),
        None => (function.unraw().to_string(), function.span()),
    };
    check(&name, span, faults);
    name
}

fn check(name: &str, span: Span, faults: &mut Faults) {
    let length = name.chars().count();
    if let Some(bad) = name.chars().find(|c| !c.is_alphanumeric() && !matches!(c, '-' | '_')) {
        let message = format!("a tool's name has letters, digits, `-` and `_`, not {bad:?}");
        faults.at_span(span, message);
    } else if length == 0 || length > MAX_LENGTH {
        faults.at_span(span, format!("a tool's name has 1 to {MAX_LENGTH} characters, not {length}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(name: &str) -> Option<String> {
        let mut faults = Faults::default();
        check(name, Span::call_site(), &mut faults);
        faults.report().map(|report| report.to_string())
    }

    #[test]
    fn names_are_checked() {
        let long = "x".repeat(65);
        for (name, problem) in [
            ("greet", None),
            ("web-search_2", None),
            ("größe", None),
            ("", Some("not 0")),
            (long.as_str(), Some("not 65")),
            ("a b", Some("not ' '")),
            ("search", None),
        ] {
            match (fault(name), problem) {
                (None, None) => {}
                (Some(found), Some(expected)) if found.contains(expected) => {}
                (found, _) => panic!("{name}: {found:?} instead of {problem:?}"),
            }
        }
    }
}
