//! Creating, replacing, switching, deleting and reviving bundles.

use std::path::Path;

use haft_core::Timestamp;
use haft_core::bundle::Bundle;
use haft_core::catalog::{PutBundle, PutResult, StoreError};
use haft_core::id::BundleId;
use haft_core::name::{BundleSlug, TenantId};
use haft_core::problem::Problem;

use crate::engine::{fault, is_conflict};
use crate::files::bundle_file::{self, Written};
use crate::files::history;
use crate::files::layout::{self, BUNDLE_FILE};
use crate::files::read::{self, ReadFault};
use crate::files::stamp::Stamp;
use crate::files::write::{self, Existing, Mode, Undo};
use crate::session::Session;
use crate::store::{Inner, KnownBundle};
use crate::time;

/// File systems take at most this many bytes for a name.
const FOLDER_BYTES: usize = 255;

impl Inner {
    pub(crate) async fn put_bundle(&self, put: PutBundle) -> Result<(Bundle, PutResult), StoreError> {
        check_slug(&put.slug)?;
        let mut session = self.session().await?;
        let doing = "look for the bundle";
        let by_slug = session.bundle_by_slug(&put.tenant, &put.slug).await.map_err(fault(doing))?;
        let by_id = match put.id {
            Some(id) => session.find_bundle(id).await.map_err(fault(doing))?,
            None => None,
        };
        let old = match (put.id, by_id, by_slug) {
            (Some(id), Some(found), _) if found.tenant != put.tenant => {
                return Err(StoreError::Conflict(format!("the bundle id `{id}` is taken")));
            }
            (_, Some(found), _) if found.slug != put.slug => {
                return Err(StoreError::Conflict(format!(
                    "the bundle `{}` is called `{}`; a slug is not changed, make a new bundle instead",
                    found.id, found.slug
                )));
            }
            (Some(id), None, Some(found)) => {
                return Err(StoreError::Conflict(format!(
                    "a bundle `{}` exists with the id `{}`, not `{id}`",
                    found.slug, found.id
                )));
            }
            (_, Some(found), _) | (None, None, Some(found)) => Some(found),
            (_, None, None) => None,
        };
        let (bundle, outcome) = self.merge(put, old)?;
        session.save_bundle(&bundle).await.map_err(|error| {
            if is_conflict(&error) {
                return StoreError::Conflict(format!("a bundle `{}` exists already", bundle.slug));
            }
            fault("store the bundle")(error)
        })?;
        session.write_bundle_file(&bundle).await?;
        session.finish().await?;
        Ok((bundle, outcome))
    }

    fn merge(&self, put: PutBundle, old: Option<Bundle>) -> Result<(Bundle, PutResult), StoreError> {
        let now = self.now();
        let Some(old) = old else {
            let id = put.id.unwrap_or_else(|| BundleId(time::new_id(&*self.clock)));
            let bundle = Bundle {
                id,
                tenant: put.tenant,
                slug: put.slug,
                display_name: put.display_name,
                description: put.description,
                enabled: put.enabled,
                built_in: false,
                created_at: now,
                modified_at: now,
                soft_deleted_at: None,
            };
            return Ok((bundle, PutResult::Created));
        };
        if old.built_in {
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
        session.save_bundle(&bundle).await.map_err(fault("switch the bundle"))?;
        if !bundle.built_in {
            session.write_bundle_file(&bundle).await?;
        }
        session.finish().await?;
        Ok(bundle)
    }

    pub(crate) async fn delete_bundle(&self, id: BundleId) -> Result<(), StoreError> {
        let mut session = self.session().await?;
        let old = session.live_bundle(id).await?;
        if old.built_in {
            return Err(read_only(&old));
        }
        let held = session.count_in(&old).await.map_err(fault("count the tools of the bundle"))?;
        if held > 0 {
            return Err(StoreError::Conflict(format!(
                "the bundle `{}` holds {held} tools or definition files; delete them first",
                old.slug
            )));
        }
        let bundle = Bundle { soft_deleted_at: Some(self.now()), ..old };
        session.save_bundle(&bundle).await.map_err(fault("delete the bundle"))?;
        session.write_bundle_file(&bundle).await?;
        session.finish().await.map(drop)
    }
}

impl Session<'_> {
    /// Finds a bundle that is not deleted.
    pub(crate) async fn live_bundle(&mut self, id: BundleId) -> Result<Bundle, StoreError> {
        match self.find_bundle(id).await.map_err(fault("look for the bundle"))? {
            Some(bundle) if bundle.soft_deleted_at.is_none() => Ok(bundle),
            _ => Err(StoreError::not_found("bundle", id)),
        }
    }

