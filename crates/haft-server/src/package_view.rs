//! Packages as the API shows them.

use haft_api::toolset::{
    FileKind, InspectedFile, InspectedServer, InspectedTool, Inspection, InstalledReport,
    RequestedPermissions, SignatureState,
};
use haft_package::{files, inspect, signature};
use haft_platform::toolsets;

/// Shows the result of an installation.
pub(crate) fn installed(report: toolsets::InstalledReport) -> InstalledReport {
    let toolsets::InstalledReport { toolset, added, changed, removed, warnings } = report;
    InstalledReport { toolset, added, changed, removed, warnings }
}

/// Shows the content of a package.
pub(crate) fn inspection(found: inspect::Inspection) -> Inspection {
    Inspection {
        id: found.id,
        name: found.name,
        version: found.version,
        description: found.description,
        is_skill: found.is_skill,
        hash: found.hash,
        tools: found.tools.into_iter().map(tool).collect(),
        mcp_servers: found.mcp_servers.into_iter().map(server).collect(),
        dependencies: found.dependencies,
        has_wheels: found.has_wheels,
        files: found.files.into_iter().map(file).collect(),
        total_bytes: found.total_bytes,
        signature: signature(found.signature),
        warnings: found.warnings,
    }
}

fn tool(found: inspect::InspectedTool) -> InspectedTool {
    let inspect::RequestedPermissions { network, sandbox, policy } = found.permissions;
    InspectedTool {
        id: found.id,
        name: found.name,
        description: found.description,
        category: found.category,
        implementation_type: found.implementation_type,
        runs: found.runs,
        renderers: found.renderers,
        requires_confirmation: found.requires_confirmation,
        permissions: RequestedPermissions { network, sandbox, policy },
        enabled: found.enabled,
    }
}

fn server(found: inspect::InspectedServer) -> InspectedServer {
    let inspect::InspectedServer { id, command, url, variables, network, sandbox, enabled } = found;
    InspectedServer { id, command, url, variables, network, sandbox, enabled }
}

fn file(found: inspect::InspectedFile) -> InspectedFile {
    let inspect::InspectedFile { path, kind, size, sha256, executable } = found;
    let kind = match kind {
        files::FileKind::Python => FileKind::Python,
        files::FileKind::Artifact => FileKind::Artifact,
        files::FileKind::Asset => FileKind::Asset,
        files::FileKind::Config => FileKind::Config,
    };
    InspectedFile { path, kind, size, sha256, executable }
}

fn signature(state: signature::SignatureState) -> SignatureState {
    match state {
        signature::SignatureState::Unsigned => SignatureState::Unsigned,
        signature::SignatureState::Trusted { key_name, public_key } => {
            SignatureState::Trusted { key_name, public_key }
        }
        signature::SignatureState::UnknownKey { public_key } => SignatureState::UnknownKey { public_key },
        signature::SignatureState::Invalid { reason } => SignatureState::Invalid { reason },
    }
}
