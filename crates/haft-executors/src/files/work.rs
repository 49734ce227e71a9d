//! Runs file operations on blocking threads, with a concurrency limit.

use std::sync::Arc;

use haft_core::outcome::{CallError, ErrorCode, Outcome};
use haft_runtime::function::panicked;
use serde_json::Value;
use tokio::sync::Semaphore;

use super::error::FileError;

/// Waits for a permit and runs the operation on a blocking thread.
pub(super) async fn run_blocking(
    permits: &Arc<Semaphore>,
    work: impl FnOnce() -> Result<Value, FileError> + Send + 'static,
) -> Outcome {
    let permit = Arc::clone(permits).acquire_owned().await;
    let permit = permit.map_err(|error| CallError::internal(error.to_string()))?;
    let work = move || {
        let _permit = permit;
        work().map_err(CallError::from)
    };
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome,
        Err(error) if error.is_panic() => Err(panicked(error.into_panic().as_ref())),
        Err(_) => Err(CallError::new(ErrorCode::Cancelled, "the program is shutting down")),
    }
}
