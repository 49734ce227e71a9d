//! A handle on a part of the installation, for tools that are created before the installation is open.

use std::sync::{Arc, OnceLock, Weak};

use haft_core::outcome::{CallError, ErrorCode};

/// A part of the installation, once it is open. Weak, because the installation owns the tools.
pub struct Late<T>(Arc<OnceLock<Weak<T>>>);

impl<T> Late<T> {
    /// Sets the part.
    pub fn set(&self, part: &Arc<T>) {
        // A second call has no effect: a handle belongs to one installation.
        let _ = self.0.set(Arc::downgrade(part));
    }

    /// Returns the part, while the installation is open.
    pub fn get(&self) -> Result<Arc<T>, CallError> {
        let part = self.0.get().and_then(Weak::upgrade);
        part.ok_or_else(|| CallError::new(ErrorCode::Cancelled, "the server is starting or stopping"))
    }
}

// Derived implementations would require them of `T`.
impl<T> Default for Late<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T> Clone for Late<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}
