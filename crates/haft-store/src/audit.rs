//! Audit records of changes.
//!
//! A change and the record of its request are stored in one transaction. The outcome of the request is added when it
//! completes.

use std::collections::BTreeMap;
use std::sync::Arc;

use haft_core::Timestamp;
use haft_core::audit::AuditRecord;
use haft_core::name::TenantId;
use sqlx::any::AnyArguments;
use sqlx::query::Query;
use sqlx::{Any, AssertSqlSafe, Transaction};

use crate::time;

/// The actor of edits of definition files.
pub(crate) const FILE_ACTOR: &str = "file";
/// The largest number of records of one look at the definition files.
const MAX_FILE_RECORDS: usize = 500;
pub(crate) const COLUMNS: &str =
    "id, tenant, at, actor, actor_id, action, target, outcome, request_id, token_id";

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

/// Runs the work of a request, whose changes are stored with its record.
pub(crate) async fn recorded<F: Future>(record: AuditRecord, work: F) -> F::Output {
    CURRENT.scope(Arc::new(record), work).await
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
/// of a tenant counts the rest. Each record has a different time, because lists are ordered by it.
pub(crate) async fn store_file_edits(
    tx: &mut Transaction<'static, Any>,
    edits: Vec<FileEdit>,
    now: impl Fn() -> Timestamp,
) -> Result<(), sqlx::Error> {
    let mut uncounted: BTreeMap<TenantId, usize> = BTreeMap::new();
    for (index, edit) in edits.into_iter().enumerate() {
        if index < MAX_FILE_RECORDS {
            insert(file_record(edit, now()), "DO NOTHING").execute(&mut **tx).await?;
        } else {
            *uncounted.entry(edit.tenant).or_default() += 1;
        }
    }
    for (tenant, count) in uncounted {
        let target = format!("{count} more tools");
        let edit = FileEdit { tenant, action: "tool.update", target, outcome: "success" };
        insert(file_record(edit, now()), "DO NOTHING").execute(&mut **tx).await?;
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

fn file_record(edit: FileEdit, at: Timestamp) -> AuditRecord {
    AuditRecord {
        id: time::id_at_microsecond(at),
        tenant: edit.tenant,
        at,
        actor: FILE_ACTOR.to_owned(),
        actor_id: None,
        token_id: None,
        action: edit.action.to_owned(),
        target: edit.target,
        outcome: edit.outcome.to_owned(),
        request_id: String::new(),
    }
}

pub(crate) fn insert(record: AuditRecord, on_conflict: &str) -> Query<'static, Any, AnyArguments> {
    sqlx::query(AssertSqlSafe(format!(
        "INSERT INTO audit ({COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT (id) {on_conflict}"
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
    .bind(record.token_id.map(|id| id.to_string()))
}
