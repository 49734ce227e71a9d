//! Where packages come from: an upload, a URL, a folder of this machine.

use std::path::PathBuf;

use haft_core::outcome::ErrorCode;
use haft_core::problem::Problem;
use haft_core::toolset::PackageSource;
use haft_package::files::PackageFiles;
use haft_package::package::Package;

use crate::context::Context;
use crate::error::ServiceError;
use crate::importing::fetch_bytes;

/// The largest package as a ZIP file.
pub const MAX_PACKAGE_BYTES: usize = 128 << 20;

/// How a package came here.
#[derive(Debug, Clone)]
pub struct Origin {
    pub kind: PackageSource,
    /// The URL or folder.
    pub reference: Option<String>,
}

/// Opens a ZIP file.
pub async fn open_zip(bytes: Vec<u8>) -> Result<Package, ServiceError> {
    open(move || haft_package::zip::read(&bytes)).await
}

/// Opens a folder of this machine.
pub async fn open_folder(folder: PathBuf) -> Result<Package, ServiceError> {
    open(move || haft_package::folder::read(&folder)).await
}

/// Downloads a ZIP file through the egress guard.
pub async fn fetch_package(app: &Context, url: &str) -> Result<Package, ServiceError> {
    let (bytes, _) =
        fetch_bytes(app, url, MAX_PACKAGE_BYTES, "the package exceeds the limit of 128 MiB").await?;
    open_zip(bytes).await
}

/// Reads files and opens them as a package, off the async workers.
async fn open(
    read: impl FnOnce() -> Result<PackageFiles, Vec<Problem>> + Send + 'static,
) -> Result<Package, ServiceError> {
    let opened = tokio::task::spawn_blocking(move || read().and_then(Package::open)).await;
    let opened = opened.map_err(|error| ServiceError::new(ErrorCode::Internal, error.to_string()))?;
    opened.map_err(|problems| ServiceError::invalid_definition(&problems))
}
