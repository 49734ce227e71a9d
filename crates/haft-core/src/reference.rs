//! References to tools: by id, by name or by `bundle:name`, optionally with `@version`.
//!
//! `:name` is the bare name. URLs use it for names that are also routes, such as `/tools/search`.

use std::fmt;
use std::str::FromStr;

use crate::id::ToolId;
use crate::name::{BundleSlug, NameError, ToolName, Version};

/// A reference to a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolRef {
    /// The id, with or without the prefix `tool-`; `tool-builtin-NAME` is the built-in tool of that name.
    Id(ToolId),
    /// A name with an optional bundle and version.
    Name {
        /// The bundle, if given.
        bundle: Option<BundleSlug>,
        /// The name.
        name: ToolName,
        /// The version, if given.
        version: Option<Version>,
    },
}

impl FromStr for ToolRef {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let id = text.strip_prefix("tool-").unwrap_or(text);
        // Skips creating an error that would be discarded.
        if id.len() == ToolId::LENGTH
            && let Ok(id) = id.parse()
        {
            return Ok(ToolRef::Id(id));
        }
        let (bundle, rest) = match (text.strip_prefix("tool-builtin-"), text.split_once(':')) {
            (Some(rest), None) => (Some(BundleSlug::built_in()), rest),
            (_, Some(("", rest))) => (None, rest),
            (_, Some((bundle, rest))) => (Some(BundleSlug::new(bundle)?), rest),
            (None, None) => (None, text),
        };
        let (name, version) = match rest.split_once('@') {
            Some((name, version)) => (name, Some(Version::new(version)?)),
            None => (rest, None),
        };
        Ok(ToolRef::Name { bundle, name: ToolName::new(name)?, version })
    }
}

impl fmt::Display for ToolRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ToolRef::Id(id) => id.fmt(f),
            ToolRef::Name { bundle, name, version } => {
                if let Some(bundle) = bundle {
                    write!(f, "{bundle}:")?;
                }
                name.fmt(f)?;
                if let Some(version) = version {
                    write!(f, "@{version}")?;
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_round_trip() {
        for text in [
            "weather",
            "web:weather",
            "weather@v2",
            "web:weather@1.0.0",
            "018faf50-b7b6-7a01-9a05-a22a6e0af101",
        ] {
            assert_eq!(text.parse::<ToolRef>().unwrap().to_string(), text);
        }
        assert!(matches!("tool-018faf50-b7b6-7a01-9a05-a22a6e0af101".parse(), Ok(ToolRef::Id(_))));
        for (id, reference) in [
            ("tool-builtin-exec", "builtin:exec"),
            ("tool-builtin-exec@1.0.0", "builtin:exec@1.0.0"),
            ("web:tool-builtin-exec", "web:tool-builtin-exec"),
        ] {
            assert_eq!(id.parse::<ToolRef>().unwrap().to_string(), reference);
        }
        assert_eq!(":search@2".parse::<ToolRef>(), "search@2".parse());
        for bad in ["", ":", "::a", "tool-builtin-", "a:", "a@", "a:b:c", "a/b", "../../etc/passwd", "a@b@c"]
        {
            assert!(bad.parse::<ToolRef>().is_err(), "{bad}");
        }
    }
}
