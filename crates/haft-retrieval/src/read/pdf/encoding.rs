//! Characters of simple fonts: the base encodings and the names of glyphs.

use unicode_normalization::UnicodeNormalization as _;

/// Names of glyphs that are neither a letter nor a letter with an accent.
#[rustfmt::skip]
const GLYPHS: &[(&str, &str)] = &[
    ("space", " "), ("exclam", "!"), ("quotedbl", "\""), ("numbersign", "#"), ("dollar", "$"), ("percent", "%"),
    ("ampersand", "&"), ("quotesingle", "'"), ("quoteright", "\u{2019}"), ("quoteleft", "\u{2018}"),
    ("parenleft", "("), ("parenright", ")"), ("asterisk", "*"), ("plus", "+"), ("comma", ","), ("hyphen", "-"),
    ("period", "."), ("slash", "/"), ("zero", "0"), ("one", "1"), ("two", "2"), ("three", "3"), ("four", "4"),
    ("five", "5"), ("six", "6"), ("seven", "7"), ("eight", "8"), ("nine", "9"), ("colon", ":"), ("semicolon", ";"),
    ("less", "<"), ("equal", "="), ("greater", ">"), ("question", "?"), ("at", "@"), ("bracketleft", "["),
    ("backslash", "\\"), ("bracketright", "]"), ("asciicircum", "^"), ("underscore", "_"), ("grave", "`"),
    ("braceleft", "{"), ("bar", "|"), ("braceright", "}"), ("asciitilde", "~"), ("endash", "\u{2013}"),
    ("emdash", "\u{2014}"), ("bullet", "\u{2022}"), ("ellipsis", "\u{2026}"), ("quotedblleft", "\u{201c}"),
    ("quotedblright", "\u{201d}"), ("quotedblbase", "\u{201e}"), ("quotesinglbase", "\u{201a}"),
    ("guillemotleft", "«"), ("guillemotright", "»"), ("guilsinglleft", "\u{2039}"), ("guilsinglright", "\u{203a}"),
    ("fi", "fi"), ("fl", "fl"), ("ff", "ff"), ("ffi", "ffi"), ("ffl", "ffl"), ("germandbls", "ß"), ("ae", "æ"),
    ("AE", "Æ"), ("oe", "œ"), ("OE", "Œ"), ("oslash", "ø"), ("Oslash", "Ø"), ("eth", "ð"), ("Eth", "Ð"),
    ("thorn", "þ"), ("Thorn", "Þ"), ("lslash", "ł"), ("Lslash", "Ł"), ("dotlessi", "ı"), ("section", "§"),
    ("paragraph", "¶"), ("copyright", "©"), ("registered", "®"), ("trademark", "™"), ("degree", "°"),
    ("plusminus", "±"), ("multiply", "×"), ("divide", "÷"), ("mu", "µ"), ("sterling", "£"), ("yen", "¥"), ("cent", "¢"),
    ("Euro", "€"), ("currency", "¤"), ("periodcentered", "·"), ("exclamdown", "¡"), ("questiondown", "¿"),
    ("onehalf", "½"), ("onequarter", "¼"), ("threequarters", "¾"), ("minus", "\u{2212}"), ("dagger", "†"),
    ("nbspace", " "), ("sfthyphen", "-"),
];

/// Accents by name, as combining characters.
#[rustfmt::skip]
const ACCENTS: &[(&str, char)] = &[
    ("grave", '\u{300}'), ("acute", '\u{301}'), ("circumflex", '\u{302}'), ("tilde", '\u{303}'),
    ("dieresis", '\u{308}'), ("ring", '\u{30a}'), ("caron", '\u{30c}'), ("cedilla", '\u{327}'), ("ogonek", '\u{328}'),
    ("macron", '\u{304}'), ("breve", '\u{306}'), ("dotaccent", '\u{307}'), ("hungarumlaut", '\u{30b}'),
];

/// Codes of the standard encoding that differ from ASCII.
#[rustfmt::skip]
const STANDARD: &[(u8, &str)] = &[
    (0x27, "\u{2019}"), (0x60, "\u{2018}"), (0xa1, "¡"), (0xa2, "¢"), (0xa3, "£"), (0xa5, "¥"), (0xa7, "§"),
    (0xa9, "'"), (0xaa, "\u{201c}"), (0xab, "«"), (0xac, "\u{2039}"), (0xad, "\u{203a}"), (0xae, "fi"), (0xaf, "fl"),
    (0xb1, "\u{2013}"), (0xb7, "\u{2022}"), (0xb9, "\u{201e}"), (0xba, "\u{201d}"), (0xbb, "»"), (0xbc, "\u{2026}"),
    (0xbf, "¿"), (0xd0, "\u{2014}"), (0xe1, "Æ"), (0xe9, "Ø"), (0xea, "Œ"), (0xf1, "æ"), (0xf5, "ı"), (0xf9, "ø"),
    (0xfa, "œ"), (0xfb, "ß"),
];

/// A base encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BaseEncoding {
    Standard,
    WinAnsi,
    MacRoman,
}

impl BaseEncoding {
    /// Returns the text of a code.
    pub(super) fn decode(self, code: u8) -> String {
        let table = match self {
            Self::Standard => {
                let special =
                    STANDARD.iter().find(|(known, _)| *known == code).map(|(_, text)| (*text).to_owned());
                return special.unwrap_or_else(|| char::from(code).to_string());
            }
            Self::WinAnsi => encoding_rs::WINDOWS_1252,
            Self::MacRoman => encoding_rs::MACINTOSH,
        };
        table.decode_without_bom_handling(&[code]).0.into_owned()
    }
}

/// Returns the text of a glyph's name.
pub(super) fn glyph(name: &[u8]) -> Option<String> {
    let name = std::str::from_utf8(name).ok()?;
    // A suffix such as `.sc` names a variant.
    let name = name.split('.').next().unwrap_or_default();
    if let Some((_, text)) = GLYPHS.iter().find(|(known, _)| *known == name) {
        return Some((*text).to_owned());
    }
    if name.len() == 1 {
        return Some(name.to_owned());
    }
    let hex = name.strip_prefix("uni").filter(|hex| hex.len() >= 4).and_then(|hex| hex.get(..4));
    let hex = hex.or_else(|| name.strip_prefix('u').filter(|hex| (4..=6).contains(&hex.len())));
    if let Some(c) = hex.and_then(|hex| u32::from_str_radix(hex, 16).ok()).and_then(char::from_u32) {
        return Some(c.to_string());
    }
    let (base, accent) = name.split_at_checked(1)?;
    let (_, accent) = ACCENTS.iter().find(|(known, _)| *known == accent)?;
    Some(base.chars().chain([*accent]).nfc().collect())
}
