//! Policy rules: who may call which tool with which arguments. The types and their bounds; `haft-policy` evaluates
//! them.

mod read;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::principal::{Principal, matches_pattern};

use crate::name::TenantId;

pub use read::{
    MAX_CONDITION_BYTES, MAX_EXAMPLES, MAX_PATTERNS, MAX_REASON_LENGTH, MAX_RULES, MAX_RULES_BYTES,
};

/// The rules of a tenant or of the platform. Their order matters only for which of several rules with the same effect is
/// reported.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct PolicyRules {
    /// The rules.
    pub rules: Vec<PolicyRule>,
}

/// Whose rules they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PolicyScope {
    /// The platform: the rules hold for every tenant.
    Platform,
    /// One tenant.
    Tenant(TenantId),
}

impl PolicyScope {
    /// Returns the name of the scope: `platform`, or the id of the tenant.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Platform => "platform",
            Self::Tenant(tenant) => tenant.as_str(),
        }
    }
}

/// One rule: the calls it matches, and what happens to them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct PolicyRule {
    /// The name, unique among the rules.
    #[cfg_attr(feature = "openapi", schema(example = "large-payments"))]
    pub name: String,
    /// The calls that it matches; every field that is present must match.
    #[serde(rename = "match", default, skip_serializing_if = "RuleMatch::is_empty")]
    #[cfg_attr(feature = "openapi", schema(inline, value_type = Option<RuleMatch>))]
    pub matching: RuleMatch,
    /// A condition in CEL over `args`, `tool`, `principal` and `surface`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(example = "has(args.amount) && args.amount > 100"))]
    pub when: Option<String>,
    /// The effect on matching calls.
    pub effect: Effect,
    /// The reason, shown to the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(example = "payments above 100 need a second person"))]
    pub reason: Option<String>,
    /// Who may approve the calls, for the effect `approve`; default: admins and elevated tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approvers: Option<Approvers>,
    /// Calls that the rule must or must not match; checked whenever the rules are loaded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Vec<RuleExample>>))]
    pub examples: Vec<RuleExample>,
}

/// The calls that a rule matches. Each field is a list of patterns in which `*` matches any text; a missing field
/// matches everything.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct RuleMatch {
    /// Ids of tenants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenants: Option<Vec<String>>,
    /// Roles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(example = json!(["viewer", "caller"])))]
    pub roles: Option<Vec<String>>,
    /// Names or ids of tokens, and names of service accounts. The names of tokens of people do not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Vec<String>>,
    /// Ids or e-mail addresses of people, and ids of service accounts, whatever credential they use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(example = json!(["ann@example.com"])))]
    pub people: Option<Vec<String>>,
    /// Names of groups; the caller must be a member of one of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(example = json!(["finance"])))]
    pub groups: Option<Vec<String>>,
    /// Names of agents. A call outside of an agent does not match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents: Option<Vec<String>>,
    /// Tools: `name`, `bundle:name` or `tag:name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(example = json!(["bank:pay*"])))]
    pub tools: Option<Vec<String>>,
    /// Tags of tools; one of them must match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// Surfaces: `rest`, `mcp`, `library`, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surfaces: Option<Vec<String>>,
}

impl RuleMatch {
    /// Returns whether it matches every call.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The prefix of the names of platform rules in decisions.
pub const PLATFORM_RULE: &str = "platform:";

/// Who may approve the calls that a rule holds back.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Approvers {
    /// Roles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(example = json!(["admin"])))]
    pub roles: Option<Vec<String>>,
    /// Names or ids of tokens; only ids in rules of the platform.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Vec<String>>,
    /// Ids or e-mail addresses of people, and ids of service accounts; only ids in rules of the platform.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(example = json!(["ann@example.com"])))]
    pub people: Option<Vec<String>>,
    /// Names of groups; not in rules of the platform, because each tenant has its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(example = json!(["finance"])))]
    pub groups: Option<Vec<String>>,
}

