//! Conditions of steps: `$steps.fetch.ok`, `$args.days > 3`, `{"all": […]}`.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::mapping;
use crate::problem::excerpt;

/// The deepest nesting of a condition.
const MAX_DEPTH: usize = 16;
/// The largest number of conditions in one `all` or `any`.
const MAX_PARTS: usize = 100;

/// A condition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub enum Condition {
    /// Every one holds.
    All(Vec<Condition>),
    /// At least one holds.
    Any(Vec<Condition>),
    /// It does not hold.
    Not(Box<Condition>),
    /// The value of a reference is not missing, `null`, `false`, `0`, `""`, `[]` or `{}`.
    Truthy(String),
    /// A comparison of two mappings.
    Compare {
        /// The left side.
        left: Value,
        /// How they are compared.
        comparison: Comparison,
        /// The right side.
        right: Value,
    },
}

/// How two values are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// `==`; numbers by value.
    Equal,
    /// `!=`.
    NotEqual,
    /// `<`, of two numbers or two texts.
    Less,
    /// `<=`, of two numbers or two texts.
    AtMost,
    /// `>`, of two numbers or two texts.
    Greater,
    /// `>=`, of two numbers or two texts.
    AtLeast,
    /// `in`: an item of a list, a key of a map, a part of a text.
    In,
    /// `contains`: the other way round.
    Contains,
}

impl Comparison {
    /// Every comparison by its sign and by its name in the form of an object. Longer signs come first.
    const ALL: [(&'static str, &'static str, Self); 8] = [
        ("==", "equals", Self::Equal),
        ("!=", "not_equals", Self::NotEqual),
        ("<=", "at_most", Self::AtMost),
        (">=", "at_least", Self::AtLeast),
        ("<", "less", Self::Less),
        (">", "greater", Self::Greater),
        ("in", "in", Self::In),
        ("contains", "contains", Self::Contains),
    ];

    fn sign(self) -> &'static str {
        match self {
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::Greater => ">",
            Self::AtLeast => ">=",
            Self::In => "in",
            Self::Contains => "contains",
        }
    }

    fn holds(self, left: &Value, right: &Value) -> bool {
        match self {
            Self::Equal => equal(left, right),
            Self::NotEqual => !equal(left, right),
            Self::Less => order(left, right).is_some_and(std::cmp::Ordering::is_lt),
            Self::AtMost => order(left, right).is_some_and(std::cmp::Ordering::is_le),
            Self::Greater => order(left, right).is_some_and(std::cmp::Ordering::is_gt),
            Self::AtLeast => order(left, right).is_some_and(std::cmp::Ordering::is_ge),
            Self::In => contains(right, left),
            Self::Contains => contains(left, right),
        }
    }
}

/// A condition that is not well-formed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConditionError {
    /// It is neither a text nor a map.
    #[error("expected a text such as `$steps.fetch.ok` or a map such as `{{\"all\": […]}}`, found {0}")]
    WrongType(&'static str),
    /// It does not start with a reference or a literal.
    #[error("expected a reference such as `$args.x` or `$steps.a.value`, or a JSON value, at `{0}`")]
    Operand(String),
    /// A text has no comparison where one is needed.
    #[error("expected `==`, `!=`, `<`, `<=`, `>`, `>=`, `in` or `contains` at `{0}`")]
    Comparison(String),
    /// Something follows the condition.
    #[error(
        "unexpected `{0}` after the condition; combine conditions with `{{\"all\": […]}}` or `{{\"any\": […]}}`"
    )]
    Rest(String),
    /// A `!` is followed by a comparison.
    #[error("`!` negates one reference; use `!=`, or `{{\"not\": …}}` for a comparison")]
    Negation,
    /// A map has not exactly one known key.
    #[error("unknown condition `{0}`; expected one of {known}", known = known_keys())]
    Key(String),
    /// A map has not exactly one key.
    #[error("expected a map with exactly one of {known}", known = known_keys())]
    Keys,
    /// A comparison has not two operands.
    #[error("`{0}` needs a list of exactly two values")]
    Operands(String),
    /// `all` or `any` has no list.
    #[error("`{0}` needs a list of 1 to 100 conditions")]
    Parts(String),
    /// It is nested too deeply.
    #[error("conditions are nested more than 16 levels deep")]
    Depth,
}

