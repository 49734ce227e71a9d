//! Patterns of tools, with one meaning wherever they are written: allow-lists of tokens and agents, policy rules,
//! webhooks.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::principal::matches_pattern;
use crate::problem::excerpt;
use crate::resource::ResourceKind;
use crate::tool::Tool;

/// The maximum length of a pattern, in bytes.
const MAX_BYTES: usize = 256;

/// A pattern of tools: `name`, `bundle:name` or `tag:name`. A `*` in any part matches any text.
///
/// A pattern without a bundle matches in every bundle. `tag:` always means a tag: a bundle of the name `tag` cannot be
/// named in a pattern.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum ToolPattern {
    /// By name, in one bundle or in every one.
    Name {
        /// The bundle; `None`: every bundle.
        bundle: Option<String>,
        /// The name of the tool.
        name: String,
    },
    /// By one of its tags.
    Tag(String),
}

/// A text that is not a pattern of tools: it is empty, too long, or contains other characters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid pattern `{0}`: expected a tool name, `bundle:name`, `bundle:*` or `tag:name`, where `*` stands for any text"
)]
pub struct InvalidToolPattern(
    /// The beginning of the text.
    pub String,
);

impl ToolPattern {
    /// Returns a pattern that matches tools of this name, in every bundle.
    pub fn of_name(name: impl Into<String>) -> Self {
        Self::Name { bundle: None, name: name.into() }
    }

    /// Returns whether it matches a tool.
    pub fn matches(&self, tool: &Tool) -> bool {
        self.matches_parts(tool.bundle.as_str(), tool.spec.name.as_str(), &tool.spec.tags)
    }

    /// Returns whether it matches an agent or a retrieval pipeline, as if it were a tool of the bundle `agents` or
    /// `pipelines`. A bare name does not: whoever allows a tool does not mean the agent of the same name.
    pub fn matches_resource(&self, bundle: &str, slug: &str) -> bool {
        self.slug_pattern(bundle).is_some_and(|pattern| matches_pattern(pattern, slug))
    }

    /// Returns the pattern of the slugs that it matches in a bundle such as `agents`; `None` if it matches none there.
    pub(crate) fn slug_pattern(&self, bundle: &str) -> Option<&str> {
        match self {
            Self::Name { bundle: Some(own), name } => matches_pattern(own, bundle).then_some(name),
            Self::Name { bundle: None, name } => (name == "*").then_some(name),
            Self::Tag(_) => None,
        }
    }

    /// Returns whether it matches a tool by its bundle, name and tags.
    pub fn matches_parts(&self, bundle: &str, name: &str, tags: &[String]) -> bool {
        match self {
            Self::Name { bundle: own, name: pattern } => {
                matches_pattern(pattern, name) && own.as_ref().is_none_or(|own| matches_pattern(own, bundle))
            }
            Self::Tag(pattern) => tags.iter().any(|tag| matches_pattern(pattern, tag)),
        }
    }

    /// Returns whether it matches every tool that another pattern matches. A `*` in the other pattern is compared as a
    /// character, which only a `*` of this one matches.
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Name { bundle, name }, Self::Name { bundle: other_bundle, name: other_name }) => {
                let covers_bundle = match (bundle, other_bundle) {
                    (None, Some(other)) => name == "*" || !is_of_resources(other),
                    (None, None) => true,
                    (Some(bundle), None) => bundle == "*",
                    (Some(bundle), Some(other)) => matches_pattern(bundle, other),
                };
                covers_bundle && matches_pattern(name, other_name)
            }
            (Self::Name { bundle, name }, Self::Tag(_)) => {
                name == "*" && bundle.as_ref().is_none_or(|bundle| bundle == "*")
            }
            (Self::Tag(tag), Self::Tag(other)) => matches_pattern(tag, other),
            (Self::Tag(_), Self::Name { .. }) => false,
        }
    }

    /// Returns the only name that it can match, if there is one.
    pub fn exact_name(&self) -> Option<&str> {
        match self {
            Self::Name { name, .. } if !name.contains('*') => Some(name),
            _ => None,
        }
    }
}

/// Returns whether the pattern of a bundle can match agents, pipelines or artifacts, which no name without a bundle matches.
fn is_of_resources(bundle: &str) -> bool {
    ResourceKind::ALL.into_iter().any(|kind| matches_pattern(bundle, kind.plural()))
}

