//! What differs between two states.

use crate::manifest::{FileEntry, Listing, list_folder};
use crate::node::{Entry, Node};
use crate::reader::Reader;
use crate::{Content, Manifest, Packs, WorkspaceResult};

/// A difference between two states: a file or link that was added, changed or removed, or an empty folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The path, relative to the workspace.
    pub path: Vec<u8>,
    /// What happened.
    pub kind: ChangeKind,
}

/// What happened to a path between two states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeKind {
    /// There was nothing before.
    Added(Listing),
    /// It is another now.
    Changed(Listing, Listing),
    /// There is nothing now.
    Removed(Listing),
}

/// Returns what differs between two states. Costs what differs: equal folders are not read.
///
/// # Errors
/// Fails if a state cannot be read.
pub fn diff(packs: &dyn Packs, before: &Manifest, after: &Manifest) -> WorkspaceResult<Vec<Change>> {
    let mut walk = Walk { reader: Reader::new(packs), path: Vec::new(), found: Vec::new() };
    walk.folders(&before.root, &after.root)?;
    Ok(walk.found)
}

struct Walk<'p> {
    reader: Reader<'p>,
    path: Vec<u8>,
    found: Vec<Change>,
}

impl Walk<'_> {
    fn folders(&mut self, before: &Content, after: &Content) -> WorkspaceResult<()> {
        if before.hash == after.hash {
            return Ok(());
        }
        let (before, after) = (self.reader.folder(before)?.entries, self.reader.folder(after)?.entries);
        let (mut before, mut after) = (before.into_iter().peekable(), after.into_iter().peekable());
        loop {
            let order = match (before.peek(), after.peek()) {
                (None, None) => return Ok(()),
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (Some(first), Some(second)) => first.name.cmp(&second.name),
            };
            let old = if order.is_le() { before.next() } else { None };
            let new = if order.is_ge() { after.next() } else { None };
            self.entry(old, new)?;
        }
    }

    fn entry(&mut self, old: Option<Entry>, new: Option<Entry>) -> WorkspaceResult<()> {
        let Some(name) = old.as_ref().or(new.as_ref()).map(|entry| entry.name.clone()) else { return Ok(()) };
        let length = self.path.len();
        if length > 0 {
            self.path.push(b'/');
        }
        self.path.extend_from_slice(&name);
        match (old.map(|entry| entry.node), new.map(|entry| entry.node)) {
            (Some(Node::Folder { content: old }), Some(Node::Folder { content: new })) => {
                self.folders(&old, &new)?;
            }
            (Some(old), Some(new))
                if !matches!((&old, &new), (Node::Folder { .. }, _) | (_, Node::Folder { .. })) =>
            {
                let (old, new) = (listing(old), listing(new));
                if !is_equal(&old, &new) {
                    self.found.push(Change { path: self.path.clone(), kind: ChangeKind::Changed(old, new) });
                }
            }
            (old, new) => {
                self.all(old, ChangeKind::Removed)?;
                self.all(new, ChangeKind::Added)?;
            }
        }
        self.path.truncate(length);
        Ok(())
    }

    /// Reports everything below a node; a folder only if it is empty.
    fn all(&mut self, node: Option<Node>, kind: fn(Listing) -> ChangeKind) -> WorkspaceResult<()> {
        let Some(node) = node else { return Ok(()) };
        let mut found = Vec::new();
        if let Node::Folder { content } = &node {
            list_folder(&mut self.reader, content, &mut self.path.clone(), &mut found)?;
        }
        if found.is_empty() {
            found.push(FileEntry { path: self.path.clone(), listing: listing(node) });
        }
        let folders: Vec<Vec<u8>> =
            found.iter().map(|entry| [&entry.path, b"/".as_slice()].concat()).collect();
        for (index, entry) in found.iter().enumerate() {
            // What comes next is in the folder, if there is something in it.
            let next = found.get(index + 1).map(|next| next.path.as_slice()).unwrap_or_default();
            let is_full = folders.get(index).is_some_and(|folder| next.starts_with(folder));
            if !is_full {
                self.found.push(Change { path: entry.path.clone(), kind: kind(entry.listing.clone()) });
            }
        }
        Ok(())
    }
}

fn listing(node: Node) -> Listing {
    match node {
        Node::File { executable, content } => Listing::File { executable, content },
        Node::Folder { .. } => Listing::Folder,
        Node::Link { target } => Listing::Link { target: target.into() },
    }
}

/// The extent of a content does not matter.
fn is_equal(first: &Listing, second: &Listing) -> bool {
    match (first, second) {
        (
            Listing::File { executable: first_bit, content: first },
            Listing::File { executable: second_bit, content: second },
        ) => first_bit == second_bit && first.hash == second.hash,
        (first, second) => first == second,
    }
}
