//! A summary of a package for people, before they install it.

use haft_core::implementation::{ExecProgram, Implementation};
use haft_core::mcp::Transport;
use haft_core::problem::{Problem, excerpt};
use haft_core::redact::redact_transport;
use haft_core::spec::{Policy, ToolSpec};
use serde::Serialize;

use crate::files::FileKind;
use crate::package::Package;
use crate::path::PackagePath;
use crate::signature::{SignatureState, TrustedKey, verify};
use crate::toolset::{DeclaredServer, ToolEntry};

/// The maximum length of a command in a summary, in characters.
const MAX_COMMAND: usize = 500;

/// A summary of a package.
#[derive(Debug, Clone, PartialEq, Serialize)]
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
#[derive(Debug, Clone, PartialEq, Serialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RequestedPermissions {
    /// Whether its processes may use the network.
    pub network: bool,
    /// Whether its processes are isolated from the host's files.
    pub sandbox: bool,
    /// The call policy.
    pub policy: Policy,
}

/// An MCP server in a summary. Literal secrets are masked.
#[derive(Debug, Clone, PartialEq, Serialize)]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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

/// Summarises a package.
pub fn inspect(package: &Package, trusted: &[TrustedKey]) -> Inspection {
    let toolset = &package.toolset;
    let files: Vec<InspectedFile> = package
        .files
        .iter()
        .map(|(path, file)| InspectedFile {
            path: path.to_string(),
            kind: FileKind::of(path),
            size: file.bytes.len() as u64,
            sha256: file.sha256(),
            executable: file.executable,
        })
        .collect();
    Inspection {
        id: toolset.id.to_string(),
        name: toolset.title().to_owned(),
        version: toolset.version.to_string(),
        description: toolset.description.clone(),
        is_skill: package.skill.is_some(),
        hash: package.files.content_hash(),
        tools: toolset.tools.iter().map(tool).collect(),
        mcp_servers: toolset.mcp_servers.iter().map(server).collect(),
        dependencies: package.all_requirements().iter().map(ToString::to_string).collect(),
        has_wheels: package.files.iter().any(|(path, _)| is_wheel(path)),
        files,
        total_bytes: package.files.total(),
        signature: verify(&package.files, trusted),
        warnings: package.warnings.clone(),
    }
}

fn is_wheel(path: &PackagePath) -> bool {
    path.top_folder() == Some("wheels") && path.extension() == "whl"
}

fn tool(entry: &ToolEntry) -> InspectedTool {
    let spec = &entry.spec;
    InspectedTool {
        id: spec.name.to_string(),
        name: spec.title().to_owned(),
        description: spec.description.clone(),
        category: spec.category.clone(),
        implementation_type: spec.implementation.kind().as_str().to_owned(),
        runs: runs(spec),
        renderers: spec.renderers.iter().map(|renderer| renderer.renderer.clone()).collect(),
        requires_confirmation: spec.requires_confirmation,
        permissions: RequestedPermissions {
            network: spec.network,
            sandbox: spec.sandbox,
            policy: spec.policy,
        },
        enabled: entry.enabled,
    }
}

/// Returns what a tool runs, with literal secrets masked.
fn runs(spec: &ToolSpec) -> Option<String> {
    let spec = haft_core::redact::masked(spec);
    let text = match &spec.implementation {
        Implementation::Python(python) => python.entrypoint.clone(),
        Implementation::Exec(exec) => match &exec.program {
            ExecProgram::Command(command) => command.clone(),
            ExecProgram::Argv(argv) => argv.join(" "),
        },
        Implementation::Script(script) => script.runtime.as_str().to_owned(),
        Implementation::Http(http) if !http.request.url.is_empty() => http.request.url.clone(),
        Implementation::Function(function) => function.function.clone(),
        Implementation::Wasm(wasm) => wasm.file.clone()?,
        _ => return None,
    };
    Some(excerpt(&text, MAX_COMMAND))
}

fn server(server: &DeclaredServer) -> InspectedServer {
    let mut view = InspectedServer {
        id: server.id.to_string(),
        command: None,
        url: None,
        variables: Vec::new(),
        network: true,
        sandbox: false,
        enabled: server.enabled,
    };
    match redact_transport(&server.transport).transport {
        Transport::Stdio(stdio) => {
            let words: Vec<String> = std::iter::once(stdio.command).chain(stdio.args).collect();
            view.command = Some(excerpt(&words.join(" "), MAX_COMMAND));
            view.variables = stdio.env.into_keys().collect();
            (view.network, view.sandbox) = (stdio.network, stdio.sandbox);
        }
        Transport::Http(http) => {
            view.url = Some(excerpt(&http.url, MAX_COMMAND));
            view.variables = http.headers.into_keys().collect();
        }
    }
    view
}
