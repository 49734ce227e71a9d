//! Creating, changing and publishing resources.

use std::sync::Arc;

use haft_core::catalog::StoreError;
use haft_core::live::{ObjectEvent, ResourceAction};
use haft_core::name::TenantId;
use haft_core::resource::Resource;
use haft_core::tool::Status;
use haft_core::{Timestamp, hash};
use sqlx::{Any, Row as _, Transaction};

use super::StoredKind;
use super::read::{count_change, find_in};
use crate::audit::store_current_record;
use crate::database::Database;
use crate::engine::{failed_to, is_conflict};
use crate::limits::check_resource_room;
use crate::resources::Resources;
use crate::rows;
use crate::time;

/// The largest number of revisions of one resource.
const MAX_REVISIONS: i64 = 10_000;

/// A changed definition of a resource.
#[derive(Debug, Clone)]
pub struct ResourceUpdate<S> {
    /// The definition.
    pub definition: S,
    /// The newest revision that the author knows; `None` replaces any.
    pub expected_revision: Option<u32>,
    /// Who changes it.
    pub author: String,
}

impl<S: StoredKind> Resources<'_, S> {
    /// Creates a resource, as a draft. A slug that another one of its kind has is a conflict.
    pub async fn create(
        &self,
        tenant: &TenantId,
        definition: S,
        author: &str,
    ) -> Result<Resource<S>, StoreError> {
        let (tenant, author) = (tenant.clone(), author.to_owned());
        let change = move |inner: Arc<Database>| async move {
            let mut tx = inner.begin_resource_change::<S>().await?;
            let mut writer = ResourceWriter::new(&inner, &mut tx);
            let new = NewResource { tenant: &tenant, definition: &definition, author: &author, path: None };
            let id = writer.create(new).await?;
            let created = writer.finish::<S>(&tenant, None, id, ResourceAction::Created).await?;
            let reports = writer.record::<S>(definition.slug()).await?;
            inner.commit_resources(tx, &tenant, reports).await?;
            Ok(created)
        };
        self.database.complete(change(Arc::clone(self.database))).await
    }

    /// Changes a resource. Changed content appends a revision; the same content changes nothing. Conflicts are a slug that
    /// another resource has, another newest revision than the expected one, and a resource that a file defines.
    pub async fn update(
        &self,
        tenant: &TenantId,
        id: S::Id,
        update: ResourceUpdate<S>,
    ) -> Result<Resource<S>, StoreError> {
        let tenant = tenant.clone();
        let change = move |inner: Arc<Database>| async move {
            let ResourceUpdate { definition, expected_revision, author } = update;
            let mut tx = inner.begin_resource_change::<S>().await?;
            let mut writer = ResourceWriter::new(&inner, &mut tx);
            let before = writer.find::<S>(&tenant, id).await?;
            reject_file(&before)?;
            check_revision(&before, expected_revision)?;
            if !writer.append(&before, &definition, &author).await? {
                return Ok(before);
            }
            let after = writer.finish(&tenant, Some(&before), id, ResourceAction::Updated).await?;
            let reports = writer.record::<S>(definition.slug()).await?;
            inner.commit_resources(tx, &tenant, reports).await?;
            Ok(after)
        };
        self.database.complete(change(Arc::clone(self.database))).await
    }

    /// Publishes the newest revision; a conflict if that is not `expected_revision`, or its file is invalid.
    pub async fn publish(
        &self,
        tenant: &TenantId,
        id: S::Id,
        expected_revision: Option<u32>,
    ) -> Result<Resource<S>, StoreError> {
        self.step(tenant, id, Step::Publish(expected_revision)).await
    }

    /// Sets the status: `published` publishes the newest revision, `draft` withdraws the published one, `disabled`
    /// disables the resource.
    pub async fn set_status(
        &self,
        tenant: &TenantId,
        id: S::Id,
        status: Status,
    ) -> Result<Resource<S>, StoreError> {
        let step = match status {
            Status::Published => Step::Publish(None),
            Status::Draft | Status::Deprecated | Status::Disabled => Step::Status(status),
        };
        self.step(tenant, id, step).await
    }

    /// Enables or disables a resource.
    pub async fn set_enabled(
        &self,
        tenant: &TenantId,
        id: S::Id,
        enabled: bool,
    ) -> Result<Resource<S>, StoreError> {
        self.step(tenant, id, if enabled { Step::Enable } else { Step::Disable }).await
    }

    async fn step(&self, tenant: &TenantId, id: S::Id, step: Step) -> Result<Resource<S>, StoreError> {
        let tenant = tenant.clone();
        let change = move |inner: Arc<Database>| async move {
            let mut tx = inner.begin_resource_change::<S>().await?;
            let mut writer = ResourceWriter::new(&inner, &mut tx);
            let before = writer.find::<S>(&tenant, id).await?;
            writer.set_state(&before, step.state_after(&before, inner.now())?).await?;
            let after = writer.finish(&tenant, Some(&before), id, step.action()).await?;
            let reports = writer.record::<S>(after.definition.slug()).await?;
            inner.commit_resources(tx, &tenant, reports).await?;
            Ok(after)
        };
        self.database.complete(change(Arc::clone(self.database))).await
    }
}

