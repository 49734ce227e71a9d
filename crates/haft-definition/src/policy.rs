//! Reads policy rules from JSON or YAML text.

use haft_core::policy::{MAX_RULES_BYTES, PolicyRules};
use haft_core::problem::Problem;

use crate::dialect::{Bounds, locate_foreign, read_foreign};

/// The maximum size of a text; comments and indentation take more room than the rules.
pub const MAX_TEXT: usize = 4 * MAX_RULES_BYTES;
/// The bounds of the rules as YAML.
const BOUNDS: Bounds = Bounds { nodes: 50_000, bytes: MAX_TEXT };

/// Reads rules: JSON if the text starts like JSON, YAML otherwise. Every problem has its line.
pub fn read(text: &str) -> Result<PolicyRules, Vec<Problem>> {
    if text.len() > MAX_TEXT {
        let message = format!("the rules have {} bytes; the limit is {MAX_TEXT}", text.len());
        return Err(vec![Problem::new("", "too_large", message)]);
    }
    let value = read_foreign(text, BOUNDS).map_err(|problem| vec![problem])?;
    PolicyRules::read(&value).map_err(|mut problems| {
        locate(text, &mut problems);
        problems
    })
}

/// Sets the lines of problems of rules that were read from this text.
pub fn locate(text: &str, problems: &mut [Problem]) {
    locate_foreign(text, problems);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_and_json_are_read() {
        let yaml = "# no shell\nrules:\n  - name: no-exec\n    match: {tools: [exec]}\n    effect: deny\n";
        let json = r#"{"rules": [{"name": "no-exec", "match": {"tools": ["exec"]}, "effect": "deny"}]}"#;
        assert_eq!(read(yaml).unwrap(), read(json).unwrap());
    }

    #[test]
    fn problems_have_their_line() {
        let text = "rules:\n  - name: a\n    effect: deny\n    match:\n      tols: [x]\n";
        let shown = |text: &str| haft_core::problem::join(&read(text).unwrap_err());
        assert_eq!(
            shown(text),
            "line 5, column 7: `rules[0].match.tols`: unknown field; did you mean `tools`?"
        );
        assert!(shown("{\"rules\": [], \"rules\": []}").contains("duplicate key `rules`"));
        assert!(shown("rules: [").starts_with("line "), "{}", shown("rules: ["));
        assert!(shown(&"x".repeat(2_000_000)).contains("the limit is 1048576"));
    }
}
