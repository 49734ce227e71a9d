//! Creating, replacing, enabling, deleting and reviving bundles.

use std::path::Path;

use haft_core::Timestamp;
use haft_core::bundle::{Bundle, BundleKind};
use haft_core::catalog::{PutBundle, PutResult, StoreError};
use haft_core::id::BundleId;
use haft_core::name::{BundleSlug, TenantId};
use haft_core::problem::Problem;
use haft_definition::folder::{BUNDLE_FILE, FileStamp, ReadError, SymbolicLinks, read_text};

use super::session::Session;
use super::state::CatalogState;
use super::state::IndexedBundle;
use crate::engine::{failed_to, is_conflict};
use crate::files::bundle_file::{self, BundleText};
use crate::files::history;
use crate::files::layout;
use crate::files::write::{self, FileMode, IfExists, Undo};
use crate::time;

/// The longest folder name of common file systems.
const MAX_FOLDER_BYTES: usize = 255;

impl CatalogState {
    pub(crate) async fn put_bundle(&self, put: PutBundle) -> Result<(Bundle, PutResult), StoreError> {
        check_slug(&put.slug)?;
        let mut session = self.session().await?;
        let action = "find the bundle";
        let by_slug = session.bundle_by_slug(&put.tenant, &put.slug).await.map_err(failed_to(action))?;
        let by_id = match put.id {
            Some(id) => session.find_bundle(id).await.map_err(failed_to(action))?,
            None => None,
        };
        let old = match (put.id, by_id, by_slug) {
            (Some(id), Some(found), _) if found.tenant != put.tenant => {
                return Err(StoreError::Conflict(format!("the bundle id `{id}` is already in use")));
            }
            (_, Some(found), _) if found.slug != put.slug => {
                return Err(StoreError::Conflict(format!(
                    "bundle `{}` has the slug `{}`, which cannot be changed; create a new bundle instead",
                    found.id, found.slug
                )));
            }
            (Some(id), None, Some(found)) => {
                return Err(StoreError::Conflict(format!(
                    "bundle `{}` already exists with the id `{}`, not `{id}`",
                    found.slug, found.id
                )));
            }
            (_, Some(found), _) | (None, None, Some(found)) => Some(found),
            (_, None, None) => None,
        };
        let (bundle, outcome) = self.merge(put, old)?;
        session.save_bundle(&bundle).await.map_err(|error| {
            if is_conflict(&error) {
                return StoreError::Conflict(format!("bundle `{}` already exists", bundle.slug));
            }
            failed_to("store the bundle")(error)
        })?;
        session.write_bundle_file(&bundle).await?;
        session.finish().await?;
        Ok((bundle, outcome))
    }

    fn merge(&self, put: PutBundle, old: Option<Bundle>) -> Result<(Bundle, PutResult), StoreError> {
        let now = self.db.now();
        let Some(old) = old else {
            let id = put.id.unwrap_or_else(|| BundleId(time::new_id(&*self.db.clock)));
            let bundle = Bundle {
                id,
                tenant: put.tenant,
                slug: put.slug,
                display_name: put.display_name,
                description: put.description,
                enabled: put.enabled,
                kind: BundleKind::User,
                created_at: now,
                modified_at: now,
                soft_deleted_at: None,
            };
            return Ok((bundle, PutResult::Created));
        };
        if old.kind.is_read_only() {
            return Err(read_only(&old));
        }
        let same = old.display_name == put.display_name
            && old.description == put.description
            && old.soft_deleted_at.is_none();
        let bundle = Bundle {
            display_name: put.display_name,
            description: put.description,
            enabled: put.enabled,
            modified_at: if same { old.modified_at } else { now },
            soft_deleted_at: None,
            ..old
        };
        Ok((bundle, PutResult::Replaced))
    }

    pub(crate) async fn enable_bundle(&self, id: BundleId, enabled: bool) -> Result<Bundle, StoreError> {
        let mut session = self.session().await?;
        let old = session.live_bundle(id).await?;
        if old.enabled == enabled {
            return Ok(old);
        }
        let bundle = Bundle { enabled, ..old };
        session.save_bundle(&bundle).await.map_err(failed_to("enable or disable the bundle"))?;
        if !bundle.kind.is_read_only() {
            session.write_bundle_file(&bundle).await?;
        }
        session.finish().await?;
        Ok(bundle)
    }

