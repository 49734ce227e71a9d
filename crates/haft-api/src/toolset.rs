//! Toolsets and the content of packages.

use haft_core::problem::Problem;
use haft_core::spec::Policy;
use haft_core::toolset::InstalledToolset;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A toolset with its state.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = Toolset)]
pub struct ToolsetView {
    #[serde(flatten)]
    pub toolset: InstalledToolset,
    /// Whether its bundle is enabled.
    pub enabled: bool,
    /// The number of tools.
    pub tools: usize,
}

/// The toolsets of the tenant.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ToolsetList {
    pub toolsets: Vec<ToolsetView>,
    pub total: usize,
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub next_page_token: Option<String>,
}

/// A toolset with its content.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ToolsetDetail {
    #[serde(flatten)]
    pub view: ToolsetView,
    /// The content of the package.
    pub content: Inspection,
}

/// The result of an installation, or of a dry run.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum ImportResult {
    /// The preview, with `dry_run`.
    Preview(Box<ToolsetPreview>),
    /// The installed toolset.
    Installed(Box<InstalledReport>),
}

/// The preview of an installation.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ToolsetPreview {
    pub package: Inspection,
    /// The toolset with this id that it would update.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub replaces: Option<InstalledToolset>,
}

/// The result of an installation.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct InstalledReport {
    pub toolset: InstalledToolset,
    /// The names of new tools.
    pub added: Vec<String>,
    /// The names of changed tools.
    pub changed: Vec<String>,
    /// The names of removed tools, which the package no longer has.
    pub removed: Vec<String>,
    /// Warnings about the package.
    pub warnings: Vec<String>,
}

/// A summary of a package.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = PackageInspection)]
pub struct Inspection {
    /// The id.
    pub id: String,
    /// The display name.
    pub name: String,
    /// The version.
    pub version: String,
    /// Its purpose.
    pub description: String,
    /// Whether it is an Agent Skill.
    pub is_skill: bool,
    /// The hash of its content, independent of the archive format.
    pub hash: String,
    /// The tools.
    pub tools: Vec<InspectedTool>,
    /// The MCP servers that are added.
    pub mcp_servers: Vec<InspectedServer>,
    /// The Python packages that are installed.
    pub dependencies: Vec<String>,
    /// Whether the package contains their wheels, so that the installation needs no network.
    pub has_wheels: bool,
    /// The files.
    pub files: Vec<InspectedFile>,
    /// The size of all files, in bytes.
    pub total_bytes: u64,
    /// The signature.
    pub signature: SignatureState,
    /// Warnings.
    pub warnings: Vec<Problem>,
}

/// A tool in a summary.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = PackageTool)]
pub struct InspectedTool {
    /// The id.
    pub id: String,
    /// The display name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The category, or an empty string.
    pub category: String,
    /// The kind of its implementation.
    pub implementation_type: String,
    /// What it runs: the entrypoint, the command, or the URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs: Option<String>,
    /// Its renderers.
    pub renderers: Vec<String>,
    /// Whether each call needs approval.
    pub requires_confirmation: bool,
    /// The requested permissions.
    pub permissions: RequestedPermissions,
    /// Whether it is enabled after the installation.
    pub enabled: bool,
}

/// The permissions that a tool requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RequestedPermissions {
    /// Whether its processes may use the network.
    pub network: bool,
    /// Whether its processes are isolated from the host's files.
    pub sandbox: bool,
    /// The call policy.
    pub policy: Policy,
}

/// An MCP server in a summary. Literal secrets are masked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = PackageServer)]
pub struct InspectedServer {
    /// The id.
    pub id: String,
    /// The program and its arguments, if it is a program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The URL, if it is a remote server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The environment variables or headers that it gets, by name.
    pub variables: Vec<String>,
    /// Whether its process may use the network.
    pub network: bool,
    /// Whether its process is isolated from the host's files.
    pub sandbox: bool,
    /// Whether haft connects to it after the installation.
    pub enabled: bool,
}

/// A file in a summary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = PackageFile)]
pub struct InspectedFile {
    /// The path in the package.
    pub path: String,
    /// Its purpose.
    pub kind: FileKind,
    /// The size in bytes.
    pub size: u64,
    /// The SHA-256 of its content.
    pub sha256: String,
    /// Whether it can be executed as a program.
    pub executable: bool,
}

/// The purpose of a file of a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    /// Python source.
    Python,
    /// A template of a renderer.
    Artifact,
    /// Data that tools use.
    Asset,
    /// The manifest, the requirements, the signature, instructions.
    Config,
}

/// The state of the signature of a package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum SignatureState {
    /// The package is not signed.
    Unsigned,
    /// It is signed by a trusted key.
    Trusted {
        /// The name of the key in the configuration.
        key_name: String,
        /// The public key.
        public_key: String,
    },
    /// The signature is valid, but its key is not trusted.
    UnknownKey {
        /// The public key.
        public_key: String,
    },
    /// The signature is malformed, or the files were changed after signing.
    Invalid {
        /// The reason.
        reason: String,
    },
}
