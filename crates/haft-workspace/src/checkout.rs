//! Brings a folder to a stored state.

use std::ffi::CString;
use std::fs::File;
use std::io::Write as _;

use crate::folder::{Folder, Trash};
use crate::node::{Entry, Node};
use crate::reader::Reader;
use crate::state::{CachedEntry, CachedNode, Stamp, StatCache};
use crate::{Content, WorkspaceError, WorkspaceResult};

/// Writes the differences from the target state.
pub(crate) struct Checkout<'p> {
    pub(crate) reader: Reader<'p>,
    pub(crate) trash: Trash,
    /// Whether a file was written.
    pub(crate) has_written: bool,
}

impl Checkout<'_> {
    /// Brings a folder from the known state to a stored one. Equal folders are not visited.
    pub(crate) fn folder(
        &mut self,
        folder: &Folder,
        cache: StatCache,
        wanted: &Content,
    ) -> WorkspaceResult<StatCache> {
        if cache.content.hash == wanted.hash {
            return Ok(cache);
        }
        let node = self.reader.folder(wanted)?;
        let mut before = cache.entries.into_iter().peekable();
        let mut entries = Vec::with_capacity(node.entries.len());
        for entry in node.entries {
            while let Some(old) = before.next_if(|old| old.name < entry.name) {
                folder.remove(&c_name(folder, &old.name)?, &mut self.trash)?;
            }
            let old = before.next_if(|old| old.name == entry.name).map(|old| old.node);
            entries.push(self.entry(folder, old, entry)?);
        }
        for old in before {
            folder.remove(&c_name(folder, &old.name)?, &mut self.trash)?;
        }
        Ok(StatCache { content: *wanted, entries })
    }

    fn entry(
        &mut self,
        folder: &Folder,
        old: Option<CachedNode>,
        wanted: Entry,
    ) -> WorkspaceResult<CachedEntry> {
        let name = c_name(folder, &wanted.name)?;
        let node = match (old, wanted.node) {
            (
                Some(CachedNode::File { executable: before, content: old, stamp }),
                Node::File { executable, content },
            ) if old.hash == content.hash => {
                if before == executable {
                    CachedNode::File { executable, content, stamp }
                } else {
                    folder.set_executable(&name, executable)?;
                    self.has_written = true;
                    CachedNode::File { executable, content, stamp: Some(Stamp::of(&folder.stat(&name)?)) }
                }
            }
            (Some(CachedNode::Link { target: before }), Node::Link { target }) if before == target => {
                CachedNode::Link { target }
            }
            (Some(CachedNode::Folder(cache)), Node::Folder { content }) => {
                CachedNode::Folder(self.folder(&folder.enter(&name)?, cache, &content)?)
            }
            (old, wanted) => {
                if old.is_some() {
                    folder.remove(&name, &mut self.trash)?;
                }
                self.create(folder, &name, wanted)?
            }
        };
        Ok(CachedEntry { name: wanted.name, node })
    }

    fn create(&mut self, folder: &Folder, name: &CString, wanted: Node) -> WorkspaceResult<CachedNode> {
        match wanted {
            Node::File { executable, content } => {
                let mut file = File::from(folder.create(name, executable)?);
                let path = folder.join(name);
                let operation = "write";
                self.reader.read(&content, |bytes| {
                    file.write_all(bytes).map_err(WorkspaceError::io(operation, &path))
                })?;
                self.has_written = true;
                let stat = rustix::fs::fstat(&file).map_err(WorkspaceError::io("stat", &path))?;
                Ok(CachedNode::File { executable, content, stamp: Some(Stamp::of(&stat)) })
            }
            Node::Folder { content } => {
                let inner = folder.create_folder(name)?;
                Ok(CachedNode::Folder(self.folder(&inner, StatCache::unknown(), &content)?))
            }
            Node::Link { target } => {
                folder.create_link(name, &target)?;
                Ok(CachedNode::Link { target })
            }
        }
    }
}

fn c_name(folder: &Folder, name: &[u8]) -> WorkspaceResult<CString> {
    CString::new(name).map_err(|error| WorkspaceError::io("open", folder.path())(std::io::Error::from(error)))
}
