//! Work on files, on threads of its own and never too much of it at once.

use std::sync::Arc;

use haft_core::outcome::{CallError, ErrorCode, Outcome};
use serde_json::Value;
use tokio::sync::Semaphore;

use super::error::FileError;
use crate::function::panicked;

/// Waits for a place and runs what blocks.
pub(super) async fn in_place(
    places: &Arc<Semaphore>,
    work: impl FnOnce() -> Result<Value, FileError> + Send + 'static,
) -> Outcome {
    let place = Arc::clone(places).acquire_owned().await;
    let place = place.map_err(|error| CallError::internal(error.to_string()))?;
    let work = move || {
        let _place = place;
        work().map_err(CallError::from)
    };
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome,
        Err(error) if error.is_panic() => Err(panicked(error.into_panic().as_ref())),
        Err(_) => Err(CallError::new(ErrorCode::Cancelled, "the program is stopping")),
    }
}
