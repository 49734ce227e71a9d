//! The `match` part of a rule.

use std::fmt;

use haft_core::callable::CallableKind;
use haft_core::name::AgentSlug;
use haft_core::policy::{Effect, RuleMatch};
use haft_core::principal::matches_pattern;
use haft_core::tool_pattern::ToolPattern;

use super::attributes::CallAttributes;

/// A compiled `match`.
pub(super) struct Matcher {
    tenants: Option<Vec<String>>,
    roles: Option<Vec<String>>,
    tokens: Option<Vec<String>>,
    people: Option<Vec<String>>,
    groups: Option<Vec<String>>,
    agents: Option<Vec<String>>,
    tools: Option<Vec<ToolPattern>>,
    tags: Option<Vec<String>>,
    surfaces: Option<Vec<String>>,
    effect: Effect,
}

/// The field of `match` that a call does not match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mismatch {
    field: &'static str,
    value: String,
}

impl fmt::Display for Mismatch {
    /// The patterns are not shown: a rule of the platform may name other tenants.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`match.{}` does not match {}", self.field, self.value)
    }
}

impl Matcher {
    /// Compiles a `match` whose patterns are valid.
    pub(super) fn new(matching: &RuleMatch, effect: Effect) -> Self {
        Self {
            tenants: matching.tenants.clone(),
            roles: matching.roles.clone(),
            tokens: matching.tokens.clone(),
            people: matching.people.clone(),
            groups: matching.groups.clone(),
            agents: matching.agents.clone(),
            tools: matching
                .tools
                .as_ref()
                .map(|tools| tools.iter().map(|text| ToolPattern::from(text.as_str())).collect()),
            tags: matching.tags.clone(),
            surfaces: matching.surfaces.clone(),
            effect,
        }
    }

    /// Returns the names of the only tools that it can match, or `None` if it can match others.
    pub(super) fn tool_names(&self) -> Option<Vec<&str>> {
        self.tools.as_ref()?.iter().map(ToolPattern::exact_name).collect()
    }

    /// Returns whether it matches. Tools come first: most rules are about other tools.
    pub(super) fn matches(&self, attributes: &CallAttributes<'_>) -> bool {
        self.matches_tool(attributes)
            && self.matches_tags(attributes)
            && any(self.roles.as_ref(), attributes.role)
            && any(self.surfaces.as_ref(), attributes.surface)
            && any(self.tenants.as_ref(), attributes.tenant)
            && self.matches_agent(attributes)
            && self.matches_token(attributes)
            && self.matches_person(attributes)
            && self.matches_group(attributes)
    }

    /// Returns the first field that does not match, for explanations.
    pub(super) fn mismatch(&self, attributes: &CallAttributes<'_>) -> Option<Mismatch> {
        let checks: [(&'static str, bool, &dyn Fn() -> String); 9] = [
            ("tenants", any(self.tenants.as_ref(), attributes.tenant), &|| {
                format!("the tenant `{}`", attributes.tenant)
            }),
            ("roles", any(self.roles.as_ref(), attributes.role), &|| {
                format!("the role `{}`", attributes.role)
            }),
            ("tokens", self.matches_token(attributes), &|| format!("the token `{}`", attributes.token)),
            ("people", self.matches_person(attributes), &|| match attributes.actor.person() {
                person if person.is_empty() => "a caller that is no person".to_owned(),
                person => format!("`{person}`"),
            }),
            ("groups", self.matches_group(attributes), &|| match &*attributes.actor.groups() {
                [] => "a caller without groups".to_owned(),
                groups => format!("the groups `{}`", groups.join("`, `")),
            }),
            ("agents", self.matches_agent(attributes), &|| {
                let path: Vec<&str> = self.agents_of(attributes).collect();
                match &*path {
                    [] => "a call outside of an agent".to_owned(),
                    [agent] => format!("the agent `{agent}`"),
                    path => format!("the agents `{}`", path.join("` → `")),
                }
            }),
            ("tools", self.matches_tool(attributes), &|| {
                let kind = attributes.resource.map_or("tool", CallableKind::as_str);
                format!("the {kind} `{}:{}`", attributes.bundle, attributes.tool)
            }),
            ("tags", self.matches_tags(attributes), &|| match attributes.tags {
                [] => "a tool without tags".to_owned(),
                tags => format!("the tags `{}`", tags.join("`, `")),
            }),
            ("surfaces", any(self.surfaces.as_ref(), attributes.surface), &|| {
                format!("the surface `{}`", attributes.surface)
            }),
        ];
        let (field, _, value) = checks.into_iter().find(|(_, matches, _)| !matches)?;
        Some(Mismatch { field, value: value() })
    }

    fn matches_tool(&self, attributes: &CallAttributes<'_>) -> bool {
        self.tools.as_ref().is_none_or(|tools| {
            tools.iter().any(|pattern| match attributes.resource {
                Some(_) => pattern.matches_resource(attributes.bundle, attributes.tool),
                None => pattern.matches_parts(attributes.bundle, attributes.tool, attributes.tags),
            })
        })
    }

    fn matches_tags(&self, attributes: &CallAttributes<'_>) -> bool {
        self.tags.is_none() || attributes.tags.iter().any(|tag| any(self.tags.as_ref(), tag))
    }

    fn matches_agent(&self, attributes: &CallAttributes<'_>) -> bool {
        self.agents.is_none() || self.agents_of(attributes).any(|agent| any(self.agents.as_ref(), agent))
    }

    /// Returns the agents of a call that the rule is about, outermost first.
    ///
    /// A rule that allows is about the agent that makes the call, which must not lend what only it is allowed. Others are
    /// also about the agents above, which must not get around a rule by calling another agent. An agent that may do
    /// nothing is not started either; one whose calls need approval is.
    fn agents_of<'a>(&self, attributes: &CallAttributes<'a>) -> impl Iterator<Item = &'a str> + use<'a> {
        let above = if self.effect == Effect::Allow { &[] } else { attributes.agents_above };
        let is_started = attributes.resource == Some(CallableKind::Agent) && self.effect == Effect::Deny;
        let started = is_started.then_some(attributes.tool);
        above.iter().map(AgentSlug::as_str).chain(attributes.agent).chain(started)
    }

    fn matches_person(&self, attributes: &CallAttributes<'_>) -> bool {
        let is_person = |pattern: &String| attributes.actor.is_identified_by(pattern);
        self.people.as_ref().is_none_or(|people| people.iter().any(is_person))
    }

    fn matches_group(&self, attributes: &CallAttributes<'_>) -> bool {
        let is_member = |group: &&str| any(self.groups.as_ref(), group);
        self.groups.is_none() || attributes.actor.groups().iter().any(is_member)
    }

    fn matches_token(&self, attributes: &CallAttributes<'_>) -> bool {
        any(self.tokens.as_ref(), attributes.token)
            || attributes.token_id.is_some_and(|id| any(self.tokens.as_ref(), &id.to_string()))
    }
}

fn any(patterns: Option<&Vec<String>>, text: &str) -> bool {
    patterns.is_none_or(|patterns| patterns.iter().any(|pattern| matches_pattern(pattern, text)))
}
