//! The row of a run.

use haft_core::catalog::StoreError;
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
