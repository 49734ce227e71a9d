//! Reads policy rules from JSON: reports every problem with its field, and enforces the bounds.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{Approvers, Effect, PolicyRule, PolicyRules, RuleExample, RuleMatch};
use crate::name::TenantId;
use crate::principal::AllowList;
use crate::problem::{Problem, excerpt, nearest};
use crate::token::Role;

/// The maximum number of rules of a tenant or of the platform.
pub const MAX_RULES: usize = 256;
/// The maximum size of all rules of a tenant or of the platform as JSON.
pub const MAX_RULES_BYTES: usize = 256 * 1024;
/// The maximum number of patterns in a list.
pub const MAX_PATTERNS: usize = 64;
/// The maximum number of examples of a rule.
pub const MAX_EXAMPLES: usize = 32;
/// The maximum size of a condition.
pub const MAX_CONDITION_BYTES: usize = 4096;
/// The maximum length of a reason, in characters.
pub const MAX_REASON_LENGTH: usize = 500;
/// The maximum length of a name, in characters.
const MAX_NAME_LENGTH: usize = 64;
/// The maximum length of a pattern, in bytes.
const MAX_PATTERN_LENGTH: usize = 256;
/// Reading stops at this number of problems.
const MAX_PROBLEMS: usize = 50;

const RULE_FIELDS: [&str; 7] = ["name", "match", "when", "effect", "reason", "approvers", "examples"];
const MATCH_FIELDS: [&str; 9] =
    ["tenants", "roles", "tokens", "people", "groups", "agents", "tools", "tags", "surfaces"];
const APPROVER_FIELDS: [&str; 4] = ["roles", "tokens", "people", "groups"];
const EXAMPLE_FIELDS: [&str; 11] =
    ["tool", "args", "tenant", "role", "token", "person", "groups", "agent", "surface", "tags", "expect"];

impl PolicyRules {
    /// Reads `{"rules": […]}` and reports every problem.
    pub fn read(value: &Value) -> Result<Self, Vec<Problem>> {
        let mut problems = Problems::default();
        let rules = read_rules(value, &mut problems);
        if problems.0.is_empty() { Ok(Self { rules }) } else { Err(problems.0) }
    }
}

#[derive(Default)]
struct Problems(Vec<Problem>);

impl Problems {
    fn add(&mut self, field: impl Into<String>, code: &str, message: impl Into<String>) {
        if self.0.len() < MAX_PROBLEMS {
            self.0.push(Problem::new(field, code, message));
        }
    }

    /// Reports the fields that are not known.
    fn unknown_fields(&mut self, map: &Map<String, Value>, path: &str, known: &[&str]) {
        for key in map.keys().filter(|key| !known.contains(&key.as_str())) {
            let field = join(path, &excerpt(key, MAX_NAME_LENGTH));
            let message = match nearest(key, known.iter().copied()) {
                Some(near) => format!("unknown field; did you mean `{near}`?"),
                None => format!("unknown field; expected one of {}", quoted(known)),
            };
            self.add(field, "unknown_field", message);
        }
    }

    /// Reads a field; a missing one or `null` is `None`.
    fn optional<T: DeserializeOwned>(
        &mut self,
        map: &Map<String, Value>,
        path: &str,
        key: &str,
    ) -> Option<T> {
        let value = map.get(key).filter(|value| !value.is_null())?;
        match serde_json::from_value(value.clone()) {
            Ok(read) => Some(read),
            Err(error) => {
                let error = error.to_string();
                let message = match value {
                    Value::String(text) if error.ends_with("expected a sequence") => {
                        format!("expected a list, such as `[{}]`", excerpt(text, 60))
                    }
                    _ => excerpt(&error, 200),
                };
                self.add(join(path, key), "invalid_value", message);
                None
            }
        }
    }

    fn required<T: DeserializeOwned>(
        &mut self,
        map: &Map<String, Value>,
        path: &str,
        key: &str,
    ) -> Option<T> {
        if map.get(key).is_none_or(Value::is_null) {
            self.add(join(path, key), "missing_field", format!("missing `{key}`"));
        }
        self.optional(map, path, key)
    }

    /// Reads a list of patterns.
    fn patterns(&mut self, map: &Map<String, Value>, path: &str, key: &str) -> Option<Vec<String>> {
        let patterns: Vec<String> = self.optional(map, path, key)?;
        let field = join(path, key);
        if patterns.is_empty() {
            self.add(&field, "invalid_value", "the list is empty and matches nothing; omit it to match all");
        }
        if patterns.len() > MAX_PATTERNS {
            let message = format!("{} patterns; the limit is {MAX_PATTERNS}", patterns.len());
            self.add(&field, "too_large", message);
        }
        for (index, pattern) in patterns.iter().enumerate() {
            if let Some(message) = invalid_pattern(key, pattern) {
                self.add(format!("{field}[{index}]"), "invalid_value", message);
            }
        }
        Some(patterns)
    }
}

