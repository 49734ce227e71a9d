//! Enters bundle folders and unreadable files into the index.

use haft_core::bundle::Bundle;
use haft_core::catalog::{FileForm, StoreError};
use haft_core::id::BundleId;
use haft_core::name::{BundleSlug, TenantId};

use super::sync::name_hint;
use crate::engine::fault;
use crate::files::bundle_file::{self, BundleFile};
use crate::files::layout::{self, BUNDLE_FILE};
use crate::files::read::{self, ReadFault};
use crate::files::scan::{Found, FoundBundle};
use crate::session::Session;
use crate::store::{KnownBundle, KnownFile};
use crate::time;

const DOING: &str = "enter the bundles into the index";

impl Session<'_> {
    /// Enters what a folder and its `bundle.yaml` say.
    pub(crate) async fn apply_bundle(&mut self, found: FoundBundle) -> Result<(), StoreError> {
        let path = format!("{}/{BUNDLE_FILE}", layout::bundle_folder(&found.tenant, &found.slug));
        let (said, why) = self.read_bundle_file(&path).await?;
        self.note_bundle_file(&found, &path, why.as_deref()).await?;
        let stored = self.bundle_by_slug(&found.tenant, &found.slug).await.map_err(fault(DOING))?;
        let bundle = match stored {
            None => self.enter_bundle(&found.tenant, &found.slug, said).await?,
            // Nothing is read from a file that cannot be read, also not that the bundle is alive.
            Some(old) if why.is_some() => old,
            // A folder cannot say anything about the bundle of an MCP server.
            Some(old) if self.is_mcp_bundle(&old).await.map_err(fault(DOING))? => old,
            Some(old) => {
                let bundle = merged(&old, said, self.inner.now());
                if bundle != old {
                    self.save_bundle(&bundle).await.map_err(fault(DOING))?;
                }
                bundle
            }
        };
        self.set_bundle_stamp(bundle.id, found.stamp.as_ref()).await.map_err(fault(DOING))?;
        let known = KnownBundle { id: bundle.id, stamp: found.stamp };
        self.learn_bundle(&found.tenant, &found.slug, Some(known));
        Ok(())
    }

    /// Shows a `bundle.yaml` that cannot be read among the files that cannot.
    async fn note_bundle_file(
        &mut self,
        found: &FoundBundle,
        path: &str,
        why: Option<&str>,
    ) -> Result<(), StoreError> {
        let (Some(why), Some(stamp)) = (why, &found.stamp) else {
            return self.forget_bundle_file(path).await;
        };
        tracing::warn!(path, why, "the description of a bundle cannot be read; what was known of it stays");
        let file = Found {
            path: path.to_owned(),
            tenant: found.tenant.clone(),
            bundle: found.slug.clone(),
            stamp: stamp.clone(),
            modified_at: found.modified_at,
            form: FileForm::Yaml,
            fault: None,
        };
        let text = format!("{path}: {why}; what was known of the bundle stays");
        self.note_unreadable(&file, &text).await?;
        self.learn_file(file.path, Some(KnownFile { stamp: file.stamp, tool: None }));
        Ok(())
    }

    /// Says that a `bundle.yaml` can be read, or is not there.
    pub(crate) async fn forget_bundle_file(&mut self, path: &str) -> Result<(), StoreError> {
        if !self.state.files.contains_key(path) {
            return Ok(());
        }
        self.learn_file(path.to_owned(), None);
        self.forget_unreadable(path).await
    }

    async fn read_bundle_file(&mut self, path: &str) -> Result<(BundleFile, Option<String>), StoreError> {
        let Some(files) = &self.inner.files else { return Ok((BundleFile::default(), None)) };
        let relative = path.to_owned();
        files
            .run(format!("read `{path}`"), move |home| {
                Ok(match read::text(&home.join(relative)) {
                    Ok((text, _)) => match bundle_file::parse(&text) {
                        Ok(said) => (said, None),
                        Err(why) => (BundleFile::default(), Some(why)),
                    },
                    Err(ReadFault::Gone) => (BundleFile::default(), None),
                    Err(ReadFault::Bad(why)) => (BundleFile::default(), Some(why)),
                })
            })
            .await
    }

    /// Makes a bundle of a folder.
    pub(crate) async fn enter_bundle(
        &mut self,
        tenant: &TenantId,
        slug: &BundleSlug,
        said: BundleFile,
    ) -> Result<Bundle, StoreError> {
        let now = self.inner.now();
        // A copied folder brings the id of the original along; the copy gets its own.
        let mut id = said.id;
        if let Some(wanted) = id
            && self.find_bundle(wanted).await.map_err(fault(DOING))?.is_some()
        {
            id = None;
        }
        let created_at = said.created_at.map_or(now, |at| time::from_micros(at.as_microsecond()));
        let blank = Bundle {
            id: id.unwrap_or_else(|| BundleId(time::new_id(&*self.inner.clock))),
            tenant: tenant.clone(),
            slug: slug.clone(),
            display_name: slug.to_string(),
            description: String::new(),
            enabled: true,
            built_in: false,
            created_at,
            modified_at: created_at,
            soft_deleted_at: None,
        };
        let modified_at = blank.modified_at;
        let bundle = Bundle { modified_at, ..merged(&blank, said, now) };
        self.save_bundle(&bundle).await.map_err(fault(DOING))?;
        self.learn_bundle(tenant, slug, Some(KnownBundle { id: bundle.id, stamp: None }));
        Ok(bundle)
    }

    /// Drops a bundle whose folder is gone; for as long as its tools may come back, it waits with them.
    pub(crate) async fn drop_bundle(
        &mut self,
        tenant: &TenantId,
        slug: &BundleSlug,
    ) -> Result<(), StoreError> {
        if let Some(bundle) = self.bundle_by_slug(tenant, slug).await.map_err(fault(DOING))?
            && self.count_in(&bundle).await.map_err(fault(DOING))? == 0
            && !self.is_mcp_bundle(&bundle).await.map_err(fault(DOING))?
        {
            if !self.has_gone(bundle.id).await.map_err(fault(DOING))? {
                self.remove_bundle(bundle.id).await.map_err(fault(DOING))?;
            } else if bundle.soft_deleted_at.is_none() {
                let waiting = Bundle { soft_deleted_at: Some(self.inner.now()), ..bundle };
                self.save_bundle(&waiting).await.map_err(fault(DOING))?;
            }
        }
        self.learn_bundle(tenant, slug, None);
        Ok(())
    }

    pub(crate) async fn note_unreadable(&mut self, found: &Found, error: &str) -> Result<(), StoreError> {
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
        .bind(&found.stamp.0)
        .bind(found.modified_at.as_microsecond())
        .execute(&mut *self.tx)
        .await
        .map_err(fault("note an unreadable file"))?;
        self.touch_path(found.path.clone());
        Ok(())
    }

    pub(crate) async fn forget_unreadable(&mut self, path: &str) -> Result<(), StoreError> {
        let done = sqlx::query("DELETE FROM unreadable WHERE path = $1")
            .bind(path)
            .execute(&mut *self.tx)
            .await
            .map_err(fault("forget an unreadable file"))?;
        if done.rows_affected() > 0 {
            self.touch_path(path.to_owned());
        }
        Ok(())
    }
}

/// Returns the bundle with what its file says.
fn merged(old: &Bundle, said: BundleFile, now: haft_core::Timestamp) -> Bundle {
    let micros = |at: haft_core::Timestamp| time::from_micros(at.as_microsecond());
    let bundle = Bundle {
        display_name: said.display_name.unwrap_or_else(|| old.display_name.clone()),
        description: said.description.unwrap_or_else(|| old.description.clone()),
        enabled: said.enabled.unwrap_or(old.enabled),
        soft_deleted_at: said.soft_deleted_at.map(micros),
        ..old.clone()
    };
    let same = bundle.display_name == old.display_name && bundle.description == old.description;
    Bundle { modified_at: if same { old.modified_at } else { now }, ..bundle }
}
