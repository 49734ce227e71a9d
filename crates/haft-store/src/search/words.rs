//! Words of a text, and how far two words are apart.

/// The longest word that is indexed; the rest of it is cut off.
const MAX_LENGTH: usize = 64;

/// Splits a text to lower-case words of letters and digits.
pub(crate) fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|character: char| !character.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(|word| word.chars().flat_map(char::to_lowercase).take(MAX_LENGTH).collect())
}

/// Returns how many mistakes a word of that many letters may have.
const fn tolerance(letters: usize) -> usize {
    match letters {
        0..=3 => 0,
        4..=7 => 1,
        _ => 2,
    }
}

/// Finds the words that differ from one by a few insertions, deletions, replacements or swaps of neighbours.
///
/// Keeps its rows, because it is asked for every word of the vocabulary.
pub(crate) struct Near {
    letters: Vec<char>,
    limit: usize,
    other: Vec<char>,
    before_last: Vec<usize>,
    last: Vec<usize>,
    row: Vec<usize>,
}

impl Near {
    /// Prepares for one word; `None` where it is too short to be mistaken.
    pub(crate) fn new(word: &str) -> Option<Self> {
        let letters: Vec<char> = word.chars().collect();
        let limit = tolerance(letters.len());
        let rows = || Vec::with_capacity(MAX_LENGTH + 1);
        (limit > 0).then(|| Self {
            letters,
            limit,
            other: Vec::with_capacity(MAX_LENGTH),
            before_last: rows(),
            last: rows(),
            row: rows(),
        })
    }

    /// Tells whether a word is near.
    pub(crate) fn fits(&mut self, word: &str) -> bool {
        // A cheap bound first: a letter has at least one byte and at most four.
        if word.len() + self.limit < self.letters.len() || word.len() > 4 * (self.letters.len() + self.limit)
        {
            return false;
        }
        self.other.clear();
        self.other.extend(word.chars());
        if self.letters.len().abs_diff(self.other.len()) > self.limit {
            return false;
        }
        self.distance() <= self.limit
    }

    /// Returns the distance, or more than the limit as soon as that is certain.
    fn distance(&mut self) -> usize {
        let Self { letters, limit, other, before_last, last, row } = self;
        let get = |row: &[usize], at: usize| row.get(at).copied().unwrap_or(usize::MAX / 2);
        last.clear();
        last.extend(0..=other.len());
        let mut above: Option<char> = None;
        for (i, x) in letters.iter().enumerate() {
            row.clear();
            row.push(i + 1);
            let (mut left, mut best) = (None, i + 1);
            for (j, y) in other.iter().enumerate() {
                let replaced = get(last, j) + usize::from(x != y);
                let mut cost = replaced.min(get(last, j + 1) + 1).min(get(row, j) + 1);
                if above == Some(*y) && left == Some(*x) {
                    cost = cost.min(get(before_last, j - 1) + 1);
                }
                row.push(cost);
                best = best.min(cost);
                left = Some(*y);
            }
            if best > *limit {
                return best;
            }
            above = Some(*x);
            std::mem::swap(before_last, last);
            std::mem::swap(last, row);
        }
        last.last().copied().unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_lower_case_letters_and_digits() {
        let split = |text: &str| words(text).collect::<Vec<_>>();
        assert_eq!(split("Weather-check_v2, ÄRGER!"), ["weather", "check", "v2", "ärger"]);
        assert_eq!(split(" -- "), Vec::<String>::new());
    }

    #[test]
    fn distance_is_bounded() {
        for (a, b, expected) in [
            ("weather", "weather", true),
            ("wether", "weather", true),
            ("waether", "weather", true),
            ("weathre", "weather", true),
            ("wetther", "weather", true),
            ("wthrrr", "weather", false),
            ("calculater", "calculator", true),
            ("kalkulater", "calculator", false),
            ("天気予報", "天気予想", true),
            ("天気予報", "weather", false),
        ] {
            let mut near = Near::new(a).unwrap();
            assert_eq!((near.fits(b), near.fits(b)), (expected, expected), "{a} {b}");
        }
        assert!(Near::new("abc").is_none());
    }
}
