//! Lets calls into workspaces, and stores what they leave.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use haft_core::BoxFuture;
use haft_core::catalog::StoreError;
use haft_core::id::{ChatId, ManifestId};
use haft_core::name::TenantId;
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::problem::excerpt;
use haft_core::workspace::{
    EnteredWorkspace, FileChange, FileChangeKind, MAX_CHANGES, ManifestSource, WorkspaceAccess,
    WorkspaceEntry, WorkspaceFolder, WorkspaceName, WorkspaceUse, Workspaces,
};
use haft_store::{Blobs, Claim, NewManifest, Store, StoredManifest};
use haft_workspace::{
    Change, ChangeKind, Limits, Listing, LocalPacks, Manifest, Packs, Snapshot, Workspace, WorkspaceError,
};
use tokio::sync::OwnedMutexGuard;

use super::archive_permits::ArchivePermits;
use super::locks::{RETRY, WorkspaceLocks, try_lock};
use super::shared_packs::SharedPacks;
use crate::home::WORKSPACES;

/// How long a call waits for the lock.
const MAX_WAIT: Duration = Duration::from_mins(10);
/// What is younger is never collected: the manifest of a snapshot is recorded after its files.
const COLLECT_AGE: Duration = Duration::from_hours(1);

/// The workspaces of this node.
pub struct WorkspaceHost {
    pub(super) store: Arc<Store>,
    pub(super) packs: Arc<dyn Packs>,
    /// The folder with the folders of workspaces.
    root: PathBuf,
    limits: Limits,
    locks: WorkspaceLocks,
    pub(super) archives: ArchivePermits,
}

/// The right to change a workspace, whose folder is in its active state.
pub(super) struct WorkspaceLock {
    pub(super) host: Arc<WorkspaceHost>,
    pub(super) tenant: TenantId,
    pub(super) name: WorkspaceName,
    pub(super) workspace: Arc<Workspace>,
    pub(super) before: Option<StoredManifest>,
    claim: Option<Claim>,
    // Dropped last: who comes next finds the claim released.
    _file: Option<File>,
    _guard: OwnedMutexGuard<()>,
}

impl WorkspaceHost {
    /// Opens the folders of workspaces in the home folder.
    pub fn open(
        home: &Path,
        store: Arc<Store>,
        blobs: &Blobs,
        limits: Limits,
    ) -> Result<Arc<Self>, WorkspaceError> {
        let local = LocalPacks::open(home.join("packs"))?;
        let packs: Arc<dyn Packs> = if blobs.is_shared() {
            Arc::new(SharedPacks::new(local, blobs.clone()))
        } else {
            Arc::new(local)
        };
        let (locks, archives) = (WorkspaceLocks::default(), ArchivePermits::default());
        Ok(Arc::new(Self { store, packs, root: home.join(WORKSPACES), limits, locks, archives }))
    }

    /// Removes the files of a deleted workspace on this node. A name can be used again, and an idle interpreter may still
    /// have the folder: it stays, and is empty.
    pub async fn forget(&self, tenant: &TenantId, name: &WorkspaceName) {
        let _lock = self.locks.lock(tenant, name).await;
        let cleared = match self.workspace(tenant, name).await {
            Ok(workspace) => blocking(move || workspace.clear()).await,
            Err(error) => Err(error),
        };
        if let Err(error) = cleared {
            tracing::warn!(%tenant, workspace = %name, error = error.message, "cannot remove the files of a deleted workspace");
        }
    }

    /// Removes what no stored state refers to.
    pub async fn gc(&self) -> Result<(), CallError> {
        let roots = self.store.workspaces().manifest_roots().await.map_err(unavailable)?;
        let manifests: Vec<Manifest> = roots.iter().map(|root| parse_root(root)).collect::<Result<_, _>>()?;
        let packs = Arc::clone(&self.packs);
        let report = blocking(move || haft_workspace::gc(&*packs, manifests, COLLECT_AGE)).await?;
        if report.packs + report.reduced > 0 {
            let (removed, reduced) = (report.packs, report.reduced);
            tracing::info!(removed, reduced, "removed stored files that no workspace has any more");
        }
        self.forget_deleted_chats().await
    }

