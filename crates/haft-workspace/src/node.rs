//! Folder nodes: what a stored folder contains.

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::Hash;

/// The identifier of a pack. It begins with the time of its creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PackId(pub Uuid);

impl fmt::Display for PackId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.simple().fmt(f)
    }
}

/// Where bytes are stored: a range of the uncompressed bytes of a pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extent {
    /// The pack.
    pub pack: PackId,
    /// The first byte.
    pub offset: u64,
    /// The number of bytes.
    pub length: u64,
}

/// A stored content: its hash and its extent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    /// The hash; for a folder that of its names and hashes, see [`FolderNode::hash`].
    pub hash: Hash,
    /// Where it is stored. The serialized name is an earlier one, for existing databases.
    #[serde(rename = "place")]
    pub extent: Extent,
}

impl Content {
    /// Stands for a content that is not known.
    pub(crate) const UNKNOWN: Self =
        Self { hash: Hash::UNKNOWN, extent: Extent { pack: PackId(Uuid::nil()), offset: 0, length: 0 } };
}

/// A folder: its entries, ordered by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FolderNode {
    pub(crate) entries: Vec<Entry>,
}

/// An entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// The name: any bytes but `/` and zero.
    pub(crate) name: Box<[u8]>,
    pub(crate) node: Node,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Node {
    File { executable: bool, content: Content },
    Folder { content: Content },
    Link { target: Box<[u8]> },
}

impl FolderNode {
    /// Returns the hash of names, kinds and hashes. Extents do not count, so equal folders have equal hashes wherever
    /// they are stored.
    pub(crate) fn hash(&self) -> Hash {
        // Another function than for files: no file has the hash of a folder.
        let mut hasher = blake3::Hasher::new_derive_key("haft-workspace folder 1");
        for entry in &self.entries {
            let (kind, bytes): (u8, &[u8]) = match &entry.node {
                Node::File { executable: false, content } => (0, content.hash.as_bytes()),
                Node::File { executable: true, content } => (1, content.hash.as_bytes()),
                Node::Folder { content } => (2, content.hash.as_bytes()),
                Node::Link { target } => (3, target),
            };
            for part in [&entry.name, bytes] {
                hasher.update(&(part.len() as u64).to_le_bytes());
                hasher.update(part);
            }
            hasher.update(&[kind]);
        }
        Hash::finish(&hasher)
    }

    /// Returns whether its entries are ordered and its names usable: a stored node may be forged.
    pub(crate) fn is_valid(&self) -> bool {
        let usable = |name: &[u8]| {
            !matches!(name, b"" | b"." | b"..") && !name.iter().any(|byte| matches!(byte, b'/' | 0))
        };
        self.entries.iter().all(|entry| usable(&entry.name))
            && self.entries.is_sorted_by(|first, second| first.name < second.name)
    }
}