    pub(crate) async fn delete_bundle(&self, id: BundleId) -> Result<(), StoreError> {
        let mut session = self.session().await?;
        let old = session.live_bundle(id).await?;
        if old.kind.is_read_only() {
            return Err(read_only(&old));
        }
        let count = session.count_content(&old).await.map_err(failed_to("count the tools of the bundle"))?;
        if count > 0 {
            return Err(StoreError::Conflict(format!(
                "bundle `{}` is not empty: it holds {count} tools or definition files; delete them first",
                old.slug
            )));
        }
        let bundle = Bundle { soft_deleted_at: Some(self.db.now()), ..old };
        session.save_bundle(&bundle).await.map_err(failed_to("delete the bundle"))?;
        session.write_bundle_file(&bundle).await?;
        session.finish().await.map(drop)
    }
}

impl Session<'_> {
    /// Finds a bundle that is not deleted.
    pub(crate) async fn live_bundle(&mut self, id: BundleId) -> Result<Bundle, StoreError> {
        match self.find_bundle(id).await.map_err(failed_to("find the bundle"))? {
            Some(bundle) if bundle.soft_deleted_at.is_none() => Ok(bundle),
            _ => Err(StoreError::not_found("bundle", id)),
        }
    }

    /// Finds or creates the bundle of a new tool.
    pub(crate) async fn ensure_bundle(
        &mut self,
        tenant: &TenantId,
        slug: &BundleSlug,
    ) -> Result<Bundle, StoreError> {
        self.catalog.reject_symlink(&layout::bundle_folder(tenant, slug))?;
        let found = self.bundle_by_slug(tenant, slug).await.map_err(failed_to("find the bundle"))?;
        if let Some(bundle) = found {
            // A bundle whose folder is missing was not deleted by a user.
            let folder = layout::bundle_folder(tenant, slug);
            let is_missing = self.db.files.as_ref().is_some_and(|files| !files.at(&folder).exists());
            if bundle.soft_deleted_at.is_some() && is_missing && !bundle.kind.is_read_only() {
                return self.revive(bundle).await;
            }
            check_bundle_editable(&bundle)?;
            return Ok(bundle);
        }
        check_slug(slug)?;
        let now = self.db.now();
        let bundle = Bundle {
            id: BundleId(time::new_id(&*self.db.clock)),
            tenant: tenant.clone(),
            slug: slug.clone(),
            display_name: slug.to_string(),
            description: String::new(),
            enabled: true,
            kind: BundleKind::User,
            created_at: now,
            modified_at: now,
            soft_deleted_at: None,
        };
        self.save_bundle(&bundle).await.map_err(|error| {
            if is_conflict(&error) {
                return StoreError::Conflict(format!(
                    "another request is creating the bundle `{slug}`; retry"
                ));
            }
            failed_to("store the bundle")(error)
        })?;
        self.write_bundle_file(&bundle).await?;
        Ok(bundle)
    }

    /// Restores a deleted bundle.
    pub(crate) async fn revive(&mut self, bundle: Bundle) -> Result<Bundle, StoreError> {
        let bundle = Bundle { soft_deleted_at: None, modified_at: self.db.now(), ..bundle };
        self.save_bundle(&bundle).await.map_err(failed_to("revive the bundle"))?;
        match self.write_bundle_file(&bundle).await {
            // An unreadable `bundle.yaml` is reported by the scan and does not block the definitions.
            Ok(()) | Err(StoreError::Conflict(_)) => Ok(bundle),
            Err(error) => Err(error),
        }
    }

    /// Writes `bundle.yaml` in an embedded store.
    pub(super) async fn write_bundle_file(&mut self, bundle: &Bundle) -> Result<(), StoreError> {
        let Some(files) = self.db.files.clone() else { return Ok(()) };
        let folder = layout::bundle_folder(&bundle.tenant, &bundle.slug);
        self.catalog.reject_symlink(&folder)?;
        let relative = format!("{folder}/{BUNDLE_FILE}");
        let (copy, now) = (bundle.clone(), self.db.now());
        let path = relative.clone();
        let written = files
            .run(format!("write `{relative}`"), move |home| {
                put_file(home, (folder.as_str(), path.as_str()), &copy, now)
            })
            .await?;
        let (stamp, undo) = written.map_err(|reason| {
            StoreError::Conflict(format!(
                "`{relative}` is invalid: {reason}; fix or remove the file, then retry"
            ))
        })?;
        self.add_undo(undo);
        self.clear_bundle_file_error(&relative).await?;
        self.set_bundle_stamp(bundle.id, Some(&stamp)).await.map_err(failed_to("store the bundle"))?;
        let indexed = IndexedBundle { id: bundle.id, stamp: Some(stamp) };
        self.index_bundle(&bundle.tenant, &bundle.slug, Some(indexed));
        Ok(())
    }
}

