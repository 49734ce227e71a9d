//! Resources as part of one change of many things.

use haft_core::catalog::StoreError;
use haft_core::live::{ObjectEvent, ResourceAction};
use haft_core::name::TenantId;
use haft_core::tool::Status;
use sqlx::any::AnyRow;
use sqlx::{Any, Row as _, Transaction};

use super::StoredKind;
use super::read::count_change;
use super::write::State;
use super::write::{NewResource, ResourceWriter, change_failed, reject_file};
use crate::database::Database;
use crate::rows;

/// One change of a resource.
#[derive(Debug, Clone)]
pub enum ResourceChange<S: StoredKind> {
    /// A new resource.
    Create {
        /// The definition.
        definition: Box<S>,
        /// Whether it may be used.
        enabled: bool,
        /// Its status.
        status: Status,
    },
    /// A changed resource; its slug stays.
    Update {
        /// The resource.
        id: S::Id,
        /// The definition.
        definition: Box<S>,
        /// Whether it may be used.
        enabled: bool,
        /// Its status.
        status: Status,
    },
    /// A resource to delete.
    Delete {
        /// The resource.
        id: S::Id,
    },
}

/// A resource without its definition, which can be large.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceHead<I> {
    /// Its id.
    pub id: I,
    /// Its slug.
    pub slug: String,
    /// The number of the newest revision.
    pub revision: u32,
    /// The hash of that revision.
    pub hash: String,
    /// The number of the published revision.
    pub published_revision: Option<u32>,
    /// Its status.
    pub status: Status,
    /// Whether it may be used.
    pub enabled: bool,
    /// The file that defines it, relative to the home folder.
    pub path: Option<String>,
}

/// Applies one change of a resource as part of a larger change; returns what to report when that is committed.
pub(crate) async fn apply_in<S: StoredKind>(
    db: &Database,
    tx: &mut Transaction<'static, Any>,
    tenant: &TenantId,
    change: ResourceChange<S>,
    author: &str,
) -> Result<Vec<ObjectEvent>, StoreError> {
    count_change(tx, S::KIND.plural()).await.map_err(change_failed::<S>)?;
    let mut writer = ResourceWriter::new(db, tx);
    match change {
        ResourceChange::Create { definition, enabled, status } => {
            let new = NewResource { tenant, definition: &*definition, author, path: None };
            let id = writer.create(new).await?;
            writer.apply_state::<S>(tenant, id, (enabled, status)).await?;
            writer.finish::<S>(tenant, None, id, ResourceAction::Created).await?;
        }
        ResourceChange::Update { id, definition, enabled, status } => {
            let before = writer.find::<S>(tenant, id).await?;
            if *before.definition != *definition {
                reject_file(&before)?;
                writer.append(&before, &*definition, author).await?;
            }
            writer.apply_state::<S>(tenant, id, (enabled, status)).await?;
            writer.finish(tenant, Some(&before), id, ResourceAction::Updated).await?;
        }
        ResourceChange::Delete { id } => {
            let found = writer.find::<S>(tenant, id).await?;
            reject_file(&found)?;
            writer.delete(&found).await?;
        }
    }
    Ok(writer.reports)
}

impl ResourceWriter<'_> {
    /// Sets the status; `published` publishes the newest revision.
    async fn apply_state<S: StoredKind>(
        &mut self,
        tenant: &TenantId,
        id: S::Id,
        (enabled, status): (bool, Status),
    ) -> Result<(), StoreError> {
        let current = self.find::<S>(tenant, id).await?;
        let (now, stored) = (self.inner.now(), current.published_revision());
        let published = match status {
            Status::Published => Some(current.revision),
            Status::Draft => None,
            Status::Deprecated | Status::Disabled => stored,
        };
        let published_at = current.published_at.filter(|_| published == stored).unwrap_or(now);
        let state = State {
            status,
            // `status` and `enabled` agree.
            enabled: enabled && status != Status::Disabled,
            published: published.map(|number| (number, published_at)),
        };
        self.set_state(&current, state).await
    }
}

/// Returns the resources of a kind without their definitions, by slug.
pub(crate) async fn heads_in<S: StoredKind>(
    tx: &mut Transaction<'static, Any>,
    tenant: &TenantId,
) -> Result<Vec<ResourceHead<S::Id>>, sqlx::Error> {
    let sql = "SELECT r.id AS id, r.slug AS slug, r.revision AS revision, v.hash AS hash, \
               r.published_revision AS published_revision, r.status AS status, r.enabled AS enabled, r.path AS path \
               FROM resources r JOIN resource_revisions v ON v.resource_id = r.id AND v.number = r.revision \
               WHERE r.tenant = $1 AND r.kind = $2 AND r.gone_at IS NULL ORDER BY r.slug";
    let found = sqlx::query(sql).bind(tenant.as_str()).bind(S::KIND.as_str()).fetch_all(&mut **tx).await?;
    let head = |row: &AnyRow| {
        let published: Option<i64> = row.try_get("published_revision")?;
        let status: &str = row.try_get("status")?;
        let unknown = || sqlx::Error::Decode(format!("unknown status `{status}`").into());
        Ok(ResourceHead {
            id: rows::parse_column(row, "id")?,
            slug: row.try_get("slug")?,
            revision: rows::number(row, "revision")?,
            hash: row.try_get("hash")?,
            published_revision: published.and_then(|number| u32::try_from(number).ok()),
            status: Status::parse(status).ok_or_else(unknown)?,
            enabled: rows::boolean(row, "enabled")?,
            path: row.try_get("path")?,
        })
    };
    found.iter().map(head).collect()
}
