//! Words of a text, and how far two words are apart.

/// The longest word that is indexed; the rest of it is cut off.
const LONGEST: usize = 64;

/// Splits a text to lower-case words of letters and digits.
pub(crate) fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|character: char| !character.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(|word| word.chars().flat_map(char::to_lowercase).take(LONGEST).collect())
}

/// Returns how many mistakes a word of that many letters may have.
pub(crate) const fn tolerance(letters: usize) -> usize {
    match letters {
        0..=3 => 0,
        4..=7 => 1,
        _ => 2,
    }
}

/// Tells whether two words differ by at most `limit` insertions, deletions, replacements or swaps of
/// neighbours.
pub(crate) fn within(a: &[char], b: &[char], limit: usize) -> bool {
    if a.len().abs_diff(b.len()) > limit {
        return false;
    }
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = Vec::with_capacity(b.len() + 1);
        row.push(i + 1);
        for (j, y) in b.iter().enumerate() {
            let get = |row: &[usize], at: usize| row.get(at).copied().unwrap_or(usize::MAX / 2);
            let mut cost =
                (get(&last, j) + usize::from(x != y)).min(get(&last, j + 1) + 1).min(get(&row, j) + 1);
            let swapped = i > 0 && j > 0 && a.get(i - 1) == Some(y) && b.get(j - 1) == Some(x);
            if swapped {
                cost = cost.min(get(&before_last, j - 1) + 1);
            }
            row.push(cost);
        }
        if row.iter().all(|cost| *cost > limit) {
            return false;
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last.last().is_some_and(|cost| *cost <= limit)
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
        for (a, b, limit, expected) in [
            ("weather", "weather", 0, true),
            ("wether", "weather", 1, true),
            ("waether", "weather", 1, true),
            ("weathre", "weather", 1, true),
            ("wetther", "weather", 1, true),
            ("wthr", "weather", 1, false),
            ("calculater", "calculator", 2, true),
            ("kalkulater", "calculator", 2, false),
            ("", "a", 1, true),
            ("天気予報", "天気予想", 1, true),
        ] {
            let chars = |text: &str| text.chars().collect::<Vec<_>>();
            assert_eq!(within(&chars(a), &chars(b), limit), expected, "{a} {b}");
        }
    }
}
