//! Changes of a workspace by a person.

use std::sync::Arc;

use bytes::Bytes;
use haft_core::id::{ManifestId, MessageId};
use haft_core::name::TenantId;
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::workspace::{ManifestSource, WorkspaceName, WorkspaceUse};
use haft_executors::files::direct;
use haft_store::StoredManifest;
use haft_workspace::{Listing, Workspace, WorkspaceError};

use super::host::{NewState, WorkspaceHost, WorkspaceLock, blocking, parse_root, unavailable};

/// A change of one file.
#[derive(Debug, Clone)]
pub enum FileEdit {
    /// Writes a file, with the folders above it.
    Write {
        /// The path in the workspace.
        path: String,
        /// The new content.
        bytes: Bytes,
        /// What must be there before.
        expected: Expected,
    },
    /// Deletes a file, or a folder that is empty.
    Delete {
        /// The path in the workspace.
        path: String,
        /// What must be there before.
        expected: Expected,
    },
}

/// What a change of a file expects to find, so that it replaces nothing that its author has not seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// Anything.
    Anything,
    /// A file with one of these hashes.
    Hash(Vec<String>),
    /// Any file.
    File,
    /// Nothing.
    Nothing,
}

impl FileEdit {
    /// Returns the number of bytes that it writes.
    fn bytes(&self) -> usize {
        match self {
            FileEdit::Write { bytes, .. } => bytes.len(),
            FileEdit::Delete { .. } => 0,
        }
    }

    fn target(&self) -> (&str, &Expected) {
        match self {
            FileEdit::Write { path, expected, .. } | FileEdit::Delete { path, expected } => (path, expected),
        }
    }
}

/// Who makes a new state, and why.
pub struct StateChange {
    pub source: ManifestSource,
    pub source_ref: Option<String>,
    /// The name of the token.
    pub by: String,
    /// The message of the chat whose state it becomes.
    pub message: Option<MessageId>,
}

impl WorkspaceHost {
    /// Changes files, and stores the new state. If one change fails, none is kept.
    pub async fn edit(
        self: &Arc<Self>,
        tenant: &TenantId,
        name: &WorkspaceName,
        edits: Vec<FileEdit>,
        change: StateChange,
    ) -> Result<WorkspaceUse, CallError> {
        // Checked before anything is written, and again for the snapshot.
        let written: usize = edits.iter().map(FileEdit::bytes).sum();
        if written > 0 {
            let written = u64::try_from(written).unwrap_or(u64::MAX);
            self.store.limits().check_stored_bytes(tenant, written).await.map_err(unavailable)?;
        }
        let lock = self.lock(tenant, name).await?;
        for edit in &edits {
            let (path, expected) = edit.target();
            if let Err(error) = self.check_expected(lock.before.as_ref(), path, expected).await {
                return Err(lock.release_after(error).await);
            }
        }
        let workspace = Arc::clone(&lock.workspace);
        if let Err(error) = blocking(move || workspace.begin_change()).await {
            return Err(lock.release_after(error).await);
        }
        let folder = lock.workspace.folder().to_owned();
        let edited = tokio::task::spawn_blocking(move || {
            edits
                .iter()
                .try_for_each(|edit| match edit {
                    FileEdit::Write { path, bytes, .. } => direct::write(&folder, path, bytes).map(drop),
                    FileEdit::Delete { path, .. } => direct::remove(&folder, path),
                })
                .map_err(of_request)
        });
        let edited = edited.await.unwrap_or_else(|error| Err(CallError::internal(error.to_string())));
        if let Err(error) = edited {
            // Who enters next finds the state before.
            return Err(lock.release_after(error).await);
        }
        lock.store(new_state(change, false)).await
    }

    /// Rejects a change of a file that is not as its author has seen it.
    async fn check_expected(
        &self,
        state: Option<&StoredManifest>,
        path: &str,
        expected: &Expected,
    ) -> Result<(), CallError> {
        if *expected == Expected::Anything {
            return Ok(());
        }
        let found = match state {
            Some(state) => {
                let (manifest, packs) = (parse_root(&state.root)?, Arc::clone(&self.packs));
                let path = path.to_owned();
                blocking(move || haft_workspace::find(&*packs, &manifest, path.as_bytes())).await?
            }
            None => None,
        };
        let hash = match &found {
            Some(Listing::File { content, .. }) => Some(content.hash.to_string()),
            _ => None,
        };
        let message = match (expected, hash) {
            (Expected::Anything, _) | (Expected::File, Some(_)) => return Ok(()),
            (Expected::Nothing, _) if found.is_none() => return Ok(()),
            (Expected::Hash(known), Some(hash)) if known.contains(&hash) => return Ok(()),
            (Expected::Nothing, _) => format!("`{path}` exists already"),
            (Expected::Hash(_), Some(hash)) => {
                format!("`{path}` was changed since you read it (its hash is now `{hash}`); read it again")
            }
            (Expected::Hash(_) | Expected::File, None) => format!("there is no file `{path}` any more"),
        };
        Err(CallError::new(ErrorCode::Conflict, message))
    }

    /// Brings a workspace to an earlier state; that is a new state with the same files.
    pub async fn restore(
        self: &Arc<Self>,
        tenant: &TenantId,
        name: &WorkspaceName,
        state: ManifestId,
        change: StateChange,
    ) -> Result<WorkspaceUse, CallError> {
        let Some(wanted) =
            self.store.workspaces().manifest(tenant, name, state).await.map_err(unavailable)?
        else {
            let message = format!("workspace `{name}` has no state `{state}`");
            return Err(CallError::new(ErrorCode::NotFound, message));
        };
        let manifest = parse_root(&wanted.root)?;
        let lock = self.lock(tenant, name).await?;
        let is_active = lock.before.as_ref().is_some_and(|before| before.info.id == state);
        let replaced = move |workspace: &Workspace| workspace.checkout(&manifest);
        replace(lock, replaced, new_state(change, !is_active)).await
    }

    /// Removes all files of a workspace; the result is a new state without files.
    pub async fn clear(
        self: &Arc<Self>,
        tenant: &TenantId,
        name: &WorkspaceName,
        change: StateChange,
    ) -> Result<WorkspaceUse, CallError> {
        let lock = self.lock(tenant, name).await?;
        replace(lock, Workspace::clear, new_state(change, false)).await
    }
}

/// Replaces the files of a workspace, and stores the new state.
async fn replace(
    lock: WorkspaceLock,
    files: impl FnOnce(&Workspace) -> Result<(), WorkspaceError> + Send + 'static,
    state: NewState,
) -> Result<WorkspaceUse, CallError> {
    let workspace = Arc::clone(&lock.workspace);
    if let Err(error) = blocking(move || files(&workspace)).await {
        lock.release().await;
        return Err(error);
    }
    lock.store(state).await
}

/// A path that cannot be used is a fault of the request, not of a tool.
fn of_request(error: CallError) -> CallError {
    let reason = error.details.as_ref().and_then(|details| details.get("reason")?.as_str());
    let code = match (error.code, reason) {
        (ErrorCode::ExecutionFailed, Some("not_found")) => ErrorCode::NotFound,
        (ErrorCode::ExecutionFailed, Some("io" | "no_space" | "permission")) => ErrorCode::StoreUnavailable,
        (ErrorCode::ExecutionFailed | ErrorCode::PathEscapes, _) => ErrorCode::InvalidRequest,
        (code, _) => code,
    };
    CallError { code, ..error }
}

fn new_state(change: StateChange, is_needed: bool) -> NewState {
    let StateChange { source, source_ref, by, message } = change;
    NewState { source, source_ref, created_by: by, message, is_needed }
}
