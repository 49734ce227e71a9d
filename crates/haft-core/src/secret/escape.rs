//! Reads one escape sequence: percent-encoding, a JSON escape or an HTML character reference.

/// The bytes that start an escape sequence.
pub(super) const STARTS: [u8; 3] = [b'%', b'\\', b'&'];
/// The most bytes that an escape sequence needs for one byte of text; longer ones have leading zeros.
pub(super) const MAX_LENGTH: usize = 12;
/// The most digits of a numeric character reference.
const MAX_DIGITS: usize = 8;

/// The named character references of ASCII characters; others have numeric ones. Browsers also read the first
/// [`WITHOUT_SEMICOLON`] without their `;`.
const NAMES: [(&[u8], u8); 43] = [
    (b"amp", b'&'),
    (b"AMP", b'&'),
    (b"lt", b'<'),
    (b"LT", b'<'),
    (b"gt", b'>'),
    (b"GT", b'>'),
    (b"quot", b'"'),
    (b"QUOT", b'"'),
    (b"apos", b'\''),
    (b"Tab", b'\t'),
    (b"NewLine", b'\n'),
    (b"excl", b'!'),
    (b"num", b'#'),
    (b"dollar", b'$'),
    (b"percnt", b'%'),
    (b"lpar", b'('),
    (b"rpar", b')'),
    (b"ast", b'*'),
    (b"midast", b'*'),
    (b"plus", b'+'),
    (b"comma", b','),
    (b"period", b'.'),
    (b"sol", b'/'),
    (b"colon", b':'),
    (b"semi", b';'),
    (b"equals", b'='),
    (b"quest", b'?'),
    (b"commat", b'@'),
    (b"lsqb", b'['),
    (b"lbrack", b'['),
    (b"bsol", b'\\'),
    (b"rsqb", b']'),
    (b"rbrack", b']'),
    (b"Hat", b'^'),
    (b"lowbar", b'_'),
    (b"UnderBar", b'_'),
    (b"grave", b'`'),
    (b"lcub", b'{'),
    (b"lbrace", b'{'),
    (b"verbar", b'|'),
    (b"vert", b'|'),
    (b"rcub", b'}'),
    (b"rbrace", b'}'),
];
const WITHOUT_SEMICOLON: usize = 8;

/// A decoded escape sequence: one byte of a percent-encoding, or one character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Escape {
    /// How many bytes the sequence has.
    pub(super) length: usize,
    decoded: [u8; 4],
    decoded_length: usize,
}

impl Escape {
    /// Reads the sequence at the start of `bytes`.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [b'%', high, low, ..] => {
                let byte = hex(*high)? << 4 | hex(*low)?;
                Some(Self { length: 3, decoded: [byte, 0, 0, 0], decoded_length: 1 })
            }
            [b'\\', b'u', ..] => unicode(bytes),
            [b'\\', letter, ..] => Some(Self::of(2, char::from(simple(*letter)?))),
            [b'&', b'#', b'x' | b'X', digits @ ..] => numeric(digits, 3, 16),
            [b'&', b'#', digits @ ..] => numeric(digits, 2, 10),
            [b'&', name @ ..] => named(name),
            _ => None,
        }
    }

    /// Returns the text that the sequence stands for.
    pub(super) fn decoded(&self) -> &[u8] {
        self.decoded.get(..self.decoded_length).unwrap_or_default()
    }

    fn of(length: usize, letter: char) -> Self {
        let mut decoded = [0; 4];
        let decoded_length = letter.encode_utf8(&mut decoded).len();
        Self { length, decoded, decoded_length }
    }
}

/// Returns whether all of `bytes` may be the beginning of a longer sequence.
pub(super) fn is_incomplete(bytes: &[u8]) -> bool {
    let all_hex = |digits: &[u8]| digits.iter().all(u8::is_ascii_hexdigit);
    match bytes {
        [b'%' | b'\\' | b'&'] | [b'&', b'#'] | [b'&', b'#', b'x' | b'X'] => true,
        [b'%', digit] => digit.is_ascii_hexdigit(),
        [b'\\', b'u', rest @ ..] => match rest.split_at_checked(4) {
            None => all_hex(rest),
            // The second half of a surrogate pair may follow.
            Some((digits, after)) => {
                all_hex(digits)
                    && Escape::read(bytes).is_none()
                    && after.len() < 6
                    && (after.is_empty() || (after.starts_with(b"\\") && after != b"\\\\"))
            }
        },
        // Without a `;`, more digits may follow.
        [b'&', b'#', b'x' | b'X', digits @ ..] => digits.len() <= MAX_DIGITS && all_hex(digits),
        [b'&', b'#', digits @ ..] => digits.len() <= MAX_DIGITS && digits.iter().all(u8::is_ascii_digit),
        [b'&', name @ ..] => NAMES.iter().any(|(known, _)| known.starts_with(name)),
        _ => false,
    }
}

