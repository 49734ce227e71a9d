//! Removes what no manifest refers to.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::node::Node;
use crate::pack::{BLOCK, BlockWriter};
use crate::reader::{Reader, read_block, read_index};
use crate::{Content, Extent, Hash, Manifest, PackId, Packs, WorkspaceResult};

/// What [`gc`] removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GcReport {
    /// Packs that were removed.
    pub packs: u64,
    /// Packs that were written again without some of their blocks.
    pub reduced: u64,
}

/// Removes packs, and blocks of packs, that no manifest refers to. Packs that were created within `age` stay: the
/// manifest of a snapshot is recorded after its pack. The manifests must include the present state of every workspace:
/// its next snapshot refers to what it has in common with that.
///
/// # Errors
/// Fails if a state cannot be read; then nothing is removed.
pub fn gc(
    packs: &dyn Packs,
    manifests: impl IntoIterator<Item = Manifest>,
    age: Duration,
) -> WorkspaceResult<GcReport> {
    let existing = packs.list()?;
    let mut live = Live { reader: Reader::new(packs), folders: HashSet::new(), blocks: HashMap::new() };
    for manifest in manifests {
        live.folder(&manifest.root)?;
    }
    let mut report = GcReport::default();
    for pack in existing.into_iter().filter(|pack| is_older(*pack, age)) {
        match live.blocks.get(&pack) {
            None => {
                packs.remove(pack)?;
                report.packs += 1;
            }
            Some(blocks) => report.reduced += u64::from(reduce(packs, pack, blocks)?),
        }
    }
    Ok(report)
}

fn is_older(pack: PackId, age: Duration) -> bool {
    #[expect(clippy::disallowed_methods, reason = "compared with the time in a pack's identifier")]
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let (seconds, nanos) = pack.0.get_timestamp().map_or((0, 0), |time| time.to_unix());
    now.saturating_sub(Duration::new(seconds, nanos)) >= age
}

/// Finds the blocks that are needed.
struct Live<'p> {
    reader: Reader<'p>,
    /// Folders that were visited.
    folders: HashSet<(Hash, PackId)>,
    blocks: HashMap<PackId, HashSet<u64>>,
}

impl Live<'_> {
    fn folder(&mut self, folder: &Content) -> WorkspaceResult<()> {
        // Equal folders in different packs may refer to different places.
        if !self.folders.insert((folder.hash, folder.extent.pack)) {
            return Ok(());
        }
        self.extent(&folder.extent);
        for entry in self.reader.folder(folder)?.entries {
            match entry.node {
                Node::File { content, .. } => self.extent(&content.extent),
                Node::Folder { content } => self.folder(&content)?,
                Node::Link { .. } => {}
            }
        }
        Ok(())
    }

    fn extent(&mut self, extent: &Extent) {
        let blocks = self.blocks.entry(extent.pack).or_default();
        let first = extent.offset / BLOCK as u64;
        let last = extent.offset.saturating_add(extent.length.max(1) - 1) / BLOCK as u64;
        blocks.extend(first..=last);
    }
}

/// Writes a pack again if more than half of its blocks are not needed. Extents stay as they are.
fn reduce(packs: &dyn Packs, pack: PackId, needed: &HashSet<u64>) -> WorkspaceResult<bool> {
    let file = packs.open(pack)?;
    let index = read_index(pack, &file)?;
    let present = index.iter().filter(|block| block.length > 0).count();
    let is_needed = |number: usize| needed.contains(&(number as u64));
    let used = index.iter().enumerate().filter(|(number, block)| block.length > 0 && is_needed(*number));
    if used.count() * 2 > present || present == 0 {
        return Ok(false);
    }
    let mut writer = BlockWriter::create(packs)?;
    for (number, block) in index.iter().enumerate() {
        if block.length > 0 && is_needed(number) {
            writer.write(&read_block(pack, &file, block)?, block.is_compressed)?;
        } else {
            writer.write(&[], false)?;
        }
    }
    writer.keep(packs, pack)?;
    Ok(true)
}