    /// Finds the bundle for a new tool, or makes it.
    pub(crate) async fn ensure_bundle(
        &mut self,
        tenant: &TenantId,
        slug: &BundleSlug,
    ) -> Result<Bundle, StoreError> {
        self.inner.refuse_linked(&layout::bundle_folder(tenant, slug))?;
        let found = self.bundle_by_slug(tenant, slug).await.map_err(fault("look for the bundle"))?;
        if let Some(bundle) = found {
            // One whose folder went away was not deleted by anybody.
            let folder = layout::bundle_folder(tenant, slug);
            let is_lost = self.inner.files.as_ref().is_some_and(|files| !files.at(&folder).exists());
            if bundle.soft_deleted_at.is_some() && is_lost && !bundle.built_in {
                return self.revive(bundle).await;
            }
            check_open(&bundle)?;
            return Ok(bundle);
        }
        check_slug(slug)?;
        let now = self.inner.now();
        let bundle = Bundle {
            id: BundleId(time::new_id(&*self.inner.clock)),
            tenant: tenant.clone(),
            slug: slug.clone(),
            display_name: slug.to_string(),
            description: String::new(),
            enabled: true,
            built_in: false,
            created_at: now,
            modified_at: now,
            soft_deleted_at: None,
        };
        self.save_bundle(&bundle).await.map_err(|error| {
            if is_conflict(&error) {
                return StoreError::Conflict(format!(
                    "the bundle `{slug}` is being made by another request; try again"
                ));
            }
            fault("store the bundle")(error)
        })?;
        self.write_bundle_file(&bundle).await?;
        Ok(bundle)
    }

    /// Brings a deleted bundle back.
    pub(crate) async fn revive(&mut self, bundle: Bundle) -> Result<Bundle, StoreError> {
        let bundle = Bundle { soft_deleted_at: None, modified_at: self.inner.now(), ..bundle };
        self.save_bundle(&bundle).await.map_err(fault("revive the bundle"))?;
        match self.write_bundle_file(&bundle).await {
            // A file that cannot be read is told as such and left to its author; the others are not to wait for that.
            Ok(()) | Err(StoreError::Conflict(_)) => Ok(bundle),
            Err(error) => Err(error),
        }
    }

    /// Writes `bundle.yaml`, where there are files.
    async fn write_bundle_file(&mut self, bundle: &Bundle) -> Result<(), StoreError> {
        let Some(files) = self.inner.files.clone() else { return Ok(()) };
        let folder = layout::bundle_folder(&bundle.tenant, &bundle.slug);
        self.inner.refuse_linked(&folder)?;
        let relative = format!("{folder}/{BUNDLE_FILE}");
        let (copy, now) = (bundle.clone(), self.inner.now());
        let path = relative.clone();
        let written = files
            .run(format!("write `{relative}`"), move |home| {
                put_file(home, (folder.as_str(), path.as_str()), &copy, now)
            })
            .await?;
        let (stamp, undo) = written.map_err(|why| {
            StoreError::Conflict(format!(
                "`{relative}` cannot be read and is left as it is: {why}; mend the file or move it away, then try again"
            ))
        })?;
        self.undo_with(undo);
        self.forget_bundle_file(&relative).await?;
        self.set_bundle_stamp(bundle.id, Some(&stamp)).await.map_err(fault("store the bundle"))?;
        let known = KnownBundle { id: bundle.id, stamp: Some(stamp) };
        self.learn_bundle(&bundle.tenant, &bundle.slug, Some(known));
        Ok(())
    }
}

