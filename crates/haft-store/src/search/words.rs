//! Splitting text into words, and fuzzy matching of words.

/// Longer words are truncated.
const MAX_LENGTH: usize = 64;

/// Splits a text into lower-case words of letters and digits.
pub(crate) fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|character: char| !character.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(|word| word.chars().flat_map(char::to_lowercase).take(MAX_LENGTH).collect())
}

/// Returns how many edits are tolerated in a word of this length.
const fn tolerance(letters: usize) -> usize {
    match letters {
        0..=3 => 0,
        4..=7 => 1,
        _ => 2,
    }
}

/// Finds words within a small edit distance: insertions, deletions, replacements and transpositions.
///
/// Reuses its buffers, because it is applied to every word of the vocabulary.
pub(crate) struct FuzzyMatcher {
    letters: Vec<char>,
    limit: usize,
    other: Vec<char>,
    before_last: Vec<usize>,
    last: Vec<usize>,
    row: Vec<usize>,
}

impl FuzzyMatcher {
    /// Prepares to match one word; `None` if it is too short for fuzzy matching.
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

    /// Tells whether a word is within the edit distance.
    pub(crate) fn matches(&mut self, word: &str) -> bool {
        // A cheap check first: a letter has one to four bytes.
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

    /// Returns the edit distance, or any value above the limit if it is exceeded.
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
            let mut matcher = FuzzyMatcher::new(a).unwrap();
            assert_eq!((matcher.matches(b), matcher.matches(b)), (expected, expected), "{a} {b}");
        }
        assert!(FuzzyMatcher::new("abc").is_none());
    }
}
