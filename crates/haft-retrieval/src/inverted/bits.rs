//! A set of chunks of a segment, one bit each.

/// A set of numbers below a fixed length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bits {
    words: Vec<u64>,
    length: usize,
}

impl Bits {
    /// Makes an empty set of numbers below `length`.
    pub(crate) fn empty(length: usize) -> Self {
        Self { words: vec![0; length.div_ceil(64)], length }
    }

    /// Adds a number; tells whether it is new.
    pub(crate) fn insert(&mut self, number: u32) -> bool {
        let (word, bit) = position(number);
        let Some(word) = self.words.get_mut(word) else { return false };
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    /// Tells whether the set has a number.
    pub(crate) fn contains(&self, number: u32) -> bool {
        let (word, bit) = position(number);
        self.words.get(word).is_some_and(|word| word & bit != 0)
    }

    /// Keeps the numbers that the other set has too.
    pub(crate) fn intersect(&mut self, other: &Self) {
        self.words.iter_mut().zip(&other.words).for_each(|(word, other)| *word &= other);
    }

    /// Adds the numbers of the other set.
    pub(crate) fn unite(&mut self, other: &Self) {
        self.words.iter_mut().zip(&other.words).for_each(|(word, other)| *word |= other);
    }

    /// Returns the numbers below the length that are not in the set.
    pub(crate) fn complement(mut self) -> Self {
        self.words.iter_mut().for_each(|word| *word = !*word);
        let beyond = self.words.len() * 64 - self.length;
        if let Some(last) = self.words.last_mut().filter(|_| beyond > 0) {
            *last &= u64::MAX >> beyond;
        }
        self
    }
}

fn position(number: u32) -> (usize, u64) {
    (usize::try_from(number / 64).unwrap_or(usize::MAX), 1 << (number % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(bits: &Bits) -> Vec<u32> {
        (0..200).filter(|number| bits.contains(*number)).collect()
    }

    #[test]
    fn sets_combine() {
        let set = |numbers: &[u32]| {
            let mut bits = Bits::empty(70);
            assert!(numbers.iter().all(|number| bits.insert(*number)));
            bits
        };
        let mut bits = set(&[0, 63, 64, 69]);
        assert!(!bits.insert(63));
        bits.intersect(&set(&[1, 63, 69]));
        bits.unite(&set(&[2]));
        assert_eq!(numbers(&bits), [2, 63, 69]);
        let others: Vec<u32> = (0..70).filter(|number| ![2, 63, 69].contains(number)).collect();
        assert_eq!(numbers(&bits.complement()), others);
        assert_eq!(numbers(&Bits::empty(64).complement()).len(), 64);
        assert_eq!(numbers(&Bits::empty(0).complement()), Vec::<u32>::new());
    }
}
