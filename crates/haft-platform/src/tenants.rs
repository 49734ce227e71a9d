//! Tenants: the owners of tools, calls, credentials and tokens. Only platform admins manage them.

use std::path::Path as FilePath;

use haft_core::name::TenantId;
use haft_core::tenant::{self, FileRoot, Tenant};
use haft_store::TenantChange;

use crate::audit;
use crate::context::Context;
use crate::error::ServiceError;
use crate::identity::Identity;

fn parse_id(id: &str) -> Result<TenantId, ServiceError> {
    id.parse().map_err(|_| ServiceError::not_found("tenant", id))
}

/// Rejects roots that overlap the home folder, which holds keys, tokens and the files of other tenants.
fn check_outside_home(app: &Context, roots: &[FileRoot]) -> Result<(), ServiceError> {
    let home = &app.settings().home;
    // A link could hide the home folder.
    let real_home = std::fs::canonicalize(home).unwrap_or_else(|_| home.clone());
    for (index, root) in roots.iter().enumerate() {
        let path = FilePath::new(&root.path);
        let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let overlaps = |home: &FilePath, path: &FilePath| path.starts_with(home) || home.starts_with(path);
        if overlaps(home, path) || overlaps(&real_home, &real) {
            return Err(ServiceError::bad_request(format!(
                "invalid `file_roots[{index}].path`: must be outside of the home folder of haft"
            )));
        }
    }
    Ok(())
}

/// Creates a tenant; its name is the id unless another one is given.
pub async fn create(
    app: &Context,
    identity: &Identity,
    id: &str,
    name: Option<String>,
) -> Result<Tenant, ServiceError> {
    let id = tenant::parse_new_id(id)?;
    let name = name.map_or_else(|| id.to_string(), |name| name.trim().to_owned());
    let tenant = app.store().tenants().create(id, name).await?;
    app.reload_access().await?;
    audit::note(identity, "tenant.create", tenant.id.as_str());
    Ok(tenant)
}

/// Finds a tenant.
pub async fn find(app: &Context, id: &str) -> Result<Tenant, ServiceError> {
    let found = app.store().tenants().all().await?.into_iter().find(|tenant| tenant.id.as_str() == id);
    found.ok_or_else(|| ServiceError::not_found("tenant", id))
}

/// Changes a tenant; what is missing stays.
pub async fn update(
    app: &Context,
    identity: &Identity,
    id: &str,
    change: TenantChange,
) -> Result<Tenant, ServiceError> {
    let parsed = parse_id(id)?;
    check_outside_home(app, change.file_roots.as_deref().unwrap_or_default())?;
    let change = TenantChange { name: change.name.map(|name| name.trim().to_owned()), ..change };
    let tenant = app.store().tenants().update(parsed, change).await?;
    app.reload_access().await?;
    audit::note(identity, "tenant.update", id);
    Ok(tenant)
}

/// Deletes a tenant with everything but its audit records, if its id is confirmed.
pub async fn delete(
    app: &Context,
    identity: &Identity,
    id: &str,
    confirmed: Option<&str>,
) -> Result<(), ServiceError> {
    let parsed = parse_id(id)?;
    if app.access().tenant(&parsed).is_none() {
        return Err(ServiceError::not_found("tenant", id));
    }
    if confirmed != Some(id) {
        return Err(ServiceError::bad_request(format!(
            "deleting a tenant removes its tools, calls, credentials, tokens and files; confirm it with `?confirm={id}`"
        )));
    }
    app.store().tenants().delete(parsed).await?;
    app.reload_access().await?;
    audit::note(identity, "tenant.delete", id);
    Ok(())
}
