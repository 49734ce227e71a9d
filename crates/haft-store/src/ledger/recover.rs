//! Recovery from dead processes: their journals, and calls that never finished.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use haft_core::call::{CallRecord, CallStatus};
use haft_core::catalog::{StorageFailure, StoreError};
use haft_core::outcome::{CallError, ErrorCode};
use sqlx::{AssertSqlSafe, Row as _};

use super::drain::report_lost;
use super::insert::insert;
use super::record::{self, CallRow};
use super::segment;
use crate::claims::{CALLS, Claim, holds};
use crate::engine::failed_to;
use crate::files::{layout, lock, write};
use crate::ledger::Calls;
use crate::outbox::insert_new;

/// Calls that a node runs, after an id.
pub(crate) const RUNNING_OF_NODE: &str = "SELECT id, fence, record FROM calls WHERE final = 0 AND status = 'running' \
    AND node = $1 AND id > $2 ORDER BY id LIMIT 100";

const RECOVER: &str = "recover the calls of a dead process";

impl Calls {
    /// Stores the calls in the journals of dead processes, and ends their running calls or puts them back into the queue.
    pub(crate) async fn recover(&self) -> Result<(), StoreError> {
        if let Some(files) = &self.db.files {
            let dead =
                files.run(RECOVER.into(), |home| dead_nodes(&home.join(layout::JOURNAL_FOLDER))).await?;
            for (node, _lock) in dead {
                self.replay(&node).await?;
            }
        }
        self.recover_running().await
    }

    /// Leaves the calls of dead processes in their journals until there is room on the disk. Until then no calls are
    /// recorded.
    pub(crate) fn defer_recovery(&self) {
        self.state.recovery_due.store(true, Ordering::Release);
        let full = StoreError::Unavailable {
            action: "write the call journal".to_owned(),
            failure: StorageFailure::DiskFull,
            source: "the disk is full".into(),
        };
        drop(self.state.health.observe::<()>(Err(full)));
    }

    /// Returns whether a recovery was deferred and calls can be recorded again; then the caller recovers.
    pub(crate) fn take_deferred_recovery(&self) -> bool {
        !self.state.health.is_failing() && self.state.recovery_due.swap(false, Ordering::AcqRel)
    }

    /// Defers a recovery that failed.
    pub(crate) fn defer_recovery_again(&self) {
        self.state.recovery_due.store(true, Ordering::Release);
    }

    async fn replay(&self, node: &str) -> Result<(), StoreError> {
        let Some(files) = &self.db.files else { return Ok(()) };
        let folder = files.at(layout::JOURNAL_FOLDER);
        let (list, name) = (folder.clone(), node.to_owned());
        let segments = files.run(RECOVER.into(), move |_| segments_of(&list, &name)).await?;
        for path in segments {
            let file = path.clone();
            let (records, torn) = files.run(RECOVER.into(), move |_| segment::read(&file)).await?;
            if torn {
                tracing::warn!(path = %path.display(), "ignored an incomplete record at the end of a journal");
            }
            let mut rows = Vec::with_capacity(records.len());
            for text in &records {
                let mut call = record::parse(text)?;
                call.invocation.fence = self.fence_of(node, &call).await.map_err(failed_to(RECOVER))?;
                rows.push(CallRow::new(&call)?);
            }
            if !rows.is_empty() {
                let lost = insert(&self.db.engine, &self.db.outbox, node, &rows)
                    .await
                    .map_err(failed_to(RECOVER))?;
                report_lost(&lost);
                self.state.usage.count(&rows).await;
            }
            files.run(RECOVER.into(), move |_| write::remove(&path)).await?;
        }
        let lock_file = layout::node_file(&folder, node);
        files.run(RECOVER.into(), move |_| write::remove(&lock_file)).await
    }

