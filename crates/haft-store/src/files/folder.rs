//! The home folder of an embedded store.

use std::io;
use std::path::{Path, PathBuf};

use haft_core::catalog::StoreError;

use super::layout::{HISTORY, SKILLS};
use super::lock::{self, HomeLock};
use super::{history, write};

/// The home folder.
#[derive(Debug, Clone)]
pub(crate) struct Files {
    pub(crate) home: PathBuf,
}

impl Files {
    /// Makes the folders that are missing.
    pub(crate) fn open(home: &Path) -> Result<Self, StoreError> {
        let fail = |folder: &str| {
            let doing = format!("make the folder `{}`", home.join(folder).display());
            move |error| StoreError::unavailable(doing, error)
        };
        std::fs::create_dir_all(home.join(SKILLS)).map_err(fail(SKILLS))?;
        history::make(home).map_err(fail(HISTORY))?;
        Ok(Self { home: home.to_owned() })
    }

    /// Returns where a relative path is.
    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.home.join(path)
    }

    /// Waits, off the async threads, for the lock between processes.
    pub(crate) async fn lock(&self) -> Result<HomeLock, StoreError> {
        let path = self.at(SKILLS).join(".lock");
        self.run(format!("lock `{}`", path.display()), move |_| lock::acquire(&path)).await
    }

    /// Removes what a crash left in the history; definitions are cleaned up when they are read.
    pub(crate) async fn clean_history(&self) -> Result<(), StoreError> {
        let _lock = self.lock().await?;
        self.run("clean up the history".into(), |home| {
            for entry in std::fs::read_dir(home.join(HISTORY))? {
                let path = entry?.path();
                if path.to_str().is_some_and(|path| path.ends_with(write::TEMPORARY)) {
                    write::remove(&path)?;
                }
            }
            Ok(())
        })
        .await
    }

    /// Runs something that waits for the disk off the async threads.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        doing: String,
        work: impl FnOnce(&Path) -> io::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let home = self.home.clone();
        let result = tokio::task::spawn_blocking(move || work(&home)).await;
        match result {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(StoreError::unavailable(doing, error)),
            Err(error) => Err(StoreError::unavailable(doing, error)),
        }
    }
}
