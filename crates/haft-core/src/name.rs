//! Names, versions and tenants: validated once at the edge.

use std::borrow::Borrow;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::problem::excerpt;

/// The maximum length of a name or version, in characters.
pub const MAX_LENGTH: usize = 64;

/// The tenant that always exists.
const DEFAULT_TENANT: &str = "default";

/// The error of parsing a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The name is empty.
    #[error("{what} is empty; use 1 to 64 letters, digits or `-`")]
    Empty {
        /// The kind of name.
        what: &'static str,
    },
    /// The name is too long.
    #[error("{what} has {length} characters; the maximum is 64")]
    TooLong {
        /// The kind of name.
        what: &'static str,
        /// The length in characters.
        length: usize,
    },
    /// The name contains an invalid character.
    #[error("{what} `{text}` contains {character:?}; allowed: {allowed}")]
    Character {
        /// The kind of name.
        what: &'static str,
        /// The name, truncated.
        text: String,
        /// The first invalid character.
        character: char,
        /// The allowed characters.
        allowed: &'static str,
    },
}

struct Rule {
    what: &'static str,
    extra: &'static [char],
    allowed: &'static str,
}

const NAME: Rule = Rule { what: "tool name", extra: &['-', '_'], allowed: "letters, digits, `-` and `_`" };
const BUNDLE: Rule =
    Rule { what: "bundle name", extra: &['-', '_'], allowed: "letters, digits, `-` and `_`" };
const VERSION: Rule =
    Rule { what: "version", extra: &['-', '_', '.'], allowed: "letters, digits, `-`, `_` and `.`" };
const WORKSPACE: Rule =
    Rule { what: "workspace", extra: &['-', '_'], allowed: "letters, digits, `-` and `_`" };
const AGENT: Rule = Rule { what: "agent slug", extra: &['-', '_'], allowed: "letters, digits, `-` and `_`" };
const PIPELINE: Rule =
    Rule { what: "pipeline slug", extra: &['-', '_'], allowed: "letters, digits, `-` and `_`" };
const ARTIFACT: Rule =
    Rule { what: "artifact slug", extra: &['-', '_'], allowed: "letters, digits, `-` and `_`" };
const TENANT: Rule = Rule { what: "tenant", extra: &['-', '_'], allowed: "letters, digits, `-` and `_`" };

fn check(text: &str, rule: &Rule) -> Result<(), NameError> {
    let length = text.chars().count();
    if length == 0 {
        return Err(NameError::Empty { what: rule.what });
    }
    if length > MAX_LENGTH {
        return Err(NameError::TooLong { what: rule.what, length });
    }
    if let Some(character) = text.chars().find(|c| !c.is_alphanumeric() && !rule.extra.contains(c)) {
        return Err(NameError::Character {
            what: rule.what,
            text: excerpt(text, MAX_LENGTH),
            character,
            allowed: rule.allowed,
        });
    }
    // Files are named after it, so "." and ".." must be rejected.
    if text.chars().all(|c| c == '.') {
        return Err(NameError::Character {
            what: rule.what,
            text: text.to_owned(),
            character: '.',
            allowed: "dots together with a letter or digit",
        });
    }
    Ok(())
}

/// Reads a name. The check is part of reading the text, so that errors of request bodies name the field.
struct NameVisitor<T>(fn(&str) -> Result<T, NameError>);

impl<T> Visitor<'_> for NameVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        (self.0)(text).map_err(E::custom)
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $rule:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
/// Validates a name.
            pub fn new(text: &str) -> Result<Self, NameError> {
                check(text, &$rule)?;
                Ok(Self(text.into()))
            }

            /// Returns the text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = NameError;

            fn from_str(text: &str) -> Result<Self, NameError> {
                Self::new(text)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str(NameVisitor(Self::new))
            }
        }
    };
}

name!(
    /// The name of a tool: Unicode letters, digits, `-`, `_`; 1 to 64 characters; case-sensitive.
    ToolName,
    NAME
);
name!(
    /// The slug of a bundle; also the name of its folder.
    BundleSlug,
    BUNDLE
);
name!(
/// A version label: opaque and without an order.
    Version,
    VERSION
);
name!(
    /// The name of a workspace that does not belong to a chat.
    WorkspaceSlug,
    WORKSPACE
);
name!(
    /// The slug of an agent; also the name of its file.
    AgentSlug,
    AGENT
);
name!(
    /// The slug of a retrieval pipeline.
    PipelineSlug,
    PIPELINE
);
name!(
    /// The slug of a code artifact.
    ArtifactSlug,
    ARTIFACT
);
name!(
/// The id of a tenant.
    TenantId,
    TENANT
);

impl Version {
    /// Returns the default version.
    pub fn initial() -> Self {
        Self("1.0.0".into())
    }