    /// Returns the fence of the claim that a dead node had on a call; its journal does not have it. It is 0 if the call did
    /// not come from the queue, or has gone back there since.
    async fn fence_of(&self, node: &str, call: &CallRecord) -> Result<i64, sqlx::Error> {
        if call.invocation.definition_hash.is_none() {
            return Ok(0);
        }
        let sql = "SELECT fence FROM calls WHERE tenant = $1 AND id = $2 AND node = $3";
        let found = sqlx::query(sql).bind(call.tenant().as_str()).bind(call.id().to_string()).bind(node);
        found.fetch_optional(&self.db.engine.pool).await?.map_or(Ok(0), |row| row.try_get(0))
    }

    /// Ends the calls that dead nodes were running, or puts them back into the queue.
    async fn recover_running(&self) -> Result<(), StoreError> {
        let mut requeued = false;
        for node in self.db.dead_holders(&CALLS, RECOVER).await? {
            requeued |= self.recover_calls_of(&node).await?;
        }
        if requeued {
            self.state.queue_changed.notify_one();
        }
        Ok(())
    }

    /// Recovers the calls that a dead node was running; returns whether one is in the queue again.
    async fn recover_calls_of(&self, node: &str) -> Result<bool, StoreError> {
        let (mut last, mut requeued) = (String::new(), false);
        loop {
            let found = sqlx::query(RUNNING_OF_NODE).bind(node).bind(&last).fetch_all(&self.db.engine.pool);
            let found = found.await.map_err(failed_to(RECOVER))?;
            let Some(end) = found.last() else { return Ok(requeued) };
            last = end.try_get("id").map_err(failed_to(RECOVER))?;
            for row in &found {
                let mut call = record::parse(row.try_get("record").map_err(failed_to(RECOVER))?)?;
                call.invocation.fence = row.try_get("fence").map_err(failed_to(RECOVER))?;
                requeued |= self.recover_call(node, call).await.map_err(failed_to(RECOVER))?;
            }
        }
    }

    /// Recovers one call; returns whether it is in the queue again. A call whose tool has no side effects may run again;
    /// any other is never repeated automatically.
    pub(crate) async fn recover_call(&self, node: &str, mut call: CallRecord) -> Result<bool, sqlx::Error> {
        let was_queued = call.invocation.definition_hash.is_some();
        let requeue = was_queued && call.invocation.is_pure;
        if requeue {
            call.status = CallStatus::Pending;
        } else {
            let message = "haft stopped while the call was running; its effects are unknown";
            call.error = Some(CallError::new(ErrorCode::Interrupted, message));
            call.status = CallStatus::Interrupted;
            call.finished_at = Some(self.db.now());
        }
        let Ok(row) = CallRow::new(&call) else { return Ok(false) };
        // A call in the queue has another fence: if the node only seemed dead, its result comes too late. An interrupted
        // call keeps its fence: no other node runs it, so a late result replaces the verdict.
        let free = if requeue { ", node = '', fence = fence + 1" } else { "" };
        let sql = AssertSqlSafe(format!(
            "UPDATE calls SET status = $1, final = $2, error_code = $3, record = $4{free} \
             WHERE tenant = $5 AND id = $6 AND final = 0 AND status = 'running' AND {}",
            holds(7)
        ));
        let claim = Claim::new(node, call.invocation.fence);
        let mut tx = self.db.engine.begin().await?;
        let query = sqlx::query(sql)
            .bind(row.status.as_str())
            .bind(i64::from(row.status.is_final()))
            .bind(row.error_code.map(ErrorCode::as_str))
            .bind(&*row.record)
            .bind(row.tenant.as_str())
            .bind(row.id.to_string());
        let done = claim.bind(query).execute(&mut *tx).await?;
        // Another node may have recovered it.
        if done.rows_affected() == 1 {
            insert_new(&mut tx, &self.db.outbox.of_call(&call)).await?;
        }
        tx.commit().await?;
        if done.rows_affected() == 1 {
            self.db.outbox.signal();
            self.report_call(&call);
        }
        Ok(requeue)
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
        let path = layout::node_file(folder, &node);
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
