//! BM25: how well the words of a query describe a chunk.

use crate::inverted::Snapshot;

/// How soon further occurrences of a word in a chunk count no more.
const K1: f32 = 1.2;
/// How much the length of a chunk counts.
const B: f32 = 0.75;

/// Returns the score of every chunk, one segment after the other; a chunk without any of the words has zero.
///
/// A word is a list of alternatives, its stems in the languages of the index, of which the best counts. Removed chunks
/// do not count anywhere, so a score does not depend on how the index came about.
pub(crate) fn scores(snapshot: &Snapshot, words: &[Vec<String>]) -> Vec<f32> {
    let slots = snapshot.segments.iter().map(|live| live.segment.len()).sum();
    let mut scores = vec![0.0; slots];
    let mut of_word = vec![0.0_f32; slots];
    let mut found = Vec::new();
    for stems in words {
        found.clear();
        for stem in stems {
            let start = found.len();
            find(snapshot, stem, &mut found);
            let of_stem = found.get(start..).unwrap_or_default();
            let weight = inverse_frequency(snapshot.len, of_stem.len()) * (1.0 + K1);
            for (slot, share) in of_stem {
                if let Some(score) = of_word.get_mut(*slot) {
                    *score = score.max(weight * share);
                }
            }
        }
        for (slot, _) in &found {
            if let (Some(score), Some(of_word)) = (scores.get_mut(*slot), of_word.get_mut(*slot)) {
                // A chunk that has two of the stems is found twice and counts once.
                *score += std::mem::take(of_word);
            }
        }
    }
    scores
}

/// Appends the slot of each chunk that has a term, with the share of the term's weight that it gets.
fn find(snapshot: &Snapshot, term: &str, found: &mut Vec<(usize, f32)>) {
    #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "need not be exact")]
    let average = (snapshot.terms as f64 / snapshot.len.max(1) as f64) as f32;
    let mut first = 0;
    for live in &snapshot.segments {
        for (number, count) in live.segment.text.find(term).filter(|(number, _)| live.is_live(*number)) {
            let slot = first + usize::try_from(number).unwrap_or(usize::MAX);
            found.push((slot, share(count, live.segment.length(number), average)));
        }
        first += live.segment.len();
    }
}

#[expect(clippy::cast_precision_loss, reason = "a score need not be exact")]
fn share(count: u32, length: u32, average: f32) -> f32 {
    let count = count as f32;
    count / (count + K1 * (1.0 - B + B * length as f32 / average))
}

/// Returns what a term is worth that `with` of `all` chunks have; always positive.
#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "a score need not be exact")]
fn inverse_frequency(all: usize, with: usize) -> f32 {
    let (all, with) = (all as f64, with as f64);
    ((all - with + 0.5) / (with + 0.5)).ln_1p() as f32
}
