//! Stores the state of a folder.

use std::collections::HashMap;
use std::ffi::CString;
use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::folder::Folder;
use crate::pack::PackWriter;
use crate::scan::{ChangedFile, Scan};
use crate::state::{CachedNode, Stamp, StatCache, now};
use crate::{Content, Extent, Hash, Limits, Manifest, PackId, Packs, WorkspaceError, WorkspaceResult};

/// A state that was stored.
#[derive(Debug)]
pub struct Snapshot {
    /// The state.
    pub manifest: Manifest,
    /// Sockets, devices and FIFOs, which are not stored.
    pub skipped: Vec<PathBuf>,
    /// The number of newly stored bytes.
    pub added: u64,
    /// The pack that contains them.
    pub pack: Option<PackId>,
}

/// The threads that read files.
const READERS: usize = 2;
/// Fewer files are read by one thread.
const FILES_PER_READER: usize = 64;
/// Larger files are not read as a whole.
const LARGE: u64 = 1024 * 1024;

/// Stores what has changed; returns the state and what is known now.
pub(crate) fn store(
    packs: &dyn Packs,
    limits: Limits,
    folder: &Folder,
    before: &StatCache,
) -> WorkspaceResult<(Snapshot, StatCache)> {
    let mut scan = Scan::new(limits);
    let mut cache = scan.folder(folder, before)?;
    let is_changed = cache.content == Content::UNKNOWN;
    let (mut added, mut pack) = (0, None);
    if is_changed {
        let mut stored = HashMap::new();
        remember(before, &mut stored);
        let store = Mutex::new(ContentStore { writer: PackWriter::create(packs)?, stored });
        let contents = read_all(folder, &scan.changed, &store)?;
        let mut store = store.into_inner().unwrap_or_else(PoisonError::into_inner);
        fill(&mut cache, &mut contents.into_iter());
        store.folder(&mut cache)?;
        if !store.writer.is_empty() {
            let end = store.writer.next_extent(0);
            (added, pack) = (end.offset, Some(end.pack));
            store.writer.keep(packs)?;
        }
    }
    let manifest = Manifest { root: cache.content, files: scan.files, bytes: scan.bytes };
    Ok((Snapshot { manifest, skipped: scan.skipped, added, pack }, cache))
}

/// Collects the places of what is stored, so that what was only moved or copied is not stored again.
fn remember(cache: &StatCache, stored: &mut HashMap<Hash, Extent>) {
    if cache.content != Content::UNKNOWN {
        stored.insert(cache.content.hash, cache.content.extent);
    }
    for entry in &cache.entries {
        match &entry.node {
            CachedNode::File { content, .. } if *content != Content::UNKNOWN => {
                stored.insert(content.hash, content.extent);
            }
            CachedNode::Folder(cache) => remember(cache, stored),
            _ => {}
        }
    }
}

/// The contents that are stored, and the pack for new ones.
struct ContentStore {
    writer: PackWriter,
    stored: HashMap<Hash, Extent>,
}

impl ContentStore {
    /// Stores bytes unless they are stored.
    fn bytes(&mut self, hash: Hash, bytes: &[u8]) -> WorkspaceResult<Content> {
        if let Some(extent) = self.stored.get(&hash) {
            return Ok(Content { hash, extent: *extent });
        }
        let extent = self.writer.next_extent(bytes.len() as u64);
        self.writer.append(bytes)?;
        self.stored.insert(hash, extent);
        Ok(Content { hash, extent })
    }

    /// Stores the nodes of a folder and the folders in it.
    fn folder(&mut self, cache: &mut StatCache) -> WorkspaceResult<()> {
        if cache.content != Content::UNKNOWN {
            return Ok(());
        }
        for entry in &mut cache.entries {
            if let CachedNode::Folder(cache) = &mut entry.node {
                self.folder(cache)?;
            }
        }
        let node = cache.to_node();
        let encoded = postcard::to_allocvec(&node).unwrap_or_default();
        cache.content = self.bytes(node.hash(), &encoded)?;
        Ok(())
    }
}

/// Enters the contents of files, which come in the order of the files.
fn fill(cache: &mut StatCache, contents: &mut impl Iterator<Item = (Content, Option<Stamp>)>) {
    for entry in &mut cache.entries {
        match &mut entry.node {
            CachedNode::File { content, stamp, .. } if *content == Content::UNKNOWN => {
                if let Some(found) = contents.next() {
                    (*content, *stamp) = found;
                }
            }
            CachedNode::Folder(cache) => fill(cache, contents),
            _ => {}
        }
    }
}