/// A change of a resource that leaves its definition.
#[derive(Clone, Copy)]
enum Step {
    Publish(Option<u32>),
    Status(Status),
    Enable,
    Disable,
}

/// The state of a resource without its definition.
#[derive(Clone, Copy)]
pub(super) struct State {
    pub(super) status: Status,
    pub(super) enabled: bool,
    /// The published revision, and when it was published.
    pub(super) published: Option<(u32, Timestamp)>,
}

impl Step {
    fn action(self) -> ResourceAction {
        match self {
            Self::Publish(_) => ResourceAction::Published,
            Self::Status(Status::Deprecated) => ResourceAction::Deprecated,
            Self::Status(Status::Disabled) | Self::Disable => ResourceAction::Disabled,
            Self::Status(Status::Draft | Status::Published) => ResourceAction::Updated,
            Self::Enable => ResourceAction::Enabled,
        }
    }

    fn state_after<S: StoredKind>(self, before: &Resource<S>, now: Timestamp) -> Result<State, StoreError> {
        if let Self::Publish(expected_revision) = self {
            check_revision(before, expected_revision)?;
            if let Some(reason) = &before.error {
                let message = format!("cannot publish: the file of the {} is invalid: {reason}", S::KIND);
                return Err(StoreError::Conflict(message));
            }
        }
        let was_disabled = before.status == Status::Disabled;
        // `status` and `enabled` agree: a resource with the status `disabled` is not enabled, one that leaves it is.
        let (status, enabled) = match self {
            Self::Publish(_) => (Status::Published, before.enabled || was_disabled),
            Self::Status(Status::Disabled) => (Status::Disabled, false),
            Self::Status(status) => (status, before.enabled || was_disabled),
            Self::Enable if was_disabled && before.published.is_some() => (Status::Published, true),
            Self::Enable if was_disabled => (Status::Draft, true),
            Self::Enable => (before.status, true),
            Self::Disable => (before.status, false),
        };
        let published = match self {
            Self::Publish(_) => Some((before.revision, now)),
            Self::Status(Status::Draft) => None,
            Self::Status(_) | Self::Enable | Self::Disable => {
                before.published_revision().map(|number| (number, before.published_at.unwrap_or(now)))
            }
        };
        Ok(State { status, enabled, published })
    }
}

/// A resource to create.
#[derive(Clone, Copy)]
pub(super) struct NewResource<'a, S> {
    pub(super) tenant: &'a TenantId,
    pub(super) definition: &'a S,
    pub(super) author: &'a str,
    /// The file that defines it.
    pub(super) path: Option<&'a str>,
}

/// Changes of resources within a transaction, and what is reported of them afterwards.
pub(crate) struct ResourceWriter<'a> {
    pub(super) inner: &'a Database,
    pub(super) tx: &'a mut Transaction<'static, Any>,
    pub(super) reports: Vec<ObjectEvent>,
}

impl<'a> ResourceWriter<'a> {
    pub(crate) fn new(inner: &'a Database, tx: &'a mut Transaction<'static, Any>) -> Self {
        Self { inner, tx, reports: Vec::new() }
    }

