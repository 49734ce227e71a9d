//! Who may change a workspace: one at a time, on this node and among the nodes that share a database.

use std::collections::HashMap;
use std::fs::{File, TryLockError};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use haft_core::name::TenantId;
use haft_core::workspace::WorkspaceName;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

/// How often a lock that another process holds is tried again.
pub(super) const RETRY: Duration = Duration::from_millis(50);
/// Above this number of workspaces, unused locks are dropped.
const FORGET_ABOVE: usize = 256;

type Lock = Arc<AsyncMutex<()>>;
type WorkspaceKey = (TenantId, WorkspaceName);

/// The locks of the workspaces of this node. A lock exists while it is held or waited for.
#[derive(Default)]
pub(super) struct WorkspaceLocks(Mutex<HashMap<WorkspaceKey, Weak<AsyncMutex<()>>>>);

impl WorkspaceLocks {
    /// Acquires the lock, waiting for it if necessary.
    pub(super) async fn lock(&self, tenant: &TenantId, name: &WorkspaceName) -> OwnedMutexGuard<()> {
        self.of(tenant, name).lock_owned().await
    }

    /// Acquires the lock if it is free.
    pub(super) fn try_lock(&self, tenant: &TenantId, name: &WorkspaceName) -> Option<OwnedMutexGuard<()>> {
        self.of(tenant, name).try_lock_owned().ok()
    }

    fn of(&self, tenant: &TenantId, name: &WorkspaceName) -> Lock {
        let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if locks.len() > FORGET_ABOVE {
            locks.retain(|_, lock| lock.strong_count() > 0);
        }
        let known = locks.entry((tenant.clone(), name.clone())).or_default();
        known.upgrade().unwrap_or_else(|| {
            let lock = Lock::default();
            *known = Arc::downgrade(&lock);
            lock
        })
    }
}

/// Locks the workspace among the processes of this machine; the lock ends with the file. `None` if another process has
/// it.
pub(super) fn try_lock(root: &Path) -> std::io::Result<Option<File>> {
    std::fs::create_dir_all(root)?;
    let file = File::options().create(true).truncate(false).write(true).open(root.join("lock"))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}
