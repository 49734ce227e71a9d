//! Reads ranges of packs.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt as _;

use crate::node::FolderNode;
use crate::pack::{BLOCK, Block, FOOTER_BYTES, INDEX_ENTRY_BYTES, MAGIC};
use crate::{Content, Extent, Hash, PackId, Packs, WorkspaceError, WorkspaceResult};

/// Reads contents and verifies them. Keeps packs open, and the last block of each.
pub(crate) struct Reader<'p> {
    packs: &'p dyn Packs,
    open: HashMap<PackId, OpenPack>,
}

/// The largest number of packs that are open at once.
const MAX_OPEN: usize = 64;

struct OpenPack {
    id: PackId,
    file: File,
    index: Vec<Block>,
    last: Option<(u64, Vec<u8>)>,
}

impl<'p> Reader<'p> {
    pub(crate) fn new(packs: &'p dyn Packs) -> Self {
        Self { packs, open: HashMap::new() }
    }

    /// Reads a file's content in parts; fails at the end if it is not the one that was stored.
    pub(crate) fn read(
        &mut self,
        content: &Content,
        mut take: impl FnMut(&[u8]) -> WorkspaceResult<()>,
    ) -> WorkspaceResult<()> {
        let mut hasher = blake3::Hasher::new();
        self.range(content.extent, |bytes| {
            hasher.update(bytes);
            take(bytes)
        })?;
        if Hash::finish(&hasher) == content.hash {
            Ok(())
        } else {
            Err(WorkspaceError::damaged(content.extent.pack, "a file has another hash"))
        }
    }

    /// Reads a folder node.
    pub(crate) fn folder(&mut self, content: &Content) -> WorkspaceResult<FolderNode> {
        let mut bytes = Vec::new();
        self.range(content.extent, |part| {
            bytes.extend_from_slice(part);
            Ok(())
        })?;
        let node: Option<FolderNode> = postcard::from_bytes(&bytes).ok();
        let node = node.filter(|node| node.is_valid() && node.hash() == content.hash);
        node.ok_or_else(|| WorkspaceError::damaged(content.extent.pack, "a folder has another hash"))
    }

    fn range(
        &mut self,
        extent: Extent,
        mut take: impl FnMut(&[u8]) -> WorkspaceResult<()>,
    ) -> WorkspaceResult<()> {
        if extent.length == 0 {
            return Ok(());
        }
        let pack = self.pack(extent.pack)?;
        let damaged = || WorkspaceError::damaged(extent.pack, "it ends too early");
        let (mut offset, mut rest) = (extent.offset, extent.length);
        while rest > 0 {
            let block = pack.block(offset / BLOCK as u64)?;
            let start = usize::try_from(offset % BLOCK as u64).unwrap_or(usize::MAX);
            let bytes = block.get(start..).filter(|bytes| !bytes.is_empty()).ok_or_else(damaged)?;
            let length = usize::try_from(rest).unwrap_or(usize::MAX).min(bytes.len());
            take(bytes.get(..length).ok_or_else(damaged)?)?;
            offset += length as u64;
            rest -= length as u64;
        }
        Ok(())
    }

    fn pack(&mut self, id: PackId) -> WorkspaceResult<&mut OpenPack> {
        if !self.open.contains_key(&id) && self.open.len() >= MAX_OPEN {
            self.open.clear();
        }
        match self.open.entry(id) {
            std::collections::hash_map::Entry::Occupied(entry) => Ok(entry.into_mut()),
            std::collections::hash_map::Entry::Vacant(entry) => {
                Ok(entry.insert(OpenPack::open(id, self.packs.open(id)?)?))
            }
        }
    }
}

impl OpenPack {
    fn open(id: PackId, file: File) -> WorkspaceResult<Self> {
        let index = read_index(id, &file)?;
        Ok(Self { id, file, index, last: None })
    }

    fn block(&mut self, number: u64) -> WorkspaceResult<&[u8]> {
        if self.last.as_ref().is_none_or(|(last, _)| *last != number) {
            let block = usize::try_from(number).ok().and_then(|number| self.index.get(number));
            let block = block.ok_or_else(|| WorkspaceError::damaged(self.id, "it has too few blocks"))?;
            let stored = read_block(self.id, &self.file, block)?;
            let bytes = if block.is_compressed {
                let bytes = zstd::bulk::decompress(&stored, BLOCK);
                bytes.map_err(|_| WorkspaceError::damaged(self.id, "a block cannot be decompressed"))?
            } else {
                stored
            };
            self.last = Some((number, bytes));
        }
        Ok(self.last.as_ref().map_or(&[], |(_, bytes)| bytes))
    }
}

/// Reads a block as it is stored.
pub(crate) fn read_block(id: PackId, file: &File, block: &Block) -> WorkspaceResult<Vec<u8>> {
    if block.length == 0 || block.length as usize > BLOCK {
        return Err(WorkspaceError::damaged(id, "a block is missing"));
    }
    let mut stored = vec![0; block.length as usize];
    let read = file.read_exact_at(&mut stored, block.position);
    read.map_err(|_| WorkspaceError::damaged(id, "a block cannot be read"))?;
    Ok(stored)
}

/// Reads the index at the end of a pack.
pub(crate) fn read_index(id: PackId, file: &File) -> WorkspaceResult<Vec<Block>> {
    let damaged = || WorkspaceError::damaged(id, "its index cannot be read");
    let length = file.metadata().map_err(|_| damaged())?.len();
    let mut footer = [0; FOOTER_BYTES];
    let footer_at = length.checked_sub(FOOTER_BYTES as u64).ok_or_else(damaged)?;
    file.read_exact_at(&mut footer, footer_at).map_err(|_| damaged())?;
    let (count, magic) = footer.split_at(8);
    let count = count.try_into().map(u64::from_le_bytes).map_err(|_| damaged())?;
    let size =
        count.checked_mul(INDEX_ENTRY_BYTES as u64).filter(|size| *size <= footer_at).ok_or_else(damaged)?;
    if magic != MAGIC {
        return Err(damaged());
    }
    let mut index = vec![0; usize::try_from(size).map_err(|_| damaged())?];
    file.read_exact_at(&mut index, footer_at - size).map_err(|_| damaged())?;
    let blocks = index.chunks_exact(INDEX_ENTRY_BYTES).map(Block::from_bytes);
    blocks.collect::<Option<_>>().ok_or_else(damaged)
}
