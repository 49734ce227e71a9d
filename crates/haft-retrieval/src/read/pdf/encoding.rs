//! What codes stand for without a map: the base encodings, the names of glyphs, and the encodings of composite fonts.

use encoding_rs::Encoding;
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
    ("alpha", "α"), ("beta", "β"), ("gamma", "γ"), ("delta", "δ"), ("epsilon", "ε"), ("epsilon1", "ϵ"), ("zeta", "ζ"),
    ("eta", "η"), ("theta", "θ"), ("iota", "ι"), ("kappa", "κ"), ("lambda", "λ"), ("nu", "ν"), ("xi", "ξ"),
    ("omicron", "ο"), ("pi", "π"), ("rho", "ρ"), ("sigma", "σ"), ("tau", "τ"), ("upsilon", "υ"), ("phi", "φ"),
    ("phi1", "ϕ"), ("chi", "χ"), ("psi", "ψ"), ("omega", "ω"), ("Gamma", "Γ"), ("Delta", "Δ"), ("Theta", "Θ"),
    ("Lambda", "Λ"), ("Xi", "Ξ"), ("Pi", "Π"), ("Sigma", "Σ"), ("Upsilon", "Υ"), ("Phi", "Φ"), ("Psi", "Ψ"),
    ("Omega", "Ω"),
];

/// Accents by name: as a character of its own, and as a combining one.
#[rustfmt::skip]
const ACCENTS: &[(&str, char, char)] = &[
    ("grave", '`', '\u{300}'), ("acute", '\u{b4}', '\u{301}'), ("circumflex", '\u{2c6}', '\u{302}'),
    ("tilde", '\u{2dc}', '\u{303}'), ("dieresis", '\u{a8}', '\u{308}'), ("ring", '\u{2da}', '\u{30a}'),
    ("caron", '\u{2c7}', '\u{30c}'), ("cedilla", '\u{b8}', '\u{327}'), ("ogonek", '\u{2db}', '\u{328}'),
    ("macron", '\u{af}', '\u{304}'), ("breve", '\u{2d8}', '\u{306}'), ("dotaccent", '\u{2d9}', '\u{307}'),
    ("hungarumlaut", '\u{2dd}', '\u{30b}'),
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
    if let Some((_, accent, _)) = ACCENTS.iter().find(|(known, _, _)| *known == name) {
        return Some(accent.to_string());
    }
    let (base, accent) = name.split_at_checked(1)?;
    let (_, _, accent) = ACCENTS.iter().find(|(known, _, _)| *known == accent)?;
    Some(base.chars().chain([*accent]).nfc().collect())
}

/// Returns the combining form of an accent.
pub(super) fn combining_accent(accent: char) -> Option<char> {
    // A grave accent alone is a quote in code.
    let (_, _, combining) = ACCENTS.iter().find(|(_, known, _)| *known == accent && accent != '`')?;
    Some(*combining)
}

/// Returns the text of a glyph of a bitmap font of TeX, whose name is `a` and its code.
pub(super) fn bitmap_glyph(name: &[u8]) -> Option<String> {
    let code: u8 = std::str::from_utf8(name).ok()?.strip_prefix('a')?.parse().ok()?;
    Some(match code {
        11 => "ff".to_owned(),
        12 => "fi".to_owned(),
        13 => "fl".to_owned(),
        14 => "ffi".to_owned(),
        15 => "ffl".to_owned(),
        b'{' => "\u{2013}".to_owned(),
        b'|' => "\u{2014}".to_owned(),
        b'"' => "\u{201c}".to_owned(),
        b'\\' => "\u{201d}".to_owned(),
        b'!'..=b'~' => char::from(code).to_string(),
        _ => return None,
    })
}

/// How the strings of a font are divided into codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Codes {
    /// One byte each.
    Single,
    /// Two bytes each, which only a map explains.
    Double,
    /// UTF-16.
    Utf16,
    /// An encoding of East Asian text with one byte for ASCII and two for most others.
    Legacy(&'static Encoding),
    /// Two bytes of JIS X 0208, without the high bits that EUC-JP has.
    Jis,
}

impl Codes {
    /// Returns what a predefined `CMap` reads, such as `GBK-EUC-H`.
    pub(super) fn by_cmap(name: &[u8]) -> Self {
        let name = std::str::from_utf8(name).unwrap_or_default();
        let name = name.strip_suffix("-H").or_else(|| name.strip_suffix("-V")).unwrap_or(name);
        match name {
            "H" | "V" => Self::Jis,
            "EUC" => Self::Legacy(encoding_rs::EUC_JP),
            _ if name.contains("UCS2") || name.contains("UTF16") => Self::Utf16,
            _ if name.contains("RKSJ") => Self::Legacy(encoding_rs::SHIFT_JIS),
            _ if name.starts_with("GB") => Self::Legacy(encoding_rs::GB18030),
            _ if name.starts_with("KSC") => Self::Legacy(encoding_rs::EUC_KR),
            _ if name.contains("B5") => Self::Legacy(encoding_rs::BIG5),
            _ => Self::Double,
        }
    }

    /// Divides a string.
    pub(super) fn split(self, string: &[u8]) -> impl Iterator<Item = &[u8]> {
        let mut rest = string;
        std::iter::from_fn(move || {
            let (code, after) = rest.split_at_checked(self.length(rest)).unwrap_or((rest, &[]));
            rest = after;
            (!code.is_empty()).then_some(code)
        })
    }

    /// Returns the length of the first code.
    fn length(self, string: &[u8]) -> usize {
        match self {
            Self::Single => 1,
            Self::Double | Self::Jis => 2,
            Self::Utf16 => match string.first() {
                Some(0xd8..=0xdb) => 4,
                _ => 2,
            },
            Self::Legacy(encoding) => match string.first() {
                Some(0..=0x80 | 0xff) => 1,
                Some(0xa0..=0xdf) if encoding == encoding_rs::SHIFT_JIS => 1,
                Some(0x8f) if encoding == encoding_rs::EUC_JP => 3,
                _ => 2,
            },
        }
    }

    /// Returns the text of a code of a composite font that has no map.
    pub(super) fn text(self, code: &[u8]) -> String {
        let (encoding, code) = match self {
            Self::Single | Self::Double => return String::new(),
            Self::Utf16 => (encoding_rs::UTF_16BE, code.to_vec()),
            Self::Legacy(encoding) => (encoding, code.to_vec()),
            Self::Jis => (encoding_rs::EUC_JP, code.iter().map(|byte| byte | 0x80).collect()),
        };
        let (text, has_errors) = encoding.decode_without_bom_handling(&code);
        if has_errors { String::new() } else { text.into_owned() }
    }
}
