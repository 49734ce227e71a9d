//! Correction of misspelt words: candidates by shared trigrams, compared by edit distance.

/// Shorter words are not corrected.
pub(crate) const MIN_LETTERS: usize = 4;
/// The best candidates that count.
pub(crate) const MAX_CANDIDATES: usize = 3;
/// What a corrected word counts in comparison with one that is there.
pub(crate) const WEIGHT: f32 = 0.7;

/// Returns the trigrams of `^word$`, each once.
pub(crate) fn trigrams(word: &str) -> Vec<[char; 3]> {
    let letters: Vec<char> = std::iter::once('^').chain(word.chars()).chain(std::iter::once('$')).collect();
    let mut trigrams: Vec<[char; 3]> =
        letters.windows(3).filter_map(|window| <[char; 3]>::try_from(window).ok()).collect();
    trigrams.sort_unstable();
    trigrams.dedup();
    trigrams
}

/// Scores a candidate that shares some trigrams with a word; `None` if it is too different.
#[expect(clippy::cast_precision_loss, reason = "words have few letters")]
pub(crate) fn similarity(word: &str, candidate: &str, shared: usize, trigram_count: usize) -> Option<f32> {
    let (left, right): (Vec<char>, Vec<char>) = (word.chars().collect(), candidate.chars().collect());
    if shared < 2 && left.len() > 5 {
        return None;
    }
    let limit = if left.len() < 8 { 1 } else { 2 };
    let longer = left.len().max(right.len());
    if let Some(distance) = edit_distance(&left, &right, limit) {
        return Some(1.0 - distance as f32 / longer as f32);
    }
    let dice = 2.0 * shared as f32 / (trigram_count + trigrams(candidate).len()) as f32;
    (dice >= 0.5).then_some(0.8 * dice)
}

/// Returns the optimal-string-alignment distance (insertions, deletions, replacements, swaps of neighbours), unless it
/// exceeds the limit.
pub(crate) fn edit_distance(left: &[char], right: &[char], limit: usize) -> Option<usize> {
    if left.len().abs_diff(right.len()) > limit {
        return None;
    }
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    let get = |row: &[usize], at: usize| row.get(at).copied().unwrap_or(usize::MAX / 2);
    let mut above: Option<char> = None;
    for (i, x) in left.iter().enumerate() {
        let mut row = Vec::with_capacity(last.len());
        row.push(i + 1);
        let mut previous: Option<char> = None;
        for (j, y) in right.iter().enumerate() {
            let mut cost =
                (get(&last, j) + usize::from(x != y)).min(get(&last, j + 1) + 1).min(get(&row, j) + 1);
            if above == Some(*y) && previous == Some(*x) {
                cost = cost.min(get(&before_last, j - 1) + 1);
            }
            row.push(cost);
            previous = Some(*y);
        }
        if row.iter().all(|cost| *cost > limit) {
            return None;
        }
        above = Some(*x);
        before_last = std::mem::replace(&mut last, row);
    }
    last.last().copied().filter(|distance| *distance <= limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_count_swaps_once_and_stop_at_the_limit() {
        for (left, right, limit, expected) in [
            ("weather", "weather", 1, Some(0)),
            ("wether", "weather", 1, Some(1)),
            ("waether", "weather", 1, Some(1)),
            ("wthrrr", "weather", 2, None),
            ("kalkulater", "calculator", 2, None),
            ("天気予報", "天気予想", 1, Some(1)),
            ("", "ab", 2, Some(2)),
        ] {
            let (a, b): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
            assert_eq!(edit_distance(&a, &b, limit), expected, "{left} {right}");
        }
    }

    #[test]
    fn trigrams_include_both_ends() {
        assert_eq!(trigrams("ab"), [['^', 'a', 'b'], ['a', 'b', '$']]);
        assert_eq!(trigrams("aaaaa").len(), 3);
    }
}