    /// Removes the files on this node of chats that were deleted by another node, or after their retention.
    async fn forget_deleted_chats(&self) -> Result<(), CallError> {
        for tenant in names_in(&self.root) {
            let Ok(tenant) = tenant.parse::<TenantId>() else { continue };
            for chat in names_in(&self.root.join(tenant.as_str()).join("chats")) {
                let Ok(chat) = chat.parse::<ChatId>() else { continue };
                let name = WorkspaceName::Chat(chat);
                // The folder stays, and is empty.
                let is_empty = names_in(&self.folder(&tenant, &name)).next().is_none();
                if is_empty
                    || self
                        .store
                        .workspaces()
                        .active_manifest(&tenant, &name)
                        .await
                        .map_err(unavailable)?
                        .is_some()
                {
                    continue;
                }
                if self.store.chats().get(&tenant, chat).await.map_err(unavailable)?.is_none() {
                    self.forget(&tenant, &name).await;
                }
            }
        }
        Ok(())
    }

    fn folder(&self, tenant: &TenantId, name: &WorkspaceName) -> PathBuf {
        let tenant = self.root.join(tenant.as_str());
        match name {
            WorkspaceName::Chat(id) => tenant.join("chats").join(id.to_string()),
            WorkspaceName::Named(name) => tenant.join("named").join(name.as_str()),
        }
    }

    /// Acquires the lock of the workspace, and brings its folder to the active state.
    pub(super) async fn lock(
        self: &Arc<Self>,
        tenant: &TenantId,
        name: &WorkspaceName,
    ) -> Result<WorkspaceLock, CallError> {
        let deadline = Instant::now() + MAX_WAIT;
        let guard = tokio::time::timeout(MAX_WAIT, self.locks.lock(tenant, name)).await;
        let guard = guard.map_err(|_| busy(name))?;
        if self.store.workspaces().active_manifest(tenant, name).await.map_err(unavailable)?.is_none() {
            self.store.workspaces().create(tenant, name).await.map_err(unavailable)?;
        }
        let workspace = self.workspace(tenant, name).await?;
        let (file, claim) = self.lock_for_node(tenant, name, deadline).await?;
        let mut lock = WorkspaceLock {
            host: Arc::clone(self),
            tenant: tenant.clone(),
            name: name.clone(),
            workspace,
            before: None,
            claim,
            _file: file,
            _guard: guard,
        };
        match lock.checkout().await {
            Ok(()) => Ok(lock),
            Err(error) => Err(lock.release_after(error).await),
        }
    }

