//! The indexes of the pipelines that are queried on this node, within a memory limit.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use haft_core::id::PipelineId;

use super::index::PipelineIndex;

/// The indexes of a node.
pub(super) struct Indexes {
    by_pipeline: Mutex<HashMap<PipelineId, Arc<PipelineIndex>>>,
    max_bytes: usize,
    uses: AtomicU64,
}

impl Indexes {
    pub(super) fn new(max_bytes: usize) -> Self {
        Self { by_pipeline: Mutex::default(), max_bytes, uses: AtomicU64::new(0) }
    }

    /// Returns the index of a pipeline, which is empty if the pipeline was not queried before.
    pub(super) fn get(&self, pipeline: PipelineId) -> Arc<PipelineIndex> {
        let use_number = self.uses.fetch_add(1, Ordering::Relaxed) + 1;
        let mut indexes = self.lock();
        let index = if let Some(index) = indexes.get(&pipeline) {
            Arc::clone(index)
        } else {
            let index = Arc::new(PipelineIndex::new());
            indexes.insert(pipeline, Arc::clone(&index));
            index
        };
        index.used.store(use_number, Ordering::Relaxed);
        index
    }

    /// Removes the index of a pipeline, to be built anew.
    pub(super) fn remove(&self, pipeline: PipelineId) {
        self.lock().remove(&pipeline);
    }

    /// Removes those indexes that were used least recently until the others are within the limit. `current` stays.
    pub(super) fn make_room(&self, current: PipelineId) {
        let mut indexes = self.lock();
        let mut total: usize = indexes.values().map(|index| index.bytes()).sum();
        while total > self.max_bytes {
            let others = indexes.iter().filter(|(id, _)| **id != current);
            let oldest =
                others.min_by_key(|(_, index)| index.used.load(Ordering::Relaxed)).map(|(id, _)| *id);
            let Some(removed) = oldest.and_then(|id| indexes.remove(&id)) else { return };
            total = total.saturating_sub(removed.bytes());
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<PipelineId, Arc<PipelineIndex>>> {
        self.by_pipeline.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use haft_core::id::DocumentId;
    use uuid::Uuid;

    use super::super::index::{IndexState, IndexedChunks};
    use super::*;

    #[test]
    fn the_index_that_was_used_least_recently_makes_room() {
        let indexes = Indexes::new(100);
        let ids: Vec<PipelineId> = (0..3).map(|_| PipelineId(Uuid::now_v7())).collect();
        let fill = |id: PipelineId| {
            let index = indexes.get(id);
            let chunks = HashMap::from([("a".to_owned(), 45)]);
            let documents =
                HashMap::from([(DocumentId(Uuid::now_v7()), IndexedChunks { generation: 1, chunks })]);
            index.complete(&IndexState { documents, ..IndexState::default() }, 1);
            indexes.make_room(id);
        };
        let known = |id: PipelineId| indexes.lock().contains_key(&id);
        fill(ids[0]);
        fill(ids[1]);
        drop(indexes.get(ids[0]));
        fill(ids[2]);
        assert_eq!([known(ids[0]), known(ids[1]), known(ids[2])], [true, false, true]);
    }
}
