//! Installing packages.

use haft_core::catalog::StoreError;
use haft_core::id::ToolId;
use haft_core::implementation::Implementation;
use haft_core::mcp::McpServer;
use haft_core::name::BundleSlug;
use haft_core::outcome::ErrorCode;
use haft_core::spec::{Policy, ToolSpec};
use haft_core::token::Role;
use haft_core::toolset::{InstalledToolset, bind_package};
use haft_package::package::Package;
use haft_package::signature::{self, SignatureState};
use haft_package::toolset::{DeclaredServer, MANIFEST_VERSION, ToolEntry};
use haft_store::{InstallReport, ListPage, ToolsetInstall};
use serde::Serialize;

use super::source::{Origin, open_zip};
use super::unpacked::unpack;
use crate::context::Context;
use crate::error::ServiceError;
use crate::identity::Identity;

/// The permissions that the installer of a package grants.
#[derive(Debug, Clone, Copy, Default)]
pub struct InstallOptions {
    /// Whether tools that ask for it may run without isolation.
    pub allow_unsandboxed: bool,
}

/// The result of an installation.
#[derive(Debug, Serialize)]
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

/// Installs a package, or updates the toolset with its id. Nothing is left of one that fails.
pub async fn install(
    app: &Context,
    identity: &Identity,
    package: Package,
    origin: Origin,
    options: InstallOptions,
) -> Result<InstalledReport, ServiceError> {
    if !package.toolset.mcp_servers.is_empty() {
        // A server may be any program.
        identity.require(Role::Admin)?;
    }
    let (install, mut warnings) = prepare(app, identity, &package, origin, options)?;
    unpack(app, package.files.clone()).await?;
    let report = app.store().catalog().install_toolset(identity.tenant.clone(), install).await?;
    disable_where_declared(app, identity, &package, &report).await?;
    warnings.extend(add_examples(app, identity, &package, &report).await?);
    add_servers(app, identity, &package, &mut warnings).await?;
    let InstallReport { toolset, added, changed, removed } = report;
    Ok(InstalledReport { toolset, added, changed, removed, warnings })
}

/// Returns what the store installs of a package, and what to know about it. The package is not unpacked yet.
pub fn prepare(
    app: &Context,
    identity: &Identity,
    package: &Package,
    origin: Origin,
    options: InstallOptions,
) -> Result<(ToolsetInstall, Vec<String>), ServiceError> {
    let signed_by = check_signature(app, package)?;
    let mut warnings: Vec<String> = package.warnings.iter().map(ToString::to_string).collect();
    let archive = haft_package::zip::write(&package.files).map_err(|error| {
        ServiceError::new(ErrorCode::Internal, format!("cannot pack the package: {error}"))
    })?;
    let hash = package.files.content_hash();
    let shared: Vec<String> =
        package.toolset.dependencies.iter().map(|line| line.as_str().to_owned()).collect();
    let tools =
        package.toolset.tools.iter().map(|entry| adapted(entry, (&hash, &shared), options, &mut warnings));
    let tools: Vec<ToolSpec> = tools.collect();
    let toolset = InstalledToolset {
        id: package.toolset.id.clone(),
        name: package.toolset.title().to_owned(),
        version: package.toolset.version.to_string(),
        description: package.toolset.description.clone(),
        manifest_version: MANIFEST_VERSION.to_owned(),
        source_type: origin.kind,
        source_ref: origin.reference,
        package: hash,
        previous: None,
        signed_by,
        mcp_servers: package.toolset.mcp_servers.iter().map(|server| server.id.to_string()).collect(),
        dependencies: package.all_requirements().iter().map(|line| line.as_str().to_owned()).collect(),
        installed_at: app.now(),
        installed_by: identity.name.to_string(),
    };
    Ok((ToolsetInstall { toolset, tools, archive }, warnings))
}

/// Returns the name of the trusted key that signed the package; rejects what may not be installed.
fn check_signature(app: &Context, package: &Package) -> Result<Option<String>, ServiceError> {
    let settings = &app.settings().toolsets;
    let state = signature::verify(&package.files, &settings.trusted_keys);
    match state {
        SignatureState::Invalid { .. } => {
            let message = "the signature does not match the package: it was changed after it was signed";
            Err(ServiceError::bad_request(message))
        }
        SignatureState::Trusted { key_name, .. } => Ok(Some(key_name)),
        _ if settings.require_signed => {
            let message = "the package is not signed by a trusted key (`toolsets.require_signed`); add the key of \
                           its author to `toolsets.trusted_keys`";
            Err(ServiceError::new(ErrorCode::Forbidden, message))
        }
        _ => Ok(None),
    }
}

/// Returns the definition of a tool as it is installed: bound to its package, and isolated unless granted otherwise.
fn adapted(
    entry: &ToolEntry,
    (hash, shared): (&str, &[String]),
    options: InstallOptions,
    warnings: &mut Vec<String>,
) -> ToolSpec {
    let mut spec = entry.spec.clone();
    bind_package(&mut spec, Some(hash));
    if let Implementation::Python(python) = &mut spec.implementation {
        // What the manifest declares once holds for all its Python tools.
        let missing = shared.iter().filter(|line| !python.dependencies.contains(line)).cloned();
        let missing: Vec<String> = missing.collect();
        python.dependencies.extend(missing);
    }
    if entry.is_unsandboxed() {
        spec.sandbox = !options.allow_unsandboxed;
        if options.allow_unsandboxed {
            warnings.push(format!("`{}` runs without isolation, as you allowed", spec.name));
        }
    }
    spec
}