    /// Acquires the lock among the processes of this machine, or the claim among the nodes.
    async fn lock_for_node(
        &self,
        tenant: &TenantId,
        name: &WorkspaceName,
        deadline: Instant,
    ) -> Result<(Option<File>, Option<Claim>), CallError> {
        loop {
            if self.store.workspaces().is_shared() {
                let claim = self.store.workspaces().claim(tenant, name).await.map_err(unavailable)?;
                if claim.is_some() {
                    return Ok((None, claim));
                }
            } else {
                let folder = self.folder(tenant, name);
                let lock = tokio::task::spawn_blocking(move || try_lock(&folder)).await;
                let lock = lock.map_err(std::io::Error::other).and_then(|lock| lock);
                let lock = lock.map_err(|error| {
                    CallError::internal(format!("cannot lock the workspace: {error}"))
                        .for_model("the workspace is unavailable")
                })?;
                if lock.is_some() {
                    return Ok((lock, None));
                }
            }
            if Instant::now() > deadline {
                return Err(busy(name));
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    async fn workspace(&self, tenant: &TenantId, name: &WorkspaceName) -> Result<Arc<Workspace>, CallError> {
        let (folder, packs, limits) = (self.folder(tenant, name), Arc::clone(&self.packs), self.limits);
        blocking(move || Workspace::open(&folder, packs, limits).map(Arc::new)).await
    }

    /// Brings a folder to a stored state; a workspace without one is empty.
    async fn checkout(
        &self,
        workspace: &Arc<Workspace>,
        state: Option<&StoredManifest>,
    ) -> Result<Arc<Workspace>, CallError> {
        let manifest = state.map(|state| parse_root(&state.root)).transpose()?;
        let workspace = Arc::clone(workspace);
        blocking(move || {
            match &manifest {
                Some(manifest) => workspace.checkout(manifest)?,
                None => workspace.clear()?,
            }
            Ok(workspace)
        })
        .await
    }

    /// Lets a call look at a workspace. While another call changes it, the folder is shown as it is.
    async fn enter_to_read(
        self: &Arc<Self>,
        entry: &WorkspaceEntry,
    ) -> Result<Box<dyn EnteredWorkspace>, CallError> {
        let WorkspaceEntry { tenant, name, .. } = entry;
        let active = self.store.workspaces().active_manifest(tenant, name).await.map_err(unavailable)?;
        if active.is_none() {
            self.store.workspaces().create(tenant, name).await.map_err(unavailable)?;
        }
        let state = active.flatten();
        let workspace = self.workspace(tenant, name).await?;
        if let Some(_lock) = self.locks.try_lock(tenant, name) {
            self.checkout(&workspace, state.as_ref()).await?;
        }
        let path = workspace.folder().to_owned();
        let folder = Arc::new(WorkspaceFolder { name: name.clone(), path, read_only: true });
        Ok(Box::new(ReadSession { folder, state: state.map(|state| state.info.id) }))
    }

    async fn enter_to_change(
        self: &Arc<Self>,
        entry: WorkspaceEntry,
    ) -> Result<Box<dyn EnteredWorkspace>, CallError> {
        let lock = self.lock(&entry.tenant, &entry.name).await?;
        let workspace = Arc::clone(&lock.workspace);
        if let Err(error) = blocking(move || workspace.begin_change()).await {
            return Err(lock.release_after(error).await);
        }
        let path = lock.workspace.folder().to_owned();
        let folder = Arc::new(WorkspaceFolder { name: entry.name.clone(), path, read_only: false });
        Ok(Box::new(WriteSession { lock, folder, entry }))
    }
}

/// Gives out the workspaces; a type of its own, because calls need the shared host.
pub(crate) struct SharedHost(pub Arc<WorkspaceHost>);

impl Workspaces for SharedHost {
    fn enter(&self, entry: WorkspaceEntry) -> BoxFuture<'_, Result<Box<dyn EnteredWorkspace>, CallError>> {
        Box::pin(async move {
            match entry.access {
                WorkspaceAccess::Read => self.0.enter_to_read(&entry).await,
                WorkspaceAccess::Change => self.0.enter_to_change(entry).await,
            }
        })
    }
}

impl WorkspaceHost {
    /// Returns the host for the pipeline.
    pub fn for_calls(self: &Arc<Self>) -> Arc<dyn Workspaces> {
        Arc::new(SharedHost(Arc::clone(self)))
    }
}

impl WorkspaceLock {
    /// Brings the folder to the active state, which is locked against other changes.
    async fn checkout(&mut self) -> Result<(), CallError> {
        let workspaces = self.host.store.workspaces();
        let before = workspaces.active_manifest(&self.tenant, &self.name).await.map_err(unavailable)?;
        self.before = before.flatten();
        self.workspace = self.host.checkout(&self.workspace, self.before.as_ref()).await?;
        Ok(())
    }

    /// Stores the state of the folder and makes it the active one, unless nothing changed. Releases the lock in any case:
    /// another node would wait for its claim.
    pub(super) async fn store(self, new: NewState) -> Result<WorkspaceUse, CallError> {
        let stored = self.store_state(new).await;
        self.release().await;
        stored
    }

    /// Releases the lock after an error, and returns the error.
    pub(super) async fn release_after(self, error: CallError) -> CallError {
        self.release().await;
        error
    }

    async fn store_state(&self, new: NewState) -> Result<WorkspaceUse, CallError> {
        let (workspace, packs) = (Arc::clone(&self.workspace), Arc::clone(&self.host.packs));
        let before = self.before.as_ref().map(|before| parse_root(&before.root)).transpose()?;
        let (snapshot, changes) = blocking(move || {
            let snapshot = workspace.snapshot()?;
            let manifest = &snapshot.manifest;
            let changes = match &before {
                Some(before) if before.root.hash == manifest.root.hash => Vec::new(),
                Some(before) => haft_workspace::diff(&*packs, before, manifest)?,
                None => added(&*packs, manifest)?,
            };
            Ok((snapshot, changes))
        })
        .await?;
        let pre = self.before.as_ref().map(|before| before.info.id);
        let files: Vec<FileChange> = changes.iter().filter_map(file_change).collect();
        let changed = u64::try_from(files.len()).unwrap_or(u64::MAX);
        let is_same = changes.is_empty() && !new.is_needed;
        let post = if is_same { pre } else { Some(self.record(snapshot, new).await?) };
        let changes = files.into_iter().take(MAX_CHANGES).collect();
        let name = self.name.clone();
        Ok(WorkspaceUse { name, pre_manifest: pre, post_manifest: post, changes, changed, error: None })
    }

    async fn record(&self, snapshot: Snapshot, new: NewState) -> Result<ManifestId, CallError> {
        let manifest = &snapshot.manifest;
        let root = serde_json::to_string(manifest).map_err(|error| CallError::internal(error.to_string()))?;
        let NewState { source, source_ref, created_by, message, .. } = new;
        let (files, bytes, added) = (manifest.files, manifest.bytes, snapshot.added);
        let new = NewManifest { root, files, bytes, added, source, source_ref, created_by, message };
        let claim = self.claim.as_ref();
        match self.host.store.workspaces().add_manifest(&self.tenant, &self.name, claim, new).await {
            Ok(stored) => Ok(stored.id),
            Err(StoreError::ClaimLost) => {
                let message =
                    "another node took over the workspace, or it was deleted: the changes were not kept";
                Err(CallError::new(ErrorCode::Conflict, message))
            }
            Err(error @ StoreError::LimitReached { .. }) => {
                // Otherwise a caller could fill the disk with rejected states.
                let workspace = Arc::clone(&self.workspace);
                blocking(move || workspace.discard(&snapshot)).await?;
                Err(unavailable(error))
            }
            Err(error) => Err(unavailable(error)),
        }
    }

    /// Lets others change the workspace.
    pub(super) async fn release(self) {
        if let Some(claim) = &self.claim
            && let Err(error) = self.host.store.workspaces().release(&self.tenant, &self.name, claim).await
        {
            // The next call on this node takes it over; another node, when this one has stopped.
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                workspace = %self.name,
                "cannot release the claim of a workspace"
            );
        }
    }
}

/// What is recorded with a new state.
pub(super) struct NewState {
    pub(super) source: ManifestSource,
    pub(super) source_ref: Option<String>,
    pub(super) created_by: String,
    pub(super) message: Option<haft_core::id::MessageId>,
    /// Whether it is recorded even if nothing changed.
    pub(super) is_needed: bool,
}

/// A call that changes a workspace.
struct WriteSession {
    lock: WorkspaceLock,
    folder: Arc<WorkspaceFolder>,
    entry: WorkspaceEntry,
}

impl EnteredWorkspace for WriteSession {
    fn folder(&self) -> &Arc<WorkspaceFolder> {
        &self.folder
    }

