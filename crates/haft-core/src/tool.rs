//! A stored tool: its definition and everything a definition cannot carry.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::id::{BundleId, ToolId};
use crate::implementation::{Implementation, Kind};
use crate::name::{BundleSlug, TenantId};
use crate::spec::ToolSpec;

/// Where in its life a tool is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Being made; runs in debug mode only.
    Draft,
    /// Has a revision that production runs.
    Published,
    /// Still runs, with a warning.
    Deprecated,
    /// Does not run.
    Disabled,
}

impl Status {
    /// Every status.
    pub const ALL: [Status; 4] = [Status::Draft, Status::Published, Status::Deprecated, Status::Disabled];

    /// Returns the spelling on the wire and in the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Status::Draft => "draft",
            Status::Published => "published",
            Status::Deprecated => "deprecated",
            Status::Disabled => "disabled",
        }
    }

    /// Reads [`Status::as_str`].
    pub fn parse(text: &str) -> Option<Status> {
        Status::ALL.into_iter().find(|status| status.as_str() == text)
    }
}

/// Where a tool came from, in the order in which a bare name is looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Source {
    /// Compiled in.
    #[serde(rename = "built-in")]
    BuiltIn,
    /// Made by a user, through a file or the API.
    #[serde(rename = "user")]
    User,
    /// Installed with a toolset.
    #[serde(rename = "toolset")]
    Toolset,
    /// Listed by an MCP server.
    #[serde(rename = "mcp")]
    Mcp,
}

impl Source {
    /// Every source, in the order of the look-up.
    pub const ALL: [Source; 4] = [Source::BuiltIn, Source::User, Source::Toolset, Source::Mcp];

    /// Returns the spelling on the wire and in the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Source::BuiltIn => "built-in",
            Source::User => "user",
            Source::Toolset => "toolset",
            Source::Mcp => "mcp",
        }
    }

    /// Reads [`Source::as_str`].
    pub fn parse(text: &str) -> Option<Source> {
        Source::ALL.into_iter().find(|source| source.as_str() == text)
    }
}

/// The bucket in which people look for a tool: derived, never stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolType {
    /// Compiled in.
    BuiltIn,
    /// Served by an MCP server.
    Mcp,
    /// Backed by a code artifact.
    Artifact,
    /// Everything else.
    Custom,
}

impl ToolType {
    /// Returns the spelling on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            ToolType::BuiltIn => "built_in",
            ToolType::Mcp => "mcp",
            ToolType::Artifact => "artifact",
            ToolType::Custom => "custom",
        }
    }

    /// Reads [`ToolType::as_str`].
    pub fn parse(text: &str) -> Option<ToolType> {
        [ToolType::BuiltIn, ToolType::Mcp, ToolType::Artifact, ToolType::Custom]
            .into_iter()
            .find(|kind| kind.as_str() == text)
    }
}

/// How often and when a tool was called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// How many calls.
    pub call_count: u64,
    /// When the last one was.
    pub last_called_at: Option<Timestamp>,
}

/// A stored tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// Its identity.
    pub id: ToolId,
    /// Who owns it.
    pub tenant: TenantId,
    /// Which bundle holds it.
    pub bundle_id: BundleId,
    /// The slug of that bundle.
    pub bundle: BundleSlug,
    /// The newest definition.
    pub spec: Arc<ToolSpec>,
    /// The number of the newest revision, counted from 1.
    pub revision: u32,
    /// The definition that production runs, with its revision number.
    pub published: Option<(u32, Arc<ToolSpec>)>,
    /// Where in its life it is.
    pub status: Status,
    /// Its own switch.
    pub enabled: bool,
    /// Whether it is compiled in: then only `enabled` changes.
    pub built_in: bool,
    /// Why it cannot run, where its file does not parse any more.
    pub fault: Option<String>,
    /// Where it came from.
    pub source: Source,
    /// Its file, relative to the home folder.
    pub path: Option<String>,
    /// Its use at the time of reading.
    pub usage: Usage,
    /// When it was first stored.
    pub created_at: Timestamp,
    /// When its definition last changed; switching does not move it.
    pub modified_at: Timestamp,
    /// When it was first published.
    pub published_at: Option<Timestamp>,
}

impl Tool {
    /// Returns the bucket in which people look for it.
    pub fn tool_type(&self) -> ToolType {
        match self.spec.implementation {
            _ if self.built_in => ToolType::BuiltIn,
            Implementation::Mcp(_) => ToolType::Mcp,
            Implementation::Artifact(_) => ToolType::Artifact,
            _ => ToolType::Custom,
        }
    }

    /// Returns which executor runs it.
    pub fn kind(&self) -> Kind {
        self.spec.implementation.kind()
    }

    /// Returns the folder of its file, which is its bundle's, relative to the home folder.
    pub fn folder(&self) -> Option<&str> {
        self.path.as_deref()?.rsplit_once('/').map(|(folder, _)| folder)
    }

    /// Returns `bundle:name@version`.
    pub fn qualified(&self) -> String {
        format!("{}:{}@{}", self.bundle, self.spec.name, self.spec.version)
    }
}

/// One immutable state of a definition.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Revision {
    /// Its number, counted from 1.
    pub number: u32,
    /// The hash of its content.
    pub hash: String,
    /// Its content.
    pub spec: Arc<ToolSpec>,
    /// When it was stored.
    pub created_at: Timestamp,
}
