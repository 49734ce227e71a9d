//! The thread that waits for the disk on behalf of everybody.

use std::fs::File;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use haft_core::catalog::StoreError;
use tokio::sync::watch;

/// How far the journal is on disk.
#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    done: u64,
    /// Everything up to here that is not done before is in doubt.
    failed: u64,
}

#[derive(Default)]
struct Work {
    /// Files with writes that are not on disk.
    files: Vec<Arc<File>>,
    written: u64,
    stop: bool,
}

/// Groups all that wait at a moment behind one fdatasync.
pub(crate) struct Syncer {
    shared: Arc<(Mutex<Work>, Condvar)>,
    progress: watch::Receiver<Progress>,
}

fn lock(work: &Mutex<Work>) -> MutexGuard<'_, Work> {
    work.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Syncer {
    /// Starts the thread.
    pub(crate) fn start() -> io::Result<Self> {
        let shared = Arc::new((Mutex::new(Work::default()), Condvar::new()));
        let (sender, progress) = watch::channel(Progress::default());
        let theirs = Arc::clone(&shared);
        std::thread::Builder::new().name("haft-journal".into()).spawn(move || serve(&theirs, &sender))?;
        Ok(Self { shared, progress })
    }

    /// Says that a record was written to a file.
    pub(crate) fn wrote(&self, file: &Arc<File>, number: u64) {
        let (work, wake) = &*self.shared;
        let mut work = lock(work);
        work.written = work.written.max(number);
        if !work.files.iter().any(|other| Arc::ptr_eq(other, file)) {
            work.files.push(Arc::clone(file));
        }
        drop(work);
        wake.notify_one();
    }

    /// Waits until a record is on disk.
    pub(crate) async fn wait(&self, number: u64) -> Result<(), StoreError> {
        let mut progress = self.progress.clone();
        let fail = |why: &str| Err(StoreError::unavailable("write the call journal to disk", why.to_owned()));
        match progress.wait_for(|now| now.done >= number || now.failed >= number).await {
            Ok(now) if now.done >= number => Ok(()),
            Ok(_) => fail("the disk reports an error"),
            Err(_) => fail("the store is closing"),
        }
    }
}

impl Drop for Syncer {
    fn drop(&mut self) {
        lock(&self.shared.0).stop = true;
        self.shared.1.notify_one();
    }
}

fn serve((work, wake): &(Mutex<Work>, Condvar), progress: &watch::Sender<Progress>) {
    loop {
        let mut guard = lock(work);
        while guard.files.is_empty() && !guard.stop {
            guard = wake.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
        if guard.files.is_empty() {
            return;
        }
        let (files, written) = (std::mem::take(&mut guard.files), guard.written);
        drop(guard);
        let result = files.iter().try_for_each(|file| file.sync_data());
        progress.send_modify(|now| match &result {
            Ok(()) => now.done = written,
            Err(_) => now.failed = written,
        });
        if let Err(error) = result {
            tracing::error!(%error, "could not write the call journal to disk");
        }
    }
}