    fn leave(self: Box<Self>) -> BoxFuture<'static, WorkspaceUse> {
        Box::pin(async move {
            let WriteSession { lock, entry, .. } = *self;
            let before = lock.before.as_ref().map(|before| before.info.id);
            let new = NewState {
                source: ManifestSource::ToolRun,
                source_ref: Some(entry.call.to_string()),
                created_by: entry.caller.to_string(),
                message: entry.message,
                is_needed: false,
            };
            lock.store(new).await.unwrap_or_else(|error| {
                tracing::warn!(call = %entry.call, workspace = %entry.name, error = error.message, "the state of a workspace was not stored");
                let (changes, changed) = (Vec::new(), 0);
                let error = Some(excerpt(&error.message, 500));
                let (pre_manifest, post_manifest) = (before, before);
                WorkspaceUse { name: entry.name, pre_manifest, post_manifest, changes, changed, error }
            })
        })
    }
}

/// A call that looks at a workspace.
struct ReadSession {
    folder: Arc<WorkspaceFolder>,
    state: Option<ManifestId>,
}

impl EnteredWorkspace for ReadSession {
    fn folder(&self) -> &Arc<WorkspaceFolder> {
        &self.folder
    }

    fn leave(self: Box<Self>) -> BoxFuture<'static, WorkspaceUse> {
        Box::pin(std::future::ready(WorkspaceUse {
            name: self.folder.name.clone(),
            pre_manifest: self.state,
            post_manifest: self.state,
            changes: Vec::new(),
            changed: 0,
            error: None,
        }))
    }
}

