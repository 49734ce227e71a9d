//! Reads stored states without checking them out.

use std::ops::Range;
use std::sync::Arc;

use haft_core::id::ManifestId;
use haft_core::name::TenantId;
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::workspace::{FileChange, FileChangeKind, ManifestInfo, WorkspaceName};
use haft_store::StoredManifest;
use haft_workspace::{Listing, Manifest};
use serde::Serialize;
use serde_json::json;

use super::host::{WorkspaceHost, blocking, file_change, parse_root, unavailable};

/// The most bytes of a file in one response.
const MAX_READ: u64 = 64 << 20;

/// The files of a state.
#[derive(Debug, Serialize)]
pub struct FileListing {
    /// The state; `null` if the workspace is new.
    pub manifest: Option<ManifestInfo>,
    /// The files, folders and links, ordered by path.
    pub files: Vec<ListedFile>,
    pub total: usize,
}

/// A file, folder or link of a workspace.
#[derive(Debug, Serialize)]
pub struct ListedFile {
    pub path: String,
    pub kind: ListedKind,
    /// The size of a file in bytes.
    pub size: Option<u64>,
    /// Whether a file can be executed.
    pub executable: bool,
    /// Where a link points.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The hash of a file's content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
}

/// The kind of an entry of a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ListedKind {
    File,
    Folder,
    Link,
}

/// A part of a file.
pub struct FileRange {
    pub bytes: Vec<u8>,
    /// Which bytes of the file these are.
    pub range: Range<u64>,
    /// The size of the file.
    pub total: u64,
    /// The hash of the whole file, if all of it was read.
    pub hash: String,
}

impl WorkspaceHost {
    /// Returns a state of a workspace: a given one, or the active one; `None` if the workspace is new.
    pub async fn state(
        &self,
        tenant: &TenantId,
        name: &WorkspaceName,
        state: Option<ManifestId>,
    ) -> Result<Option<StoredManifest>, CallError> {
        if let Some(id) = state {
            let found = self.store.workspaces().manifest(tenant, name, id).await.map_err(unavailable)?;
            let missing =
                || CallError::new(ErrorCode::NotFound, format!("workspace `{name}` has no state `{id}`"));
            return found.map(Some).ok_or_else(missing);
        }
        let found = self.store.workspaces().active_manifest(tenant, name).await.map_err(unavailable)?;
        found.ok_or_else(|| {
            let message = format!("workspace `{name}` not found");
            CallError::new(ErrorCode::NotFound, message).with_details(json!({"kind": "workspace"}))
        })
    }

    /// Lists the files of a state below a folder.
    pub async fn files(
        &self,
        tenant: &TenantId,
        name: &WorkspaceName,
        state: Option<ManifestId>,
        folder: Option<&str>,
    ) -> Result<FileListing, CallError> {
        let Some(state) = self.state(tenant, name, state).await? else {
            return Ok(FileListing { manifest: None, files: Vec::new(), total: 0 });
        };
        let (manifest, packs) = (parse_root(&state.root)?, Arc::clone(&self.packs));
        let entries = blocking(move || haft_workspace::list(&*packs, &manifest)).await?;
        let prefix =
            folder.map(|folder| format!("{}/", folder.trim_matches('/'))).filter(|prefix| prefix != "/");
        let files: Vec<ListedFile> = entries
            .into_iter()
            .map(|entry| listed(&entry.path, entry.listing))
            .filter(|file| prefix.as_ref().is_none_or(|prefix| file.path.starts_with(prefix)))
            .collect();
        Ok(FileListing { manifest: Some(state.info), total: files.len(), files })
    }