/// Writes `bundle.yaml`. The inner error is the reason why the existing file is invalid, and so cannot be changed
/// without losing its content. A deletion replaces an invalid file as well, after a backup.
fn put_file(
    home: &Path,
    (folder, relative): (&str, &str),
    bundle: &Bundle,
    now: Timestamp,
) -> std::io::Result<Result<(FileStamp, Undo), String>> {
    let folder = home.join(folder);
    let mut undo = Undo::default();
    if !folder.exists() {
        std::fs::create_dir_all(&folder)?;
        undo.append(Undo::remove(folder.clone()));
    }
    let path = folder.join(BUNDLE_FILE);
    let old = match read_text(&path, SymbolicLinks::Reject) {
        Ok((text, metadata)) => Some((text, FileMode::of(&metadata))),
        Err(ReadError::NotFound) => None,
        Err(ReadError::Unreadable { message, .. }) => return Ok(Err(message)),
    };
    let (before, mode) = old.as_ref().map_or(("", FileMode::New), |(text, mode)| (text.as_str(), *mode));
    let invalid = bundle_file::parse(before).err();
    if let (Some(reason), None) = (&invalid, bundle.soft_deleted_at) {
        return Ok(Err(reason.clone()));
    }
    let (text, edited) = match bundle_file::write(before, bundle).map_err(std::io::Error::other)? {
        BundleText::Edited(text) => (text, true),
        BundleText::Rewritten(text) => (text, false),
    };
    if invalid.is_some() || !edited {
        let backup = history::save(home, relative, before.as_bytes(), now)?;
        tracing::warn!(path = relative, backup, "rewrote a bundle file that could not be edited");
    }
    write::write(&path, text.as_bytes(), IfExists::Replace, mode)?;
    undo.append(match old {
        Some((old, mode)) => Undo::restore(path.clone(), old.into_bytes(), mode),
        None => Undo::remove(path.clone()),
    });
    Ok(Ok((FileStamp::of(&std::fs::symlink_metadata(&path)?), undo)))
}

/// Rejects changes in a bundle that is read-only, deleted or disabled.
pub(crate) fn check_bundle_editable(bundle: &Bundle) -> Result<(), StoreError> {
    if bundle.kind.is_read_only() {
        return Err(read_only(bundle));
    }
    if bundle.soft_deleted_at.is_some() {
        return Err(StoreError::ReadOnly(format!(
            "bundle `{}` is deleted; create it again to restore it",
            bundle.slug
        )));
    }
    if !bundle.enabled {
        return Err(StoreError::ReadOnly(format!("bundle `{}` is disabled; enable it first", bundle.slug)));
    }
    Ok(())
}

pub(super) fn read_only(bundle: &Bundle) -> StoreError {
    let origin = match bundle.kind {
        BundleKind::Mcp => "mirrors an MCP server",
        BundleKind::BuiltIn | BundleKind::User | BundleKind::Toolset => "is built in",
    };
    StoreError::ReadOnly(format!("bundle `{}` {origin}; only `enabled` can be changed", bundle.slug))
}

pub(super) fn check_slug(slug: &BundleSlug) -> Result<(), StoreError> {
    if *slug == BundleSlug::built_in() {
        return Err(StoreError::ReadOnly(format!("the bundle name `{slug}` is reserved; choose another")));
    }
    if slug.as_str().len() > MAX_FOLDER_BYTES {
        let message =
            format!("{} bytes exceed the limit of {MAX_FOLDER_BYTES} for a folder name", slug.as_str().len());
        return Err(StoreError::Invalid(vec![Problem::new("slug", "too_long", message)]));
    }
    Ok(())
}

impl CatalogState {
    /// Rejects a folder that is a symbolic link, as it may lead out of the home folder. Only `skills` itself may be
    /// one.
    pub(crate) fn reject_symlink(&self, folder: &str) -> Result<(), StoreError> {
        let Some(files) = &self.db.files else { return Ok(()) };
        let ends = folder.match_indices('/').map(|(at, _)| at).skip(1).chain([folder.len()]);
        for part in ends.filter_map(|end| folder.get(..end)).filter(|part| part.contains('/')) {
            if std::fs::symlink_metadata(files.at(part)).is_ok_and(|found| found.is_symlink()) {
                let message =
                    format!("`{part}` is a symbolic link, which is not followed; replace it by the folder");
                return Err(StoreError::ReadOnly(message));
            }
        }
        Ok(())
    }
}
