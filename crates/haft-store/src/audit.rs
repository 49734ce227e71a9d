//! Audit records of changes.
//!
//! A change and the record of its request are stored in one transaction. The outcome of the request is added when it
//! completes.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use haft_core::audit::{AuditPage, AuditQuery, AuditRecord};
use haft_core::catalog::StoreError;
use haft_core::id::TokenId;
use haft_core::name::TenantId;
use jiff::SignedDuration;
use sqlx::any::{AnyArguments, AnyRow};
use sqlx::query::Query;
use sqlx::{Any, AssertSqlSafe, Row as _, Transaction};

use crate::engine::failed_to;
use crate::retention::delete_batch;
use crate::rows;
use crate::store::{Inner, Store};
use crate::time;

const READ: &str = "read the audit records";
/// The actor of edits of definition files.
pub(crate) const FILE_ACTOR: &str = "file";
/// The largest number of records of one look at the definition files.
const MAX_FILE_RECORDS: usize = 500;
const COLUMNS: &str = "id, tenant, at, actor, actor_id, action, target, outcome, request_id";

tokio::task_local! {
    /// The audit record of the current request.
    static CURRENT: Arc<AuditRecord>;
}

/// Makes the current audit record available to work that runs in another task.
pub(crate) fn in_current_request<F: Future>(work: F) -> impl Future<Output = F::Output> {
    let record = CURRENT.try_with(Arc::clone).ok();
    async move {
        match record {
            Some(record) => CURRENT.scope(record, work).await,
            None => work.await,
        }
    }
}

/// Returns who makes the current request.
pub(crate) fn current_actor() -> Option<Arc<str>> {
    CURRENT.try_with(|record| Arc::from(record.actor.as_str())).ok()
}

/// Stores the audit record of the current request, if there is one, in the transaction of its change. `subject` becomes
/// the target if the request names none.
pub(crate) async fn store_current_record(
    tx: &mut Transaction<'static, Any>,
    subject: &str,
) -> Result<(), sqlx::Error> {
    let Ok(record) = CURRENT.try_with(Arc::clone) else { return Ok(()) };
    let mut record = AuditRecord::clone(&record);
    if record.target.is_empty() {
        subject.clone_into(&mut record.target);
    }
    // A request with several changes has one record.
    insert(record, "DO NOTHING").execute(&mut **tx).await?;
    Ok(())
}

/// An edit of a definition file outside of haft.
pub(crate) struct FileEdit {
    pub(crate) tenant: TenantId,
    pub(crate) action: &'static str,
    /// The tool.
    pub(crate) target: String,
    /// `success`, or why the file is not used.
    pub(crate) outcome: &'static str,
}

/// Stores the records of edited definition files. If there are very many, as after a restored backup, the last record
/// of a tenant counts the rest.
pub(crate) async fn store_file_edits(
    tx: &mut Transaction<'static, Any>,
    edits: Vec<FileEdit>,
    inner: &Inner,
) -> Result<(), sqlx::Error> {
    let mut uncounted: BTreeMap<TenantId, usize> = BTreeMap::new();
    for (index, edit) in edits.into_iter().enumerate() {
        if index < MAX_FILE_RECORDS {
            insert(file_record(edit, inner), "DO NOTHING").execute(&mut **tx).await?;
        } else {
            *uncounted.entry(edit.tenant).or_default() += 1;
        }
    }
    for (tenant, count) in uncounted {
        let target = format!("{count} more tools");
        let edit = FileEdit { tenant, action: "tool.update", target, outcome: "success" };
        insert(file_record(edit, inner), "DO NOTHING").execute(&mut **tx).await?;
    }
    Ok(())
}

/// Stores the records of the single changes of a request, in the transaction of those changes.
pub(crate) async fn store_records(
    tx: &mut Transaction<'static, Any>,
    records: Vec<AuditRecord>,
) -> Result<(), sqlx::Error> {
    for record in records {
        insert(record, "DO NOTHING").execute(&mut **tx).await?;
    }
    Ok(())
}

fn file_record(edit: FileEdit, inner: &Inner) -> AuditRecord {
    let at = inner.now();
    AuditRecord {
        id: time::id_at_microsecond(at),
        tenant: edit.tenant,
        at,
        actor: FILE_ACTOR.to_owned(),
        actor_id: None,
        action: edit.action.to_owned(),
        target: edit.target,
        outcome: edit.outcome.to_owned(),
        request_id: String::new(),
    }
}

fn insert(record: AuditRecord, on_conflict: &str) -> Query<'static, Any, AnyArguments> {
    sqlx::query(AssertSqlSafe(format!(
        "INSERT INTO audit ({COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (id) {on_conflict}"
    )))
    .bind(record.id.to_string())
    .bind(record.tenant.to_string())
    .bind(record.at.as_microsecond())
    .bind(record.actor)
    .bind(record.actor_id.map(|id| id.to_string()))
    .bind(record.action)
    .bind(record.target)
    .bind(record.outcome)
    .bind(record.request_id)
}

/// Records before an id.
pub(crate) const OLD_RECORDS: &str = "SELECT id FROM audit WHERE id < $1";

impl Store {
    /// Sets the id and the time of a record.
    pub fn new_record(&self, record: AuditRecord) -> AuditRecord {
        let at = self.inner.now();
        AuditRecord { id: time::id_at_microsecond(at), at, ..record }
    }

    /// Runs the work of a request; its changes and the record are stored together or not at all.
    pub async fn recorded<F: Future>(record: AuditRecord, work: F) -> F::Output {
        CURRENT.scope(Arc::new(record), work).await
    }