    /// Returns whether the label has the form `X.Y.Z` with plain numbers, as `POST …/version` requires.
    pub fn is_three_numbers(&self) -> bool {
        let mut parts = 0;
        for part in self.0.split('.') {
            let plain = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
            if !plain || (part.len() > 1 && part.starts_with('0')) {
                return false;
            }
            parts += 1;
        }
        parts == 3
    }
}

/// The owner of what belongs to no tenant; not a valid id, so no input can name it.
const GLOBAL: &str = "*";

impl TenantId {
    /// Returns the default tenant.
    pub fn default_tenant() -> Self {
        Self(DEFAULT_TENANT.into())
    }

    /// Returns whether it is the default tenant.
    pub fn is_default(&self) -> bool {
        self.as_str() == DEFAULT_TENANT
    }

    /// Returns the owner of global definitions, which every tenant sees and none can change.
    pub fn global() -> Self {
        Self(GLOBAL.into())
    }

    /// Returns whether this is the owner of global definitions.
    pub fn is_global(&self) -> bool {
        &*self.0 == GLOBAL
    }

    /// Parses the stored owner of a definition: a tenant, or the global scope.
    pub fn parse_owner(text: &str) -> Result<Self, NameError> {
        if text == GLOBAL { Ok(Self::global()) } else { Self::new(text) }
    }

    /// Returns the folder that this tenant uses in place of a configured one. That of another tenant than the default one
    /// is a sibling with the tenant in its name, so that no path leads from one to the other.
    pub fn own_folder(&self, configured: &Path) -> PathBuf {
        let mut folder = configured.as_os_str().to_owned();
        if *self != Self::default_tenant() {
            folder.push(format!("@{self}"));
        }
        folder.into()
    }

    /// Returns whether this tenant sees the definitions of an owner: its own and the global ones.
    pub fn sees(&self, owner: &TenantId) -> bool {
        self == owner || owner.is_global()
    }
}

impl BundleSlug {
    /// Returns the default bundle of user-created tools.
    pub fn user_created() -> Self {
        Self("user-created".into())
    }

    /// Returns the bundle of built-in tools.
    pub fn built_in() -> Self {
        Self("builtin".into())
    }
}

/// Checks the stricter rule of the bundle routes, which reject `_`.
pub fn check_without_underscore(text: &str) -> Result<(), NameError> {
    if text.contains('_') {
        return Err(NameError::Character {
            what: "name on this route",
            text: excerpt(text, MAX_LENGTH),
            character: '_',
            allowed: "letters, digits, `-` (and `.` in a version)",
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_input_names_the_global_scope() {
        assert!(TenantId::new("*").is_err());
        assert!(serde_json::from_str::<TenantId>("\"*\"").is_err());
        assert_eq!(TenantId::parse_owner("*"), Ok(TenantId::global()));
        let [one, two] = ["one", "two"].map(|name| TenantId::new(name).unwrap());
        assert!(one.sees(&one) && one.sees(&TenantId::global()) && !one.sees(&two));
        assert!(!TenantId::global().sees(&one));
    }

    #[test]
    fn every_tenant_has_folders_of_its_own() {
        let of = |tenant: &str| TenantId::new(tenant).unwrap().own_folder(Path::new("/srv/work"));
        assert_eq!(of("default"), Path::new("/srv/work"));
        assert_eq!(of("acme"), Path::new("/srv/work@acme"));
    }

    #[test]
    fn names_follow_the_rule() {
        for good in [
            "weather",
            "weather-check",
            "send_slack",
            "Wetter",
            "天気",
            "a",
            "7zip",
            "search",
            "bundles",
            &"é".repeat(64),
        ] {
            assert!(ToolName::new(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            " ",
            "a b",
            "a/b",
            "../x",
            "..",
            ".",
            "a\0b",
            "a\nb",
            "a.b",
            "wet\u{200d}ter",
            "🌧",
            "a:b",
            "a@1",
            &"x".repeat(65),
        ] {
            assert!(ToolName::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn versions_are_opaque_labels() {
        for good in ["v2", "1.0.0", "2024-05-14", "beta", "1.0.0-rc.1", "1_0"] {
            assert!(Version::new(good).is_ok(), "{good}");
        }
        for bad in ["", ".", "..", "1/2", "1 0", "v1+build"] {
            assert!(Version::new(bad).is_err(), "{bad:?}");
        }
        for (text, expected) in [
            ("1.2.3", true),
            ("0.0.1", true),
            ("1.2", false),
            ("01.2.3", false),
            ("v1.2.3", false),
            ("1.2.3.4", false),
        ] {
            assert_eq!(Version::new(text).unwrap().is_three_numbers(), expected, "{text}");
        }
    }

    #[test]
    fn an_error_names_the_character_and_the_remedy() {
        insta::assert_snapshot!(ToolName::new("a/b").unwrap_err(),
            @"tool name `a/b` contains '/'; allowed: letters, digits, `-` and `_`");
    }
}
