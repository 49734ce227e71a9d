//! The language of a text, which decides how its words are stemmed.

use std::collections::HashSet;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

/// The number of words that decide.
const SAMPLE: usize = 5_000;

const ENGLISH: &str = "a about after all also an and any are as at be because been before being between both but by can \
    could did do does during each for from further had has have having he her here his how i if in into is it its more \
    most my no nor not of off on once only or other our out over own same she should so some such than that the their \
    them then there these they this those through to too under until up very was we were what when where which while \
    who whom why will with would you your";

const GERMAN: &str = "aber alle als also am an auch auf aus bei bin bis bist da damit dann das dass dem den der des die \
    dies diese diesem diesen dieser dieses doch dort du durch ein eine einem einen einer eines er es etwas euch euer für \
    gegen hab habe haben hat hatte hier hin hinter ich ihm ihn ihnen ihr ihre ihrem ihren ihrer im in ist ja jede jedem \
    jeden jeder jedes kann kein keine keinem keinen keiner können man mein mich mir mit muss nach nicht nichts noch nun \
    nur ob oder ohne sein seine seinem seinen seiner sich sie sind so über um und uns unser unter vom von vor war waren \
    was weil welche welchem welchen welcher wenn wer werden wie wieder will wir wird wo wurde wurden zu zum zur zwar \
    zwischen";

static ENGLISH_WORDS: LazyLock<HashSet<&'static str>> =
    LazyLock::new(|| ENGLISH.split_whitespace().collect());
static GERMAN_WORDS: LazyLock<HashSet<&'static str>> = LazyLock::new(|| GERMAN.split_whitespace().collect());

/// A language with its own stemming rules.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Language {
    /// English, and texts whose language is unknown.
    #[default]
    English,
    /// German.
    German,
}

impl Language {
    /// All languages.
    pub const ALL: [Self; 2] = [Self::English, Self::German];

    /// Returns the language whose common words a text has most of.
    pub fn detect(text: &str) -> Self {
        let (mut english, mut german) = (0_u32, 0_u32);
        for word in text.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty()).take(SAMPLE) {
            // No stop word is longer; a hostile text may be one word.
            if word.len() > 16 {
                continue;
            }
            let word = word.to_lowercase();
            english += u32::from(ENGLISH_WORDS.contains(word.as_str()));
            german += u32::from(GERMAN_WORDS.contains(word.as_str()));
        }
        if german > english { Self::German } else { Self::English }
    }

    /// Returns the name, as in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::English => "english",
            Self::German => "german",
        }
    }

    /// Tells whether a lower-case word is so common that it says nothing about a text.
    pub(crate) fn is_stop_word(self, word: &str) -> bool {
        match self {
            Self::English => ENGLISH_WORDS.contains(word),
            Self::German => GERMAN_WORDS.contains(word),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_language_follows_from_common_words() {
        for (text, expected) in [
            ("The house is on the hill and was built in 1900.", Language::English),
            ("Das Haus ist auf dem Hügel und wurde 1900 gebaut.", Language::German),
            ("Install Docker", Language::English),
            ("", Language::English),
            ("日本語のテキスト", Language::English),
        ] {
            assert_eq!(Language::detect(text), expected, "{text}");
        }
    }
}