    /// Returns a resource; a missing one is an error.
    pub(super) async fn find<S: StoredKind>(
        &mut self,
        tenant: &TenantId,
        id: S::Id,
    ) -> Result<Resource<S>, StoreError> {
        find_in(self.tx, tenant, id).await
    }

    /// Creates a resource with its first revision, as a draft.
    pub(super) async fn create<S: StoredKind>(
        &mut self,
        new: NewResource<'_, S>,
    ) -> Result<S::Id, StoreError> {
        let NewResource { tenant, definition, author, path } = new;
        self.free_slug::<S>(tenant, definition.slug()).await.map_err(change_failed::<S>)?;
        check_resource_room(self.tx, tenant, S::KIND).await?;
        let (id, now) = (S::Id::from(time::new_id(&*self.inner.clock)), self.inner.now().as_microsecond());
        let sql = "INSERT INTO resources (id, kind, tenant, slug, search, revision, status, enabled, path, created_by, \
                   modified_by, created_at, modified_at) VALUES ($1, $2, $3, $4, $5, 1, $6, 1, $7, $8, $8, $9, $9)";
        let inserted = sqlx::query(sql)
            .bind(id.to_string())
            .bind(S::KIND.as_str())
            .bind(tenant.as_str())
            .bind(definition.slug())
            .bind(search_text(definition))
            .bind(Status::Draft.as_str())
            .bind(path)
            .bind(author)
            .bind(now)
            .execute(&mut **self.tx)
            .await;
        inserted.map_err(slug_taken(definition))?;
        self.insert_revision(id, 1, definition, author).await.map_err(change_failed::<S>)?;
        Ok(id)
    }

    /// Adds a revision unless the newest one has the same content; returns whether it did.
    pub(super) async fn append<S: StoredKind>(
        &mut self,
        before: &Resource<S>,
        definition: &S,
        author: &str,
    ) -> Result<bool, StoreError> {
        if *before.definition == *definition {
            return Ok(false);
        }
        if before.definition.slug() != definition.slug() {
            self.free_slug::<S>(&before.tenant, definition.slug()).await.map_err(change_failed::<S>)?;
        }
        let count = sqlx::query("SELECT COUNT(*) FROM resource_revisions WHERE resource_id = $1");
        let count = count.bind(before.id.to_string()).fetch_one(&mut **self.tx).await;
        if count.and_then(|row| row.try_get::<i64, _>(0)).map_err(change_failed::<S>)? >= MAX_REVISIONS {
            return Err(StoreError::Conflict(format!(
                "the {} has {MAX_REVISIONS} revisions, which is the limit; create another",
                S::KIND
            )));
        }
        let number = before.revision.saturating_add(1);
        let sql = "UPDATE resources SET slug = $1, search = $2, revision = $3, modified_by = $4, modified_at = $5 \
                   WHERE id = $6";
        let updated = sqlx::query(sql)
            .bind(definition.slug())
            .bind(search_text(definition))
            .bind(i64::from(number))
            .bind(author)
            .bind(self.inner.now().as_microsecond())
            .bind(before.id.to_string())
            .execute(&mut **self.tx)
            .await;
        updated.map_err(slug_taken(definition))?;
        self.insert_revision(before.id, number, definition, author).await.map_err(change_failed::<S>)?;
        Ok(true)
    }

    /// Sets the state of a resource.
    pub(super) async fn set_state<S: StoredKind>(
        &mut self,
        before: &Resource<S>,
        state: State,
    ) -> Result<(), StoreError> {
        let sql = "UPDATE resources SET status = $1, enabled = $2, published_revision = $3, published_at = $4 WHERE id = $5";
        sqlx::query(sql)
            .bind(state.status.as_str())
            .bind(i64::from(state.enabled))
            .bind(state.published.map(|(number, _)| i64::from(number)))
            .bind(state.published.map(|(_, at)| at.as_microsecond()))
            .bind(before.id.to_string())
            .execute(&mut **self.tx)
            .await
            .map_err(change_failed::<S>)?;
        Ok(())
    }