fn read_rules(value: &Value, problems: &mut Problems) -> Vec<PolicyRule> {
    let expected = "expected an object such as `{\"rules\": [{\"name\": \"no-exec\", \"match\": {\"tools\": [\"exec\"]}, \
                    \"effect\": \"deny\"}]}`";
    let Value::Object(map) = value else {
        problems.add("", "wrong_type", expected);
        return Vec::new();
    };
    problems.unknown_fields(map, "", &["rules"]);
    let Some(Value::Array(rules)) = map.get("rules") else {
        problems.add("rules", "missing_field", expected);
        return Vec::new();
    };
    if rules.len() > MAX_RULES {
        problems.add("rules", "too_large", format!("{} rules; the limit is {MAX_RULES}", rules.len()));
        return Vec::new();
    }
    let bytes = serde_json::to_string(rules).map_or(0, |text| text.len());
    if bytes > MAX_RULES_BYTES {
        problems.add("rules", "too_large", format!("{bytes} bytes; the limit is {MAX_RULES_BYTES}"));
        return Vec::new();
    }
    let mut read: Vec<PolicyRule> = Vec::with_capacity(rules.len());
    for (index, rule) in rules.iter().enumerate() {
        let path = format!("rules[{index}]");
        let Some(rule) = read_rule(rule, &path, problems) else { continue };
        if read.iter().any(|other| other.name == rule.name) {
            let message = format!("there are two rules `{}`; names must be unique", rule.name);
            problems.add(join(&path, "name"), "duplicate", message);
        }
        read.push(rule);
    }
    read
}

fn read_rule(value: &Value, path: &str, problems: &mut Problems) -> Option<PolicyRule> {
    let map = object(value, path, problems)?;
    problems.unknown_fields(map, path, &RULE_FIELDS);
    let name: Option<String> = problems.required(map, path, "name");
    if let Some(name) = &name {
        check_name(name, path, problems);
    }
    let effect: Option<Effect> = problems.required(map, path, "effect");
    let when: Option<String> = problems.optional(map, path, "when");
    if let Some(when) = &when {
        check_condition(when, path, problems);
    }
    let reason: Option<String> = problems.optional(map, path, "reason");
    if reason.as_ref().is_some_and(|reason| reason.chars().count() > MAX_REASON_LENGTH) {
        let message = format!("longer than {MAX_REASON_LENGTH} characters");
        problems.add(join(path, "reason"), "too_large", message);
    }
    let matching = read_match(map, path, problems);
    let approvers = read_approvers(map, path, effect, problems);
    let examples = read_examples(map, path, problems);
    Some(PolicyRule { name: name?, matching, when, effect: effect?, reason, approvers, examples })
}

fn check_name(name: &str, path: &str, problems: &mut Problems) {
    let allowed = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ' ');
    if name.trim().is_empty() || name.chars().count() > MAX_NAME_LENGTH || !name.chars().all(allowed) {
        let message = format!(
            "invalid name `{}`: expected 1 to {MAX_NAME_LENGTH} letters, digits, `-`, `_`, `.` or spaces",
            excerpt(name, MAX_NAME_LENGTH)
        );
        problems.add(join(path, "name"), "invalid_name", message);
    }
}

fn check_condition(when: &str, path: &str, problems: &mut Problems) {
    let field = join(path, "when");
    if when.trim().is_empty() {
        problems.add(field, "invalid_value", "the condition is empty; omit it to match all arguments");
    } else if when.len() > MAX_CONDITION_BYTES {
        let message = format!("the condition has {} bytes; the limit is {MAX_CONDITION_BYTES}", when.len());
        problems.add(field, "too_large", message);
    }
}

fn read_match(map: &Map<String, Value>, path: &str, problems: &mut Problems) -> RuleMatch {
    let Some(value) = map.get("match").filter(|value| !value.is_null()) else { return RuleMatch::default() };
    let path = join(path, "match");
    let Some(map) = object(value, &path, problems) else { return RuleMatch::default() };
    problems.unknown_fields(map, &path, &MATCH_FIELDS);
    let mut list = |key: &str| problems.patterns(map, &path, key);
    RuleMatch {
        tenants: list("tenants"),
        roles: list("roles"),
        tokens: list("tokens"),
        people: list("people"),
        groups: list("groups"),
        agents: list("agents"),
        tools: list("tools"),
        tags: list("tags"),
        surfaces: list("surfaces"),
    }
}

