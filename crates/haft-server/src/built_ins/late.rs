//! The installation, for tools that are made before it is open.

use std::sync::{Arc, OnceLock, Weak};

use haft_core::outcome::{CallError, ErrorCode};

use crate::app::App;
use crate::error::ApiError;

/// The installation, once it is open. The tools belong to it, so they do not keep it.
#[derive(Clone, Default)]
pub(crate) struct Late(Arc<OnceLock<Weak<App>>>);

impl Late {
    /// Tells the tools where they are.
    pub(crate) fn set(&self, app: &Arc<App>) {
        // There is one installation, and it is told once.
        let _ = self.0.set(Arc::downgrade(app));
    }

    pub(super) fn get(&self) -> Result<Arc<App>, CallError> {
        let app = self.0.get().and_then(Weak::upgrade);
        app.ok_or_else(|| CallError::new(ErrorCode::Cancelled, "the server is starting or stopping"))
    }
}

/// What the API would have answered, as the outcome of a tool.
pub(super) fn outcome(error: ApiError) -> CallError {
    let failed = CallError::new(error.code, error.message);
    match error.details {
        Some(details) => failed.with_details(details),
        None => failed,
    }
}