    /// Stores a record, or the outcome of a request whose record is already stored.
    pub async fn record_change(&self, record: AuditRecord) -> Result<(), StoreError> {
        let on_conflict =
            "DO UPDATE SET action = excluded.action, target = excluded.target, outcome = excluded.outcome";
        self.run(|inner| async move {
            let written = insert(record, on_conflict).execute(&inner.engine.pool).await;
            written.map(drop).map_err(failed_to("store an audit record"))
        })
        .await
    }

    /// Lists records, newest first, without their total number.
    pub async fn change_records(&self, query: &AuditQuery) -> Result<Vec<AuditRecord>, StoreError> {
        self.inner.select_changes(Filter::new(query), query).await.map_err(failed_to(READ))
    }

    /// Counts the records that match a query.
    pub async fn count_changes(&self, query: &AuditQuery) -> Result<u64, StoreError> {
        self.inner.count_changes(&Filter::new(query)).await.map_err(failed_to(READ))
    }

    /// Lists records, newest first.
    pub async fn changes(&self, query: &AuditQuery) -> Result<AuditPage, StoreError> {
        self.inner.changes(query).await.map_err(failed_to(READ))
    }
}

impl Inner {
    async fn changes(&self, query: &AuditQuery) -> Result<AuditPage, sqlx::Error> {
        let filter = Filter::new(query);
        let total = self.count_changes(&filter).await?;
        Ok(AuditPage { records: self.select_changes(filter, query).await?, total })
    }

    async fn count_changes(&self, filter: &Filter) -> Result<u64, sqlx::Error> {
        let counted = filter.select("SELECT COUNT(*) FROM audit", "", self).await?;
        let total: i64 = counted.first().map_or(Ok(0), |row| row.try_get(0))?;
        Ok(u64::try_from(total).unwrap_or_default())
    }

    async fn select_changes(
        &self,
        mut filter: Filter,
        query: &AuditQuery,
    ) -> Result<Vec<AuditRecord>, sqlx::Error> {
        if let Some(before) = query.before {
            filter.add("id < ", before.to_string());
        }
        let end = format!("ORDER BY id DESC LIMIT {} OFFSET {}", query.limit, query.skip);
        let found = filter.select(&format!("SELECT {COLUMNS} FROM audit"), &end, self).await?;
        found.iter().map(record).collect()
    }

    /// Removes the records beyond the retention limits.
    pub(crate) async fn reap_audit(&self) -> Result<(), sqlx::Error> {
        let keep = self.retention;
        if keep.audit_days > 0 {
            let oldest = self.now() - SignedDuration::from_hours(24 * i64::from(keep.audit_days));
            self.reap_audit_before(&time::min_id_at(oldest).to_string()).await?;
        }
        if let Some(skip) = keep.audit_records.checked_sub(1) {
            let sql = format!("SELECT id FROM audit ORDER BY id DESC LIMIT 1 OFFSET {skip}");
            let row = sqlx::query(AssertSqlSafe(sql)).fetch_optional(&self.engine.pool).await?;
            if let Some(row) = row {
                self.reap_audit_before(row.try_get(0)?).await?;
            }
        }
        Ok(())
    }

    async fn reap_audit_before(&self, id: &str) -> Result<(), sqlx::Error> {
        self.delete_batches(&delete_batch("audit", OLD_RECORDS), &[id]).await
    }
}

/// An SQL condition and its parameters.
struct Filter {
    condition: String,
    values: Vec<String>,
}

impl Filter {
    fn new(query: &AuditQuery) -> Self {
        let mut filter = Self { condition: "tenant = $1".to_owned(), values: vec![query.tenant.to_string()] };
        if let Some(action) = &query.action {
            filter.add("action = ", action.clone());
        }
        if let Some(part) = &query.target {
            filter.add("target LIKE ", format!("%{}%", rows::escape_like(part)));
            filter.condition.push_str(" ESCAPE '!'");
        }
        if let Some(actor) = &query.actor {
            filter.values.push(actor.clone());
            let number = filter.values.len();
            let _ = write!(filter.condition, " AND (actor = ${number} OR actor_id = ${number})");
        }
        if let Some(outcome) = &query.outcome {
            filter.add("outcome = ", outcome.clone());
        }
        if let Some(since) = query.since {
            filter.add("id >= ", time::min_id_at(since).to_string());
        }
        if let Some(until) = query.until {
            filter.add("id < ", time::min_id_at(until).to_string());
        }
        filter
    }

    fn add(&mut self, condition: &str, value: String) {
        self.values.push(value);
        let _ = write!(self.condition, " AND {condition}${}", self.values.len());
    }

    async fn select(&self, columns: &str, suffix: &str, inner: &Inner) -> Result<Vec<AnyRow>, sqlx::Error> {
        let mut select = sqlx::query(AssertSqlSafe(format!("{columns} WHERE {} {suffix}", self.condition)));
        for value in &self.values {
            select = select.bind(value);
        }
        select.fetch_all(&inner.engine.pool).await
    }
}

fn record(row: &AnyRow) -> Result<AuditRecord, sqlx::Error> {
    let actor_id = match row.try_get::<Option<&str>, _>("actor_id")? {
        Some(_) => Some(rows::parse_column::<TokenId>(row, "actor_id")?),
        None => None,
    };
    Ok(AuditRecord {
        id: rows::parse_column(row, "id")?,
        tenant: rows::parse_column::<TenantId>(row, "tenant")?,
        at: rows::timestamp(row, "at")?,
        actor: row.try_get("actor")?,
        actor_id,
        action: row.try_get("action")?,
        target: row.try_get("target")?,
        outcome: row.try_get("outcome")?,
        request_id: row.try_get("request_id")?,
    })
}
