//! Compares a folder with what is known of it.

use std::ffi::CString;
use std::path::PathBuf;

use rustix::fs::{FileType, Mode};

use crate::folder::Folder;
use crate::state::{CachedEntry, CachedNode, Stamp, StatCache};
use crate::{Content, Limits, WorkspaceError, WorkspaceResult};

/// What a scan finds besides the entries.
pub(crate) struct Scan {
    limits: Limits,
    /// The files whose content is not known, in the order in which they occur.
    pub(crate) changed: Vec<ChangedFile>,
    /// Sockets, devices and FIFOs, which are not stored.
    pub(crate) skipped: Vec<PathBuf>,
    /// The number of files and folders.
    pub(crate) entries: u64,
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    /// The path of the present folder, relative to the workspace.
    path: Vec<CString>,
}

/// A file whose content is not known.
pub(crate) struct ChangedFile {
    /// The names of its folders, from the workspace on.
    pub(crate) folders: std::sync::Arc<[CString]>,
    pub(crate) name: CString,
    pub(crate) stamp: Stamp,
}

impl Scan {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            changed: Vec::new(),
            skipped: Vec::new(),
            entries: 0,
            files: 0,
            bytes: 0,
            path: Vec::new(),
        }
    }

    /// Looks at every entry of a folder. Files that look as they did are taken as known; the content of other files and
    /// of the folders around them is unknown.
    pub(crate) fn folder(&mut self, folder: &Folder, cache: &StatCache) -> WorkspaceResult<StatCache> {
        let depth = self.path.len() as u64;
        if depth > self.limits.depth {
            return Err(WorkspaceError::TooLarge { what: "levels of folders", limit: self.limits.depth });
        }
        let path: std::sync::Arc<[CString]> = self.path.as_slice().into();
        let mut entries = Vec::with_capacity(cache.entries.len());
        let mut is_known = true;
        for name in folder.names()? {
            let before = cache.get(name.as_bytes());
            let Some((node, same)) = self.entry(folder, &path, &name, before)? else { continue };
            is_known &= same;
            entries.push(CachedEntry { name: name.into_bytes().into(), node });
        }
        is_known &= entries.len() == cache.entries.len();
        let content = if is_known { cache.content } else { Content::UNKNOWN };
        Ok(StatCache { content, entries })
    }

    /// Returns an entry and whether it is as it was; `None` if it is not stored.
    fn entry(
        &mut self,
        folder: &Folder,
        path: &std::sync::Arc<[CString]>,
        name: &CString,
        before: Option<&CachedNode>,
    ) -> WorkspaceResult<Option<(CachedNode, bool)>> {
        let stat = folder.stat(name)?;
        let found = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {
                let stamp = Stamp::of(&stat);
                self.add(1, stamp.size())?;
                let executable = Mode::from_raw_mode(stat.st_mode).contains(Mode::XUSR);
                match before {
                    Some(CachedNode::File { executable: before, content, stamp: Some(known) })
                        if *known == stamp && content.hash != Content::UNKNOWN.hash =>
                    {
                        let node = CachedNode::File { executable, content: *content, stamp: Some(stamp) };
                        (node, *before == executable)
                    }
                    _ => {
                        let (folders, name) = (path.clone(), name.clone());
                        self.changed.push(ChangedFile { folders, name, stamp });
                        (CachedNode::File { executable, content: Content::UNKNOWN, stamp: None }, false)
                    }
                }
            }
            FileType::Directory => {
                self.add(0, 0)?;
                let unknown = StatCache::unknown();
                let cache = if let Some(CachedNode::Folder(cache)) = before { cache } else { &unknown };
                self.path.push(name.clone());
                let found = self.folder(&folder.enter(name)?, cache)?;
                self.path.pop();
                let same =
                    before.is_some() && found.content == cache.content && found.content != Content::UNKNOWN;
                (CachedNode::Folder(found), same)
            }
            FileType::Symlink => {
                self.add(0, 0)?;
                let target = folder.link_target(name)?;
                let same = matches!(before, Some(CachedNode::Link { target: before }) if *before == target);
                (CachedNode::Link { target }, same)
            }
            _ => {
                self.skipped.push(folder.join(name));
                return Ok(None);
            }
        };
        Ok(Some(found))
    }

    fn add(&mut self, files: u64, bytes: u64) -> WorkspaceResult<()> {
        self.entries += 1;
        self.files += files;
        self.bytes = self.bytes.saturating_add(bytes);
        let Limits { entries, bytes, .. } = self.limits;
        if self.entries > entries {
            return Err(WorkspaceError::TooLarge { what: "files and folders", limit: entries });
        }
        if self.bytes > bytes {
            return Err(WorkspaceError::TooLarge { what: "bytes", limit: bytes });
        }
        Ok(())
    }
}
