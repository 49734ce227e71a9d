//! Stored tools: a definition together with its status, revisions and usage.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::id::{BundleId, ToolId};
use crate::implementation::{Implementation, Kind};
use crate::lifecycle::{Deprecation, Lifecycle};
use crate::name::{BundleSlug, TenantId};
use crate::spec::ToolSpec;

/// The lifecycle status of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = ToolStatus))]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// In development; runs in debug mode only.
    Draft,
    /// Has a published revision, which runs in production mode.
    Published,
    /// Still runs, with a warning.
    Deprecated,
    /// Does not run.
    Disabled,
}

impl Status {
    /// Every status.
    pub const ALL: [Status; 4] = [Status::Draft, Status::Published, Status::Deprecated, Status::Disabled];

    /// Returns the name used in JSON and in the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Status::Draft => "draft",
            Status::Published => "published",
            Status::Deprecated => "deprecated",
            Status::Disabled => "disabled",
        }
    }

    /// Parses the name that [`Status::as_str`] returns.
    pub fn parse(text: &str) -> Option<Status> {
        Status::ALL.into_iter().find(|status| status.as_str() == text)
    }
}

/// The source of a tool, in the order in which a name without bundle is resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = ToolSource))]
pub enum Source {
    /// Compiled in.
    #[serde(rename = "built-in")]
    BuiltIn,
    /// Created by a user, through a file or the API.
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
    /// Every source, in resolution order.
    pub const ALL: [Source; 4] = [Source::BuiltIn, Source::User, Source::Toolset, Source::Mcp];

    /// Returns the name used in JSON and in the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Source::BuiltIn => "built-in",
            Source::User => "user",
            Source::Toolset => "toolset",
            Source::Mcp => "mcp",
        }
    }

    /// Parses the name that [`Source::as_str`] returns.
    pub fn parse(text: &str) -> Option<Source> {
        Source::ALL.into_iter().find(|source| source.as_str() == text)
    }
}

/// The category of a tool in listings; derived, never stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
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
    /// Returns the name used in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            ToolType::BuiltIn => "built_in",
            ToolType::Mcp => "mcp",
            ToolType::Artifact => "artifact",
            ToolType::Custom => "custom",
        }
    }

    /// Parses the name that [`ToolType::as_str`] returns.
    pub fn parse(text: &str) -> Option<ToolType> {
        [ToolType::BuiltIn, ToolType::Mcp, ToolType::Artifact, ToolType::Custom]
            .into_iter()
            .find(|kind| kind.as_str() == text)
    }
}

/// The usage of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Usage {
    /// The number of calls.
    pub call_count: u64,
    /// The time of the last call.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub last_called_at: Option<Timestamp>,
}

/// A stored tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// The id.
    pub id: ToolId,
    /// The tenant that owns it; [`TenantId::global`] for a tool that every tenant sees.
    pub tenant: TenantId,
    /// The bundle that contains it.
    pub bundle_id: BundleId,
    /// The slug of that bundle.
    pub bundle: BundleSlug,
    /// The newest definition.
    pub spec: Arc<ToolSpec>,
    /// The number of the newest revision, from 1.
    pub revision: u32,
    /// The published revision number and its definition.
    pub published: Option<(u32, Arc<ToolSpec>)>,
    /// The status.
    pub status: Status,
    /// Whether it is enabled.
    pub enabled: bool,
    /// Whether it is compiled in; only `enabled` can change then.
    pub built_in: bool,
    /// Why it cannot run, if its file became invalid.
    pub fault: Option<String>,
    /// The source.
    pub source: Source,
    /// Its file, relative to the home folder.
    pub path: Option<String>,
    /// The usage at the time of reading.
    pub usage: Usage,
    /// When it was created.
    pub created_at: Timestamp,
    /// When its definition last changed; changing `enabled` does not count.
    pub modified_at: Timestamp,
    /// When it was first published.
    pub published_at: Option<Timestamp>,
    /// Authors, deprecation and the fields of an earlier registry.
    pub lifecycle: Lifecycle,
}

impl Tool {
    /// Returns its category in listings.
    pub fn tool_type(&self) -> ToolType {
        match self.spec.implementation {
            _ if self.built_in || self.is_legacy_built_in() => ToolType::BuiltIn,
            Implementation::Mcp(_) => ToolType::Mcp,
            Implementation::Artifact(_) => ToolType::Artifact,
            _ => ToolType::Custom,
        }
    }

    fn is_legacy_built_in(&self) -> bool {
        self.lifecycle.legacy.as_ref().is_some_and(|legacy| legacy.is_built_in())
    }

    /// Returns whether it is a tenant's copy of a built-in tool from an earlier registry, which lists hide.
    pub fn is_built_in_copy(&self) -> bool {
        self.lifecycle.legacy.as_ref().is_some_and(|legacy| legacy.is_built_in_copy())
    }

    /// Returns the warning for callers if it is deprecated; `replacement` is the name of the replacement for them.
    pub fn deprecation_notice(&self, replacement: Option<&str>) -> Option<String> {
        if self.status != Status::Deprecated {
            return None;
        }
        let deprecation = self.lifecycle.deprecation.clone().unwrap_or_default();
        Some(deprecation.notice(replacement.or(deprecation.replaced_by.as_deref())))
    }

    /// Returns the details of its deprecation, if it is deprecated.
    pub fn deprecation(&self) -> Option<&Arc<Deprecation>> {
        self.lifecycle.deprecation.as_ref().filter(|_| self.status == Status::Deprecated)
    }

    /// Returns the kind of its implementation.
    pub fn kind(&self) -> Kind {
        self.spec.implementation.kind()
    }

    /// Returns the folder of its file, relative to the home folder.
    pub fn folder(&self) -> Option<&str> {
        self.path.as_deref()?.rsplit_once('/').map(|(folder, _)| folder)
    }

    /// Returns `bundle:name@version`.
    pub fn qualified(&self) -> String {
        format!("{}:{}@{}", self.bundle, self.spec.name, self.spec.version)
    }
}

/// One immutable revision of a definition.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Revision {
    /// The number, from 1.
    pub number: u32,
    /// The content hash.
    pub hash: String,
    /// The definition.
    pub spec: Arc<ToolSpec>,
    /// When it was stored.
    pub created_at: Timestamp,
    /// Who stored it.
    pub created_by: Option<String>,
    /// When it was last published.
    pub published_at: Option<Timestamp>,
    /// Who published it.
    pub published_by: Option<String>,
}