fn known_keys() -> String {
    let names = Comparison::ALL.iter().map(|(_, name, _)| *name);
    let all: Vec<String> =
        ["all", "any", "not"].into_iter().chain(names).map(|name| format!("`{name}`")).collect();
    all.join(", ")
}

impl Condition {
    /// Parses a text such as `$steps.fetch.ok`, `!$args.quiet` or `$args.days > 3`.
    pub fn parse(text: &str) -> Result<Self, ConditionError> {
        let text = text.trim();
        if let Some(negated) = text.strip_prefix('!') {
            return match Self::parse(negated)? {
                Condition::Compare { .. } => Err(ConditionError::Negation),
                other => Ok(Condition::Not(Box::new(other))),
            };
        }
        let (left, rest) = operand(text)?;
        let rest = rest.trim_start();
        if rest.is_empty() {
            return match left {
                Value::String(reference) if mapping::STEPS.whole(&reference).is_some() => {
                    Ok(Condition::Truthy(reference))
                }
                _ => Err(ConditionError::Comparison(String::new())),
            };
        }
        let found = Comparison::ALL.iter().find_map(|(sign, _, comparison)| {
            let after = rest.strip_prefix(sign)?;
            let is_word = sign.starts_with(|c: char| c.is_ascii_alphabetic());
            (!is_word || !after.starts_with(|c: char| c.is_alphanumeric())).then_some((*comparison, after))
        });
        let Some((comparison, after)) = found else {
            return Err(ConditionError::Comparison(excerpt(rest, 40)));
        };
        let (right, rest) = operand(after.trim_start())?;
        match rest.trim() {
            "" => Ok(Condition::Compare { left, comparison, right }),
            rest => Err(ConditionError::Rest(excerpt(rest, 40))),
        }
    }

    /// Reads a condition from JSON: a text, or a map with one key.
    pub fn from_value(value: &Value) -> Result<Self, ConditionError> {
        Self::at_depth(value, MAX_DEPTH)
    }

    fn at_depth(value: &Value, depth: usize) -> Result<Self, ConditionError> {
        let map = match value {
            Value::String(text) => return Self::parse(text),
            Value::Object(map) => map,
            Value::Null => return Err(ConditionError::WrongType("null")),
            Value::Bool(_) => return Err(ConditionError::WrongType("a boolean")),
            Value::Number(_) => return Err(ConditionError::WrongType("a number")),
            Value::Array(_) => return Err(ConditionError::WrongType("a list")),
        };
        let depth = depth.checked_sub(1).ok_or(ConditionError::Depth)?;
        let mut entries = map.iter();
        let (Some((key, inner)), None) = (entries.next(), entries.next()) else {
            return Err(ConditionError::Keys);
        };
        let parts = || match inner {
            Value::Array(parts) if (1..=MAX_PARTS).contains(&parts.len()) => {
                parts.iter().map(|part| Self::at_depth(part, depth)).collect()
            }
            _ => Err(ConditionError::Parts(key.clone())),
        };
        match key.as_str() {
            "all" => Ok(Condition::All(parts()?)),
            "any" => Ok(Condition::Any(parts()?)),
            "not" => Ok(Condition::Not(Box::new(Self::at_depth(inner, depth)?))),
            _ => {
                let named = |entry: &&(&str, &str, Comparison)| entry.0 == key || entry.1 == key;
                let (_, _, comparison) = *Comparison::ALL
                    .iter()
                    .find(named)
                    .ok_or_else(|| ConditionError::Key(excerpt(key, 40)))?;
                match inner.as_array().map(Vec::as_slice) {
                    Some([left, right]) => {
                        Ok(Condition::Compare { left: left.clone(), comparison, right: right.clone() })
                    }
                    _ => Err(ConditionError::Operands(key.clone())),
                }
            }
        }
    }

