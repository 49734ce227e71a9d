//! An inverted index in memory: immutable segments, and snapshots that searches read without waiting for updates.
//!
//! It knows terms and numbers, no words and no scores: `analyzer`, `labels` and `bm25` do.

mod bits;
mod postings;
mod segment;
mod snapshot;

pub(crate) use bits::Bits;
pub(crate) use postings::Postings;
pub(crate) use segment::{ChunkTerms, SegmentBuilder};
pub(crate) use snapshot::{LiveSegment, Snapshot, merge_where_due};