/// Writes the file of a bundle into its folder; the inner error says why the one that is there cannot be read, and so
/// not be changed without losing what its author wrote. Only the end of the bundle does not wait for that: a copy is
/// kept.
fn put_file(
    home: &Path,
    (folder, relative): (&str, &str),
    bundle: &Bundle,
    now: Timestamp,
) -> std::io::Result<Result<(Stamp, Undo), String>> {
    let folder = home.join(folder);
    let mut undo = Undo::default();
    if !folder.exists() {
        std::fs::create_dir_all(&folder)?;
        undo.append(Undo::remove(folder.clone()));
    }
    let path = folder.join(BUNDLE_FILE);
    let old = match read::text(&path) {
        Ok((text, metadata)) => Some((text, Mode::of(&metadata))),
        Err(ReadFault::Gone) => None,
        Err(ReadFault::Bad(why)) => return Ok(Err(why)),
    };
    let (before, mode) = old.as_ref().map_or(("", Mode::New), |(text, mode)| (text.as_str(), *mode));
    let broken = bundle_file::parse(before).err();
    if let (Some(why), None) = (&broken, bundle.soft_deleted_at) {
        return Ok(Err(why.clone()));
    }
    let (text, edited) = match bundle_file::write(before, bundle).map_err(std::io::Error::other)? {
        Written::Edited(text) => (text, true),
        Written::Anew(text) => (text, false),
    };
    if broken.is_some() || !edited {
        let backup = history::keep(home, relative, before.as_bytes(), now)?;
        tracing::warn!(path = relative, backup, "the file could not be edited; it is written anew");
    }
    write::write(&path, text.as_bytes(), Existing::Replace, mode)?;
    undo.append(match old {
        Some((old, mode)) => Undo::restore(path.clone(), old.into_bytes(), mode),
        None => Undo::remove(path.clone()),
    });
    Ok(Ok((Stamp::of(&std::fs::symlink_metadata(&path)?), undo)))
}

/// Refuses changes inside a bundle that is off, deleted or built in.
pub(crate) fn check_open(bundle: &Bundle) -> Result<(), StoreError> {
    if bundle.built_in {
        return Err(read_only(bundle));
    }
    if bundle.soft_deleted_at.is_some() {
        return Err(StoreError::ReadOnly(format!(
            "the bundle `{}` is deleted; put it again to revive it",
            bundle.slug
        )));
    }
    if !bundle.enabled {
        return Err(StoreError::ReadOnly(format!(
            "the bundle `{}` is disabled; enable it first",
            bundle.slug
        )));
    }
    Ok(())
}

fn read_only(bundle: &Bundle) -> StoreError {
    StoreError::ReadOnly(format!(
        "the bundle `{}` is built in, or holds the tools of an MCP server; only `enabled` can be changed",
        bundle.slug
    ))
}

fn check_slug(slug: &BundleSlug) -> Result<(), StoreError> {
    if *slug == BundleSlug::built_in() {
        return Err(StoreError::ReadOnly(format!("the bundle `{slug}` is built in; choose another name")));
    }
    if slug.as_str().len() > FOLDER_BYTES {
        let message =
            format!("it has {} bytes and names a folder; at most {FOLDER_BYTES} fit", slug.as_str().len());
        return Err(StoreError::Invalid(vec![Problem::new("slug", "too_long", message)]));
    }
    Ok(())
}

impl Inner {
    /// A folder that is a link may lead out of the home folder: it is not read, so nothing is written to it. Only
    /// `skills` itself may be one.
    pub(crate) fn refuse_linked(&self, folder: &str) -> Result<(), StoreError> {
        let Some(files) = &self.files else { return Ok(()) };
        let ends = folder.match_indices('/').map(|(at, _)| at).skip(1).chain([folder.len()]);
        for part in ends.filter_map(|end| folder.get(..end)).filter(|part| part.contains('/')) {
            if std::fs::symlink_metadata(files.at(part)).is_ok_and(|found| found.is_symlink()) {
                let message = format!("`{part}` is a symbolic link; put the folder itself there");
                return Err(StoreError::ReadOnly(message));
            }
        }
        Ok(())
    }
}