    /// Returns whether it holds; `resolve` fills in a mapping, and returns `null` for a missing value.
    pub fn holds(&self, resolve: &mut dyn FnMut(&Value) -> Value) -> bool {
        match self {
            Condition::All(parts) => parts.iter().all(|part| part.holds(resolve)),
            Condition::Any(parts) => parts.iter().any(|part| part.holds(resolve)),
            Condition::Not(inner) => !inner.holds(resolve),
            Condition::Truthy(reference) => is_truthy(&resolve(&Value::String(reference.clone()))),
            Condition::Compare { left, comparison, right } => {
                comparison.holds(&resolve(left), &resolve(right))
            }
        }
    }

    /// Calls `visit` with every mapping in it.
    pub fn operands(&self, visit: &mut dyn FnMut(&Value)) {
        match self {
            Condition::All(parts) | Condition::Any(parts) => {
                for part in parts {
                    part.operands(visit);
                }
            }
            Condition::Not(inner) => inner.operands(visit),
            Condition::Truthy(reference) => visit(&Value::String(reference.clone())),
            Condition::Compare { left, right, .. } => {
                visit(left);
                visit(right);
            }
        }
    }
}

impl TryFrom<Value> for Condition {
    type Error = ConditionError;

    fn try_from(value: Value) -> Result<Self, ConditionError> {
        Self::from_value(&value)
    }
}

impl From<Condition> for Value {
    fn from(condition: Condition) -> Self {
        let list = |parts: Vec<Condition>| parts.into_iter().map(Value::from).collect::<Vec<_>>();
        match condition {
            Condition::All(parts) => json!({"all": list(parts)}),
            Condition::Any(parts) => json!({"any": list(parts)}),
            Condition::Not(inner) => match *inner {
                Condition::Truthy(reference) => Value::String(format!("!{reference}")),
                other => json!({"not": Value::from(other)}),
            },
            simple @ (Condition::Truthy(_) | Condition::Compare { .. }) => Value::String(simple.to_string()),
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Condition::Truthy(reference) => f.write_str(reference),
            Condition::Compare { left, comparison, right } => {
                write!(f, "{} {} {}", Operand(left), comparison.sign(), Operand(right))
            }
            other => write!(f, "{}", Value::from(other.clone())),
        }
    }
}

/// Writes one side of a comparison.
struct Operand<'a>(&'a Value);

impl fmt::Display for Operand<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::String(text) if mapping::STEPS.whole(text).is_some() => f.write_str(text),
            other => other.fmt(f),
        }
    }
}

/// Parses a reference, a JSON value, or a text in single quotes; returns it with what follows.
fn operand(text: &str) -> Result<(Value, &str), ConditionError> {
    let unexpected = || ConditionError::Operand(excerpt(text, 40));
    if text.starts_with('$') {
        let (reference, rest) = mapping::STEPS.parse(text).ok_or_else(unexpected)?;
        return Ok((Value::String(reference.text.to_owned()), rest));
    }
    if let Some(quoted) = text.strip_prefix('\'') {
        let (inside, rest) = quoted.split_once('\'').ok_or_else(unexpected)?;
        return Ok((Value::String(inside.to_owned()), rest));
    }
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let value = values.next().and_then(Result::ok).ok_or_else(unexpected)?;
    Ok((value, text.get(values.byte_offset()..).unwrap_or_default()))
}

fn is_truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(flag) => *flag,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(map) => !map.is_empty(),
    }
}

fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(_), Value::Number(_)) => {
            left == right || order(left, right).is_some_and(std::cmp::Ordering::is_eq)
        }
        _ => left == right,
    }
}

