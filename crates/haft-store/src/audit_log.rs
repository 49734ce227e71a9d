//! The audit records of all changes: reading them, and removing old ones.

use std::fmt::Write as _;
use std::sync::Arc;

use haft_core::audit::{AuditPage, AuditQuery, AuditRecord};
use haft_core::catalog::StoreError;
use haft_core::name::TenantId;
use jiff::SignedDuration;
use sqlx::any::AnyRow;
use sqlx::{AssertSqlSafe, Row as _};

use crate::audit::{self, COLUMNS};
use crate::database::{Database, delete_batch};
use crate::engine::failed_to;
use crate::rows;
use crate::time;

const READ: &str = "read the audit records";

/// Records before an id.
pub(crate) const OLD_RECORDS: &str = "SELECT id FROM audit WHERE id < $1";

/// The audit records.
#[derive(Clone)]
pub struct AuditLog {
    db: Arc<Database>,
}

impl AuditLog {
    pub(crate) fn new(db: &Arc<Database>) -> Self {
        Self { db: Arc::clone(db) }
    }
}

impl AuditLog {
    /// Sets the id and the time of a record.
    pub fn new_record(&self, record: AuditRecord) -> AuditRecord {
        let at = self.db.now();
        AuditRecord { id: time::id_at_microsecond(at), at, ..record }
    }

    /// Runs the work of a request; its changes and the record are stored together or not at all.
    pub async fn recorded<F: Future>(record: AuditRecord, work: F) -> F::Output {
        audit::recorded(record, work).await
    }

    /// Stores a record, or the outcome of a request whose record is already stored.
    pub async fn record(&self, record: AuditRecord) -> Result<(), StoreError> {
        let on_conflict =
            "DO UPDATE SET action = excluded.action, target = excluded.target, outcome = excluded.outcome";
        let this = self.clone();
        let work = async move {
            let written = audit::insert(record, on_conflict).execute(&this.db.engine.pool).await;
            written.map(drop).map_err(failed_to("store an audit record"))
        };
        self.db.complete(work).await
    }

    /// Lists records, newest first, without their total number.
    pub async fn records(&self, query: &AuditQuery) -> Result<Vec<AuditRecord>, StoreError> {
        self.select_changes(Filter::new(query), query).await.map_err(failed_to(READ))
    }

    /// Counts the records that match a query.
    pub async fn count(&self, query: &AuditQuery) -> Result<u64, StoreError> {
        self.count_matching(&Filter::new(query)).await.map_err(failed_to(READ))
    }

    /// Lists records, newest first.
    pub async fn page(&self, query: &AuditQuery) -> Result<AuditPage, StoreError> {
        self.read_page(query).await.map_err(failed_to(READ))
    }
}

impl AuditLog {
    async fn read_page(&self, query: &AuditQuery) -> Result<AuditPage, sqlx::Error> {
        let filter = Filter::new(query);
        let total = self.count_matching(&filter).await?;
        Ok(AuditPage { records: self.select_changes(filter, query).await?, total })
    }

    async fn count_matching(&self, filter: &Filter) -> Result<u64, sqlx::Error> {
        let counted = filter.select("SELECT COUNT(*) FROM audit", "", &self.db).await?;
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
        let found = filter.select(&format!("SELECT {COLUMNS} FROM audit"), &end, &self.db).await?;
        found.iter().map(record).collect()
    }

    /// Removes the records beyond the retention limits.
    pub(crate) async fn reap(&self) -> Result<(), sqlx::Error> {
        let keep = self.db.retention;
        if keep.audit_days > 0 {
            let oldest = self.db.now() - SignedDuration::from_hours(24 * i64::from(keep.audit_days));
            self.reap_audit_before(&time::min_id_at(oldest).to_string()).await?;
        }
        if let Some(skip) = keep.audit_records.checked_sub(1) {
            let sql = format!("SELECT id FROM audit ORDER BY id DESC LIMIT 1 OFFSET {skip}");
            let row = sqlx::query(AssertSqlSafe(sql)).fetch_optional(&self.db.engine.pool).await?;
            if let Some(row) = row {
                self.reap_audit_before(row.try_get(0)?).await?;
            }
        }
        Ok(())
    }

    async fn reap_audit_before(&self, id: &str) -> Result<(), sqlx::Error> {
        self.db.delete_batches(&delete_batch("audit", OLD_RECORDS), &[id]).await
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

    async fn select(
        &self,
        columns: &str,
        suffix: &str,
        database: &Database,
    ) -> Result<Vec<AnyRow>, sqlx::Error> {
        let mut select = sqlx::query(AssertSqlSafe(format!("{columns} WHERE {} {suffix}", self.condition)));
        for value in &self.values {
            select = select.bind(value);
        }
        select.fetch_all(&database.engine.pool).await
    }
}

fn record(row: &AnyRow) -> Result<AuditRecord, sqlx::Error> {
    Ok(AuditRecord {
        id: rows::parse_column(row, "id")?,
        tenant: rows::parse_column::<TenantId>(row, "tenant")?,
        at: rows::timestamp(row, "at")?,
        actor: row.try_get("actor")?,
        actor_id: rows::optional_parse_column(row, "actor_id")?,
        token_id: rows::optional_parse_column(row, "token_id")?,
        action: row.try_get("action")?,
        target: row.try_get("target")?,
        outcome: row.try_get("outcome")?,
        request_id: row.try_get("request_id")?,
    })
}
