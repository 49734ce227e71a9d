//! The packs of workspaces in a bucket that all nodes share, with a copy of those that this node has used.

use std::collections::HashSet;
use std::fs::File;
use std::path::Path;

use haft_core::catalog::StoreError;
use haft_store::Blobs;
use haft_workspace::{LocalPacks, PackId, Packs, WorkspaceError, WorkspaceResult};
use tokio::runtime::Handle;
use uuid::Uuid;

/// The name of a pack in the bucket starts with this.
const PACKS: &str = "packs";

/// Packs in a bucket. They never change, apart from holes, so a local copy is never revalidated.
pub(super) struct SharedPacks {
    local: LocalPacks,
    blobs: Blobs,
    runtime: Handle,
}

impl SharedPacks {
    /// Opens the packs; within the runtime that requests are sent in.
    pub(super) fn new(local: LocalPacks, blobs: Blobs) -> Self {
        Self { local, blobs, runtime: Handle::current() }
    }

    /// Waits for the bucket; packs are used by threads that may block.
    fn wait<T>(&self, work: impl Future<Output = Result<T, StoreError>>) -> WorkspaceResult<T> {
        self.runtime.block_on(work).map_err(|error| WorkspaceError::Io {
            operation: "transfer",
            path: Path::new(PACKS).to_owned(),
            source: std::io::Error::other(error),
        })
    }
}

fn name(pack: PackId) -> String {
    format!("{PACKS}/{pack}")
}

impl Packs for SharedPacks {
    fn staging(&self) -> &Path {
        self.local.staging()
    }

    fn keep(&self, pack: PackId, file: &Path) -> WorkspaceResult<()> {
        self.wait(self.blobs.put_file(&name(pack), file))?;
        self.local.keep(pack, file)
    }

    fn open(&self, pack: PackId) -> WorkspaceResult<File> {
        match self.local.open(pack) {
            Err(WorkspaceError::MissingPack(_)) => {}
            opened => return opened,
        }
        let staged = self.staging().join(Uuid::now_v7().simple().to_string());
        let fetched = self.wait(self.blobs.get_file(&name(pack), &staged));
        let kept = match fetched {
            Ok(true) => self.local.keep(pack, &staged),
            Ok(false) => Err(WorkspaceError::MissingPack(pack)),
            Err(error) => Err(error),
        };
        if kept.is_err() {
            let _ = std::fs::remove_file(&staged);
        }
        kept.and_then(|()| self.local.open(pack))
    }

    fn list(&self) -> WorkspaceResult<Vec<PackId>> {
        let listed = self.wait(self.blobs.list(PACKS))?;
        let parse = |name: &String| Uuid::try_parse(name.rsplit('/').next()?).ok().map(PackId);
        let packs: Vec<PackId> = listed.iter().filter_map(|(name, _)| parse(name)).collect();
        // Another node removed the others.
        let known: HashSet<PackId> = packs.iter().copied().collect();
        for copy in self.local.list()?.into_iter().filter(|copy| !known.contains(copy)) {
            self.local.remove(copy)?;
        }
        Ok(packs)
    }

    fn remove(&self, pack: PackId) -> WorkspaceResult<()> {
        self.wait(self.blobs.remove(&name(pack)))?;
        self.local.remove(pack)
    }
}
