//! Writes an installation as a folder that can be applied elsewhere. Secrets become `${VAR}`.

use haft_core::bundle::{Bundle, BundleKind};
use haft_core::name::BundleSlug;
use haft_core::outcome::ErrorCode;
use haft_core::problem::Problem;
use haft_core::tool::{Status, Tool};
use haft_core::toolset::InstalledToolset;
use haft_definition::dialect;
use haft_package::files::PackageFiles;
use haft_package::path::PackagePath;
use haft_package::placeholders;
use haft_package::toolset::{DeclaredServer, ToolEntry, Toolset};
use haft_store::{ApplyScope, ApplyState, ListPage};
use serde_json::{Map, Value, json};

use super::export_agents::write_agents;
use super::export_references::{refer_by_slug, write_artifacts, write_pipelines};
use crate::context::Context;
use crate::error::ServiceError;
use crate::identity::Identity;
use crate::toolsets::{package_of, packed_toolset};

/// The fields of a server that a folder does not have.
const SERVER_STATE: [&str; 6] = ["id", "tenant", "declared_in", "created_at", "modified_at", "reviewed_at"];

/// Packs bundles as a folder; without any, everything of the tenant, with MCP servers, policy rules, agents,
/// pipelines and code artifacts.
pub async fn export(app: &Context, identity: &Identity, bundles: &[String]) -> Result<Vec<u8>, ServiceError> {
    let mut files = PackageFiles::new();
    let scope = ApplyScope { agents: true, pipelines: true, artifacts: true, ..ApplyScope::default() };
    let state = app.store().catalog().apply_state(identity.tenant.clone(), scope).await?;
    for bundle in selected(app, identity, bundles)? {
        match app.store().catalog().toolset(&identity.tenant, &bundle.slug).await? {
            Some(toolset) => {
                let packed = match unchanged_package(app, identity, &toolset).await? {
                    Some(packed) => packed,
                    None => packed_toolset(app, identity, &toolset).await?,
                };
                for (path, file) in packed.iter() {
                    let path = path_in(&bundle.slug, path.as_str())?;
                    files.add(path, file.bytes.clone(), file.executable).map_err(invalid)?;
                }
            }
            None => write_bundle(app, &state, &bundle, &mut files)?,
        }
    }
    if bundles.is_empty() {
        write_servers(app, identity, &mut files).await?;
        write_agents(&state.agents, &mut files)?;
        write_pipelines(&state.pipelines, &mut files)?;
        write_artifacts(app, identity, &state.artifacts, &mut files).await?;
        let rules = app.store().policies().all().await?;
        let rules = rules.of(&haft_core::policy::PolicyScope::Tenant(identity.tenant.clone()));
        if !rules.rules.is_empty()
            && let Ok(Value::Object(map)) = serde_json::to_value(&rules)
        {
            files.put_text("policy.yaml", dialect::write_yaml(&map)).map_err(invalid)?;
        }
    }
    haft_package::zip::write(&files)
        .map_err(|error| ServiceError::new(ErrorCode::Internal, format!("cannot pack the folder: {error}")))
}

/// Returns the files of a toolset as they were installed, with their signature, if nobody has changed its tools since.
async fn unchanged_package(
    app: &Context,
    identity: &Identity,
    installed: &InstalledToolset,
) -> Result<Option<PackageFiles>, ServiceError> {
    let scope = ApplyScope { bundles: vec![installed.id.clone()], ..ApplyScope::default() };
    let state = app.store().catalog().apply_state(identity.tenant.clone(), scope).await?;
    let package = package_of(app, identity, &installed.package).await?;
    let is_as_installed = |tool: &Tool| {
        let entry = package.toolset.tools.iter().find(|entry| entry.spec.name == tool.spec.name);
        state.package_specs.get(&tool.id).is_some_and(|spec| *spec == *tool.spec)
            && entry.is_some_and(|entry| entry.enabled == tool.enabled)
    };
    let is_unchanged =
        state.tools.len() == package.toolset.tools.len() && state.tools.iter().all(is_as_installed);
    let has_secrets = !placeholders::without_secrets(&mut package.toolset.clone()).is_empty();
    Ok((is_unchanged && !has_secrets).then_some(package.files))
}

fn invalid(problem: Problem) -> ServiceError {
    ServiceError::invalid_definition(&[problem])
}

fn path_in(bundle: &BundleSlug, path: &str) -> Result<PackagePath, ServiceError> {
    let path = format!("bundles/{bundle}/{path}");
    PackagePath::new(&path)
        .map_err(|error| ServiceError::bad_request(format!("cannot export `{path}`: {error}")))
}

