//! The filters of streams besides Flate. What a damaged stream yields before its damage is used.

use std::io::Read as _;
use std::ops::Range;

use flate2::read::{DeflateDecoder, ZlibDecoder};

use super::lexer::{Lexer, Object};

/// The first code of LZW that stands for more than one byte.
const FIRST_LZW_ENTRY: usize = 258;
/// The number of codes of LZW, which have at most 12 bits.
const MAX_LZW_CODES: usize = 1 << 12;

/// Decompresses up to a limit.
pub(super) fn inflate(data: &[u8], limit: usize) -> Vec<u8> {
    let limit = u64::try_from(limit).unwrap_or(u64::MAX);
    let mut inflated = Vec::new();
    if ZlibDecoder::new(data).take(limit).read_to_end(&mut inflated).is_err() && inflated.is_empty() {
        let _ = DeflateDecoder::new(data).take(limit).read_to_end(&mut inflated);
    }
    inflated
}

/// Decompresses LZW, up to a limit and one entry beyond. `early` is 1 if codes grow one code early, as is usual, else 0.
pub(super) fn lzw(data: &[u8], early: usize, limit: usize) -> Vec<u8> {
    let mut output: Vec<u8> = Vec::new();
    // An entry is the text of the code before and the byte after it, which stand in the output together.
    let mut entries: Vec<Range<usize>> = Vec::new();
    let mut previous: Option<Range<usize>> = None;
    let mut bits = LzwBits { bytes: data.iter(), buffer: 0, length: 0 };
    while output.len() < limit {
        let width = lzw_width(FIRST_LZW_ENTRY + entries.len() + early);
        let start = output.len();
        match bits.next(width) {
            Some(256) => {
                entries.clear();
                previous = None;
                continue;
            }
            None | Some(257) => break,
            Some(code) => {
                if let Ok(byte) = u8::try_from(code) {
                    output.push(byte);
                } else if let Some(entry) = entries.get(code - FIRST_LZW_ENTRY) {
                    output.extend_from_within(entry.clone());
                } else if let Some(entry) =
                    previous.clone().filter(|_| code - FIRST_LZW_ENTRY == entries.len())
                {
                    // The entry that this code completes: it ends with its own first byte.
                    output.extend_from_within(entry.clone());
                    output.extend_from_within(entry.start..=entry.start);
                } else {
                    break;
                }
            }
        }
        if let Some(previous) = previous.filter(|_| FIRST_LZW_ENTRY + entries.len() < MAX_LZW_CODES) {
            entries.push(previous.start..previous.end + 1);
        }
        previous = Some(start..output.len());
    }
    output
}

/// Returns the number of bits of a code while there are this many codes.
fn lzw_width(codes: usize) -> u32 {
    match codes {
        0..=511 => 9,
        512..=1023 => 10,
        1024..=2047 => 11,
        _ => 12,
    }
}

/// Codes, the highest bit first.
struct LzwBits<'a> {
    bytes: std::slice::Iter<'a, u8>,
    buffer: usize,
    length: u32,
}

impl LzwBits<'_> {
    fn next(&mut self, width: u32) -> Option<usize> {
        while self.length < width {
            self.buffer = self.buffer << 8 | usize::from(*self.bytes.next()?);
            self.length += 8;
        }
        self.length -= width;
        let code = self.buffer >> self.length;
        self.buffer &= (1 << self.length) - 1;
        Some(code)
    }
}

/// Decompresses runs of bytes, up to a limit and one run beyond.
pub(super) fn run_length(data: &[u8], limit: usize) -> Vec<u8> {
    let mut output = Vec::new();
    let mut rest = data;
    while let Some((length, after)) = rest.split_first().filter(|(length, _)| **length != 128) {
        if output.len() >= limit {
            break;
        }
        let length = usize::from(*length);
        if length < 128 {
            let copied = after.get(..=length).unwrap_or(after);
            output.extend_from_slice(copied);
            rest = after.get(copied.len()..).unwrap_or_default();
        } else {
            let Some((byte, after)) = after.split_first() else { break };
            output.resize(output.len() + 257 - length, *byte);
            rest = after;
        }
    }
    output
}

pub(super) fn ascii_hex(data: &[u8]) -> Vec<u8> {
    let with_bracket = [b"<".as_slice(), data, b">"].concat();
    match Lexer::new(&with_bracket, 0).next() {
        Some(Object::String(bytes)) => bytes,
        _ => Vec::new(),
    }
}

pub(super) fn ascii_85(data: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(data.len());
    let mut group = Vec::with_capacity(5);
    for byte in data {
        match byte {
            b'~' => break,
            b'z' if group.is_empty() => decoded.extend([0; 4]),
            b'!'..=b'u' => {
                group.push(byte - b'!');
                if group.len() == 5 {
                    decoded.extend(base_85(&group));
                    group.clear();
                }
            }
            _ => {}
        }
    }
    if group.len() > 1 {
        let length = group.len() - 1;
        group.resize(5, 84);
        decoded.extend(base_85(&group).into_iter().take(length));
    }
    decoded
}

fn base_85(group: &[u8]) -> [u8; 4] {
    group
        .iter()
        .fold(0_u32, |value, digit| value.wrapping_mul(85).wrapping_add(u32::from(*digit)))
        .to_be_bytes()
}

