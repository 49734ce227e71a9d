//! A handle on the installation, for tools that are created before it is open.

use std::sync::{Arc, OnceLock, Weak};

use haft_core::outcome::{CallError, ErrorCode};

use crate::error::ServiceError;
use crate::installation::Installation;

/// The installation, once it is open. Weak, because the installation owns the tools.
#[derive(Clone, Default)]
pub struct InstallationHandle(Arc<OnceLock<Weak<Installation>>>);

impl InstallationHandle {
    /// Sets the installation.
    pub fn set(&self, app: &Arc<Installation>) {
        // Set once: a handle belongs to one installation.
        let _ = self.0.set(Arc::downgrade(app));
    }

    /// Returns the installation, while it is open.
    pub fn get(&self) -> Result<Arc<Installation>, CallError> {
        let app = self.0.get().and_then(Weak::upgrade);
        app.ok_or_else(|| CallError::new(ErrorCode::Cancelled, "the server is starting or stopping"))
    }
}

/// Converts an error of the API into the error of a call.
pub fn call_error(error: ServiceError) -> CallError {
    let converted = CallError::new(error.code, error.message);
    match error.details {
        Some(details) => converted.with_details(*details),
        None => converted,
    }
}
