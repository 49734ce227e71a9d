//! The typed content of a manifest.

use haft_core::example::ToolExample;
use haft_core::mcp::Transport;
use haft_core::name::{BundleSlug, Version};
use haft_core::spec::{Policy, ToolSpec};

use crate::manifest::starts_process;
use crate::requirements::Requirement;

/// The version of the manifest format that haft reads and writes.
pub const MANIFEST_VERSION: &str = "1";

/// A toolset: a bundle of tools that is installed as a package.
#[derive(Debug, Clone, PartialEq)]
pub struct Toolset {
    /// The id, which is the name of its bundle.
    pub id: BundleSlug,
    /// The display name; empty if it is the same as `id`.
    pub name: String,
    /// The version, `X.Y.Z`.
    pub version: Version,
    /// Its purpose.
    pub description: String,
    /// The tools, in the order of the manifest.
    pub tools: Vec<ToolEntry>,
    /// The MCP servers that are added with it.
    pub mcp_servers: Vec<DeclaredServer>,
    /// The Python packages that its tools import, besides those in `requirements.txt`.
    pub dependencies: Vec<Requirement>,
}

impl Toolset {
    /// Creates a toolset without tools.
    pub fn new(id: BundleSlug) -> Self {
        Self {
            id,
            name: String::new(),
            version: Version::initial(),
            description: String::new(),
            tools: Vec::new(),
            mcp_servers: Vec::new(),
            dependencies: Vec::new(),
        }
    }

    /// Returns the display name, or the id if there is none.
    pub fn title(&self) -> &str {
        if self.name.is_empty() { self.id.as_str() } else { &self.name }
    }

    /// Returns the tools that ask to start processes without a sandbox, which the installer has to grant.
    pub fn unsandboxed(&self) -> impl Iterator<Item = &ToolEntry> {
        self.tools.iter().filter(|tool| tool.is_unsandboxed())
    }

    /// Isolates every tool that starts processes, whatever it asks for.
    pub fn sandbox_processes(&mut self) {
        for tool in &mut self.tools {
            tool.spec.sandbox |= starts_process(tool.spec.implementation.kind());
        }
    }
}

/// A tool of a toolset.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolEntry {
    /// The definition. Its `sandbox`, `network` and `policy` are what the package asks for; the installer decides.
    pub spec: ToolSpec,
    /// Whether it is enabled when the toolset is installed.
    pub enabled: bool,
    /// Saved arguments, sorted by name.
    pub examples: Vec<ToolExample>,
}

impl ToolEntry {
    /// Returns whether it requests processes without a sandbox.
    pub fn is_unsandboxed(&self) -> bool {
        starts_process(self.spec.implementation.kind()) && !self.spec.sandbox
    }
}

impl From<ToolSpec> for ToolEntry {
    fn from(spec: ToolSpec) -> Self {
        Self { spec, enabled: true, examples: Vec::new() }
    }
}

/// An MCP server that is added with a toolset.
#[derive(Debug, Clone, PartialEq)]
pub struct DeclaredServer {
    /// The id, which is also the name of the bundle of its tools.
    pub id: BundleSlug,
    /// How haft connects to it. Secrets are references such as `${API_KEY}`.
    pub transport: Transport,
    /// Whether haft connects to it after the installation.
    pub enabled: bool,
    /// The call policy of its tools.
    pub policy: Policy,
    /// A prefix for the names of its tools; empty keeps the names.
    pub prefix: String,
}

impl DeclaredServer {
    /// Creates an enabled server.
    pub fn new(id: BundleSlug, transport: Transport) -> Self {
        Self { id, transport, enabled: true, policy: Policy::Allow, prefix: String::new() }
    }
}
