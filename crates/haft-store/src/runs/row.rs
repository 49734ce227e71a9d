//! The row of a run.

use haft_core::catalog::StoreError;
use haft_core::id::RunId;
use haft_core::live::{ObjectAction, ObjectAudience, ObjectChange, ObjectEvent, RunStatusEvent};
use haft_core::run::{Run, RunStatus, RunStep, RunUsage};
use serde::Serialize;
use serde_json::Value;
use sqlx::Row as _;
use sqlx::any::AnyRow;

use crate::rows;

/// The columns of a run without its conversation, which can be large.
pub(super) const WITHOUT_INPUT: &str =
    "SELECT id, tenant, status, fence, record, usage, output, error, started_at, finished_at FROM runs";
/// All columns of a run.
pub(super) const WITH_INPUT: &str = "SELECT id, tenant, status, fence, record, input, usage, output, error, started_at, finished_at FROM runs";

/// Reads a run.
pub(super) fn run(row: &AnyRow) -> Result<Run, sqlx::Error> {
    let mut run: Run = rows::json_column(row, "record")?;
    let status: &str = row.try_get("status")?;
    run.status = RunStatus::parse(status)
        .ok_or_else(|| sqlx::Error::Decode(format!("unknown status `{status}`").into()))?;
    run.usage = rows::json_column::<RunUsage>(row, "usage")?;
    run.output = rows::optional_json_column(row, "output")?;
    run.error = rows::optional_json_column(row, "error")?;
    run.started_at = rows::optional_timestamp(row, "started_at")?;
    run.finished_at = rows::optional_timestamp(row, "finished_at")?;
    Ok(run)
}

/// Reads a run with its conversation.
pub(super) fn run_with_input(row: &AnyRow) -> Result<Run, sqlx::Error> {
    let mut run = run(row)?;
    run.input = rows::json_column(row, "input")?;
    Ok(run)
}

/// Returns the report of a run.
pub(super) fn change(run: &Run, change: ObjectAction) -> ObjectChange {
    let event = RunStatusEvent {
        change,
        id: run.id,
        agent_id: run.agent_id,
        status: run.status,
        chat_id: run.chat_id,
        parent_run_id: run.parent_run,
    };
    ObjectChange {
        tenant: run.principal.tenant.clone(),
        audience: ObjectAudience::OwnerAndEditors(run.principal.id()),
        event: ObjectEvent::Run(event),
    }
}

/// The columns that the report of a new status needs.
pub(super) const OF_REPORT: &str = "tenant, agent_id, principal, chat_id, parent_run";

/// Returns the report of a new status from [`OF_REPORT`].
pub(super) fn new_status(row: &AnyRow, id: RunId, status: RunStatus) -> Result<ObjectChange, sqlx::Error> {
    let optional = |column: &str| row.try_get::<Option<&str>, _>(column);
    let event = RunStatusEvent {
        change: ObjectAction::Updated,
        id,
        agent_id: rows::parse_column(row, "agent_id")?,
        status,
        chat_id: optional("chat_id")?.and_then(|id| id.parse().ok()),
        parent_run_id: optional("parent_run")?.and_then(|id| id.parse().ok()),
    };
    Ok(ObjectChange {
        tenant: rows::parse_column(row, "tenant")?,
        audience: ObjectAudience::OwnerAndEditors(row.try_get::<&str, _>("principal")?.into()),
        event: ObjectEvent::Run(event),
    })
}

/// Returns what is stored of a run when it is requested, and its conversation.
pub(super) fn split(run: &mut Run) -> Result<(String, String), StoreError> {
    let input = std::mem::replace(&mut run.input, Value::Null);
    let texts = to_text(run).and_then(|record| Ok((record, to_text(&input)?)));
    run.input = input;
    texts
}

/// Reads a step.
pub(super) fn step(row: &AnyRow) -> Result<RunStep, sqlx::Error> {
    rows::json_column(row, "step")
}

/// Writes JSON.
pub(super) fn to_text<T: Serialize>(value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| StoreError::unavailable("store the run", error))
}
