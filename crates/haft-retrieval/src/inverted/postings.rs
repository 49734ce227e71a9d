//! Terms in order, each with the chunks that have it.

use std::collections::HashMap;
use std::ops::Range;

/// About what a term takes in a builder besides its text and its list.
const TERM_OVERHEAD: usize = 96;

/// Sorted terms with their lists, in three allocations.
#[derive(Debug, Default)]
pub(crate) struct Postings {
    terms: String,
    lists: Vec<u8>,
    ends: Vec<End>,
}

/// Where the text and the list of a term end; those of the next one start there.
#[derive(Debug, Clone, Copy, Default)]
struct End {
    term: usize,
    list: usize,
}

impl Postings {
    /// Returns the number of terms.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns the bytes that the terms and lists take.
    pub(crate) fn memory(&self) -> usize {
        self.terms.capacity() + self.lists.capacity() + self.ends.capacity() * size_of::<End>()
    }

    /// Returns a term by its place in the order.
    pub(crate) fn term(&self, place: usize) -> &str {
        let (start, end) = self.bounds(place);
        self.terms.get(start.term..end.term).unwrap_or_default()
    }

    /// Returns the chunks of the term at a place, each with the number of times it has the term.
    pub(crate) fn list(&self, place: usize) -> Occurrences<'_> {
        let (start, end) = self.bounds(place);
        Occurrences::new(self.lists.get(start.list..end.list).unwrap_or_default())
    }

    /// Returns the chunks of a term; none if no chunk has it.
    pub(crate) fn find(&self, term: &str) -> Occurrences<'_> {
        let place = self.first_from(term);
        if place < self.len() && self.term(place) == term { self.list(place) } else { Occurrences::new(&[]) }
    }

    /// Returns the places of the terms from `start` on, up to and without `end`.
    pub(crate) fn range(&self, start: &str, end: &str) -> Range<usize> {
        self.first_from(start)..self.first_from(end)
    }

    /// Returns the place of the first term that is not less than a text.
    fn first_from(&self, text: &str) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.term(middle) < text {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    fn bounds(&self, place: usize) -> (End, End) {
        let end = |place: usize| self.ends.get(place).copied().unwrap_or_default();
        (place.checked_sub(1).map(end).unwrap_or_default(), end(place))
    }

    /// Appends a term, which must be greater than the last one.
    fn push(&mut self, term: &str, list: &[u8]) {
        self.terms.push_str(term);
        self.lists.extend_from_slice(list);
        self.ends.push(End { term: self.terms.len(), list: self.lists.len() });
    }

    fn shrink(mut self) -> Self {
        self.terms.shrink_to_fit();
        self.lists.shrink_to_fit();
        self.ends.shrink_to_fit();
        self
    }

    /// Merges postings. Each comes with the new numbers of its chunks, which ascend from one source to the next; chunks
    /// without a number are left out, and so are terms without chunks.
    pub(crate) fn merge(sources: &[(&Self, &[Option<u32>])]) -> Self {
        let mut merged = Self::default();
        let mut places = vec![0; sources.len()];
        loop {
            let heads = sources.iter().zip(&places).filter(|((source, _), place)| **place < source.len());
            let Some(term) = heads.map(|((source, _), place)| source.term(*place)).min() else {
                return merged.shrink();
            };
            let mut list = List::default();
            for ((source, numbers), place) in sources.iter().zip(&mut places) {
                if *place >= source.len() || source.term(*place) != term {
                    continue;
                }
                for (chunk, count) in source.list(*place) {
                    let number = usize::try_from(chunk).ok().and_then(|chunk| *numbers.get(chunk)?);
                    if let Some(number) = number {
                        list.push(number, count);
                    }
                }
                *place += 1;
            }
            if !list.bytes.is_empty() {
                merged.push(term, &list.bytes);
            }
        }
    }
}

/// Postings to which chunks are added in the order of their numbers.
#[derive(Debug, Default)]
pub(crate) struct PostingsBuilder {
    lists: HashMap<String, List>,
    memory: usize,
}

impl PostingsBuilder {
    /// Adds a chunk to a term, once per chunk and term.
    pub(crate) fn add(&mut self, term: &str, chunk: u32, count: u32) {
        if let Some(list) = self.lists.get_mut(term) {
            self.memory += list.push(chunk, count);
            return;
        }
        let mut list = List::default();
        self.memory += term.len() + TERM_OVERHEAD + list.push(chunk, count);
        self.lists.insert(term.to_owned(), list);
    }

