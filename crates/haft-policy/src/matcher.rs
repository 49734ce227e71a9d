//! The `match` part of a rule.

use std::fmt;

use haft_core::policy::RuleMatch;
use haft_core::principal::matches_pattern;

use super::facts::Facts;

/// A compiled `match`.
pub(super) struct Matcher {
    tenants: Option<Vec<String>>,
    roles: Option<Vec<String>>,
    tokens: Option<Vec<String>>,
    agents: Option<Vec<String>>,
    tools: Option<Vec<ToolPattern>>,
    tags: Option<Vec<String>>,
    surfaces: Option<Vec<String>>,
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
    pub(super) fn new(matching: &RuleMatch) -> Self {
        Self {
            tenants: matching.tenants.clone(),
            roles: matching.roles.clone(),
            tokens: matching.tokens.clone(),
            agents: matching.agents.clone(),
            tools: matching
                .tools
                .as_ref()
                .map(|tools| tools.iter().map(|text| ToolPattern::new(text)).collect()),
            tags: matching.tags.clone(),
            surfaces: matching.surfaces.clone(),
        }
    }

    /// Returns the names of the only tools that it can match, or `None` if it can match others.
    pub(super) fn tool_names(&self) -> Option<Vec<&str>> {
        self.tools.as_ref()?.iter().map(ToolPattern::exact_name).collect()
    }

    /// The command line is a client of the REST API, which cannot tell it from others: rules about `rest` hold for both.
    fn matches_surface(&self, facts: &Facts<'_>) -> bool {
        let surfaces = self.surfaces.as_ref();
        any(surfaces, facts.surface) || (facts.surface == "cli" && any(surfaces, "rest"))
    }

    /// Returns whether it matches. Tools come first: most rules are about other tools.
    pub(super) fn matches(&self, facts: &Facts<'_>) -> bool {
        self.matches_tool(facts)
            && self.matches_tags(facts)
            && any(self.roles.as_ref(), facts.role)
            && self.matches_surface(facts)
            && any(self.tenants.as_ref(), facts.tenant)
            && self.matches_agent(facts)
            && self.matches_token(facts)
    }

    /// Returns the first field that does not match, for explanations.
    pub(super) fn mismatch(&self, facts: &Facts<'_>) -> Option<Mismatch> {
        let checks: [(&'static str, bool, &dyn Fn() -> String); 7] = [
            ("tenants", any(self.tenants.as_ref(), facts.tenant), &|| {
                format!("the tenant `{}`", facts.tenant)
            }),
            ("roles", any(self.roles.as_ref(), facts.role), &|| format!("the role `{}`", facts.role)),
            ("tokens", self.matches_token(facts), &|| format!("the token `{}`", facts.token)),
            ("agents", self.matches_agent(facts), &|| match facts.agent {
                Some(agent) => format!("the agent `{agent}`"),
                None => "a call outside of an agent".to_owned(),
            }),
            ("tools", self.matches_tool(facts), &|| format!("the tool `{}:{}`", facts.bundle, facts.tool)),
            ("tags", self.matches_tags(facts), &|| match facts.tags {
                [] => "a tool without tags".to_owned(),
                tags => format!("the tags `{}`", tags.join("`, `")),
            }),
            ("surfaces", self.matches_surface(facts), &|| format!("the surface `{}`", facts.surface)),
        ];
        let (field, _, value) = checks.into_iter().find(|(_, matches, _)| !matches)?;
        Some(Mismatch { field, value: value() })
    }

    fn matches_tool(&self, facts: &Facts<'_>) -> bool {
        self.tools.as_ref().is_none_or(|tools| tools.iter().any(|pattern| pattern.matches(facts)))
    }

    fn matches_tags(&self, facts: &Facts<'_>) -> bool {
        self.tags.is_none() || facts.tags.iter().any(|tag| any(self.tags.as_ref(), tag))
    }

    fn matches_agent(&self, facts: &Facts<'_>) -> bool {
        self.agents.is_none() || facts.agent.is_some_and(|agent| any(self.agents.as_ref(), agent))
    }

    fn matches_token(&self, facts: &Facts<'_>) -> bool {
        any(self.tokens.as_ref(), facts.token)
            || facts.token_id.is_some_and(|id| any(self.tokens.as_ref(), &id.to_string()))
    }
}

fn any(patterns: Option<&Vec<String>>, text: &str) -> bool {
    patterns.is_none_or(|patterns| patterns.iter().any(|pattern| matches_pattern(pattern, text)))
}

/// A pattern of tools, as in an allow-list.
enum ToolPattern {
    Name { bundle: Option<String>, name: String },
    Tag(String),
}

impl ToolPattern {
    fn new(text: &str) -> Self {
        match text.split_once(':') {
            Some(("tag", tag)) => Self::Tag(tag.to_owned()),
            Some((bundle, name)) => Self::Name { bundle: Some(bundle.to_owned()), name: name.to_owned() },
            None => Self::Name { bundle: None, name: text.to_owned() },
        }
    }

    fn matches(&self, facts: &Facts<'_>) -> bool {
        match self {
            Self::Name { bundle, name } => {
                matches_pattern(name, facts.tool)
                    && bundle.as_ref().is_none_or(|bundle| matches_pattern(bundle, facts.bundle))
            }
            Self::Tag(tag) => facts.tags.iter().any(|own| matches_pattern(tag, own)),
        }
    }

    /// Returns the only name that it can match, if there is one.
    fn exact_name(&self) -> Option<&str> {
        match self {
            Self::Name { name, .. } if !name.contains('*') => Some(name),
            _ => None,
        }
    }
}