    /// Reads a file of a state, or a part of it: from a byte, up to another one that is not read.
    pub async fn read(
        &self,
        tenant: &TenantId,
        name: &WorkspaceName,
        state: Option<ManifestId>,
        (path, part): (&str, Option<(u64, Option<u64>)>),
    ) -> Result<FileRange, CallError> {
        let missing =
            || CallError::new(ErrorCode::NotFound, format!("workspace `{name}` has no file `{path}`"));
        let state = self.state(tenant, name, state).await?.ok_or_else(missing)?;
        let (manifest, packs) = (parse_root(&state.root)?, Arc::clone(&self.packs));
        let (path, shown) = (path.to_owned(), path.to_owned());
        let (start, end) = part.unwrap_or((0, None));
        let end = end.unwrap_or(u64::MAX).min(start.saturating_add(MAX_READ + 1));
        let (bytes, total, hash) = blocking(move || {
            let (mut bytes, mut position) = (Vec::new(), 0_u64);
            let hash = haft_workspace::read_file(&*packs, &manifest, path.as_bytes(), |block| {
                let length = block.len() as u64;
                let from = start.saturating_sub(position).min(length);
                let to = end.saturating_sub(position).min(length);
                let (from, to) = (usize::try_from(from).unwrap_or(0), usize::try_from(to).unwrap_or(0));
                bytes.extend_from_slice(block.get(from..to).unwrap_or_default());
                position += length;
                Ok(())
            })?;
            Ok((bytes, position, hash))
        })
        .await?;
        if bytes.len() as u64 > MAX_READ {
            let limit = MAX_READ >> 20;
            let message = format!("`{shown}` has {total} bytes; request at most {limit} MiB with `Range`");
            return Err(CallError::new(ErrorCode::TooLarge, message));
        }
        let range = start.min(total)..start.min(total) + bytes.len() as u64;
        Ok(FileRange { bytes, range, total, hash: hash.to_string() })
    }

    /// Returns the files that differ between two states.
    pub async fn changes(
        &self,
        tenant: &TenantId,
        name: &WorkspaceName,
        from: ManifestId,
        to: Option<ManifestId>,
    ) -> Result<Vec<FileChange>, CallError> {
        let mut states: Vec<Manifest> = Vec::new();
        for id in [Some(from), to] {
            match self.state(tenant, name, id).await? {
                Some(state) => states.push(parse_root(&state.root)?),
                None => return Ok(Vec::new()),
            }
        }
        let packs = Arc::clone(&self.packs);
        blocking(move || {
            let [before, after] = states.as_slice() else { return Ok(Vec::new()) };
            let changes = haft_workspace::diff(&*packs, before, after)?;
            Ok(changes.iter().filter_map(file_change).collect())
        })
        .await
    }
}

impl WorkspaceHost {
    /// Returns the files that the latest change of a workspace affected.
    pub async fn latest_changes(
        &self,
        tenant: &TenantId,
        name: &WorkspaceName,
    ) -> Result<Vec<FileChange>, CallError> {
        match self.state(tenant, name, None).await?.map(|active| active.info) {
            None => Ok(Vec::new()),
            Some(ManifestInfo { id, parent_id: Some(parent), .. }) => {
                self.changes(tenant, name, parent, Some(id)).await
            }
            Some(ManifestInfo { id, parent_id: None, .. }) => self.initial_changes(tenant, name, id).await,
        }
    }

    /// Returns the files of the first state of a workspace as added ones.
    async fn initial_changes(
        &self,
        tenant: &TenantId,
        name: &WorkspaceName,
        state: ManifestId,
    ) -> Result<Vec<FileChange>, CallError> {
        let listing = self.files(tenant, name, Some(state), None).await?;
        let files = listing.files.into_iter().filter(|file| file.kind != ListedKind::Folder);
        Ok(files.map(|file| FileChange { path: file.path, change: FileChangeKind::Added }).collect())
    }
}

fn listed(path: &[u8], listing: Listing) -> ListedFile {
    let path = String::from_utf8_lossy(path).into_owned();
    let plain = |kind| ListedFile {
        path: path.clone(),
        kind,
        size: None,
        executable: false,
        target: None,
        hash: None,
    };
    match listing {
        Listing::File { executable, content } => ListedFile {
            size: Some(content.extent.length),
            executable,
            hash: Some(content.hash.to_string()),
            ..plain(ListedKind::File)
        },
        Listing::Folder => plain(ListedKind::Folder),
        Listing::Link { target } => {
            let target = Some(String::from_utf8_lossy(&target).into_owned());
            ListedFile { target, ..plain(ListedKind::Link) }
        }
    }
}
