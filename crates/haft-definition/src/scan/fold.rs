//! Folds text to a form in which the same phrase always looks the same.

/// Returns whether a character has no visible form or reorders others.
pub(super) fn is_invisible(c: char) -> bool {
    is_tag(c) || is_bidi(c) || is_zero_width(c) || is_variation_selector(c) || is_filler(c)
}

/// Returns whether a character is a tag, an invisible copy of ASCII.
pub(super) fn is_tag(c: char) -> bool {
    matches!(c, '\u{e0000}'..='\u{e007f}')
}

/// Returns whether a character changes the direction of text.
pub(super) fn is_bidi(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns whether a character has no width.
pub(super) fn is_zero_width(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}' | '\u{feff}' | '\u{180e}' | '\u{034f}')
}

/// Returns whether a character selects a variant of the one before it.
pub(super) fn is_variation_selector(c: char) -> bool {
    matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' | '\u{180b}'..='\u{180d}')
}

/// Returns whether a character is a letter or symbol that is drawn as nothing.
pub(super) fn is_filler(c: char) -> bool {
    matches!(
        c,
        '\u{00ad}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{2800}' | '\u{3164}' | '\u{ffa0}'
    )
}

/// Returns the ASCII letter that a character looks like, or the character.
pub(super) fn look_alike(c: char) -> char {
    if c.is_ascii() {
        return c;
    }
    if let Some(ascii) = compatible(c) {
        return ascii;
    }
    match c {
        'а' | 'α' | 'ɑ' => 'a',
        'А' | 'Α' => 'A',
        'В' | 'Β' => 'B',
        'ϲ' | 'с' => 'c',
        'С' | 'Ϲ' => 'C',
        'ԁ' => 'd',
        'е' | 'ҽ' => 'e',
        'Е' | 'Ε' => 'E',
        'ɡ' => 'g',
        'һ' => 'h',
        'Н' | 'Η' => 'H',
        'і' | 'ι' | 'ı' | 'ӏ' => 'i',
        'І' | 'Ι' | 'Ӏ' => 'I',
        'ј' | 'ϳ' => 'j',
        'Ј' => 'J',
        'κ' | 'к' => 'k',
        'К' | 'Κ' => 'K',
        'М' | 'Μ' => 'M',
        'Ν' => 'N',
        'ո' => 'n',
        'о' | 'ο' | 'օ' | 'σ' => 'o',
        'О' | 'Ο' => 'O',
        'р' | 'ρ' => 'p',
        'Р' | 'Ρ' => 'P',
        'ԛ' => 'q',
        'ѕ' | 'ſ' => 's',
        'Ѕ' => 'S',
        'т' | 'τ' => 't',
        'Т' | 'Τ' => 'T',
        'υ' | 'ս' => 'u',
        'ν' | 'ѵ' => 'v',
        'ԝ' => 'w',
        'х' | 'χ' => 'x',
        'Х' | 'Χ' => 'X',
        'у' | 'γ' => 'y',
        'У' | 'Υ' => 'Y',
        'Ζ' => 'Z',
        '’' | '‘' | '´' | 'ʼ' => '\'',
        '“' | '”' => '"',
        '‐'..='―' | '−' => '-',
        '：' => ':',
        other => other,
    }
}

/// Returns the ASCII character of the full-width and mathematical alphabets.
fn compatible(c: char) -> Option<char> {
    let code = u32::from(c);
    let letter = |start: u32| {
        let position = (code - start) % 52;
        let base = if position < 26 { u32::from('A') + position } else { u32::from('a') + position - 26 };
        char::from_u32(base)
    };
    match code {
        0xff01..=0xff5e => char::from_u32(code - 0xfee0),
        0x1d400..=0x1d6a3 => letter(0x1d400),
        0x1d7ce..=0x1d7ff => char::from_u32(u32::from('0') + (code - 0x1d7ce) % 10),
        0x24b6..=0x24e9 => letter(0x24b6),
        _ => None,
    }
}

/// Folds a text: lower case, look-alike letters replaced, invisible characters and marks of emphasis removed, and white
/// space collapsed to one space or line break.
pub(super) fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    let mut space = None;
    for c in text.chars() {
        if is_invisible(c) || matches!(c, '*' | '`') {
            continue;
        }
        if c.is_whitespace() || c.is_control() {
            let is_break = c == '\n' || space == Some('\n');
            space = Some(if is_break { '\n' } else { ' ' });
            continue;
        }
        if let Some(space) = space.take().filter(|_| !folded.is_empty()) {
            folded.push(space);
        }
        folded.extend(look_alike(c).to_lowercase());
    }
    folded
}

/// Folds a name: lower case, look-alike letters replaced, invisible characters removed.
pub(super) fn fold_name(name: &str) -> String {
    let visible = name.chars().filter(|c| !is_invisible(*c) && !c.is_whitespace());
    visible.flat_map(|c| look_alike(c).to_lowercase()).collect()
}
