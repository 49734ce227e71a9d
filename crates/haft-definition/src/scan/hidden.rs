//! Text that a person does not see.

use haft_core::finding::Severity;

use super::fold::{is_bidi, is_filler, is_tag, is_variation_selector, is_zero_width, look_alike};
use super::report::Report;

/// How many invisible characters in a row cannot be an accident.
const MIN_RUN: usize = 4;
/// How many spaces in a row push text out of sight.
const LONG_SPACE: usize = 200;
/// How many line breaks in a row push text out of sight.
const MANY_BREAKS: usize = 25;
/// How many characters around a finding are shown.
const CONTEXT: usize = 24;

pub(super) fn scan(report: &mut Report, path: &str, text: &str) {
    if text.contains("<!--") {
        let comment: String = text.chars().skip_while(|c| *c != '<').collect();
        report.add(
            ("hidden.comment", Severity::Soft),
            path,
            &comment,
            "an HTML comment, which is not shown as text",
        );
    }
    if text.bytes().all(|byte| (0x20..0x7f).contains(&byte)) && !text.contains("  ") {
        return;
    }
    let chars: Vec<char> = text.chars().collect();
    tags(report, path, &chars);
    let mut position = 0;
    while let Some(&c) = chars.get(position) {
        let run = run_length(&chars, position);
        character(report, path, &Place { chars: &chars, position, run }, c);
        position += run.max(1);
    }
    white_space(report, path, &chars);
    mixed_words(report, path, text);
}

/// A run of invisible characters.
struct Place<'a> {
    chars: &'a [char],
    position: usize,
    run: usize,
}

impl Place<'_> {
    fn excerpt(&self) -> String {
        excerpt(self.chars, self.position, self.run)
    }

    fn before(&self) -> Option<char> {
        self.chars.get(self.position.checked_sub(1)?).copied()
    }

    fn after(&self) -> Option<char> {
        self.chars.get(self.position + self.run).copied()
    }

    /// Returns whether the run splits a word of Latin letters.
    fn splits_word(&self) -> bool {
        let is_letter = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphabetic());
        is_letter(self.before()) && is_letter(self.after())
    }
}

fn excerpt(chars: &[char], position: usize, length: usize) -> String {
    let start = position.saturating_sub(CONTEXT);
    chars.iter().skip(start).take(length + 2 * CONTEXT).collect()
}

fn is_unseen(c: char) -> bool {
    is_zero_width(c) || is_variation_selector(c) || is_filler(c)
}

fn run_length(chars: &[char], position: usize) -> usize {
    chars.iter().skip(position).take_while(|c| is_unseen(**c)).count()
}

fn character(report: &mut Report, path: &str, place: &Place<'_>, c: char) {
    let mut add = |rule, severity, message| report.add((rule, severity), path, &place.excerpt(), message);
    match c {
        '\u{1b}' => add("hidden.escape", Severity::Hard, "a terminal escape sequence, which can hide text"),
        '\u{9b}' => add("hidden.escape", Severity::Hard, "a terminal control character, which can hide text"),
        '\u{202d}' | '\u{202e}' => {
            add(
                "hidden.bidi",
                Severity::Hard,
                "an override of the text direction, which shows text in another order",
            );
        }
        c if is_bidi(c) && !near_right_to_left(place) => {
            add(
                "hidden.bidi",
                Severity::Soft,
                "a control character for the text direction without such text",
            );
        }
        c if c.is_control() && !matches!(c, '\n' | '\t' | '\r') => {
            add("hidden.control", Severity::Soft, "a control character");
        }
        c if is_unseen(c) => unseen(report, path, place),
        _ => {}
    }
}

fn near_right_to_left(place: &Place<'_>) -> bool {
    let start = place.position.saturating_sub(CONTEXT);
    place.chars.iter().skip(start).take(2 * CONTEXT).any(|c| {
        matches!(c, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefe}') && !is_bidi(*c)
    })
}

/// Reports a run of characters without a visible form, unless a script or an emoji needs it.
fn unseen(report: &mut Report, path: &str, place: &Place<'_>) {
    let run = place.chars.iter().skip(place.position).take(place.run);
    let selectors = run.filter(|c| is_variation_selector(**c)).count();
    let before = place.before();
    let is_symbol = before.is_some_and(|c| !c.is_ascii_alphabetic() && !c.is_whitespace());
    let needed = is_symbol && before.is_some_and(|c| !c.is_ascii_punctuation());
    if place.run >= MIN_RUN || (place.run > 1 && selectors == place.run) {
        let message = "a run of invisible characters, which can carry hidden text";
        report.add(("hidden.invisible", Severity::Hard), path, &place.excerpt(), message);
    } else if place.splits_word() {
        let message = "an invisible character inside a word";
        report.add(("hidden.invisible", Severity::Hard), path, &place.excerpt(), message);
    } else if !needed && place.position > 0 {
        report.add(("hidden.invisible", Severity::Soft), path, &place.excerpt(), "an invisible character");
    }
}

/// Reports tag characters outside the flags that are made of them.
fn tags(report: &mut Report, path: &str, chars: &[char]) {
    let mut position = 0;
    while let Some(&c) = chars.get(position) {
        let length = chars.iter().skip(position).take_while(|c| is_tag(**c)).count();
        if length == 0 {
            position += 1;
            continue;
        }
        let is_flag = position.checked_sub(1).and_then(|before| chars.get(before)) == Some(&'\u{1f3f4}')
            && (2..=7).contains(&length)
            && chars.get(position + length - 1) == Some(&'\u{e007f}');
        if !is_flag && is_tag(c) {
            let decoded: String =
                chars.iter().skip(position).take(length).filter_map(|c| untag(*c)).collect();
            let message = "invisible tag characters, which carry hidden text";
            report.add(("hidden.tags", Severity::Hard), path, &format!("hidden: {decoded}"), message);
        }
        position += length;
    }
}

fn untag(c: char) -> Option<char> {
    char::from_u32(u32::from(c).checked_sub(0xe0000)?).filter(|c| !c.is_control())
}

/// Reports white space that pushes the following text out of sight.
fn white_space(report: &mut Report, path: &str, chars: &[char]) {
    let (mut length, mut breaks) = (0, 0);
    for (position, c) in chars.iter().enumerate() {
        if c.is_whitespace() {
            length += 1;
            breaks += usize::from(*c == '\n');
            continue;
        }
        if (length >= LONG_SPACE || breaks >= MANY_BREAKS) && length < position {
            let rest: String = chars.iter().skip(position).take(100).collect();
            let message = "long white space, which pushes the text after it out of sight";
            report.add(("hidden.white_space", Severity::Hard), path, &rest, message);
        }
        (length, breaks) = (0, 0);
    }
}

/// Reports words that mix Latin letters with look-alike letters of other scripts.
fn mixed_words(report: &mut Report, path: &str, text: &str) {
    for word in text.split(|c: char| !c.is_alphabetic()) {
        let latin = word.chars().filter(char::is_ascii_alphabetic).count();
        let alike = word.chars().filter(|c| is_foreign_look_alike(*c)).count();
        let others = word.chars().count() - latin - alike;
        if latin > 1 && alike > 0 && others == 0 {
            let message = "a word that mixes Latin letters with look-alike letters of another script";
            report.add(("hidden.look_alike", Severity::Soft), path, word, message);
        }
    }
}

/// Returns whether a character of another script looks like a Latin letter.
pub(super) fn is_foreign_look_alike(c: char) -> bool {
    c.is_alphabetic() && look_alike(c) != c && !matches!(c, 'ı' | 'ſ')
}
