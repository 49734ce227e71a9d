//! The format of a pack, and its writer.
//!
//! A pack is a sequence of bytes in blocks of [`BLOCK`] bytes, each compressed if that makes it smaller; then the index:
//! the position of each block. A range of the bytes is read by its blocks alone. Blocks that nothing refers to can be
//! removed without moving anything: their length becomes zero.
//!
//! ```text
//! block … block | index: (position u64, length u32) for each block | number of blocks u64 | MAGIC
//! ```
//! Numbers are little-endian. The highest bit of a length is set if the block is compressed.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::PathBuf;

use uuid::Uuid;

use crate::{Extent, PackId, Packs, WorkspaceError, WorkspaceResult};

/// The number of uncompressed bytes in a block.
pub(crate) const BLOCK: usize = 128 * 1024;
/// The last bytes of a pack.
pub(crate) const MAGIC: [u8; 8] = *b"haftpak1";
/// The bytes of an index entry, and those after the index.
pub(crate) const INDEX_ENTRY_BYTES: usize = 12;
pub(crate) const FOOTER_BYTES: usize = 16;

const COMPRESSED: u32 = 1 << 31;
/// Compression that costs less than reading the files.
const LEVEL: i32 = 1;

/// Where a block lies in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) position: u64,
    /// Zero if the block was removed.
    pub(crate) length: u32,
    pub(crate) is_compressed: bool,
}

impl Block {
    pub(crate) fn to_bytes(self) -> [u8; INDEX_ENTRY_BYTES] {
        let flag = if self.is_compressed { COMPRESSED } else { 0 };
        let mut bytes = [0; INDEX_ENTRY_BYTES];
        let (position, length) = bytes.split_at_mut(8);
        position.copy_from_slice(&self.position.to_le_bytes());
        length.copy_from_slice(&(self.length | flag).to_le_bytes());
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (position, length) = bytes.split_at_checked(8)?;
        let length = u32::from_le_bytes(length.try_into().ok()?);
        let position = u64::from_le_bytes(position.try_into().ok()?);
        Some(Self { position, length: length & !COMPRESSED, is_compressed: length & COMPRESSED != 0 })
    }
}

/// Writes blocks and their index to a file that is removed unless it is kept.
pub(crate) struct BlockWriter {
    path: PathBuf,
    file: BufWriter<File>,
    position: u64,
    blocks: Vec<Block>,
}

impl BlockWriter {
    pub(crate) fn create(packs: &dyn Packs) -> WorkspaceResult<Self> {
        let path = packs.staging().join(Uuid::now_v7().simple().to_string());
        let file = File::create_new(&path).map_err(WorkspaceError::io("create", &path))?;
        Ok(Self { path, file: BufWriter::new(file), position: 0, blocks: Vec::new() })
    }

    /// Writes a block as it is stored.
    pub(crate) fn write(&mut self, bytes: &[u8], is_compressed: bool) -> WorkspaceResult<()> {
        self.file.write_all(bytes).map_err(WorkspaceError::io("write", &self.path))?;
        // A block is at most as long as its uncompressed bytes.
        let length = u32::try_from(bytes.len()).unwrap_or(0);
        self.blocks.push(Block { position: self.position, length, is_compressed });
        self.position += u64::from(length);
        Ok(())
    }

    /// Writes the index and keeps the file as a pack.
    pub(crate) fn keep(mut self, packs: &dyn Packs, pack: PackId) -> WorkspaceResult<()> {
        let mut end: Vec<u8> = self.blocks.iter().flat_map(|block| block.to_bytes()).collect();
        end.extend((self.blocks.len() as u64).to_le_bytes());
        end.extend(MAGIC);
        let written = self.file.write_all(&end).and_then(|()| self.file.flush());
        written.map_err(WorkspaceError::io("write", &self.path))?;
        packs.keep(pack, &self.path)
    }
}

impl Drop for BlockWriter {
    fn drop(&mut self) {
        // It is gone if it was kept.
        let _ = fs::remove_file(&self.path);
    }
}

/// Writes a new pack.
pub(crate) struct PackWriter {
    id: PackId,
    blocks: BlockWriter,
    /// The block that is being filled.
    block: Vec<u8>,
    /// The number of uncompressed bytes before it.
    before: u64,
    compressor: zstd::bulk::Compressor<'static>,
}

impl PackWriter {
    pub(crate) fn create(packs: &dyn Packs) -> WorkspaceResult<Self> {
        let blocks = BlockWriter::create(packs)?;
        let compressor =
            zstd::bulk::Compressor::new(LEVEL).map_err(WorkspaceError::io("compress", &blocks.path))?;
        Ok(Self {
            id: PackId(Uuid::now_v7()),
            blocks,
            block: Vec::with_capacity(BLOCK),
            before: 0,
            compressor,
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.before == 0 && self.block.is_empty()
    }

    /// Returns the extent at which the next bytes are stored.
    pub(crate) fn next_extent(&self, length: u64) -> Extent {
        Extent { pack: self.id, offset: self.before + self.block.len() as u64, length }
    }

    pub(crate) fn append(&mut self, mut bytes: &[u8]) -> WorkspaceResult<()> {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(BLOCK - self.block.len()));
            self.block.extend_from_slice(now);
            bytes = later;
            if self.block.len() == BLOCK {
                self.end_block()?;
            }
        }
        Ok(())
    }

    fn end_block(&mut self) -> WorkspaceResult<()> {
        let compressed = self.compressor.compress(&self.block);
        let compressed = compressed.map_err(WorkspaceError::io("compress", &self.blocks.path))?;
        if compressed.len() < self.block.len() {
            self.blocks.write(&compressed, true)?;
        } else {
            self.blocks.write(&self.block, false)?;
        }
        self.before += self.block.len() as u64;
        self.block.clear();
        Ok(())
    }

    /// Keeps the pack.
    pub(crate) fn keep(mut self, packs: &dyn Packs) -> WorkspaceResult<()> {
        if !self.block.is_empty() {
            self.end_block()?;
        }
        self.blocks.keep(packs, self.id)
    }
}
