//! Deleted resources: hidden, restored on request, and removed later.
//!
//! A resource whose file vanished is hidden, too; it comes back with its file only.

use std::sync::Arc;

use haft_core::Timestamp;
use haft_core::bundle::REAP_AFTER_HOURS;
use haft_core::catalog::StoreError;
use haft_core::live::ResourceAction;
use haft_core::name::TenantId;
use haft_core::resource::{Resource, ResourceSpec};
use jiff::SignedDuration;
use sqlx::Row as _;
use sqlx::any::AnyRow;

use super::StoredKind;
use super::read::any_in;
use super::write::{ResourceWriter, change_failed, reject_file};
use crate::database::Database;
use crate::limits::check_resource_room;
use crate::resources::Resources;
use crate::rows;

/// How many deleted resources of a kind are kept for a tenant.
const MAX_DELETED: i64 = 1000;

/// The id of a resource, when it was deleted, and the file that defined it.
type Deleted<S> = (<S as ResourceSpec>::Id, Option<Timestamp>, Option<String>);

impl<S: StoredKind> Resources<'_, S> {
    /// Deletes a resource. For 48 hours it can be restored. One that a file defines is a conflict.
    pub async fn delete(&self, tenant: &TenantId, id: S::Id) -> Result<(), StoreError> {
        let tenant = tenant.clone();
        let change = move |inner: Arc<Database>| async move {
            let mut tx = inner.begin_resource_change::<S>().await?;
            let mut writer = ResourceWriter::new(&inner, &mut tx);
            let found = writer.find::<S>(&tenant, id).await?;
            reject_file(&found)?;
            writer.delete(&found).await?;
            let reports = writer.record::<S>(found.definition.slug()).await?;
            inner.commit_resources(tx, &tenant, reports).await
        };
        self.database.complete(change(Arc::clone(self.database))).await
    }

    /// Restores a deleted resource by its id or slug, as it was: with its revisions and its published one. If several of
    /// the slug were deleted, it is the last one. It is a conflict if another resource has the slug now.
    pub async fn undelete(&self, tenant: &TenantId, reference: &str) -> Result<Resource<S>, StoreError> {
        let (tenant, reference) = (tenant.clone(), reference.to_owned());
        let change = move |inner: Arc<Database>| async move {
            let mut tx = inner.begin_resource_change::<S>().await?;
            let mut writer = ResourceWriter::new(&inner, &mut tx);
            let found = writer.deleted::<S>(&tenant, &reference).await?;
            let slug = found.definition.slug().to_owned();
            if writer.has_slug::<S>(&tenant, &slug).await.map_err(change_failed::<S>)? {
                return Err(StoreError::Conflict(format!(
                    "cannot restore the {kind} `{slug}`: another {kind} has this slug now; change or delete that one \
                     first",
                    kind = S::KIND
                )));
            }
            check_resource_room(writer.tx, &tenant, S::KIND).await?;
            writer.free_slug::<S>(&tenant, &slug).await.map_err(change_failed::<S>)?;
            let query = sqlx::query("UPDATE resources SET gone_at = NULL, slug = $1 WHERE id = $2");
            let query = query.bind(&slug).bind(found.id.to_string());
            query.execute(&mut **writer.tx).await.map_err(change_failed::<S>)?;
            let after = writer.finish(&tenant, Some(&found), found.id, ResourceAction::Created).await?;
            let reports = writer.record::<S>(&slug).await?;
            inner.commit_resources(tx, &tenant, reports).await?;
            Ok(after)
        };
        self.database.complete(change(Arc::clone(self.database))).await
    }
}