/// Reverts the PNG predictors, for rows of a number of bytes and pixels of a number of bytes.
pub(super) fn unpredict_png(data: &[u8], row: usize, pixel: usize) -> Vec<u8> {
    // A row that declares to be longer than the data is not.
    let row = row.min(data.len());
    let mut output: Vec<u8> = Vec::with_capacity(data.len());
    let mut previous = vec![0_u8; row];
    for line in data.chunks(row + 1) {
        let Some((kind, line)) = line.split_first() else { break };
        let mut current = vec![0_u8; row];
        for (at, byte) in line.iter().enumerate() {
            let of = |bytes: &[u8], at: Option<usize>| {
                at.and_then(|at| bytes.get(at)).copied().unwrap_or_default()
            };
            let left = of(&current, at.checked_sub(pixel));
            let up = of(&previous, Some(at));
            let corner = of(&previous, at.checked_sub(pixel));
            let predicted = match kind {
                1 => left,
                2 => up,
                3 => u8::try_from(u16::midpoint(u16::from(left), u16::from(up))).unwrap_or_default(),
                4 => paeth(left, up, corner),
                _ => 0,
            };
            if let Some(target) = current.get_mut(at) {
                *target = byte.wrapping_add(predicted);
            }
        }
        output.extend(current.iter().take(line.len()));
        previous = current;
    }
    output
}

fn paeth(left: u8, up: u8, corner: u8) -> u8 {
    let (a, b, c) = (i16::from(left), i16::from(up), i16::from(corner));
    let estimate = a + b - c;
    let (to_left, to_up, to_corner) = ((estimate - a).abs(), (estimate - b).abs(), (estimate - c).abs());
    if to_left <= to_up && to_left <= to_corner {
        left
    } else if to_up <= to_corner {
        up
    } else {
        corner
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Compresses as the specification says, with codes of growing width.
    fn compress_lzw(data: &[u8], early: usize) -> Vec<u8> {
        let mut bits: Vec<bool> = Vec::new();
        let mut table: std::collections::HashMap<Vec<u8>, usize> = std::collections::HashMap::new();
        let mut next = FIRST_LZW_ENTRY;
        let mut width = 9;
        let mut write =
            |code: usize, width: u32| bits.extend((0..width).rev().map(|bit| code >> bit & 1 == 1));
        write(256, 9);
        let mut word: Vec<u8> = Vec::new();
        let code = |table: &std::collections::HashMap<Vec<u8>, usize>, word: &[u8]| {
            if let [byte] = word { usize::from(*byte) } else { table[word] }
        };
        for byte in data {
            let longer = [word.as_slice(), &[*byte]].concat();
            if longer.len() == 1 || table.contains_key(&longer) {
                word = longer;
                continue;
            }
            write(code(&table, &word), width);
            table.insert(longer, next);
            next += 1;
            width = lzw_width(next - 1 + early);
            if next == MAX_LZW_CODES - 1 {
                write(256, width);
                table.clear();
                (next, width) = (FIRST_LZW_ENTRY, 9);
            }
            word = vec![*byte];
        }
        if !word.is_empty() {
            write(code(&table, &word), width);
            next += 1;
            width = lzw_width(next - 1 + early);
        }
        write(257, width);
        bits.chunks(8)
            .map(|byte| (0..8).fold(0, |all, bit| all << 1 | u8::from(byte.get(bit) == Some(&true))))
            .collect()
    }

    #[test]
    fn the_example_of_the_specification_is_decoded() {
        let data = [0x80, 0x0b, 0x60, 0x50, 0x22, 0x0c, 0x0c, 0x85, 0x01];
        assert_eq!(lzw(&data, 1, 100), [45, 45, 45, 45, 45, 65, 45, 45, 45, 66]);
        assert_eq!(run_length(&[2, 1, 2, 3, 254, 9, 0, 4, 128, 7], 100), [1, 2, 3, 9, 9, 9, 4]);
        assert_eq!(run_length(&[5, 1], 100), [1]);
    }

    #[test]
    fn a_bomb_ends_at_the_limit() {
        let data = vec![0; 100_000];
        assert!((1_000..10_000).contains(&lzw(&compress_lzw(&data, 1), 1, 1_000).len()));
        assert!((1_000..2_000).contains(&run_length(&[129, 0].repeat(1 << 20), 1_000).len()));
        let unpredicted = unpredict_png(&[1, 2, 3], 1 << 24, 1);
        assert_eq!(unpredicted, [2, 5]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn lzw_restores_what_was_compressed(
            words in prop::collection::vec((any::<u8>(), 1_usize..300), 0..50), early in 0_usize..2,
        ) {
            let steps = |(byte, count): &(u8, usize)| {
                let byte = *byte;
                (0..7).cycle().take(*count).map(move |step| byte.wrapping_add(step))
            };
            let data: Vec<u8> = words.iter().flat_map(steps).collect();
            prop_assert_eq!(lzw(&compress_lzw(&data, early), early, usize::MAX), data);
        }

        #[test]
        fn any_bytes_are_decoded_or_cut(data in prop::collection::vec(any::<u8>(), 0..2_000)) {
            prop_assert!(lzw(&data, 1, 10_000).len() <= 10_000 + MAX_LZW_CODES);
            prop_assert!(run_length(&data, 10_000).len() <= 10_000 + 128);
        }
    }
}
