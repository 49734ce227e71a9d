//! Small questions to the store: does it answer, and what does a definition file say.

use haft_core::catalog::StoreError;
use haft_core::name::{BundleSlug, TenantId};

use crate::engine::fault;
use crate::files::layout;
use crate::files::read::{self, ReadFault};
use crate::store::Store;

impl Store {
    /// Makes sure that the database lets us write.
    pub async fn ping(&self) -> Result<(), StoreError> {
        let doing = "ask the database";
        let tx = self.inner.engine.begin().await.map_err(fault(doing))?;
        tx.rollback().await.map_err(fault(doing))
    }

    /// Returns the folder of a bundle, relative to the home folder, where there are files.
    pub fn bundle_folder(&self, tenant: &TenantId, slug: &BundleSlug) -> Option<String> {
        self.inner.files.as_ref().map(|_| layout::bundle_folder(tenant, slug))
    }

    /// Returns the text of a definition file as its author wrote it, where there are files.
    ///
    /// `path` is the path of a tool, as the catalog gives it.
    pub async fn definition_text(&self, path: &str) -> Result<Option<String>, StoreError> {
        let Some(files) = &self.inner.files else { return Ok(None) };
        let path = files.at(path);
        let read = files.run("read a definition".into(), move |_| Ok(read::text(&path))).await?;
        match read {
            Ok((text, _)) => Ok(Some(text)),
            Err(ReadFault::Gone | ReadFault::Bad(_)) => Ok(None),
        }
    }
}
