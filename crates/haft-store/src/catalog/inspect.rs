//! Reading definition files.

use haft_core::catalog::StoreError;
use haft_core::name::{BundleSlug, TenantId};
use haft_definition::folder::{ReadError, SymbolicLinks, read_text};

use super::state::Catalog;
use crate::files::layout;

impl Catalog {
    /// Returns the folder of a bundle, relative to the home folder; `None` without definition files.
    pub fn bundle_folder(&self, tenant: &TenantId, slug: &BundleSlug) -> Option<String> {
        self.state.db.files.as_ref().map(|_| layout::bundle_folder(tenant, slug))
    }

    /// Returns the text of a definition file, or `None` if it cannot be read.
    ///
    /// `path` is the path of a tool in the catalog.
    pub async fn definition_text(&self, path: &str) -> Result<Option<String>, StoreError> {
        let Some(files) = &self.state.db.files else { return Ok(None) };
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
