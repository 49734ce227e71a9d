//! Health check and access to definition files.

use haft_core::catalog::StoreError;
use haft_core::name::{BundleSlug, TenantId};
use haft_definition::folder::{ReadError, SymbolicLinks, read_text};

use crate::engine::failed_to;
use crate::files::layout;
use crate::store::Store;

impl Store {
    /// Checks that the database accepts writes.
    pub async fn ping(&self) -> Result<(), StoreError> {
        let action = "write to the database";
        let tx = self.inner.engine.begin().await.map_err(failed_to(action))?;
        tx.rollback().await.map_err(failed_to(action))
    }

    /// Returns the folder of a bundle, relative to the home folder; `None` without definition files.
    pub fn bundle_folder(&self, tenant: &TenantId, slug: &BundleSlug) -> Option<String> {
        self.inner.files.as_ref().map(|_| layout::bundle_folder(tenant, slug))
    }

    /// Returns the text of a definition file, or `None` if it cannot be read.
    ///
    /// `path` is the path of a tool in the catalog.
    pub async fn definition_text(&self, path: &str) -> Result<Option<String>, StoreError> {
        let Some(files) = &self.inner.files else { return Ok(None) };
        let path = files.at(path);
        let read = files
            .run("read a definition file".into(), move |_| Ok(read_text(&path, SymbolicLinks::Reject)))
            .await?;
        match read {
            Ok((text, _)) => Ok(Some(text)),
            Err(ReadError::NotFound | ReadError::Unreadable { .. }) => Ok(None),
        }
    }
}