impl Approvers {
    /// Returns whether a principal is among them: its role, its token, its person or one of its groups is named. In rules of
    /// the platform only ids count: an admin of a tenant can give a token, a person or a group any name.
    pub fn include(&self, principal: &Principal, is_platform_rule: bool) -> bool {
        let id = principal.token.map_or_else(|| principal.id(), |id| id.to_string().into());
        let actor = principal.actor.as_deref();
        let has_role = |role: &String| matches_pattern(role, principal.role.as_str());
        let has_name = |token: &String| !is_platform_rule && matches_pattern(token, principal.rule_name());
        let has_token = |token: &String| has_name(token) || **token == *id;
        let is_person = |person: &String| match actor {
            Some(actor) if is_platform_rule => *person == actor.id.to_string(),
            Some(actor) => actor.is_identified_by(person),
            None => false,
        };
        let is_member = |group: &String| {
            let mut groups = actor.into_iter().flat_map(|actor| &actor.groups);
            !is_platform_rule && groups.any(|own| matches_pattern(group, own))
        };
        self.roles.iter().flatten().any(has_role)
            || self.tokens.iter().flatten().any(has_token)
            || self.people.iter().flatten().any(is_person)
            || self.groups.iter().flatten().any(is_member)
    }
}

/// A call that a rule must or must not match.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct RuleExample {
    /// The tool: `name` or `bundle:name`.
    #[cfg_attr(feature = "openapi", schema(example = "bank:pay"))]
    pub tool: String,
    /// The arguments.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = Object, example = json!({"amount": 250})))]
    pub args: Map<String, Value>,
    /// The tenant; default: the tenant of the rules, `default` for those of the platform.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// The role; default: `caller`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The name of the token; default: empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// The id or the e-mail address of the person; default: nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(example = "ann@example.com"))]
    pub person: Option<String>,
    /// The groups of the caller; default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// The agent; default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The surface; default: `rest`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surface: Option<String>,
    /// The tags of the tool; default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Whether the rule must match the call.
    pub expect: Expectation,
}

/// What an example expects of its rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Expectation {
    /// The rule matches.
    Match,
    /// The rule does not match.
    NoMatch,
}

impl Expectation {
    /// Returns the name used in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Match => "match",
            Self::NoMatch => "no_match",
        }
    }
}

/// What happens to a call, from the weakest to the strongest: of several rules that match, the strongest effect wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = PolicyEffect))]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// It runs.
    Allow,
    /// It waits for approval.
    Approve,
    /// It is rejected.
    Deny,
}

impl Effect {
    /// Returns the name used in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Approve => "approve",
            Self::Deny => "deny",
        }
    }
}

/// What the rules say about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// What happens to the call.
    pub effect: Effect,
    /// The rule that decided; `None` if no rule matches, in which case the tool's own settings apply. A rule of the
    /// platform has the prefix `platform:`.
    pub rule: Option<Arc<str>>,
    /// The reason of that rule, for the caller.
    pub reason: Option<Arc<str>>,
}

impl Decision {
    /// Returns the decision if no rule matches: allowed, without a rule.
    pub const fn no_match() -> Self {
        Self { effect: Effect::Allow, rule: None, reason: None }
    }

    /// Returns what happens to a call once the tool's own setting is added: `needs_approval` is whether the tool requires
    /// approval (`policy: elevated` or `requires_confirmation`), `elevated` whether the caller runs such tools without
    /// it.
    ///
    /// A rule is stronger than the tool's setting: an allow rule replaces the approval, and an approve rule holds for
    /// elevated callers too.
    pub fn with_tool(&self, needs_approval: bool, elevated: bool) -> Effect {
        match self.effect {
            Effect::Allow if needs_approval && !elevated && !self.is_explicit_allow() => Effect::Approve,
            effect => effect,
        }
    }

    /// Returns whether a rule explicitly allows the call, which replaces the approval that the tool itself requires.
    pub fn is_explicit_allow(&self) -> bool {
        self.effect == Effect::Allow && self.rule.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_stronger_than_the_setting_of_the_tool() {
        let by_rule = |effect| Decision { effect, rule: Some("r".into()), reason: None };
        for (decision, needs_approval, elevated, expected) in [
            (Decision::no_match(), false, false, Effect::Allow),
            (Decision::no_match(), true, false, Effect::Approve),
            (Decision::no_match(), true, true, Effect::Allow),
            (by_rule(Effect::Allow), true, false, Effect::Allow),
            (by_rule(Effect::Approve), false, true, Effect::Approve),
            (by_rule(Effect::Deny), true, true, Effect::Deny),
        ] {
            assert_eq!(decision.with_tool(needs_approval, elevated), expected, "{decision:?}");
        }
    }
}