    /// Returns the chunks of a term.
    pub(crate) fn find(&self, term: &str) -> Occurrences<'_> {
        Occurrences::new(self.lists.get(term).map(|list| list.bytes.as_slice()).unwrap_or_default())
    }

    /// Returns about how many bytes it takes.
    pub(crate) fn memory(&self) -> usize {
        self.memory
    }

    /// Puts the terms in order.
    pub(crate) fn build(self) -> Postings {
        let mut lists: Vec<(String, List)> = self.lists.into_iter().collect();
        lists.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        let mut postings = Postings::default();
        for (term, list) in &lists {
            postings.push(term, &list.bytes);
        }
        postings.shrink()
    }
}

/// The chunks of a term as bytes: the distance from the chunk before, and the count unless it is 1, in groups of 7 bits.
#[derive(Debug, Default)]
struct List {
    bytes: Vec<u8>,
    last: u32,
}

impl List {
    /// Appends a chunk whose number is greater than the last one; returns the number of bytes.
    fn push(&mut self, chunk: u32, count: u32) -> usize {
        let before = self.bytes.len();
        let distance = u64::from(chunk.saturating_sub(self.last));
        self.last = chunk;
        // The lowest bit says that the count is 1, as most are.
        write_number(&mut self.bytes, distance << 1 | u64::from(count == 1));
        if count != 1 {
            write_number(&mut self.bytes, u64::from(count));
        }
        self.bytes.len() - before
    }
}

fn write_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    bytes.push(number.to_le_bytes()[0]);
}

/// The chunks of a term in order, each with the number of times it has the term.
#[derive(Debug, Clone)]
pub(crate) struct Occurrences<'a> {
    bytes: std::slice::Iter<'a, u8>,
    last: u64,
}

impl<'a> Occurrences<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { bytes: bytes.iter(), last: 0 }
    }

    fn number(&mut self) -> Option<u64> {
        let (mut number, mut shift) = (0, 0);
        loop {
            let byte = *self.bytes.next()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
            shift += 7;
        }
    }
}

impl Iterator for Occurrences<'_> {
    type Item = (u32, u32);

    fn next(&mut self) -> Option<(u32, u32)> {
        let head = self.number()?;
        self.last += head >> 1;
        let count = if head & 1 == 1 { 1 } else { self.number()? };
        Some((u32::try_from(self.last).ok()?, u32::try_from(count).ok()?))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(postings: &Postings) -> Vec<(String, Vec<(u32, u32)>)> {
        (0..postings.len())
            .map(|place| (postings.term(place).to_owned(), postings.list(place).collect()))
            .collect()
    }

    #[test]
    fn terms_are_found_alone_and_in_ranges() {
        let mut builder = PostingsBuilder::default();
        for (chunk, term) in [(0, "b"), (3, "a"), (200, "b"), (201, "é"), (u32::MAX, "b")] {
            builder.add(term, chunk, chunk % 5 + 1);
        }
        assert_eq!(builder.find("b").count(), 3);
        let postings = builder.build();
        assert_eq!(postings.find("b").collect::<Vec<_>>(), [(0, 1), (200, 1), (u32::MAX, 1)]);
        assert_eq!(postings.find("a").collect::<Vec<_>>(), [(3, 4)]);
        assert_eq!(postings.find("").chain(postings.find("zz")).count(), 0);
        assert_eq!(
            (postings.range("a", "b"), postings.range("b", "zz"), postings.range("ä", "é")),
            (0..1, 1..2, 2..2)
        );
        assert_eq!(Postings::default().find("a").count(), 0);
    }

    proptest! {
        #[test]
        fn merged_postings_equal_those_of_all_chunks(
            chunks in prop::collection::vec(
                (prop::collection::btree_map("[a-d]{1,2}", 1_u32..400, 0..5), any::<bool>(), 0_usize..3), 0..40),
        ) {
            let (mut parts, mut numbers) = ([(); 3].map(|()| PostingsBuilder::default()), [(); 3].map(|()| Vec::new()));
            let mut expected = PostingsBuilder::default();
            let mut kept = 0;
            for part in 0..3 {
                for (terms, is_kept, _) in chunks.iter().filter(|(_, _, of)| *of == part) {
                    let chunk = u32::try_from(numbers[part].len()).unwrap();
                    numbers[part].push(is_kept.then_some(kept));
                    for (term, count) in terms {
                        parts[part].add(term, chunk, *count);
                        if *is_kept {
                            expected.add(term, kept, *count);
                        }
                    }
                    kept += u32::from(*is_kept);
                }
            }
            let parts = parts.map(PostingsBuilder::build);
            let sources: Vec<_> = parts.iter().zip(&numbers).map(|(part, numbers)| (part, numbers.as_slice())).collect();
            prop_assert_eq!(all(&Postings::merge(&sources)), all(&expected.build()));
        }
    }
}