impl From<&str> for ToolPattern {
    /// Reads a pattern that was checked when it was written; never fails, so that what is stored stays readable.
    fn from(text: &str) -> Self {
        match text.split_once(':') {
            Some(("tag", tag)) => Self::Tag(tag.to_owned()),
            Some((bundle, name)) => Self::Name { bundle: Some(bundle.to_owned()), name: name.to_owned() },
            None => Self::of_name(text),
        }
    }
}

impl From<String> for ToolPattern {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<ToolPattern> for String {
    fn from(pattern: ToolPattern) -> Self {
        pattern.to_string()
    }
}

impl FromStr for ToolPattern {
    type Err = InvalidToolPattern;

    fn from_str(text: &str) -> Result<Self, InvalidToolPattern> {
        let is_part = |part: &str| {
            !part.is_empty()
                && part.chars().all(|c| c.is_alphanumeric() || matches!(c, '*' | '-' | '_' | '.' | '/' | '@'))
        };
        let pattern = Self::from(text);
        let is_valid = match &pattern {
            Self::Name { bundle, name } => is_part(name) && bundle.as_deref().is_none_or(is_part),
            // A tag may contain any character.
            Self::Tag(tag) => !tag.trim().is_empty(),
        };
        if is_valid && text.len() <= MAX_BYTES {
            return Ok(pattern);
        }
        Err(InvalidToolPattern(excerpt(text, 60)))
    }
}

impl fmt::Display for ToolPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name { bundle: Some(bundle), name } => write!(f, "{bundle}:{name}"),
            Self::Name { bundle: None, name } => f.write_str(name),
            Self::Tag(tag) => write!(f, "tag:{tag}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags() -> Vec<String> {
        vec!["read-only".to_owned(), "two words".to_owned()]
    }

    #[test]
    fn a_star_in_any_part_is_any_text() {
        for (pattern, expected) in [
            ("fetch", true),
            ("fetch_all", false),
            ("f*h", true),
            ("*", true),
            ("web:fetch", true),
            ("mail:fetch", false),
            ("web:*", true),
            ("w*:*tch", true),
            ("*:*", true),
            ("tag:read-only", true),
            ("tag:read", false),
            ("tag:read*", true),
            ("tag:*", true),
            ("tag:two words", true),
            // Never the bundle `tag`.
            ("tag:fetch", false),
        ] {
            let parsed: ToolPattern = pattern.parse().unwrap();
            assert_eq!(parsed.matches_parts("web", "fetch", &tags()), expected, "{pattern}");
            assert_eq!(parsed.to_string(), pattern);
        }
        let tag: ToolPattern = "tag:*".parse().unwrap();
        assert!(!tag.matches_parts("tag", "fetch", &[]), "a tool without tags in the bundle `tag`");
    }

    #[test]
    fn what_is_no_pattern_is_rejected_but_stored_text_stays_readable() {
        for text in ["", ":", "a:", ":b", "tag:", "tag: ", "a b", "a:b:c", &"x".repeat(300)] {
            assert_eq!(text.parse::<ToolPattern>(), Err(InvalidToolPattern(excerpt(text, 60))), "{text}");
            let json = serde_json::to_string(text).unwrap();
            let stored: ToolPattern = serde_json::from_str(&json).unwrap();
            assert_eq!(serde_json::to_string(&stored).unwrap(), json);
            assert!(!stored.matches_parts("web", "fetch", &tags()), "{text}");
        }
    }

    #[test]
    fn one_pattern_covers_another() {
        for (pattern, other, expected) in [
            ("tag:safe*", "tag:safest", true),
            ("tag:safe", "tag:safe*", false),
            ("tag:*", "tag:safe", true),
            ("tag:*", "fetch", false),
            ("*", "tag:safe", true),
            ("web:*", "tag:safe", false),
            ("web:*", "web:fetch", true),
            ("fetch", "web:fetch", true),
            ("web:fetch", "fetch", false),
            // A name without a bundle is that of a tool, never of an agent.
            ("helper*", "agents:helper", false),
            ("helper*", "*:helper", false),
            ("*", "agents:helper", true),
            ("*:helper*", "agents:helper", true),
            ("helper*", "helper", true),
        ] {
            let (pattern, other) = (ToolPattern::from(pattern), ToolPattern::from(other));
            assert_eq!(pattern.covers(&other), expected, "{pattern} {other}");
        }
    }
}