    /// Completes a change: what depends on the resource follows it, and the change is reported.
    pub(super) async fn finish<S: StoredKind>(
        &mut self,
        tenant: &TenantId,
        before: Option<&Resource<S>>,
        id: S::Id,
        action: ResourceAction,
    ) -> Result<Resource<S>, StoreError> {
        let after = self.find::<S>(tenant, id).await?;
        self.reports.push(S::event(&after, action));
        let more = S::changed(self.tx, before, Some(&after), self.inner.now()).await;
        self.reports.extend(more.map_err(change_failed::<S>)?);
        Ok(after)
    }

    /// Tells every node that names of the kind have changed, and stores the audit record of the current request. Returns
    /// what is reported after the commit.
    pub(super) async fn record<S: StoredKind>(self, subject: &str) -> Result<Vec<ObjectEvent>, StoreError> {
        count_change(self.tx, S::KIND.plural()).await.map_err(change_failed::<S>)?;
        store_current_record(self.tx, subject).await.map_err(change_failed::<S>)?;
        Ok(self.reports)
    }

    async fn insert_revision<S: StoredKind>(
        &mut self,
        id: S::Id,
        number: u32,
        definition: &S,
        author: &str,
    ) -> Result<(), sqlx::Error> {
        let encode = |error: serde_json::Error| sqlx::Error::Encode(Box::new(error));
        let sql = "INSERT INTO resource_revisions (resource_id, number, hash, definition, created_by, created_at) \
                   VALUES ($1, $2, $3, $4, $5, $6)";
        sqlx::query(sql)
            .bind(id.to_string())
            .bind(i64::from(number))
            .bind(hash::of_value(definition).map_err(encode)?)
            .bind(serde_json::to_string(definition).map_err(encode)?)
            .bind(author)
            .bind(self.inner.now().as_microsecond())
            .execute(&mut **self.tx)
            .await?;
        Ok(())
    }
}

impl Database {
    pub(super) async fn begin_resource_change<S: StoredKind>(
        &self,
    ) -> Result<Transaction<'static, Any>, StoreError> {
        self.engine.begin_change().await.map_err(change_failed::<S>)
    }

    pub(super) async fn commit_resources(
        &self,
        tx: Transaction<'static, Any>,
        tenant: &TenantId,
        reports: Vec<ObjectEvent>,
    ) -> Result<(), StoreError> {
        tx.commit().await.map_err(failed_to("store the change"))?;
        for event in reports {
            self.report_to_tenant(tenant, event);
        }
        Ok(())
    }
}

/// Returns the text that searches look at.
pub(super) fn search_text<S: StoredKind>(definition: &S) -> String {
    let (slug, name, description) = (definition.slug(), definition.name(), definition.description());
    rows::search_text(&format!("{slug}\n{name}\n{description}"))
}

pub(super) fn change_failed<S: StoredKind>(error: sqlx::Error) -> StoreError {
    failed_to(&format!("change the {}", S::KIND))(error)
}

fn slug_taken<S: StoredKind>(definition: &S) -> impl FnOnce(sqlx::Error) -> StoreError + '_ {
    move |error| {
        if is_conflict(&error) {
            let message = format!("{} `{}` already exists", S::KIND.with_article(), definition.slug());
            return StoreError::Conflict(message);
        }
        change_failed::<S>(error)
    }
}

pub(super) fn reject_file<S: StoredKind>(found: &Resource<S>) -> Result<(), StoreError> {
    match &found.path {
        None => Ok(()),
        Some(path) => Err(StoreError::Conflict(format!(
            "the {} `{}` is defined by the file `{path}`; edit or remove that file",
            S::KIND,
            found.definition.slug()
        ))),
    }
}

fn check_revision<S: StoredKind>(found: &Resource<S>, expected: Option<u32>) -> Result<(), StoreError> {
    match expected {
        Some(expected) if expected != found.revision => Err(StoreError::Conflict(format!(
            "the {} `{}` was changed meanwhile: its newest revision is {}, not {expected}",
            S::KIND,
            found.definition.slug(),
            found.revision
        ))),
        _ => Ok(()),
    }
}