fn read_approvers(
    map: &Map<String, Value>,
    path: &str,
    effect: Option<Effect>,
    problems: &mut Problems,
) -> Option<Approvers> {
    let value = map.get("approvers").filter(|value| !value.is_null())?;
    let path = join(path, "approvers");
    let map = object(value, &path, problems)?;
    problems.unknown_fields(map, &path, &APPROVER_FIELDS);
    if effect.is_some_and(|effect| effect != Effect::Approve) {
        problems.add(&path, "invalid_value", "only a rule with the effect `approve` has approvers");
    }
    let roles = problems.patterns(map, &path, "roles");
    let tokens = problems.patterns(map, &path, "tokens");
    let people = problems.patterns(map, &path, "people");
    let groups = problems.patterns(map, &path, "groups");
    if [&roles, &tokens, &people, &groups].into_iter().all(Option::is_none) {
        problems.add(&path, "missing_field", "expected `roles`, `tokens`, `people` or `groups`");
    }
    Some(Approvers { roles, tokens, people, groups })
}

fn read_examples(map: &Map<String, Value>, path: &str, problems: &mut Problems) -> Vec<RuleExample> {
    let field = join(path, "examples");
    let examples = match map.get("examples") {
        None | Some(Value::Null) => return Vec::new(),
        Some(Value::Array(examples)) => examples,
        Some(_) => {
            problems.add(field, "wrong_type", "expected a list of examples");
            return Vec::new();
        }
    };
    if examples.len() > MAX_EXAMPLES {
        problems.add(field, "too_large", format!("{} examples; the limit is {MAX_EXAMPLES}", examples.len()));
        return Vec::new();
    }
    let read = examples.iter().enumerate();
    read.filter_map(|(index, example)| read_example(example, &format!("{field}[{index}]"), problems))
        .collect()
}

fn read_example(value: &Value, path: &str, problems: &mut Problems) -> Option<RuleExample> {
    let map = object(value, path, problems)?;
    problems.unknown_fields(map, path, &EXAMPLE_FIELDS);
    let role: Option<String> = problems.optional(map, path, "role");
    if let Some(message) = role.as_deref().and_then(unknown_role) {
        problems.add(join(path, "role"), "invalid_value", message);
    }
    let tenant: Option<String> = problems.optional(map, path, "tenant");
    if let Some(Err(error)) = tenant.as_deref().map(TenantId::new) {
        problems.add(join(path, "tenant"), "invalid_value", error.to_string());
    }
    let tool: Option<String> = problems.required(map, path, "tool");
    let example = RuleExample {
        tool: String::new(),
        args: problems.optional(map, path, "args").unwrap_or_default(),
        tenant,
        role,
        token: problems.optional(map, path, "token"),
        person: problems.optional(map, path, "person"),
        groups: problems.optional(map, path, "groups").unwrap_or_default(),
        agent: problems.optional(map, path, "agent"),
        surface: problems.optional(map, path, "surface"),
        tags: problems.optional(map, path, "tags").unwrap_or_default(),
        expect: problems.required(map, path, "expect")?,
    };
    Some(RuleExample { tool: tool?, ..example })
}

fn object<'a>(value: &'a Value, path: &str, problems: &mut Problems) -> Option<&'a Map<String, Value>> {
    let map = value.as_object();
    if map.is_none() {
        problems.add(path, "wrong_type", "expected an object");
    }
    map
}

/// Returns why a pattern is invalid in the list of this name.
fn invalid_pattern(key: &str, pattern: &str) -> Option<String> {
    if pattern.trim().is_empty() || pattern.chars().any(char::is_control) {
        return Some(format!("invalid pattern `{}`: expected a text", excerpt(pattern, 60)));
    }
    if pattern.len() > MAX_PATTERN_LENGTH {
        return Some(format!("the pattern has {} bytes; the limit is {MAX_PATTERN_LENGTH}", pattern.len()));
    }
    match key {
        "roles" => unknown_role(pattern),
        "tools" => AllowList::new([pattern]).err().map(|error| error.to_string()),
        _ => None,
    }
}

fn unknown_role(text: &str) -> Option<String> {
    if text.contains('*') || Role::parse(text).is_some() {
        return None;
    }
    let known = Role::ALL.map(Role::as_str);
    let shown = excerpt(text, 60);
    Some(match nearest(text, known) {
        Some(near) => format!("unknown role `{shown}`; did you mean `{near}`?"),
        None => format!("unknown role `{shown}`; expected one of {}", quoted(&known)),
    })
}

