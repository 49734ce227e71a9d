//! Metadata as terms, in an order that ranges follow, so that every filter is a lookup.

use crate::filter::Filter;
use crate::inverted::{Bits, Postings};
use crate::metadata::{Metadata, MetadataValue};
use crate::{Chunk, Language};

/// Returns the terms of a chunk that filters look up.
pub(crate) fn labels(chunk: &Chunk) -> Vec<String> {
    metadata_terms(&chunk.metadata).chain([language_term(chunk.language)]).collect()
}

fn metadata_terms(metadata: &Metadata) -> impl Iterator<Item = String> {
    metadata.iter().flat_map(|(key, value)| {
        std::iter::once(exists_term(key)).chain(value.scalars().iter().map(|scalar| value_term(key, scalar)))
    })
}

/// Returns which of the chunks below `length` a filter matches, from the labels of a segment.
pub(crate) fn matching(filter: &Filter, labels: &Postings, length: usize) -> Bits {
    let combined = |filters: &[Filter], first: Bits, combine: fn(&mut Bits, &Bits)| {
        filters.iter().fold(first, |mut bits, filter| {
            combine(&mut bits, &matching(filter, labels, length));
            bits
        })
    };
    let mut bits = Bits::empty(length);
    let mut add = |term: &str| labels.find(term).for_each(|(number, _)| _ = bits.insert(number));
    match filter {
        Filter::Equals { key, value } => add(&value_term(key, value)),
        Filter::In { key, values } => values.iter().for_each(|value| add(&value_term(key, value))),
        Filter::Exists { key } => add(&exists_term(key)),
        Filter::Range { key, min, max } => {
            let Some(bound) = min.as_ref().or(max.as_ref()) else { return bits };
            let prefix = type_prefix(key, bound);
            let start = min.as_ref().map_or_else(|| prefix.clone(), |min| value_term(key, min));
            // The bound itself belongs to the range. Without one, the separator at the end of the prefix is replaced by
            // its successor, which is beyond all values of the key and type.
            let end = max.as_ref().map_or_else(
                || format!("{}\u{2}", prefix.trim_end_matches('\u{1}')),
                |max| format!("{}\0", value_term(key, max)),
            );
            let lists = labels.range(&start, &end).flat_map(|place| labels.list(place));
            lists.for_each(|(number, _)| _ = bits.insert(number));
        }
        Filter::All(filters) => return combined(filters, bits.complement(), Bits::intersect),
        Filter::Any(filters) => return combined(filters, bits, Bits::unite),
        Filter::Not(filter) => return matching(filter, labels, length).complement(),
    }
    bits
}

/// Keys have no control characters, so the separator cannot occur in them.
fn exists_term(key: &str) -> String {
    format!("{key}\u{1}e")
}

/// A key that no metadata can have.
pub(crate) fn language_term(language: Language) -> String {
    format!("\u{1}language\u{1}{}", language.as_str())
}

/// Returns what all terms of a key and type start with.
fn type_prefix(key: &str, value: &MetadataValue) -> String {
    let kind = match value {
        MetadataValue::Bool(_) => 'b',
        MetadataValue::Number(_) => 'n',
        MetadataValue::String(_) => 's',
        MetadataValue::Array(_) => 'a',
    };
    format!("{key}\u{1}{kind}\u{1}")
}

/// Returns the term of a value; terms of one key and type are in the order of their values.
fn value_term(key: &str, value: &MetadataValue) -> String {
    let prefix = type_prefix(key, value);
    match value {
        MetadataValue::Bool(value) => format!("{prefix}{value}"),
        MetadataValue::Number(value) => format!("{prefix}{:016x}", sortable(*value)),
        MetadataValue::String(value) => format!("{prefix}{value}"),
        // Arrays do not nest, so no term is ever made of one.
        MetadataValue::Array(_) => prefix,
    }
}

/// Maps a number to an integer of the same order.
fn sortable(value: f64) -> u64 {
    // Negative zero equals zero.
    let bits = (value + 0.0).to_bits();
    if bits >> 63 == 0 { bits | 1 << 63 } else { !bits }
}