type Stored = (Content, Option<Stamp>);

/// Reads and stores files, in several threads if there are many.
fn read_all(
    root: &Folder,
    files: &[ChangedFile],
    store: &Mutex<ContentStore>,
) -> WorkspaceResult<Vec<Stored>> {
    let threads = (files.len() / FILES_PER_READER).clamp(1, READERS);
    let next = AtomicUsize::new(0);
    let read = || -> WorkspaceResult<Vec<(usize, Stored)>> {
        let mut reader = FileReader { root, folder: None, buffer: Vec::new() };
        let mut found = Vec::with_capacity(files.len() / threads + 1);
        loop {
            // Neighbours go to one thread, as they are in one folder.
            let start = next.fetch_add(FILES_PER_READER, Ordering::Relaxed);
            let Some(batch) = files.get(start..files.len().min(start + FILES_PER_READER)) else { break };
            if batch.is_empty() {
                break;
            }
            for (number, file) in batch.iter().enumerate() {
                found.push((start + number, reader.store(file, store)?));
            }
        }
        Ok(found)
    };
    let mut found = std::thread::scope(|scope| -> WorkspaceResult<Vec<(usize, Stored)>> {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(read)).collect();
        let mut found = read()?;
        for other in others {
            match other.join() {
                Ok(more) => found.extend(more?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok(found)
    })?;
    found.sort_unstable_by_key(|(number, _)| *number);
    Ok(found.into_iter().map(|(_, stored)| stored).collect())
}

/// Reads one file after another.
struct FileReader<'r> {
    root: &'r Folder,
    /// The folder of the last file.
    folder: Option<(Arc<[CString]>, Folder)>,
    buffer: Vec<u8>,
}

impl FileReader<'_> {
    fn store(&mut self, file: &ChangedFile, store: &Mutex<ContentStore>) -> WorkspaceResult<Stored> {
        let started = now();
        let folder = self.enter(&file.folders)?;
        let path = folder.join(&file.name);
        let opened = File::from(folder.read(&file.name)?);
        let stamp_of = |opened: &File| {
            let stat = rustix::fs::fstat(opened).map_err(WorkspaceError::io("stat", &path))?;
            Ok::<_, WorkspaceError>(Stamp::of(&stat))
        };
        let content = if file.stamp.size() > LARGE {
            large(&opened, &path, store)?
        } else {
            self.buffer.clear();
            // It may have grown; then the next snapshot reads it again.
            let read = (&opened).take(LARGE).read_to_end(&mut self.buffer);
            read.map_err(WorkspaceError::io("read", &path))?;
            let hash = Hash::of(&self.buffer);
            let mut store = store.lock().unwrap_or_else(PoisonError::into_inner);
            store.bytes(hash, &self.buffer)?
        };
        // Only a file that did not change meanwhile is known by its stamp.
        let stamp = stamp_of(&opened)?;
        Ok((content, stamp.before(started).filter(|stamp| *stamp == file.stamp)))
    }

    fn enter(&mut self, folders: &Arc<[CString]>) -> WorkspaceResult<&Folder> {
        if self.folder.as_ref().is_none_or(|(last, _)| last != folders) {
            let mut folder: Option<Folder> = None;
            for name in folders.iter() {
                folder = Some(folder.as_ref().unwrap_or(self.root).enter(name)?);
            }
            self.folder = folder.map(|folder| (folders.clone(), folder));
        }
        Ok(self.folder.as_ref().map_or(self.root, |(_, folder)| folder))
    }
}

/// Stores a large file while it is read; nothing else is stored meanwhile.
fn large(mut file: &File, path: &std::path::Path, store: &Mutex<ContentStore>) -> WorkspaceResult<Content> {
    let mut store = store.lock().unwrap_or_else(PoisonError::into_inner);
    let start = store.writer.next_extent(0);
    let mut hasher = blake3::Hasher::new();
    let mut length = 0_u64;
    let mut buffer = vec![0; 256 * 1024];
    loop {
        let count = file.read(&mut buffer).map_err(WorkspaceError::io("read", path))?;
        let bytes = buffer.get(..count).unwrap_or_default();
        if bytes.is_empty() {
            break;
        }
        hasher.update(bytes);
        store.writer.append(bytes)?;
        length += bytes.len() as u64;
    }
    let hash = Hash::finish(&hasher);
    // If it was stored before, these bytes are removed with the next collection.
    let extent = *store.stored.entry(hash).or_insert(Extent { length, ..start });
    Ok(Content { hash, extent })
}
