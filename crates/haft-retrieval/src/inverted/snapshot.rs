//! What searches read: segments, and which of their chunks are left.

use std::cmp::Reverse;
use std::sync::Arc;

use super::bits::Bits;
use super::segment::Segment;

/// A segment with the chunks that were removed from it since it was made.
#[derive(Debug, Clone)]
pub(crate) struct LiveSegment {
    /// The segment.
    pub(crate) segment: Arc<Segment>,
    removed: Arc<Bits>,
    /// The number of chunks that are left.
    live: usize,
    /// The number of terms in their texts.
    terms: u64,
}

impl LiveSegment {
    /// Makes a segment from which nothing was removed.
    pub(crate) fn new(segment: Segment) -> Self {
        let live = segment.len();
        let terms = (0..).take(live).map(|number| u64::from(segment.length(number))).sum();
        Self { removed: Arc::new(Bits::empty(live)), segment: Arc::new(segment), live, terms }
    }

    /// Tells whether a chunk is left.
    pub(crate) fn is_live(&self, number: u32) -> bool {
        !self.removed.contains(number)
    }

    /// Removes chunks by number; snapshots that share the segment keep them.
    pub(crate) fn remove(&mut self, numbers: &[u32]) {
        for number in numbers {
            if self.is_live(*number) && Arc::make_mut(&mut self.removed).insert(*number) {
                self.live -= 1;
                self.terms -= u64::from(self.segment.length(*number));
            }
        }
    }

    /// Removes a chunk by id.
    pub(crate) fn remove_chunk(&mut self, chunk: &str) {
        let numbers: Vec<u32> = self.segment.chunks.find(chunk).map(|(number, _)| number).collect();
        self.remove(&numbers);
    }

    /// Removes all chunks of a document.
    pub(crate) fn remove_document(&mut self, document: &str) {
        let numbers: Vec<u32> = self.segment.documents.find(document).map(|(number, _)| number).collect();
        self.remove(&numbers);
    }
}

/// A state of the index. It never changes.
#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    /// The segments; their order says nothing.
    pub(crate) segments: Vec<LiveSegment>,
    /// The number of chunks.
    pub(crate) len: usize,
    /// The number of terms in the texts of all chunks.
    pub(crate) terms: u64,
    /// The bytes that it takes.
    pub(crate) memory: usize,
}

impl Snapshot {
    /// Makes a snapshot of segments.
    pub(crate) fn new(segments: Vec<LiveSegment>) -> Self {
        let len = segments.iter().map(|segment| segment.live).sum();
        let terms = segments.iter().map(|segment| segment.terms).sum();
        let memory = segments.iter().map(|segment| segment.segment.memory()).sum();
        Self { segments, len, terms, memory }
    }

    /// Tells whether a chunk has a label.
    pub(crate) fn has_label(&self, label: &str) -> bool {
        self.segments
            .iter()
            .any(|live| live.segment.labels.find(label).any(|(number, _)| live.is_live(number)))
    }
}

/// Merges segments so that each is more than twice as large as the next, and rewrites those that are mostly removed.
///
/// Searches visit few segments that way, and a chunk is copied a logarithmic number of times in its life, so that the
/// cost of updates follows what they change.
pub(crate) fn merge_where_due(mut segments: Vec<LiveSegment>) -> Vec<LiveSegment> {
    let merge = |sources: &[LiveSegment]| LiveSegment::new(Segment::merge(sources));
    segments.retain(|segment| segment.live > 0);
    for segment in &mut segments {
        if segment.live < segment.segment.len() / 2 {
            *segment = merge(std::slice::from_ref(segment));
        }
    }
    loop {
        segments.sort_by_key(|segment| Reverse(segment.live));
        let is_due = |pair: &[LiveSegment]| matches!(pair, [large, small] if small.live * 2 >= large.live);
        // The smallest first: they are cheap, and what they become may be large enough to stay.
        let Some(place) = segments.windows(2).rposition(is_due) else { return segments };
        let pair: Vec<LiveSegment> = segments.drain(place..=place + 1).collect();
        segments.push(merge(&pair));
    }
}
