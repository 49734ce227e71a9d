//! The limit of concurrently written archives.

use std::sync::Arc;

use haft_core::outcome::{CallError, ErrorCode};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The maximum number of concurrently written archives; each has a thread.
pub(super) const MAX_ARCHIVES: usize = 16;

/// Limits the number of concurrently written archives.
pub(super) struct ArchivePermits(Arc<Semaphore>);

impl Default for ArchivePermits {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MAX_ARCHIVES)))
    }
}

impl ArchivePermits {
    pub(super) fn acquire(&self) -> Result<OwnedSemaphorePermit, CallError> {
        Arc::clone(&self.0).try_acquire_owned().map_err(|_| {
            let message =
                format!("{MAX_ARCHIVES} archives are being written, which is the limit; retry later");
            CallError::new(ErrorCode::Overloaded, message)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_so_many_archives_are_written_at_once() {
        let permits = ArchivePermits::default();
        let held: Vec<_> = (0..MAX_ARCHIVES).map(|_| permits.acquire().unwrap()).collect();
        assert_eq!(permits.acquire().unwrap_err().code, ErrorCode::Overloaded);
        drop(held);
        assert!(permits.acquire().is_ok());
    }
}