/// Returns the bundles to export, by slug.
fn selected(app: &Context, identity: &Identity, bundles: &[String]) -> Result<Vec<Bundle>, ServiceError> {
    let snapshot = app.registry().snapshot();
    let is_own = |bundle: &Bundle| {
        bundle.tenant == identity.tenant
            && bundle.soft_deleted_at.is_none()
            && matches!(bundle.kind, BundleKind::User | BundleKind::Toolset)
    };
    let mut own: Vec<Bundle> = snapshot
        .bundles(&identity.tenant)
        .filter(|bundle| is_own(bundle))
        .map(|bundle| Bundle::clone(bundle))
        .collect();
    own.sort_by(|one, other| one.slug.cmp(&other.slug));
    if bundles.is_empty() {
        return Ok(own);
    }
    let find = |slug: &String| {
        let found = own.iter().find(|bundle| bundle.slug.as_str() == slug);
        found.cloned().ok_or_else(|| ServiceError::not_found("bundle", slug))
    };
    bundles.iter().map(find).collect()
}

fn write_bundle(
    app: &Context,
    state: &ApplyState,
    bundle: &Bundle,
    files: &mut PackageFiles,
) -> Result<(), ServiceError> {
    let mut about = Map::new();
    about.insert("display_name".to_owned(), json!(bundle.display_name));
    about.insert("description".to_owned(), json!(bundle.description));
    about.insert("enabled".to_owned(), json!(bundle.enabled));
    let path = path_in(&bundle.slug, "bundle.yaml")?;
    files.put_text(path.as_str(), dialect::write_yaml(&about)).map_err(invalid)?;
    let snapshot = app.registry().snapshot();
    let own = snapshot.tools(&bundle.tenant).map(|entry| &entry.tool);
    let mut tools: Vec<&Tool> = own.filter(|tool| tool.bundle_id == bundle.id).collect();
    tools.sort_by(|one, other| {
        (&one.spec.name, &one.spec.version).cmp(&(&other.spec.name, &other.spec.version))
    });
    for tool in tools {
        let text = definition_of(tool, state);
        let (name, version) = (&tool.spec.name, &tool.spec.version);
        // Several versions of a tool, or names that some file systems cannot tell apart, need longer names.
        let names =
            [format!("{name}.yaml"), format!("{name}@{version}.yaml"), format!("{name}-{}.yaml", tool.id)];
        let mut last = Ok(());
        for file in names {
            let path = path_in(&bundle.slug, &file)?;
            last = files.add(path, text.clone().into_bytes(), false);
            if last.is_ok() {
                break;
            }
        }
        last.map_err(invalid)?;
    }
    Ok(())
}

/// Writes a definition without its secrets. What is not published says so, as that is the default.
fn definition_of(tool: &Tool, state: &ApplyState) -> String {
    let mut toolset = Toolset::new(tool.bundle.clone());
    let mut spec = (*tool.spec).clone();
    refer_by_slug(&mut spec, state);
    toolset.tools.push(ToolEntry::from(spec));
    placeholders::without_secrets(&mut toolset);
    let spec = toolset.tools.pop().map_or_else(|| (*tool.spec).clone(), |entry| entry.spec);
    let mut map = dialect::write_fields(&spec, (!tool.enabled).then_some(false));
    if tool.status != Status::Published {
        map.insert("status".to_owned(), json!(tool.status.as_str()));
    }
    dialect::write_yaml(&map)
}

/// Writes the MCP servers that neither the configuration declares nor a toolset brings.
async fn write_servers(
    app: &Context,
    identity: &Identity,
    files: &mut PackageFiles,
) -> Result<(), ServiceError> {
    let toolsets = app.store().catalog().toolsets(&identity.tenant, &ListPage::ALL).await?;
    let of_toolset =
        |id: &str| toolsets.iter().any(|toolset| toolset.mcp_servers.iter().any(|known| known == id));
    let mut servers = Map::new();
    for mut server in app.store().catalog().mcp_servers_of(&identity.tenant, &ListPage::ALL).await? {
        let id = server.id.to_string();
        if server.declared_in.is_some() || of_toolset(&id) {
            continue;
        }
        let mut toolset = Toolset::new(server.id.clone());
        toolset.mcp_servers.push(DeclaredServer::new(server.id.clone(), server.transport.clone()));
        placeholders::without_secrets(&mut toolset);
        if let Some(declared) = toolset.mcp_servers.pop() {
            server.transport = declared.transport;
        }
        let Ok(Value::Object(mut body)) = serde_json::to_value(&server) else { continue };
        for key in SERVER_STATE {
            body.shift_remove(key);
        }
        servers.insert(id, Value::Object(body));
    }
    if servers.is_empty() {
        return Ok(());
    }
    let mut document = Map::new();
    document.insert("mcp_servers".to_owned(), Value::Object(servers));
    files.put_text("mcp-servers.yaml", dialect::write_yaml(&document)).map_err(invalid)
}
