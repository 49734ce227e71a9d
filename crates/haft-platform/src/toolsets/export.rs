//! Writing packages from what is installed.

use haft_core::bundle::Bundle;
use haft_core::id::ToolId;
use haft_core::implementation::Implementation;
use haft_core::mcp::McpServer;
use haft_core::name::{BundleSlug, Version};
use haft_core::outcome::ErrorCode;
use haft_core::problem::Problem;
use haft_core::tool::Tool;
use haft_core::toolset::{InstalledToolset, bind_package};
use haft_package::files::{MANIFEST, PackageFiles, SIGNATURE};
use haft_package::toolset::{DeclaredServer, ToolEntry, Toolset};
use haft_package::{folder, placeholders, write, zip};
use haft_store::ListPage;

use super::install::package_of;
use crate::context::Context;
use crate::error::ServiceError;
use crate::identity::Identity;

/// Returns whether the caller may read the code of a bundle: all its tools must be on the allow-list of the token.
pub fn is_readable(app: &Context, identity: &Identity, bundle: &BundleSlug) -> bool {
    let allowed = &identity.principal().tools;
    let snapshot = app.registry().snapshot();
    let mut tools = snapshot.tools(&identity.tenant).filter(|entry| entry.tool.bundle == *bundle);
    allowed.is_unlimited() || tools.all(|entry| allowed.allows(&entry.tool))
}

/// Packs a toolset in its present state: the stored files, and a manifest of the tools as they are now.
pub async fn export_toolset(
    app: &Context,
    identity: &Identity,
    installed: &InstalledToolset,
) -> Result<Vec<u8>, ServiceError> {
    to_zip(&packed_toolset(app, identity, installed).await?)
}

/// Returns the files of a toolset in its present state.
pub async fn packed_toolset(
    app: &Context,
    identity: &Identity,
    installed: &InstalledToolset,
) -> Result<PackageFiles, ServiceError> {
    let package = package_of(app, identity, &installed.package).await?;
    let mut toolset = Toolset::new(installed.id.clone());
    toolset.name.clone_from(&package.toolset.name);
    toolset.version = package.toolset.version.clone();
    toolset.description.clone_from(&package.toolset.description);
    toolset.dependencies.clone_from(&package.toolset.dependencies);
    toolset.tools = entries(app, identity, &installed.id).await?;
    for entry in &mut toolset.tools {
        if let Implementation::Python(python) = &mut entry.spec.implementation {
            let shared = |line: &String| toolset.dependencies.iter().any(|known| known.as_str() == line);
            python.dependencies.retain(|line| !shared(line));
        }
    }
    let order = |name: &str| package.toolset.tools.iter().position(|entry| entry.spec.name.as_str() == name);
    toolset.tools.sort_by_key(|entry| {
        (order(entry.spec.name.as_str()).unwrap_or(usize::MAX), entry.spec.name.clone())
    });
    let servers = app.store().catalog().mcp_servers_of(&identity.tenant, &ListPage::ALL).await?;
    toolset.mcp_servers = package
        .toolset
        .mcp_servers
        .iter()
        .filter_map(|declared| {
            let own = |server: &&McpServer| server.id == declared.id;
            servers
                .iter()
                .find(own)
                .map(|server| DeclaredServer { transport: server.transport.clone(), ..declared.clone() })
        })
        .collect();
    pack(package.files, toolset)
}

/// Packs any bundle. The files beside its definitions go with it, where definitions are files.
pub async fn export_bundle(
    app: &Context,
    identity: &Identity,
    bundle: &Bundle,
) -> Result<Vec<u8>, ServiceError> {
    let mut toolset = Toolset::new(bundle.slug.clone());
    toolset.name.clone_from(&bundle.display_name);
    toolset.description.clone_from(&bundle.description);
    toolset.version = Version::initial();
    toolset.tools = entries(app, identity, &bundle.slug).await?;
    to_zip(&pack(extra_files(app, identity, &bundle.slug).await?, toolset)?)
}

/// Returns the tools of a bundle by name, as they are now, with their examples.
async fn entries(
    app: &Context,
    identity: &Identity,
    bundle: &BundleSlug,
) -> Result<Vec<ToolEntry>, ServiceError> {
    let mut entries = Vec::new();
    for (id, entry) in definitions(app, identity, bundle) {
        let examples = app.store().catalog().examples(&identity.tenant, id).await?;
        entries.push(ToolEntry { examples, ..entry });
    }
    Ok(entries)
}

fn definitions(app: &Context, identity: &Identity, bundle: &BundleSlug) -> Vec<(ToolId, ToolEntry)> {
    let snapshot = app.registry().snapshot();
    let mut tools: Vec<&Tool> = snapshot
        .tools(&identity.tenant)
        .map(|entry| &entry.tool)
        .filter(|tool| tool.bundle == *bundle && tool.tenant == identity.tenant)
        .collect();
    tools.sort_by(|one, other| {
        (&one.spec.name, &one.spec.version).cmp(&(&other.spec.name, &other.spec.version))
    });
    let entry = |tool: &Tool| {
        let mut spec = (*tool.spec).clone();
        bind_package(&mut spec, None);
        (tool.id, ToolEntry { enabled: tool.enabled, ..ToolEntry::from(spec) })
    };
    tools.into_iter().map(entry).collect()
}

/// Returns the files of a user's bundle that are not definitions.
async fn extra_files(
    app: &Context,
    identity: &Identity,
    bundle: &BundleSlug,
) -> Result<PackageFiles, ServiceError> {
    let Some(path) = app.store().catalog().bundle_folder(&identity.tenant, bundle) else {
        return Ok(PackageFiles::new());
    };
    let path = app.settings().home.join(path);
    if !path.is_dir() {
        return Ok(PackageFiles::new());
    }
    let read = tokio::task::spawn_blocking(move || folder::read(&path)).await;
    let read = read.map_err(|error| ServiceError::new(ErrorCode::Internal, error.to_string()))?;
    let all = read.map_err(|problems| ServiceError::invalid_definition(&problems))?;
    let definitions: Vec<String> = all
        .iter()
        .map(|(path, _)| path.as_str().to_owned())
        .filter(|path| !path.contains('/'))
        .filter(|path| path == "bundle.yaml" || haft_definition::folder::file_form(path).is_some())
        .collect();
    let mut files = all;
    for path in definitions {
        files.remove(&path);
    }
    Ok(files)
}

fn pack(mut files: PackageFiles, mut toolset: Toolset) -> Result<PackageFiles, ServiceError> {
    placeholders::without_secrets(&mut toolset);
    files.remove(MANIFEST);
    files.remove(SIGNATURE);
    let invalid = |problem: Problem| ServiceError::invalid_definition(&[problem]);
    files.put_text(MANIFEST, write::manifest(&toolset)).map_err(invalid)?;
    Ok(files)
}

fn to_zip(files: &PackageFiles) -> Result<Vec<u8>, ServiceError> {
    zip::write(files)
        .map_err(|error| ServiceError::new(ErrorCode::Internal, format!("cannot pack the bundle: {error}")))
}