fn order(left: &Value, right: &Value) -> Option<std::cmp::Ordering> {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => match (left.as_i64(), right.as_i64()) {
            (Some(left), Some(right)) => Some(left.cmp(&right)),
            _ => left.as_f64()?.partial_cmp(&right.as_f64()?),
        },
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        _ => None,
    }
}

fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Array(items), part) => items.iter().any(|item| equal(item, part)),
        (Value::Object(map), Value::String(key)) => map.contains_key(key),
        (Value::String(text), Value::String(part)) => text.contains(part.as_str()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(condition: &Value) -> bool {
        let values = json!({"args": {"n": 3, "mode": "fast", "tags": ["a"], "empty": ""}});
        let condition = Condition::from_value(condition).unwrap();
        let again = Condition::from_value(&Value::from(condition.clone())).unwrap();
        assert_eq!(again, condition);
        condition.holds(&mut |operand| {
            mapping::STEPS
                .fill(operand, &mut |reference| reference.walk(values.get(reference.name)?).cloned())
        })
    }

    #[test]
    fn conditions_are_evaluated() {
        for (condition, expected) in [
            (json!("$args.n"), true),
            (json!("!$args.n"), false),
            (json!("$args.empty"), false),
            (json!("$args.missing"), false),
            (json!("!$args.missing.deeper"), true),
            (json!("$args.n == 3"), true),
            (json!("$args.n == 3.0"), true),
            (json!("$args.n>=4"), false),
            (json!("$args.n < 10"), true),
            (json!("$args.mode == 'fast'"), true),
            (json!("$args.mode != \"fast\""), false),
            (json!("'a' in $args.tags"), true),
            (json!("$args.tags contains \"b\""), false),
            (json!("$args.mode contains 'as'"), true),
            (json!("$args.mode in [\"slow\", \"fast\"]"), true),
            (json!("$args.mode > 3"), false),
            (json!({"equals": ["$args.mode", "fast"]}), true),
            (json!({"==": ["mode: $args.mode", "mode: fast"]}), true),
            (json!({"all": ["$args.n", "$args.empty"]}), false),
            (json!({"any": ["$args.n", {"not": "$args.n == 3"}]}), true),
        ] {
            assert_eq!(holds(&condition), expected, "{condition}");
        }
    }

    #[test]
    fn malformed_conditions_are_rejected() {
        for (condition, expected) in [
            (
                json!(true),
                "expected a text such as `$steps.fetch.ok` or a map such as `{\"all\": […]}`, found a boolean",
            ),
            (
                json!("args.n"),
                "expected a reference such as `$args.x` or `$steps.a.value`, or a JSON value, at `args.n`",
            ),
            (
                json!("$arg.n"),
                "expected a reference such as `$args.x` or `$steps.a.value`, or a JSON value, at `$arg.n`",
            ),
            (json!("$args.n = 3"), "expected `==`, `!=`, `<`, `<=`, `>`, `>=`, `in` or `contains` at `= 3`"),
            (
                json!("$args.n == 3 && $args.x"),
                "unexpected `&& $args.x` after the condition; combine conditions with `{\"all\": […]}` or `{\"any\": […]}`",
            ),
            (
                json!("!$args.n == 3"),
                "`!` negates one reference; use `!=`, or `{\"not\": …}` for a comparison",
            ),
            (json!({"all": []}), "`all` needs a list of 1 to 100 conditions"),
            (json!({"equals": ["$args.n"]}), "`equals` needs a list of exactly two values"),
            (
                json!({"equal": [1, 1]}),
                "unknown condition `equal`; expected one of `all`, `any`, `not`, `equals`, `not_equals`, `at_most`, \
                 `at_least`, `less`, `greater`, `in`, `contains`",
            ),
        ] {
            assert_eq!(Condition::from_value(&condition).unwrap_err().to_string(), expected, "{condition}");
        }
        let deep = (0..20).fold(json!("$args.n"), |inner, _| json!({ "not": inner }));
        assert_eq!(Condition::from_value(&deep), Err(ConditionError::Depth));
    }
}