impl ResourceWriter<'_> {
    /// Hides a resource until it is restored or removed.
    pub(super) async fn delete<S: StoredKind>(&mut self, found: &Resource<S>) -> Result<(), StoreError> {
        self.hide(found).await.map_err(change_failed::<S>)?;
        self.reports.push(S::event(found, ResourceAction::Deleted));
        // A file that was rejected because of the slug is read again.
        let sql = "UPDATE resource_files SET stamp = '' WHERE kind = $1 AND error IS NOT NULL";
        let query = sqlx::query(sql).bind(S::KIND.as_str());
        query.execute(&mut **self.tx).await.map_err(change_failed::<S>)?;
        Ok(())
    }

    async fn hide<S: StoredKind>(&mut self, found: &Resource<S>) -> Result<(), sqlx::Error> {
        let query = sqlx::query("UPDATE resources SET gone_at = $1 WHERE id = $2");
        let query = query.bind(self.inner.now().as_microsecond()).bind(found.id.to_string());
        query.execute(&mut **self.tx).await?;
        let sql = "SELECT id FROM resources WHERE tenant = $1 AND kind = $2 AND gone_at IS NOT NULL AND path IS NULL \
                   ORDER BY gone_at DESC, id DESC LIMIT 1 OFFSET $3";
        let query = sqlx::query(sql).bind(found.tenant.as_str()).bind(S::KIND.as_str()).bind(MAX_DELETED);
        if let Some(row) = query.fetch_optional(&mut **self.tx).await? {
            let oldest = any_in::<S>(self.tx, rows::parse_column(&row, "id")?).await?;
            self.remove(&oldest).await?;
        }
        Ok(())
    }

    /// Returns the deleted resource with an id or slug. One whose file vanished is a conflict, and so is one that is not
    /// deleted.
    async fn deleted<S: StoredKind>(
        &mut self,
        tenant: &TenantId,
        reference: &str,
    ) -> Result<Resource<S>, StoreError> {
        // A deleted resource whose slug is in use again is stored as `slug id`.
        let sql = "SELECT id, gone_at, path FROM resources WHERE tenant = $1 AND kind = $2 \
                   AND (id = $3 OR slug = $3 OR SUBSTR(slug, 1, LENGTH($3) + 1) = $3 || ' ') \
                   ORDER BY CASE WHEN id = $3 THEN 0 ELSE 1 END, CASE WHEN gone_at IS NULL THEN 1 ELSE 0 END, gone_at DESC \
                   LIMIT 1";
        let query = sqlx::query(sql).bind(tenant.as_str()).bind(S::KIND.as_str()).bind(reference);
        let row = query.fetch_optional(&mut **self.tx).await.map_err(change_failed::<S>)?;
        let row = row.ok_or_else(|| StoreError::not_found(S::KIND.noun(), reference))?;
        let read = |row: &AnyRow| -> Result<Deleted<S>, sqlx::Error> {
            let gone_at = rows::optional_timestamp(row, "gone_at")?;
            Ok((rows::parse_column(row, "id")?, gone_at, row.try_get("path")?))
        };
        match read(&row).map_err(change_failed::<S>)? {
            (_, None, _) => {
                Err(StoreError::Conflict(format!("the {} `{reference}` is not deleted", S::KIND)))
            }
            (_, Some(_), Some(path)) => Err(StoreError::Conflict(format!(
                "the {} `{reference}` was defined by the file `{path}`; put the file back to restore it",
                S::KIND
            ))),
            // A resource past its retention may already have lost a part of its documents.
            (_, Some(gone_at), None) if gone_at <= self.inner.latest_removal() => {
                Err(StoreError::not_found(S::KIND.noun(), reference))
            }
            (id, Some(_), None) => any_in(self.tx, id).await.map_err(change_failed::<S>),
        }
    }

    async fn has_slug<S: StoredKind>(&mut self, tenant: &TenantId, slug: &str) -> Result<bool, sqlx::Error> {
        let sql = "SELECT 1 FROM resources WHERE tenant = $1 AND kind = $2 AND slug = $3 AND gone_at IS NULL";
        let query = sqlx::query(sql).bind(tenant.as_str()).bind(S::KIND.as_str()).bind(slug);
        Ok(query.fetch_optional(&mut **self.tx).await?.is_some())
    }

    /// Frees the slug of a hidden resource: one whose file is missing is removed; a deleted one keeps the slug only in its
    /// definition.
    pub(super) async fn free_slug<S: StoredKind>(
        &mut self,
        tenant: &TenantId,
        slug: &str,
    ) -> Result<(), sqlx::Error> {
        let sql = "SELECT id, path FROM resources \
                   WHERE tenant = $1 AND kind = $2 AND slug = $3 AND gone_at IS NOT NULL";
        let query = sqlx::query(sql).bind(tenant.as_str()).bind(S::KIND.as_str()).bind(slug);
        let Some(row) = query.fetch_optional(&mut **self.tx).await? else { return Ok(()) };
        if row.try_get::<Option<&str>, _>("path")?.is_none() {
            let id: &str = row.try_get("id")?;
            let query = sqlx::query("UPDATE resources SET slug = $1 WHERE id = $2");
            return query.bind(format!("{slug} {id}")).bind(id).execute(&mut **self.tx).await.map(drop);
        }
        let hidden = any_in::<S>(self.tx, rows::parse_column(&row, "id")?).await?;
        self.remove(&hidden).await
    }

    async fn remove<S: StoredKind>(&mut self, found: &Resource<S>) -> Result<(), sqlx::Error> {
        S::changed(self.tx, Some(found), None, self.inner.now()).await?;
        let query = sqlx::query("DELETE FROM resources WHERE id = $1").bind(found.id.to_string());
        query.execute(&mut **self.tx).await.map(drop)
    }
}

impl Database {
    /// Returns the time before which hidden resources are removed.
    pub(super) fn latest_removal(&self) -> Timestamp {
        self.now() - SignedDuration::from_hours(REAP_AFTER_HOURS)
    }

    /// Removes resources that were deleted, or whose file vanished, and were not restored in time.
    pub(crate) async fn reap_hidden<S: StoredKind>(&self) -> Result<(), StoreError> {
        let latest = self.latest_removal().as_microsecond();
        let query = sqlx::query("SELECT id FROM resources WHERE kind = $1 AND gone_at <= $2");
        let query = query.bind(S::KIND.as_str()).bind(latest);
        for row in query.fetch_all(&self.engine.pool).await.map_err(change_failed::<S>)? {
            let id: S::Id = rows::parse_column(&row, "id").map_err(change_failed::<S>)?;
            while self.remove_some::<S>(id, latest).await.map_err(change_failed::<S>)? {}
        }
        Ok(())
    }

    /// Removes a hidden resource, or a part of it, in one transaction; returns whether something is left.
    async fn remove_some<S: StoredKind>(&self, id: S::Id, latest: i64) -> Result<bool, sqlx::Error> {
        let mut tx = self.engine.begin_change().await?;
        // Read again under the lock: it may have been restored.
        let query = sqlx::query("SELECT 1 FROM resources WHERE id = $1 AND gone_at <= $2");
        let query = query.bind(id.to_string()).bind(latest);
        if query.fetch_optional(&mut *tx).await?.is_none() {
            return Ok(false);
        }
        let is_partial = S::remove_part(&mut tx, id).await?;
        if !is_partial {
            let hidden = any_in::<S>(&mut tx, id).await?;
            ResourceWriter::new(self, &mut tx).remove(&hidden).await?;
        }
        tx.commit().await?;
        Ok(is_partial)
    }
}
