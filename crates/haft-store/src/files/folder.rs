//! File operations in the home folder.

use std::io;
use std::path::{Path, PathBuf};

use haft_core::catalog::StoreError;

use super::layout::{HISTORY, SKILLS};
use super::lock::{self, HomeLock};
use super::reserve::Reserve;
use super::{history, write};

/// The home folder.
#[derive(Debug, Clone)]
pub(crate) struct Files {
    pub(crate) home: PathBuf,
    pub(crate) reserve: Reserve,
}

impl Files {
    /// Creates missing folders.
    pub(crate) fn open(home: &Path) -> Result<Self, StoreError> {
        let fail = |folder: &str| {
            let action = format!("create the folder `{}`", home.join(folder).display());
            move |error| StoreError::unavailable(action, error)
        };
        std::fs::create_dir_all(home.join(SKILLS)).map_err(fail(SKILLS))?;
        history::create_folder(home).map_err(fail(HISTORY))?;
        Ok(Self { home: home.to_owned(), reserve: Reserve::new(home) })
    }

    /// Returns the absolute path of a relative one.
    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.home.join(path)
    }

    /// Acquires the lock between processes.
    pub(crate) async fn lock(&self) -> Result<HomeLock, StoreError> {
        let path = self.at(SKILLS).join(".lock");
        self.run(format!("lock `{}`", path.display()), move |_| lock::acquire(&path)).await
    }

    /// Removes temporary files that a crash left in the history. A scan removes those among the definitions.
    pub(crate) async fn clean_history(&self) -> Result<(), StoreError> {
        let _lock = self.lock().await?;
        self.run("remove temporary files from the history".into(), |home| {
            for entry in std::fs::read_dir(home.join(HISTORY))? {
                let path = entry?.path();
                if path.to_str().is_some_and(|path| path.ends_with(write::TEMP_SUFFIX)) {
                    write::remove(&path)?;
                }
            }
            Ok(())
        })
        .await
    }

    /// Runs a blocking file operation off the async threads; `action` completes "cannot …".
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        action: String,
        work: impl FnOnce(&Path) -> io::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let home = self.home.clone();
        let result = tokio::task::spawn_blocking(move || work(&home)).await;
        match result {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(StoreError::unavailable(action, error)),
            Err(error) => Err(StoreError::unavailable(action, error)),
        }
    }
}