/// Tools that the manifest disables are disabled when they are new.
async fn disable_where_declared(
    app: &Context,
    identity: &Identity,
    package: &Package,
    report: &InstallReport,
) -> Result<(), ServiceError> {
    let disabled = package.toolset.tools.iter().filter(|entry| !entry.enabled);
    let disabled = disabled.filter(|entry| report.added.iter().any(|name| name == entry.spec.name.as_str()));
    for entry in disabled {
        if let Some(id) = installed_tool(app, identity, report, entry) {
            app.store().catalog().enable_tool(id, false).await?;
        }
    }
    Ok(())
}

/// Stores the examples that come with the tools. Other examples of the tools stay.
async fn add_examples(
    app: &Context,
    identity: &Identity,
    package: &Package,
    report: &InstallReport,
) -> Result<Vec<String>, ServiceError> {
    let mut warnings = Vec::new();
    for entry in package.toolset.tools.iter().filter(|entry| !entry.examples.is_empty()) {
        let Some(id) = installed_tool(app, identity, report, entry) else { continue };
        for example in &entry.examples {
            match app.store().catalog().put_example(&identity.tenant, id, example.clone()).await {
                Ok(()) => {}
                Err(StoreError::Conflict(reason)) => {
                    warnings.push(format!("example `{}` of `{}`: {reason}", example.name, entry.spec.name));
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(warnings)
}

/// Returns the installed tool of an entry.
fn installed_tool(
    app: &Context,
    identity: &Identity,
    report: &InstallReport,
    entry: &ToolEntry,
) -> Option<ToolId> {
    let reference =
        format!("{}:{}@{}", report.toolset.id, entry.spec.name, entry.spec.version).parse().ok()?;
    let snapshot = app.registry().snapshot();
    let found = snapshot.resolve_in(&identity.tenant, &reference, app.settings().mode).ok()?;
    Some(found.tool.id)
}

/// Adds the MCP servers of a package. Their tools need confirmation until an admin sets another policy.
async fn add_servers(
    app: &Context,
    identity: &Identity,
    package: &Package,
    warnings: &mut Vec<String>,
) -> Result<(), ServiceError> {
    if package.toolset.mcp_servers.is_empty() {
        return Ok(());
    }
    let known = app.store().catalog().mcp_servers_of(&identity.tenant, &ListPage::ALL).await?;
    for declared in &package.toolset.mcp_servers {
        let existing = known.iter().find(|server| server.id == declared.id);
        if let Some(existing) = existing {
            if existing.transport != declared.transport {
                warnings.push(format!(
                    "MCP server `{}` exists and stays as it is; the package declares another command or URL",
                    declared.id
                ));
            }
            continue;
        }
        match app.store().catalog().put_mcp_server(new_server(app, identity, declared)).await {
            Ok(()) => {}
            // It never fails the import.
            Err(error) => warnings.push(format!("MCP server `{}` was not added: {error}", declared.id)),
        }
    }
    app.mcp_clients().reload().await?;
    Ok(())
}

/// Returns a server that a package declares. Its tools need confirmation until an admin sets another policy.
pub fn new_server(app: &Context, identity: &Identity, declared: &DeclaredServer) -> McpServer {
    let (id, transport) = (declared.id.clone(), declared.transport.clone());
    let mut server = McpServer::new(id, identity.tenant.clone(), transport);
    (server.created_at, server.modified_at) = (app.now(), app.now());
    server.enabled = declared.enabled;
    server.prefix.clone_from(&declared.prefix);
    server.policy = if declared.policy == Policy::Deny { Policy::Deny } else { Policy::Elevated };
    server
}

/// Returns the package that a toolset has, or the one before it.
pub async fn package_of(app: &Context, identity: &Identity, hash: &str) -> Result<Package, ServiceError> {
    let archive = app.store().catalog().package(&identity.tenant, hash).await?;
    let archive = archive.ok_or_else(|| ServiceError::not_found("package", hash))?;
    open_zip(archive).await
}

/// Installs the package that a toolset had before.
pub async fn rollback(
    app: &Context,
    identity: &Identity,
    toolset: InstalledToolset,
) -> Result<InstalledReport, ServiceError> {
    let Some(previous) = &toolset.previous else {
        let message = format!("toolset `{}` has no earlier version to roll back to", toolset.id);
        return Err(ServiceError::new(ErrorCode::Conflict, message));
    };
    let package = package_of(app, identity, previous).await?;
    let origin = Origin { kind: toolset.source_type, reference: toolset.source_ref };
    install(app, identity, package, origin, InstallOptions::default()).await
}

/// Removes a toolset, and the MCP servers that came with it and that no other toolset has.
pub async fn uninstall(app: &Context, identity: &Identity, id: &BundleSlug) -> Result<(), ServiceError> {
    let removed = app.store().catalog().uninstall_toolset(identity.tenant.clone(), id.clone()).await?;
    let others = app.store().catalog().toolsets(&identity.tenant, &ListPage::ALL).await?;
    let is_shared = |server: &String| others.iter().any(|other| other.mcp_servers.contains(server));
    let mut is_changed = false;
    for server in removed.mcp_servers.iter().filter(|server| !is_shared(server)) {
        let Ok(server) = server.parse::<BundleSlug>() else { continue };
        // It may be gone already.
        is_changed |= app.store().catalog().delete_mcp_server(identity.tenant.clone(), server).await.is_ok();
    }
    if is_changed {
        app.mcp_clients().reload().await?;
    }
    Ok(())
}
