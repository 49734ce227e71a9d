//! The unpacked files of packages: one folder each, named by the hash of the content, never changed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use haft_core::name::TenantId;
use haft_core::outcome::ErrorCode;
use haft_package::files::PackageFiles;
use haft_package::folder;

use crate::context::Context;
use crate::error::ServiceError;
use crate::home::PACKAGES;

/// How often a node looks for packages that other nodes installed.
const INTERVAL: Duration = Duration::from_secs(1);
/// How long a folder is kept that no toolset has.
const KEEP_UNKNOWN: Duration = Duration::from_hours(1);
/// The largest file that is served.
const MAX_FILE: u64 = 32 << 20;

fn packages(app: &Context) -> PathBuf {
    app.settings().home.join(PACKAGES)
}

/// Unpacks a package on this node, unless it is there.
pub async fn unpack(app: &Context, files: PackageFiles) -> Result<String, ServiceError> {
    let (hash, parent) = (files.content_hash(), packages(app));
    let target = parent.join(&hash);
    let unpacking = tokio::task::spawn_blocking(move || {
        if target.is_dir() {
            return Ok(());
        }
        std::fs::create_dir_all(&parent).map_err(|error| error.to_string())?;
        folder::unpack(&files, &target).map_err(|error| error.to_string())
    });
    let unpacked = unpacking.await.unwrap_or_else(|error| Err(error.to_string()));
    unpacked.map_err(|error| {
        ServiceError::new(ErrorCode::StoreUnavailable, format!("cannot unpack the package: {error}"))
    })?;
    Ok(hash)
}

/// Unpacks packages that are missing on this node, and removes unused ones.
pub async fn start(app: &Context) {
    if let Err(error) = unpack_missing(app).await {
        tracing::error!(error = error.message, "cannot unpack the packages of toolsets");
    }
    if let Err(error) = remove_unused(app).await {
        tracing::warn!(error = error.message, "cannot remove unused packages");
    }
}

/// Removes the folders of packages that no toolset has any more. A young one may belong to an installation that another
/// process has not finished.
async fn remove_unused(app: &Context) -> Result<(), ServiceError> {
    let known = app.store().catalog().packages().await?;
    let parent = packages(app);
    let unused: Vec<String> =
        list(&parent).into_iter().filter(|name| known.iter().all(|(_, hash)| hash != name)).collect();
    let is_old = |name: &String| {
        let modified = std::fs::metadata(parent.join(name)).and_then(|about| about.modified());
        modified.is_ok_and(|time| time.elapsed().is_ok_and(|age| age > KEEP_UNKNOWN))
    };
    for name in unused.into_iter().filter(is_old) {
        if let Err(error) = std::fs::remove_dir_all(parent.join(&name)) {
            tracing::warn!(package = name, %error, "cannot remove the folder of a package");
        }
    }
    Ok(())
}

/// Unpacks the packages of all tenants that are not on this node. Returns whether there was one to unpack.
async fn unpack_missing(app: &Context) -> Result<bool, ServiceError> {
    let known = app.store().catalog().packages().await?;
    let parent = packages(app);
    let present = list(&parent);
    let mut is_changed = false;
    for (tenant, hash) in &known {
        if !present.contains(hash) {
            unpack_stored(app, tenant, hash).await?;
            is_changed = true;
        }
    }
    Ok(is_changed)
}

async fn unpack_stored(app: &Context, tenant: &TenantId, hash: &str) -> Result<(), ServiceError> {
    let Some(archive) = app.store().catalog().package(tenant, hash).await? else { return Ok(()) };
    let read = tokio::task::spawn_blocking(move || haft_package::zip::read(&archive)).await;
    let files = read.map_err(|error| ServiceError::new(ErrorCode::Internal, error.to_string()))?;
    let files = files.map_err(|problems| ServiceError::invalid_definition(&problems))?;
    unpack(app, files).await.map(drop)
}

fn list(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// Unpacks what other nodes install, until dropped.
pub async fn keep_unpacked(app: &Arc<Context>) {
    loop {
        tokio::time::sleep(INTERVAL).await;
        match unpack_missing(app).await {
            // The tools were compiled without their files.
            Ok(true) => app.verify().await,
            Ok(false) => {}
            Err(error) => tracing::warn!(error = error.message, "cannot unpack a package"),
        }
    }
}

/// Reads all files of an unpacked package; `None` if it is not on this node.
pub async fn read_package(app: &Context, hash: &str) -> Option<PackageFiles> {
    // The hash of a definition may be any text.
    if hash.is_empty() || !hash.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let path = packages(app).join(hash);
    tokio::task::spawn_blocking(move || folder::read(&path).ok()).await.ok().flatten()
}

/// Reads a file of an unpacked package; `None` if there is none.
pub async fn read_file(app: &Context, hash: &str, path: &str) -> Option<Vec<u8>> {
    let path = haft_package::path::PackagePath::new(path).ok()?;
    let file = packages(app).join(hash).join(path.as_str());
    let read = move || {
        let about = std::fs::symlink_metadata(&file).ok()?;
        if !about.is_file() || about.len() > MAX_FILE {
            return None;
        }
        std::fs::read(&file).ok()
    };
    tokio::task::spawn_blocking(read).await.ok().flatten()
}
