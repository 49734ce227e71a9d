//! The folders of tenants: each has a workspace in the home folder, and those that platform admins give it.

use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft_core::name::TenantId;
use haft_core::tenant::Tenant;
use haft_executors::files::{Files, Root};
use uuid::Uuid;

use crate::home::{TENANT_FILES, WORKSPACES};
use crate::settings::Settings;

/// The start of the names of folders that are being removed; no tenant has such a name.
const REMOVED: &str = ".removed-";

/// Gives the tenants their roots, and removes the workspaces of those that were deleted.
pub async fn apply(settings: &Settings, files: &Files, tenants: &[Arc<Tenant>], gone: Vec<TenantId>) {
    let folder = settings.home.join(TENANT_FILES);
    if tenants.iter().any(|tenant| !tenant.id.is_default()) && !folder.exists() {
        let created = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder);
        if let Err(error) = created {
            tracing::error!(folder = %folder.display(), %error, "cannot create the folder for files of tenants");
        }
    }
    files.set_tenants(tenants.iter().map(|tenant| (tenant.id.clone(), additional_roots(tenant))));
    if gone.is_empty() {
        return;
    }
    let workspaces = settings.home.join(WORKSPACES);
    let removing = tokio::task::spawn_blocking(move || {
        for id in &gone {
            remove(&folder, id);
            remove(&workspaces, id);
        }
    });
    if let Err(error) = removing.await {
        tracing::error!(%error, "cannot remove the files of deleted tenants");
    }
}

fn additional_roots(tenant: &Tenant) -> Vec<Root> {
    let root = |root: &haft_core::tenant::FileRoot| Root {
        read_only: root.read_only,
        ..Root::new(&root.name, PathBuf::from(&root.path))
    };
    tenant.settings.file_roots.iter().map(root).collect()
}

/// Removes the workspace of a tenant. It is renamed first, so that a new tenant with the same id does not get it.
fn remove(folder: &Path, id: &TenantId) {
    let removed = folder.join(format!("{REMOVED}{}", Uuid::now_v7().simple()));
    let result = match std::fs::rename(folder.join(id.as_str()), &removed) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
        renamed => renamed.and_then(|()| std::fs::remove_dir_all(&removed)),
    };
    if let Err(error) = result {
        tracing::error!(tenant = %id, %error, "cannot remove the files of a deleted tenant");
    }
}