/// Runs blocking work on a workspace.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, WorkspaceError> + Send + 'static,
) -> Result<T, CallError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result.map_err(|error| workspace_error(&error)),
        Err(error) => Err(CallError::internal(format!("the task failed: {error}"))),
    }
}

/// Paths of the machine are not shown.
pub(super) fn workspace_error(error: &WorkspaceError) -> CallError {
    match error {
        WorkspaceError::TooLarge { .. } => CallError::new(ErrorCode::TooLarge, error.to_string()),
        WorkspaceError::NoSuchFile(_) => CallError::new(ErrorCode::NotFound, error.to_string()),
        WorkspaceError::NotAFolder(_) => {
            CallError::new(ErrorCode::ExecutionFailed, "the folder of the workspace was replaced by a file")
        }
        WorkspaceError::Io { operation, source, .. } => CallError::new(
            ErrorCode::StoreUnavailable,
            format!("cannot {operation} a file of the workspace: {source}"),
        ),
        WorkspaceError::MissingPack(_) | WorkspaceError::Damaged { .. } => {
            CallError::internal(error.to_string()).for_model("the files of this state are damaged")
        }
    }
}

/// Returns the names of everything in a folder; none if it cannot be read.
fn names_in(folder: &Path) -> impl Iterator<Item = String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    entries.filter_map(|entry| entry.file_name().into_string().ok())
}

pub(super) fn unavailable(error: StoreError) -> CallError {
    match error {
        StoreError::Unavailable { action, source, .. } => {
            CallError::new(ErrorCode::StoreUnavailable, format!("cannot {action}: {source}"))
        }
        StoreError::NotFound { .. } => CallError::new(ErrorCode::NotFound, error.to_string()),
        StoreError::LimitReached { limit, value, message } => limit.refuse(value, message, None),
        StoreError::Busy => CallError::new(ErrorCode::StoreUnavailable, error.to_string()).retryable(true),
        other => CallError::new(ErrorCode::Conflict, other.to_string()),
    }
}

fn busy(name: &WorkspaceName) -> CallError {
    let minutes = MAX_WAIT.as_secs() / 60;
    let message = format!("workspace `{name}` was in use for {minutes} minutes; retry later");
    CallError::new(ErrorCode::Overloaded, message)
}

/// Reads the root of a stored state.
pub(super) fn parse_root(root: &str) -> Result<Manifest, CallError> {
    serde_json::from_str(root)
        .map_err(|error| CallError::internal(format!("a stored state is damaged: {error}")))
}

fn added(packs: &dyn Packs, manifest: &Manifest) -> Result<Vec<Change>, WorkspaceError> {
    let entries = haft_workspace::list(packs, manifest)?;
    Ok(entries
        .into_iter()
        .map(|entry| Change { path: entry.path, kind: ChangeKind::Added(entry.listing) })
        .collect())
}

/// Returns the change of a file; folders are not listed.
pub(super) fn file_change(change: &Change) -> Option<FileChange> {
    let is_folder = |listing: &Listing| matches!(listing, Listing::Folder);
    let kind = match &change.kind {
        ChangeKind::Added(now) if is_folder(now) => return None,
        ChangeKind::Removed(before) if is_folder(before) => return None,
        ChangeKind::Added(_) => FileChangeKind::Added,
        ChangeKind::Removed(_) => FileChangeKind::Removed,
        ChangeKind::Changed(before, now) => match (is_folder(before), is_folder(now)) {
            (true, true) => return None,
            (true, false) => FileChangeKind::Added,
            (false, true) => FileChangeKind::Removed,
            (false, false) => FileChangeKind::Modified,
        },
    };
    Some(FileChange { path: String::from_utf8_lossy(&change.path).into_owned(), change: kind })
}
