//! A stored state of a folder, and what is in it.

use serde::{Deserialize, Serialize};

use crate::node::Node;
use crate::reader::Reader;
use crate::{Content, Hash, Packs, WorkspaceError, WorkspaceResult};

/// A stored state of a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The root folder. Equal hashes mean equal states.
    pub root: Content,
    /// The number of files.
    pub files: u64,
    /// The size of all files together.
    pub bytes: u64,
}

/// What a manifest lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEntry {
    /// The path, relative to the workspace. Any bytes but zero.
    pub path: Vec<u8>,
    /// What it is.
    pub listing: Listing,
}

/// What an entry of a manifest is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listing {
    /// A file.
    File {
        /// Whether it can be executed.
        executable: bool,
        /// Its content.
        content: Content,
    },
    /// A folder.
    Folder,
    /// A symbolic link.
    Link {
        /// Where it points.
        target: Vec<u8>,
    },
}

/// Lists everything in a state, ordered by path, folders before what they contain.
///
/// # Errors
/// Fails if the state cannot be read.
pub fn list(packs: &dyn Packs, manifest: &Manifest) -> WorkspaceResult<Vec<FileEntry>> {
    let mut found = Vec::new();
    list_folder(&mut Reader::new(packs), &manifest.root, &mut Vec::new(), &mut found)?;
    Ok(found)
}

pub(crate) fn list_folder(
    reader: &mut Reader<'_>,
    folder: &Content,
    path: &mut Vec<u8>,
    found: &mut Vec<FileEntry>,
) -> WorkspaceResult<()> {
    for entry in reader.folder(folder)?.entries {
        let length = path.len();
        if length > 0 {
            path.push(b'/');
        }
        path.extend_from_slice(&entry.name);
        let (listing, inner) = match entry.node {
            Node::File { executable, content } => (Listing::File { executable, content }, None),
            Node::Folder { content } => (Listing::Folder, Some(content)),
            Node::Link { target } => (Listing::Link { target: target.into() }, None),
        };
        found.push(FileEntry { path: path.clone(), listing });
        if let Some(inner) = inner {
            list_folder(reader, &inner, path, found)?;
        }
        path.truncate(length);
    }
    Ok(())
}

/// A step of [`walk`].
#[derive(Debug)]
pub enum WalkStep<'a> {
    /// The next entry.
    Entry(&'a FileEntry),
    /// A part of the content of the last entry, which is a file.
    Bytes(&'a [u8]),
}

/// Passes everything in a state to `take`, in the order of [`list`], with the content of files; fails at a damaged file.
///
/// # Errors
/// Fails if the state cannot be read, or if `take` fails.
pub fn walk(
    packs: &dyn Packs,
    manifest: &Manifest,
    mut take: impl FnMut(WalkStep<'_>) -> WorkspaceResult<()>,
) -> WorkspaceResult<()> {
    let entries = list(packs, manifest)?;
    let mut reader = Reader::new(packs);
    for entry in &entries {
        take(WalkStep::Entry(entry))?;
        if let Listing::File { content, .. } = &entry.listing {
            reader.read(content, |bytes| take(WalkStep::Bytes(bytes)))?;
        }
    }
    Ok(())
}

/// Returns what is at a path of a state; `None` if there is nothing.
///
/// # Errors
/// Fails if the state cannot be read.
pub fn find(packs: &dyn Packs, manifest: &Manifest, path: &[u8]) -> WorkspaceResult<Option<Listing>> {
    let mut reader = Reader::new(packs);
    let mut folder = manifest.root;
    let mut names = path.split(|byte| *byte == b'/').peekable();
    while let Some(name) = names.next() {
        let node = reader.folder(&folder)?;
        let found = node.entries.into_iter().find(|entry| *entry.name == *name);
        let is_last = names.peek().is_none();
        match found.map(|entry| entry.node) {
            Some(Node::Folder { content }) if !is_last => folder = content,
            Some(Node::Folder { .. }) => return Ok(Some(Listing::Folder)),
            Some(Node::File { executable, content }) if is_last => {
                return Ok(Some(Listing::File { executable, content }));
            }
            Some(Node::Link { target }) if is_last => {
                return Ok(Some(Listing::Link { target: target.into() }));
            }
            _ => return Ok(None),
        }
    }
    Ok(None)
}

/// Reads a file of a state in parts, and fails at the end if it is damaged.
///
/// # Errors
/// Fails if there is no such file, if it cannot be read, or if `take` fails.
pub fn read_file(
    packs: &dyn Packs,
    manifest: &Manifest,
    path: &[u8],
    take: impl FnMut(&[u8]) -> WorkspaceResult<()>,
) -> WorkspaceResult<Hash> {
    let missing = || WorkspaceError::NoSuchFile(String::from_utf8_lossy(path).into_owned());
    let mut reader = Reader::new(packs);
    let mut folder = manifest.root;
    let mut names = path.split(|byte| *byte == b'/').peekable();
    while let Some(name) = names.next() {
        let node = reader.folder(&folder)?;
        let found = node.entries.into_iter().find(|entry| *entry.name == *name);
        match found.map(|entry| entry.node) {
            Some(Node::Folder { content }) => folder = content,
            Some(Node::File { content, .. }) if names.peek().is_none() => {
                reader.read(&content, take)?;
                return Ok(content.hash);
            }
            _ => return Err(missing()),
        }
    }
    Err(missing())
}