fn quoted(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn problems(value: &Value) -> Vec<String> {
        PolicyRules::read(value).unwrap_err().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn rules_are_read_and_written() {
        let value = json!({"rules": [
            {"name": "no-exec", "match": {"tools": ["exec", "web:*", "tag:shell"]}, "effect": "deny"},
            {
                "name": "large-payments",
                "match": {"roles": ["caller"], "tools": ["bank:pay"]},
                "when": "has(args.amount) && args.amount > 100",
                "effect": "approve",
                "reason": "ask Finance",
                "approvers": {"roles": ["admin"]},
                "examples": [
                    {"tool": "bank:pay", "args": {"amount": 250}, "role": "caller", "expect": "match"},
                    {"tool": "bank:pay", "args": {"amount": 5}, "expect": "no_match"},
                ],
            },
            {"name": "everything", "effect": "allow"},
        ]});
        let rules = PolicyRules::read(&value).unwrap();
        assert_eq!(serde_json::to_value(&rules).unwrap(), value);
        assert_eq!(serde_json::from_value::<PolicyRules>(value).unwrap(), rules);
    }

    #[test]
    fn every_problem_is_reported_with_its_field() {
        let value = json!({"rules": [
            {"name": "a", "match": {"tols": ["x"], "roles": ["admn"], "tools": ["a b"], "tags": []}, "effct": "deny"},
            {"name": "a", "effect": "forbid", "when": " "},
            {"name": "", "effect": "deny", "approvers": {}},
            {"name": "b", "effect": "deny", "examples": [{"tool": "x", "expect": "yes", "role": "king"}]},
            {"name": "a", "effect": "allow"},
            {"name": "a", "effect": "allow"},
            7,
        ], "rule": 1});
        insta::assert_snapshot!(problems(&value).join("\n"), @r"
        `rule`: unknown field; did you mean `rules`?
        `rules[0].effct`: unknown field; did you mean `effect`?
        `rules[0].effect`: missing `effect`
        `rules[0].match.tols`: unknown field; did you mean `tools`?
        `rules[0].match.roles[0]`: unknown role `admn`; did you mean `admin`?
        `rules[0].match.tools[0]`: invalid rule `a b`: expected a tool name, `bundle:name`, `bundle:*` or `tag:name`, where `*` stands for any text
        `rules[0].match.tags`: the list is empty and matches nothing; omit it to match all
        `rules[1].effect`: unknown variant `forbid`, expected one of `allow`, `approve`, `deny`
        `rules[1].when`: the condition is empty; omit it to match all arguments
        `rules[2].name`: invalid name ``: expected 1 to 64 letters, digits, `-`, `_`, `.` or spaces
        `rules[2].approvers`: only a rule with the effect `approve` has approvers
        `rules[2].approvers`: expected `roles`, `tokens`, `people` or `groups`
        `rules[3].examples[0].role`: unknown role `king`; expected one of `viewer`, `caller`, `editor`, `admin`
        `rules[3].examples[0].expect`: unknown variant `yes`, expected `match` or `no_match`
        `rules[5].name`: there are two rules `a`; names must be unique
        `rules[6]`: expected an object
        ");
    }

    #[test]
    fn everything_is_bounded() {
        let rule = |name: usize| json!({"name": format!("r{name}"), "effect": "deny"});
        let many = json!({"rules": (0..=MAX_RULES).map(rule).collect::<Vec<_>>()});
        assert_eq!(problems(&many), ["`rules`: 257 rules; the limit is 256"]);
        let long = json!({"rules": [{"name": "a", "effect": "deny", "when": "1".repeat(1_000_000)}]});
        assert_eq!(problems(&long), ["`rules`: 1000040 bytes; the limit is 262144"]);
        let long = json!({"rules": [{"name": "a", "effect": "deny", "when": "1".repeat(5000)}]});
        assert_eq!(problems(&long), ["`rules[0].when`: the condition has 5000 bytes; the limit is 4096"]);
        let patterns = vec!["x"; MAX_PATTERNS + 1];
        let many = json!({"rules": [{"name": "a", "effect": "deny", "match": {"tags": patterns}}]});
        assert_eq!(problems(&many), ["`rules[0].match.tags`: 65 patterns; the limit is 64"]);
        let bad = json!({"rules": [{"name": "a", "effect": "deny", "reason": "x".repeat(600)}]});
        assert_eq!(problems(&bad), ["`rules[0].reason`: longer than 500 characters"]);
        for value in [json!(null), json!([]), json!({}), json!({"rules": {}})] {
            assert_eq!(problems(&value).len(), 1, "{value}");
        }
        let wrong = json!({"rules": vec![json!({"x": 1}); 100]});
        assert_eq!(problems(&wrong).len(), MAX_PROBLEMS);
    }
}