/// Returns how many bytes at the start of `bytes` may be the end of a sequence that began before them.
pub(super) fn endings(bytes: &[u8]) -> impl Iterator<Item = usize> + '_ {
    let digits = bytes.iter().take(MAX_DIGITS).take_while(|byte| byte.is_ascii_hexdigit()).count();
    let after_u = usize::from(bytes.first() == Some(&b'u')) * 5;
    let reference = bytes.iter().take(MAX_LENGTH).position(|byte| *byte == b';').map(|at| at + 1);
    let simple = usize::from(bytes.first().is_some_and(|letter| simple(*letter).is_some()));
    (1..=digits.min(4)).chain([simple, after_u].into_iter().filter(|length| *length > 0)).chain(reference)
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

/// Returns what a letter after a backslash stands for.
fn simple(letter: u8) -> Option<u8> {
    Some(match letter {
        b'"' | b'\\' | b'/' => letter,
        b'b' => 8,
        b'f' => 12,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        _ => return None,
    })
}

/// Reads `\uXXXX`, or two of them that are one character.
fn unicode(bytes: &[u8]) -> Option<Escape> {
    let first = code_unit(bytes)?;
    if let Some(letter) = char::from_u32(first.into()) {
        return Some(Escape::of(6, letter));
    }
    let second = code_unit(bytes.get(6..)?)?;
    let letter = char::decode_utf16([first, second]).next()?.ok()?;
    Some(Escape::of(12, letter))
}

fn code_unit(bytes: &[u8]) -> Option<u16> {
    let digits = bytes.strip_prefix(b"\\u")?.get(..4)?;
    digits.iter().try_fold(0, |value: u16, digit| Some(value << 4 | u16::from(hex(*digit)?)))
}

/// Reads the digits of a character reference; its `;` may be missing.
fn numeric(digits: &[u8], before: usize, radix: u32) -> Option<Escape> {
    let count = digits.iter().take_while(|digit| char::from(**digit).is_digit(radix)).count();
    let (digits, after) = digits.split_at_checked(count)?;
    let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
    let significant = digits.get(zeros..).filter(|digits| digits.len() <= MAX_DIGITS)?;
    let number = u32::from_str_radix(std::str::from_utf8(significant).ok()?, radix).ok()?;
    let end = usize::from(after.first() == Some(&b';'));
    Some(Escape::of(before + count + end, char::from_u32(number)?))
}

fn named(bytes: &[u8]) -> Option<Escape> {
    let found = NAMES.iter().enumerate().find_map(|(index, (name, byte))| {
        let end = usize::from(bytes.strip_prefix(*name)?.first() == Some(&b';'));
        (end == 1 || index < WITHOUT_SEMICOLON).then_some((1 + name.len() + end, *byte))
    });
    found.map(|(length, byte)| Escape::of(length, char::from(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_are_read() {
        for (text, length, decoded) in [
            ("%2Fx", 3, "/"),
            ("%2f", 3, "/"),
            (r"\/", 2, "/"),
            (r"\u002Fx", 6, "/"),
            (r"\u00e4", 6, "ä"),
            (r"\ud83d\uDE00!", 12, "😀"),
            ("&amp;x", 5, "&"),
            ("&ampx", 4, "&"),
            ("&sol;", 5, "/"),
            ("&#47;", 5, "/"),
            ("&#47x", 4, "/"),
            ("&#0000000000047;", 16, "/"),
            ("&#x2F;", 6, "/"),
            ("&#X2f;", 6, "/"),
        ] {
            let escape = Escape::read(text.as_bytes()).unwrap();
            assert_eq!((escape.length, escape.decoded()), (length, decoded.as_bytes()), "{text}");
        }
        for text in
            ["", "x", "%", "%4", "%zz", r"\", r"\x41", r"\u12", r"\ud83d", r"\ud83dx", "&", "&sol", "&#;"]
        {
            assert_eq!(Escape::read(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn incomplete_sequences_are_recognised() {
        for text in [
            "%",
            "%4",
            r"\",
            r"\u",
            r"\u00",
            r"\ud83d",
            r"\ud83d\",
            r"\ud83d\ude",
            "&",
            "&am",
            "&#",
            "&#x",
            "&#x4",
        ] {
            assert!(is_incomplete(text.as_bytes()), "{text}");
        }
        for text in ["", "x", "%z", "%41", r"\u0041", r"\x", "& ", "&foo", "&#x4;"] {
            assert!(!is_incomplete(text.as_bytes()), "{text}");
        }
    }
}
