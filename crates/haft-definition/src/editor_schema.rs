//! JSON Schemas of the definitions. Editors use them to complete and explain keys and to mark mistakes.
//!
//! The schemas accept every spelling that the readers accept. They are stricter in one point: an unknown key is an error,
//! where a reader may only warn. They check the types of values; all other checks are left to the readers.

mod agent;
mod documents;
mod implementation;
mod object;
mod tool;
mod toolset;

use serde_json::{Value, json};

/// A kind of definition that has a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaKind {
    /// A tool.
    Tool,
    /// An agent, or several.
    Agent,
    /// A retrieval pipeline.
    Pipeline,
    /// A code artifact.
    Artifact,
    /// The manifest of a toolset.
    Toolset,
    /// The description of a bundle.
    Bundle,
    /// Policy rules.
    Policy,
    /// The configuration of the server.
    Config,
}

impl SchemaKind {
    /// All kinds.
    pub const ALL: [Self; 8] = [
        Self::Tool,
        Self::Agent,
        Self::Pipeline,
        Self::Artifact,
        Self::Toolset,
        Self::Bundle,
        Self::Policy,
        Self::Config,
    ];

    /// Returns the name, as in `/schemas/tool.json`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Agent => "agent",
            Self::Pipeline => "pipeline",
            Self::Artifact => "artifact",
            Self::Toolset => "toolset",
            Self::Bundle => "bundle",
            Self::Policy => "policy",
            Self::Config => "config",
        }
    }

    /// Parses the name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// Returns which files it describes.
    pub const fn files(self) -> &'static str {
        match self {
            Self::Tool => "tools: skills/BUNDLE/NAME.yaml or .json, and the head of a .skill file",
            Self::Agent => "agents and teams: agents/NAME.yaml",
            Self::Pipeline => "retrieval pipelines: pipelines/NAME.yaml",
            Self::Artifact => "code artifacts: artifacts/NAME.yaml",
            Self::Toolset => "manifests of toolsets: toolset.yaml",
            Self::Bundle => "descriptions of bundles: skills/BUNDLE/bundle.yaml",
            Self::Policy => "policy rules: policy.yaml",
            Self::Config => "the configuration of the server: haft.toml",
        }
    }

    /// Returns the schema.
    pub fn schema(self) -> Value {
        let mut schema = match self {
            Self::Tool => tool::schema(),
            Self::Agent => agent::schema(),
            Self::Pipeline => documents::pipeline(),
            Self::Artifact => documents::artifact(),
            Self::Toolset => toolset::schema(),
            Self::Bundle => documents::bundle(),
            Self::Policy => documents::policy(),
            Self::Config => config(),
        };
        if let Value::Object(map) = &mut schema {
            // Draft 7 is the newest draft that language servers implement completely.
            map.shift_insert(0, "$schema".to_owned(), json!("http://json-schema.org/draft-07/schema#"));
            map.shift_insert(1, "title".to_owned(), json!(format!("haft: {}", self.files())));
        }
        schema
    }
}

/// Generated from the table of the keys of `haft.toml`, which is in haft-cli.
fn config() -> Value {
    serde_json::from_str(include_str!("editor_schema/config.json")).unwrap_or_default()
}

/// The names of the implementation types, with their aliases.
fn kind_words() -> Vec<&'static str> {
    let mut words =
        haft_core::implementation::Kind::ALL.map(haft_core::implementation::Kind::as_str).to_vec();
    words.extend(["builtin", "go", "internal", "native"]);
    words
}

#[cfg(test)]
#[path = "editor_schema_tests.rs"]
pub(crate) mod tests;
