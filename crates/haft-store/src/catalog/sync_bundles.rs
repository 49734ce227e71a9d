//! Applies bundle folders and unreadable files to the index.

use haft_core::bundle::{Bundle, BundleKind};
use haft_core::catalog::{FileForm, StoreError};
use haft_core::id::BundleId;
use haft_core::name::{BundleSlug, TenantId};
use haft_definition::folder::{BUNDLE_FILE, ReadError, SymbolicLinks, read_text};

use super::session::Session;
use super::state::{IndexedBundle, IndexedFile};
use super::sync::name_hint;
use crate::engine::failed_to;
use crate::files::bundle_file::{self, BundleFile};
use crate::files::layout;
use crate::files::scan::{ScannedBundle, ScannedFile};
use crate::time;

const INDEX: &str = "index the bundles";

impl Session<'_> {
    /// Applies a bundle folder and its `bundle.yaml`.
    pub(crate) async fn apply_bundle(&mut self, found: ScannedBundle) -> Result<(), StoreError> {
        let path = format!("{}/{BUNDLE_FILE}", layout::bundle_folder(&found.tenant, &found.slug));
        let (file, error) = self.read_bundle_file(&path).await?;
        self.update_bundle_file_error(&found, &path, error.as_deref()).await?;
        let stored = self.bundle_by_slug(&found.tenant, &found.slug).await.map_err(failed_to(INDEX))?;
        let bundle = match stored {
            None => self.insert_bundle(&found.tenant, &found.slug, file).await?,
            // An unreadable file changes nothing, not even a deletion.
            Some(old) if error.is_some() => old,
            // A folder does not describe the bundle of an MCP server.
            Some(old) if old.kind == BundleKind::Mcp => old,
            Some(old) => {
                let bundle = merged(&old, file, self.db.now());
                if bundle != old {
                    self.save_bundle(&bundle).await.map_err(failed_to(INDEX))?;
                }
                bundle
            }
        };
        self.set_bundle_stamp(bundle.id, found.stamp.as_ref()).await.map_err(failed_to(INDEX))?;
        let indexed = IndexedBundle { id: bundle.id, stamp: found.stamp };
        self.index_bundle(&found.tenant, &found.slug, Some(indexed));
        Ok(())
    }

    /// Reports or clears the error of a `bundle.yaml`.
    async fn update_bundle_file_error(
        &mut self,
        found: &ScannedBundle,
        path: &str,
        error: Option<&str>,
    ) -> Result<(), StoreError> {
        let (Some(error), Some(stamp)) = (error, &found.stamp) else {
            return self.clear_bundle_file_error(path).await;
        };
        tracing::warn!(path, error, "invalid bundle file; the bundle keeps its last settings");
        let file = ScannedFile {
            path: path.to_owned(),
            tenant: found.tenant.clone(),
            bundle: found.slug.clone(),
            stamp: stamp.clone(),
            modified_at: found.modified_at,
            form: FileForm::Yaml,
            error: None,
        };
        let text = format!("{path}: {error}; the bundle keeps its last settings");
        self.save_unreadable(&file, &text).await?;
        self.index_file(file.path, Some(IndexedFile { stamp: file.stamp, tool: None }));
        Ok(())
    }

    /// Clears the error of a `bundle.yaml`.
    pub(crate) async fn clear_bundle_file_error(&mut self, path: &str) -> Result<(), StoreError> {
        if !self.index.files.contains_key(path) {
            return Ok(());
        }
        self.index_file(path.to_owned(), None);
        self.delete_unreadable(path).await
    }

    async fn read_bundle_file(&mut self, path: &str) -> Result<(BundleFile, Option<String>), StoreError> {
        let Some(files) = &self.db.files else { return Ok((BundleFile::default(), None)) };
        let relative = path.to_owned();
        files
            .run(format!("read `{path}`"), move |home| {
                Ok(match read_text(&home.join(relative), SymbolicLinks::Reject) {
                    Ok((text, _)) => match bundle_file::parse(&text) {
                        Ok(file) => (file, None),
                        Err(error) => (BundleFile::default(), Some(error)),
                    },
                    Err(ReadError::NotFound) => (BundleFile::default(), None),
                    Err(ReadError::Unreadable { message, .. }) => (BundleFile::default(), Some(message)),
                })
            })
            .await
    }

    /// Creates the bundle of a folder.
    pub(crate) async fn insert_bundle(
        &mut self,
        tenant: &TenantId,
        slug: &BundleSlug,
        file: BundleFile,
    ) -> Result<Bundle, StoreError> {
        let now = self.db.now();
        // A copied folder has the id of the original; the copy gets its own.
        let mut id = file.id;
        if let Some(taken) = id
            && self.find_bundle(taken).await.map_err(failed_to(INDEX))?.is_some()
        {
            id = None;
        }
        let created_at = file.created_at.map_or(now, |at| time::from_micros(at.as_microsecond()));
        let blank = Bundle {
            id: id.unwrap_or_else(|| BundleId(time::new_id(&*self.db.clock))),
            tenant: tenant.clone(),
            slug: slug.clone(),
            display_name: slug.to_string(),
            description: String::new(),
            enabled: true,
            kind: BundleKind::User,
            created_at,
            modified_at: created_at,
            soft_deleted_at: None,
        };
        let modified_at = blank.modified_at;
        let bundle = Bundle { modified_at, ..merged(&blank, file, now) };
        self.save_bundle(&bundle).await.map_err(failed_to(INDEX))?;
        self.index_bundle(tenant, slug, Some(IndexedBundle { id: bundle.id, stamp: None }));
        Ok(bundle)
    }

    /// Removes a bundle whose folder is missing, or marks it as deleted while it has hidden tools.
    pub(crate) async fn drop_missing_bundle(
        &mut self,
        tenant: &TenantId,
        slug: &BundleSlug,
    ) -> Result<(), StoreError> {
        if let Some(bundle) = self.bundle_by_slug(tenant, slug).await.map_err(failed_to(INDEX))?
            && self.count_content(&bundle).await.map_err(failed_to(INDEX))? == 0
            && bundle.kind != BundleKind::Mcp
        {
            if !self.has_missing(bundle.id).await.map_err(failed_to(INDEX))? {
                self.remove_bundle(bundle.id).await.map_err(failed_to(INDEX))?;
            } else if bundle.soft_deleted_at.is_none() {
                let deleted = Bundle { soft_deleted_at: Some(self.db.now()), ..bundle };
                self.save_bundle(&deleted).await.map_err(failed_to(INDEX))?;
            }
        }
        self.index_bundle(tenant, slug, None);
        Ok(())
    }

    pub(crate) async fn save_unreadable(
        &mut self,
        found: &ScannedFile,
        error: &str,
    ) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO unreadable (path, tenant, bundle, name, error, stamp, modified_at) \
             VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (path) DO UPDATE SET error = excluded.error, \
             stamp = excluded.stamp, modified_at = excluded.modified_at",
        )
        .bind(&found.path)
        .bind(found.tenant.as_str())
        .bind(found.bundle.as_str())
        .bind(name_hint(&found.path))
        .bind(error)
        .bind(found.stamp.as_str())
        .bind(found.modified_at.as_microsecond())
        .execute(&mut *self.tx)
        .await
        .map_err(failed_to("store the error of a definition file"))?;
        self.mark_path_changed(found.path.clone());
        Ok(())
    }

    pub(crate) async fn delete_unreadable(&mut self, path: &str) -> Result<(), StoreError> {
        let done = sqlx::query("DELETE FROM unreadable WHERE path = $1")
            .bind(path)
            .execute(&mut *self.tx)
            .await
            .map_err(failed_to("clear the error of a definition file"))?;
        if done.rows_affected() > 0 {
            self.mark_path_changed(path.to_owned());
        }
        Ok(())
    }
}

/// Returns the bundle with the values of its file.
fn merged(old: &Bundle, file: BundleFile, now: haft_core::Timestamp) -> Bundle {
    let micros = |at: haft_core::Timestamp| time::from_micros(at.as_microsecond());
    let bundle = Bundle {
        display_name: file.display_name.unwrap_or_else(|| old.display_name.clone()),
        description: file.description.unwrap_or_else(|| old.description.clone()),
        enabled: file.enabled.unwrap_or(old.enabled),
        soft_deleted_at: file.soft_deleted_at.map(micros),
        ..old.clone()
    };
    let same = bundle.display_name == old.display_name && bundle.description == old.description;
    Bundle { modified_at: if same { old.modified_at } else { now }, ..bundle }
}
