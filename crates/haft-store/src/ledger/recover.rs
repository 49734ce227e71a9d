//! Recovery from dead processes: their journals, and calls that never finished.

use std::collections::BTreeSet;
use std::fs::{File, TryLockError};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use haft_core::call::CallStatus;
use haft_core::catalog::{StorageFailure, StoreError};
use haft_core::outcome::CallError;
use sqlx::Row as _;

use super::insert::insert;
use super::journal::JOURNAL_FOLDER;
use super::record::{self, CallRow};
use super::segment;
use crate::engine::failed_to;
use crate::files::{lock, write};
use crate::store::Inner;

const RECOVER: &str = "recover the calls of a dead process";

impl Inner {
    /// Stores the calls in the journals of dead processes, and finishes their running calls.
    pub(crate) async fn recover(self: &Arc<Self>) -> Result<(), StoreError> {
        if let Some(files) = &self.files {
            let dead = files.run(RECOVER.into(), |home| dead_nodes(&home.join(JOURNAL_FOLDER))).await?;
            for (node, _lock) in dead {
                self.replay(&node).await?;
            }
        }
        self.finish_interrupted().await
    }

    /// Leaves the calls of dead processes in their journals until there is room on the disk. Until then no calls are
    /// recorded.
    pub(crate) fn defer_recovery(&self) {
        self.recovery_due.store(true, Ordering::Release);
        let full = StoreError::Unavailable {
            action: "write the call journal".to_owned(),
            failure: StorageFailure::DiskFull,
            source: "the disk is full".into(),
        };
        drop(self.health.observe::<()>(Err(full)));
    }

    /// Recovers the calls of dead processes that were deferred, once calls can be recorded again.
    pub(crate) async fn recover_deferred(self: &Arc<Self>) {
        if self.health.is_failing() || !self.recovery_due.swap(false, Ordering::AcqRel) {
            return;
        }
        if let Err(error) = self.recover().await {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "calls stay in the journal of a dead process"
            );
            self.recovery_due.store(true, Ordering::Release);
        }
    }

    async fn replay(&self, node: &str) -> Result<(), StoreError> {
        let Some(files) = &self.files else { return Ok(()) };
        let folder = files.at(JOURNAL_FOLDER);
        let (list, name) = (folder.clone(), node.to_owned());
        let segments = files.run(RECOVER.into(), move |_| segments_of(&list, &name)).await?;
        for path in segments {
            let file = path.clone();
            let (records, torn) = files.run(RECOVER.into(), move |_| segment::read(&file)).await?;
            if torn {
                tracing::warn!(path = %path.display(), "ignored an incomplete record at the end of a journal");
            }
            let rows: Vec<CallRow> = records
                .iter()
                .map(|text| CallRow::new(&record::parse(text)?))
                .collect::<Result<_, StoreError>>()?;
            if !rows.is_empty() {
                insert(&self.engine, node, &rows).await.map_err(failed_to(RECOVER))?;
                self.usage.count(&rows).await;
            }
            files.run(RECOVER.into(), move |_| write::remove(&path)).await?;
        }
        let lock_file = super::journal::node_file(&folder, node);
        files.run(RECOVER.into(), move |_| write::remove(&lock_file)).await
    }

    /// Finishes the calls that a dead process was running.
    async fn finish_interrupted(&self) -> Result<(), StoreError> {
        let found = sqlx::query("SELECT node, record FROM calls WHERE final = 0")
            .fetch_all(&self.engine.pool)
            .await
            .map_err(failed_to(RECOVER))?;
        let mut interrupted = Vec::new();
        for row in &found {
            let node: &str = row.try_get("node").map_err(failed_to(RECOVER))?;
            if node != self.node && self.is_dead(node).await? {
                let mut call = record::parse(row.try_get("record").map_err(failed_to(RECOVER))?)?;
                call.status = CallStatus::Error;
                call.error =
                    Some(CallError::internal("interrupted: haft stopped while the call was running"));
                call.finished_at = Some(self.now());
                interrupted.push(CallRow::new(&call)?);
            }
        }
        record::finish_interrupted(&self.engine, &interrupted).await.map_err(failed_to(RECOVER))
    }

    async fn is_dead(&self, node: &str) -> Result<bool, StoreError> {
        let Some(files) = &self.files else {
            return self.engine.is_node_dead(node).await.map_err(failed_to(RECOVER));
        };
        let path = super::journal::node_file(&files.at(JOURNAL_FOLDER), node);
        Ok(match File::open(path) {
            Ok(file) => !matches!(file.try_lock(), Err(TryLockError::WouldBlock)),
            Err(_) => true,
        })
    }
}

/// Returns the processes whose lock is free; each lock is held until it is dropped.
fn dead_nodes(folder: &Path) -> std::io::Result<Vec<(String, File)>> {
    let mut dead = Vec::new();
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(dead) };
    let mut nodes = BTreeSet::new();
    for entry in entries {
        let name = entry?.file_name();
        // A segment is enough: the lock file of its process may be lost.
        let node = name.to_str().and_then(|name| {
            name.strip_suffix(".node").or_else(|| Some(name.strip_suffix(".log")?.rsplit_once('.')?.0))
        });
        nodes.extend(node.map(str::to_owned));
    }
    for node in nodes {
        let path = super::journal::node_file(folder, &node);
        let Ok(file) = File::options().create(true).truncate(false).write(true).mode(0o600).open(&path)
        else {
            continue;
        };
        // If the file was removed meanwhile, another process has recovered this one.
        if file.try_lock().is_ok() && lock::is_at(&file, &path)? {
            dead.push((node, file));
        }
    }
    Ok(dead)
}

/// Returns the segments of a process, oldest first.
fn segments_of(folder: &Path, node: &str) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let owner = name.strip_suffix(".log").and_then(|name| name.rsplit_once('.'));
        if owner.is_some_and(|(owner, _)| owner == node) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
