//! What a process that died has left: its journal, and calls that never ended.

use std::collections::BTreeSet;
use std::fs::{File, TryLockError};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft_core::call::CallStatus;
use haft_core::catalog::StoreError;
use haft_core::outcome::CallError;
use sqlx::Row as _;

use super::insert::insert;
use super::journal::FOLDER;
use super::record::{self, Row};
use super::segment;
use crate::engine::fault;
use crate::files::{lock, write};
use crate::store::Inner;

const DOING: &str = "recover the calls of a process that ended";

impl Inner {
    /// Stores what dead processes left in their journals, and ends their calls.
    pub(crate) async fn recover(self: &Arc<Self>) -> Result<(), StoreError> {
        if let Some(files) = &self.files {
            let dead = files.run(DOING.into(), |home| dead_nodes(&home.join(FOLDER))).await?;
            for (node, _lock) in dead {
                self.replay(&node).await?;
            }
        }
        self.end_interrupted().await
    }

    async fn replay(&self, node: &str) -> Result<(), StoreError> {
        let Some(files) = &self.files else { return Ok(()) };
        let folder = files.at(FOLDER);
        let (list, name) = (folder.clone(), node.to_owned());
        let segments = files.run(DOING.into(), move |_| segments_of(&list, &name)).await?;
        for path in segments {
            let file = path.clone();
            let (records, torn) = files.run(DOING.into(), move |_| segment::read(&file)).await?;
            if torn {
                tracing::warn!(path = %path.display(), "the end of a journal was torn by a crash and is cut off");
            }
            let rows: Vec<Row> = records
                .iter()
                .map(|text| Row::new(&record::parse(text)?))
                .collect::<Result<_, StoreError>>()?;
            if !rows.is_empty() {
                insert(&self.engine, node, &rows).await.map_err(fault(DOING))?;
            }
            files.run(DOING.into(), move |_| write::remove(&path)).await?;
        }
        let alive = super::journal::node_file(&folder, node);
        files.run(DOING.into(), move |_| write::remove(&alive)).await
    }

    /// A call that a dead process was running will never end by itself.
    async fn end_interrupted(&self) -> Result<(), StoreError> {
        let found = sqlx::query("SELECT node, record FROM calls WHERE final = 0")
            .fetch_all(&self.engine.pool)
            .await
            .map_err(fault(DOING))?;
        let mut ended = Vec::new();
        for row in &found {
            let node: &str = row.try_get("node").map_err(fault(DOING))?;
            if node != self.node && self.is_dead(node).await? {
                let mut call = record::parse(row.try_get("record").map_err(fault(DOING))?)?;
                call.status = CallStatus::Error;
                call.error = Some(CallError::internal("interrupted: haft ended while the call was running"));
                call.finished_at = Some(self.now());
                ended.push(Row::new(&call)?);
            }
        }
        record::end(&self.engine, &ended).await.map_err(fault(DOING))
    }

    async fn is_dead(&self, node: &str) -> Result<bool, StoreError> {
        let Some(files) = &self.files else {
            return self.engine.is_dead(node).await.map_err(fault(DOING));
        };
        let path = super::journal::node_file(&files.at(FOLDER), node);
        Ok(match File::open(path) {
            Ok(file) => !matches!(file.try_lock(), Err(TryLockError::WouldBlock)),
            Err(_) => true,
        })
    }
}

/// Returns the processes whose lock is free, each with that lock taken.
fn dead_nodes(folder: &Path) -> std::io::Result<Vec<(String, File)>> {
    let mut dead = Vec::new();
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(dead) };
    let mut nodes = BTreeSet::new();
    for entry in entries {
        let name = entry?.file_name();
        // A segment alone counts too: whoever wrote it may have lost the file of its lock.
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
        // One that was removed in between is being dealt with, or is no one's any more.
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
