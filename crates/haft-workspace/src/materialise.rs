//! Brings a folder to a stored state.

use std::ffi::CString;
use std::fs::File;
use std::io::Write as _;

use crate::folder::{Folder, Trash};
use crate::node::{Entry, Node};
use crate::reader::Reader;
use crate::state::{Known, KnownEntry, KnownNode, Stamp};
use crate::{Content, WorkspaceError, WorkspaceResult};

/// Writes what differs from the wanted state.
pub(crate) struct Materialise<'p> {
    pub(crate) reader: Reader<'p>,
    pub(crate) trash: Trash,
    /// Whether a file was written.
    pub(crate) has_written: bool,
}

impl Materialise<'_> {
    /// Brings a folder from the known state to a stored one. Equal folders are not visited.
    pub(crate) fn folder(
        &mut self,
        folder: &Folder,
        known: Known,
        wanted: &Content,
    ) -> WorkspaceResult<Known> {
        if known.content.hash == wanted.hash {
            return Ok(known);
        }
        let node = self.reader.folder(wanted)?;
        let mut before = known.entries.into_iter().peekable();
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
        Ok(Known { content: *wanted, entries })
    }

    fn entry(
        &mut self,
        folder: &Folder,
        old: Option<KnownNode>,
        wanted: Entry,
    ) -> WorkspaceResult<KnownEntry> {
        let name = c_name(folder, &wanted.name)?;
        let node = match (old, wanted.node) {
            (
                Some(KnownNode::File { executable: before, content: old, stamp }),
                Node::File { executable, content },
            ) if old.hash == content.hash => {
                if before == executable {
                    KnownNode::File { executable, content, stamp }
                } else {
                    folder.set_executable(&name, executable)?;
                    self.has_written = true;
                    KnownNode::File { executable, content, stamp: Some(Stamp::of(&folder.stat(&name)?)) }
                }
            }
            (Some(KnownNode::Link { target: before }), Node::Link { target }) if before == target => {
                KnownNode::Link { target }
            }
            (Some(KnownNode::Folder(known)), Node::Folder { content }) => {
                KnownNode::Folder(self.folder(&folder.enter(&name)?, known, &content)?)
            }
            (old, wanted) => {
                if old.is_some() {
                    folder.remove(&name, &mut self.trash)?;
                }
                self.create(folder, &name, wanted)?
            }
        };
        Ok(KnownEntry { name: wanted.name, node })
    }

    fn create(&mut self, folder: &Folder, name: &CString, wanted: Node) -> WorkspaceResult<KnownNode> {
        match wanted {
            Node::File { executable, content } => {
                let mut file = File::from(folder.create(name, executable)?);
                let path = folder.join(name);
                let doing = "write";
                self.reader.read(&content, |bytes| {
                    file.write_all(bytes).map_err(WorkspaceError::io(doing, &path))
                })?;
                self.has_written = true;
                let stat = rustix::fs::fstat(&file).map_err(WorkspaceError::io("look at", &path))?;
                Ok(KnownNode::File { executable, content, stamp: Some(Stamp::of(&stat)) })
            }
            Node::Folder { content } => {
                let inner = folder.create_folder(name)?;
                Ok(KnownNode::Folder(self.folder(&inner, Known::unknown(), &content)?))
            }
            Node::Link { target } => {
                folder.create_link(name, &target)?;
                Ok(KnownNode::Link { target })
            }
        }
    }
}

fn c_name(folder: &Folder, name: &[u8]) -> WorkspaceResult<CString> {
    CString::new(name).map_err(|error| WorkspaceError::io("open", folder.path())(std::io::Error::from(error)))
}
