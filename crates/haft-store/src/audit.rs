//! The record of changes: written, listed, and kept for a bounded time and number.
//!
//! Whatever is changed on behalf of a request is stored in one transaction with the record of that request; what came
//! of the request as a whole is entered when it is over.

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

use crate::engine::fault;
use crate::rows;
use crate::store::{Inner, Store};
use crate::time;

const READ: &str = "read the record of changes";
const COLUMNS: &str = "id, tenant, at, actor, actor_id, action, target, outcome, request_id";

tokio::task_local! {
    /// The record of the request that this task works for.
    static CURRENT: Arc<AuditRecord>;
}

/// Runs some work for the same request in another task.
pub(crate) fn carried<F: Future>(work: F) -> impl Future<Output = F::Output> {
    let record = CURRENT.try_with(Arc::clone).ok();
    async move {
        match record {
            Some(record) => CURRENT.scope(record, work).await,
            None => work.await,
        }
    }
}

/// Stores the record of the request, if there is one, together with what it changes. `subject` is what is changed, for
/// requests that do not name it.
pub(crate) async fn store_with(tx: &mut Transaction<'static, Any>, subject: &str) -> Result<(), sqlx::Error> {
    let Ok(record) = CURRENT.try_with(Arc::clone) else { return Ok(()) };
    let mut record = AuditRecord::clone(&record);
    if record.target.is_empty() {
        subject.clone_into(&mut record.target);
    }
    // A request may change several things; it has one record.
    insert(record, "DO NOTHING").execute(&mut **tx).await?;
    Ok(())
}

fn insert(record: AuditRecord, again: &str) -> Query<'static, Any, AnyArguments> {
    sqlx::query(AssertSqlSafe(format!(
        "INSERT INTO audit ({COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (id) {again}"
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

impl Store {
    /// Gives a record its identity and its moment.
    pub fn new_record(&self, record: AuditRecord) -> AuditRecord {
        let at = self.inner.now();
        AuditRecord { id: time::exact_id(at), at, ..record }
    }

    /// Does the work of a request: what it changes in this store is stored together with the record, or not at all.
    pub async fn recorded<F: Future>(record: AuditRecord, work: F) -> F::Output {
        CURRENT.scope(Arc::new(record), work).await
    }

    /// Writes a record, or what came of a request whose record is stored already.
    pub async fn record_change(&self, record: AuditRecord) -> Result<(), StoreError> {
        let again =
            "DO UPDATE SET action = excluded.action, target = excluded.target, outcome = excluded.outcome";
        self.run(|inner| async move {
            let written = insert(record, again).execute(&inner.engine.pool).await;
            written.map(drop).map_err(fault("record a change"))
        })
        .await
    }

    /// Lists records, newest first.
    pub async fn changes(&self, query: &AuditQuery) -> Result<AuditPage, StoreError> {
        self.inner.changes(query).await.map_err(fault(READ))
    }
}

impl Inner {
    async fn changes(&self, query: &AuditQuery) -> Result<AuditPage, sqlx::Error> {
        let mut filter = Filter::new(query);
        let counted = filter.select("SELECT COUNT(*) FROM audit", "", self).await?;
        let total: i64 = counted.first().map_or(Ok(0), |row| row.try_get(0))?;
        if let Some(before) = query.before {
            filter.add("id < ", before.to_string());
        }
        let end = format!("ORDER BY id DESC LIMIT {} OFFSET {}", query.limit, query.skip);
        let found = filter.select(&format!("SELECT {COLUMNS} FROM audit"), &end, self).await?;
        let records = found.iter().map(record).collect::<Result<_, _>>()?;
        Ok(AuditPage { records, total: u64::try_from(total).unwrap_or_default() })
    }

    /// Removes what is older than wanted, and the oldest of what is more than wanted.
    pub(crate) async fn reap_audit(&self) -> Result<(), sqlx::Error> {
        let keep = self.retention;
        if keep.audit_days > 0 {
            let oldest = self.now() - SignedDuration::from_hours(24 * i64::from(keep.audit_days));
            self.reap_audit_before(&time::first_id_of(oldest).to_string()).await?;
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
        sqlx::query("DELETE FROM audit WHERE id < $1").bind(id).execute(&self.engine.pool).await?;
        Ok(())
    }
}

/// A condition that grows, with its values.
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
            filter.add("target LIKE ", format!("%{}%", literal(part)));
            filter.condition.push_str(" ESCAPE '!'");
        }
        if let Some(actor) = &query.actor {
            filter.values.push(actor.clone());
            let number = filter.values.len();
            let _ = write!(filter.condition, " AND (actor = ${number} OR actor_id = ${number})");
        }
        if let Some(since) = query.since {
            filter.add("id >= ", time::first_id_of(since).to_string());
        }
        filter
    }

    fn add(&mut self, condition: &str, value: String) {
        self.values.push(value);
        let _ = write!(self.condition, " AND {condition}${}", self.values.len());
    }

    async fn select(&self, what: &str, end: &str, inner: &Inner) -> Result<Vec<AnyRow>, sqlx::Error> {
        let mut select = sqlx::query(AssertSqlSafe(format!("{what} WHERE {} {end}", self.condition)));
        for value in &self.values {
            select = select.bind(value);
        }
        select.fetch_all(&inner.engine.pool).await
    }
}

/// Spells a text so that nothing in it is a pattern.
fn literal(text: &str) -> String {
    text.replace('!', "!!").replace('%', "!%").replace('_', "!_")
}

fn record(row: &AnyRow) -> Result<AuditRecord, sqlx::Error> {
    let actor_id = match row.try_get::<Option<&str>, _>("actor_id")? {
        Some(_) => Some(rows::parsed::<TokenId>(row, "actor_id")?),
        None => None,
    };
    Ok(AuditRecord {
        id: rows::parsed(row, "id")?,
        tenant: rows::parsed::<TenantId>(row, "tenant")?,
        at: rows::moment(row, "at")?,
        actor: row.try_get("actor")?,
        actor_id,
        action: row.try_get("action")?,
        target: row.try_get("target")?,
        outcome: row.try_get("outcome")?,
        request_id: row.try_get("request_id")?,
    })
}
