//! A segment: chunks that were indexed together, and never change.

use super::postings::{Postings, PostingsBuilder};
use super::snapshot::LiveSegment;

/// What the index knows of a chunk.
#[derive(Debug)]
pub(crate) struct ChunkTerms<'a> {
    /// The id of the chunk.
    pub(crate) chunk: &'a str,
    /// The id of its document.
    pub(crate) document: &'a str,
    /// The terms of its text, with repetitions.
    pub(crate) text: Vec<String>,
    /// The terms that filters look up.
    pub(crate) labels: Vec<String>,
}

/// Chunks by their terms; each chunk has a number within the segment.
#[derive(Debug)]
pub(crate) struct Segment {
    /// The terms of the texts.
    pub(crate) text: Postings,
    /// The terms that filters look up.
    pub(crate) labels: Postings,
    /// The ids of the chunks.
    pub(crate) chunks: Postings,
    /// The ids of the documents.
    pub(crate) documents: Postings,
    /// The number of terms in the text of each chunk.
    lengths: Vec<u32>,
    /// The place of the id of each chunk.
    chunk_places: Vec<u32>,
    /// The place of the document's id of each chunk.
    document_places: Vec<u32>,
}

impl Segment {
    fn new(
        text: Postings,
        labels: Postings,
        chunks: Postings,
        documents: Postings,
        lengths: Vec<u32>,
    ) -> Self {
        let chunk_places = places(&chunks, lengths.len());
        let document_places = places(&documents, lengths.len());
        Self { text, labels, chunks, documents, lengths, chunk_places, document_places }
    }

    /// Returns the number of chunks, removed ones included.
    pub(crate) fn len(&self) -> usize {
        self.lengths.len()
    }

    /// Returns the bytes that the segment takes.
    pub(crate) fn memory(&self) -> usize {
        let postings = [&self.text, &self.labels, &self.chunks, &self.documents];
        let numbers = [&self.lengths, &self.chunk_places, &self.document_places];
        postings.iter().map(|postings| postings.memory()).sum::<usize>()
            + numbers.iter().map(|numbers| numbers.capacity() * size_of::<u32>()).sum::<usize>()
    }

    /// Returns the number of terms in the text of a chunk.
    pub(crate) fn length(&self, number: u32) -> u32 {
        get(&self.lengths, number)
    }

    /// Returns the id of a chunk.
    pub(crate) fn chunk(&self, number: u32) -> &str {
        self.chunks.term(index(get(&self.chunk_places, number)))
    }

    /// Returns the id of the document of a chunk.
    pub(crate) fn document(&self, number: u32) -> &str {
        self.documents.term(index(get(&self.document_places, number)))
    }

    /// Makes one segment of the chunks of several that were not removed.
    pub(crate) fn merge(sources: &[LiveSegment]) -> Self {
        let mut lengths = Vec::new();
        let numbers: Vec<Vec<Option<u32>>> = sources
            .iter()
            .map(|source| {
                let renumber = |(number, length): (u32, &u32)| {
                    source.is_live(number).then(|| {
                        lengths.push(*length);
                        count(lengths.len() - 1)
                    })
                };
                (0..).zip(&source.segment.lengths).map(renumber).collect()
            })
            .collect();
        let merge = |postings: fn(&Self) -> &Postings| {
            let sources: Vec<(&Postings, &[Option<u32>])> = sources
                .iter()
                .zip(&numbers)
                .map(|(source, numbers)| (postings(&source.segment), numbers.as_slice()))
                .collect();
            Postings::merge(&sources)
        };
        let (text, labels) = (merge(|segment| &segment.text), merge(|segment| &segment.labels));
        let (chunks, documents) = (merge(|segment| &segment.chunks), merge(|segment| &segment.documents));
        lengths.shrink_to_fit();
        Self::new(text, labels, chunks, documents, lengths)
    }
}

/// Collects chunks for a segment.
#[derive(Debug, Default)]
pub(crate) struct SegmentBuilder {
    text: PostingsBuilder,
    labels: PostingsBuilder,
    chunks: PostingsBuilder,
    documents: PostingsBuilder,
    lengths: Vec<u32>,
    removed: Vec<u32>,
}

impl SegmentBuilder {
    /// Adds a chunk; one of the same id must have been removed before.
    pub(crate) fn add(&mut self, mut chunk: ChunkTerms<'_>) {
        let number = count(self.lengths.len());
        self.lengths.push(count(chunk.text.len()));
        chunk.text.sort_unstable();
        for same in chunk.text.chunk_by(|a, b| a == b) {
            if let Some(term) = same.first() {
                self.text.add(term, number, count(same.len()));
            }
        }
        chunk.labels.sort_unstable();
        chunk.labels.dedup();
        for label in &chunk.labels {
            self.labels.add(label, number, 1);
        }
        self.chunks.add(chunk.chunk, number, 1);
        self.documents.add(chunk.document, number, 1);
    }

    /// Removes a chunk.
    pub(crate) fn remove(&mut self, chunk: &str) {
        self.removed.extend(self.chunks.find(chunk).map(|(number, _)| number));
    }

    /// Removes all chunks of a document.
    pub(crate) fn remove_document(&mut self, document: &str) {
        self.removed.extend(self.documents.find(document).map(|(number, _)| number));
    }

    /// Returns about how many bytes it takes.
    pub(crate) fn memory(&self) -> usize {
        [&self.text, &self.labels, &self.chunks, &self.documents]
            .iter()
            .map(|postings| postings.memory())
            .sum()
    }

    /// Makes the segment.
    pub(crate) fn build(self) -> LiveSegment {
        let (text, labels) = (self.text.build(), self.labels.build());
        let segment = Segment::new(text, labels, self.chunks.build(), self.documents.build(), self.lengths);
        let mut live = LiveSegment::new(segment);
        live.remove(&self.removed);
        live
    }
}

/// Returns for every chunk the place of the term that it has; it has exactly one.
fn places(postings: &Postings, length: usize) -> Vec<u32> {
    let mut places = vec![0; length];
    for place in 0..postings.len() {
        for (number, _) in postings.list(place) {
            if let Some(slot) = places.get_mut(index(number)) {
                *slot = count(place);
            }
        }
    }
    places
}

fn get(numbers: &[u32], number: u32) -> u32 {
    numbers.get(index(number)).copied().unwrap_or_default()
}

fn index(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// Four billion chunks do not fit in memory, so a number never saturates.
fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
