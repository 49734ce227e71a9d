//! Conditions over the claims of a login. They have the language and the bounds of the conditions of policy rules, and one
//! variable.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::condition::{self, Condition};
use super::evaluator::{self, Patterns};

const CLAIMS: &str = "claims";

/// A compiled condition over `claims`.
pub struct ClaimCondition {
    condition: Condition,
    patterns: Arc<Patterns>,
}

/// Why a condition is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidClaimCondition(String);

impl fmt::Debug for ClaimCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClaimCondition").finish_non_exhaustive()
    }
}

impl ClaimCondition {
    /// Compiles a condition.
    pub fn compile(source: &str) -> Result<Self, InvalidClaimCondition> {
        let mut patterns = Patterns::new();
        let compiled = condition::compile(&[source], &[CLAIMS], &mut patterns).pop();
        let condition = compiled
            .unwrap_or(Err(condition::ConditionError::ParserFailed))
            .map_err(|error| InvalidClaimCondition(error.to_string()))?;
        Ok(Self { condition, patterns: Arc::new(patterns) })
    }

    /// Returns whether it holds for claims; an error says why it has no value, and then it does not hold.
    pub fn matches(&self, claims: &Value) -> Result<bool, String> {
        evaluator::evaluate_over(&self.condition, (CLAIMS, claims), &self.patterns)
            .map_err(|failure| failure.to_string())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn conditions_see_the_claims_only() {
        let claims = json!({"email": "ann@example.com", "groups": ["dev", "ops"], "level": 3});
        for (source, expected) in [
            ("'ops' in claims.groups", Ok(true)),
            ("claims.groups.exists(g, g.startsWith('x'))", Ok(false)),
            ("claims.email.matches('@example\\\\.com$') && claims.level >= 3", Ok(true)),
            ("claims.department == 'it'", Err("`department` is missing".to_owned())),
            ("has(claims.department)", Ok(false)),
            ("claims.email", Err("the condition is not true or false, but of type `string`".to_owned())),
        ] {
            let condition = ClaimCondition::compile(source).unwrap();
            assert_eq!(condition.matches(&claims), expected, "{source}");
        }
        let large = json!({"groups": vec!["x".repeat(1000); 100]});
        let condition = ClaimCondition::compile("true").unwrap();
        assert!(condition.matches(&large).unwrap_err().contains("exceed 65536 bytes"));
    }

    #[test]
    fn invalid_conditions_are_rejected() {
        for (source, expected) in [
            ("args.x == 1", "unknown variable `args`; expected `claims`"),
            ("claim.x == 1", "unknown variable `claim`; did you mean `claims`?"),
            ("claims.x = 1", "syntax error at line 1, column 10: write `==` to compare"),
        ] {
            let error = ClaimCondition::compile(source).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
