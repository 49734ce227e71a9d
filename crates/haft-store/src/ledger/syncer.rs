//! The thread that waits for the disk on behalf of everybody.

use std::fs::File;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use haft_core::catalog::StoreError;
use tokio::sync::oneshot;

#[derive(Default)]
struct Work {
    /// Files with writes that are not on disk.
    files: Vec<Arc<File>>,
    /// Who waits for them; each is woken once.
    waiting: Vec<oneshot::Sender<bool>>,
    stop: bool,
}

/// Groups all that wait at a moment behind one fdatasync.
pub(crate) struct Syncer {
    shared: Arc<(Mutex<Work>, Condvar)>,
}

/// A record that is written and not yet on disk.
pub(crate) struct Written(oneshot::Receiver<bool>);

fn lock(work: &Mutex<Work>) -> MutexGuard<'_, Work> {
    work.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Syncer {
    /// Starts the thread.
    pub(crate) fn start() -> io::Result<Self> {
        let shared = Arc::new((Mutex::new(Work::default()), Condvar::new()));
        let theirs = Arc::clone(&shared);
        std::thread::Builder::new().name("haft-journal".into()).spawn(move || serve(&theirs))?;
        Ok(Self { shared })
    }

    /// Says that a record was written to a file.
    pub(crate) fn wrote(&self, file: &Arc<File>) -> Written {
        let (sender, receiver) = oneshot::channel();
        let (work, wake) = &*self.shared;
        let mut work = lock(work);
        if !work.files.iter().any(|other| Arc::ptr_eq(other, file)) {
            work.files.push(Arc::clone(file));
        }
        work.waiting.push(sender);
        drop(work);
        wake.notify_one();
        Written(receiver)
    }
}

impl Written {
    /// Waits until the record is on disk.
    pub(crate) async fn on_disk(self) -> Result<(), StoreError> {
        let fail = |why: &str| Err(StoreError::unavailable("write the call journal to disk", why.to_owned()));
        match self.0.await {
            Ok(true) => Ok(()),
            Ok(false) => fail("the disk reports an error"),
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

fn serve((work, wake): &(Mutex<Work>, Condvar)) {
    loop {
        let mut guard = lock(work);
        while guard.files.is_empty() && !guard.stop {
            guard = wake.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
        if guard.files.is_empty() {
            return;
        }
        let (files, waiting) = (std::mem::take(&mut guard.files), std::mem::take(&mut guard.waiting));
        drop(guard);
        let result = files.iter().try_for_each(|file| file.sync_data());
        if let Err(error) = &result {
            tracing::error!(%error, "could not write the call journal to disk");
        }
        for waiter in waiting {
            // Who stopped waiting does not mind.
            let _ = waiter.send(result.is_ok());
        }
    }
}
