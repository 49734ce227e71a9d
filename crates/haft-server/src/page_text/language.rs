//! The language of the reader of a page.

use http::{HeaderMap, header};

use super::texts::Texts;
use super::{english, german};
use crate::browser;

/// The most entries of `Accept-Language` that are read.
const MAX_ENTRIES: usize = 32;

/// A language of the pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    English,
    German,
}

impl Language {
    /// Returns the language of a reader: the one chosen in the web interface, or the one that the browser prefers.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let chosen = browser::language_cookie(headers).and_then(Self::parse);
        chosen.or_else(|| preferred(headers)).unwrap_or(Self::English)
    }

    /// Parses a language tag, such as `de` or `de-AT`.
    fn parse(tag: &str) -> Option<Self> {
        let primary = tag.split('-').next().unwrap_or_default();
        let languages = [("en", Self::English), ("de", Self::German)];
        languages
            .into_iter()
            .find(|(code, _)| code.eq_ignore_ascii_case(primary))
            .map(|(_, language)| language)
    }

    /// Returns its texts.
    pub(crate) fn texts(self) -> &'static Texts {
        match self {
            Self::English => &english::TEXTS,
            Self::German => &german::TEXTS,
        }
    }
}

/// Returns the texts for the reader of a page.
pub(crate) fn texts(headers: &HeaderMap) -> &'static Texts {
    Language::of(headers).texts()
}

/// Returns the first of the languages with the highest weight in `Accept-Language`.
fn preferred(headers: &HeaderMap) -> Option<Language> {
    let values = headers.get_all(header::ACCEPT_LANGUAGE).iter().filter_map(|value| value.to_str().ok());
    let mut best: Option<(f32, Language)> = None;
    for entry in values.flat_map(|value| value.split(',')).take(MAX_ENTRIES) {
        let (tag, parameter) = entry.split_once(';').unwrap_or((entry, ""));
        let Some(language) = Language::parse(tag.trim()) else { continue };
        let weight = parameter.trim().strip_prefix("q=").map_or(Some(1.0), |weight| weight.parse().ok());
        let Some(weight) = weight.filter(|weight: &f32| (0.0..=1.0).contains(weight)) else { continue };
        if weight > 0.0 && best.is_none_or(|(most, _)| weight > most) {
            best = Some((weight, language));
        }
    }
    best.map(|(_, language)| language)
}

#[cfg(test)]
mod tests {
    use haft_core::token::Role;
    use http::HeaderValue;

    use super::super::texts::fill;
    use super::*;

    #[test]
    fn the_language_is_the_chosen_one_or_the_preferred_one() {
        let check = |accept: &str, cookie: &str, expected: Language| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_LANGUAGE, HeaderValue::from_str(accept).unwrap());
            headers.insert(header::COOKIE, HeaderValue::from_str(cookie).unwrap());
            assert_eq!(Language::of(&headers), expected, "{accept} {cookie}");
        };
        check("", "", Language::English);
        check("de", "", Language::German);
        check("DE-at, en;q=0.8", "", Language::German);
        check("en-GB,de;q=0.9", "", Language::English);
        check("fr, de;q=0.5, en;q=0.4", "", Language::German);
        check("fr, en;q=0.5, de;q=0.5", "", Language::English);
        check("de;q=0, en;q=0.1", "", Language::English);
        check("fr, *", "", Language::English);
        check("de;q=x, en;q=2, ,;,;q=", "", Language::English);
        check("en", "haft_language=de", Language::German);
        check("de", "haft_language=en", Language::English);
        check("de", "haft_language=fr", Language::German);
        assert_eq!(Language::of(&HeaderMap::new()), Language::English);
    }

    #[test]
    fn values_are_put_into_texts_once() {
        let values = [("name", "{host} & co"), ("host", "evil")];
        assert_eq!(fill("{name} at {host}", &values), "{host} & co at evil");
        assert_eq!(fill("no {value} {", &values), "no {value} {");
    }

    #[test]
    fn every_language_uses_the_same_values() {
        let placeholders = |text: &str| -> Vec<String> {
            let mut found: Vec<String> = text
                .split('{')
                .skip(1)
                .filter_map(|rest| rest.split_once('}').map(|(name, _)| name.to_owned()))
                .collect();
            found.sort();
            found
        };
        let english = Language::English.texts().all();
        let german = Language::German.texts().all();
        for ((name, text), (_, other)) in english.into_iter().zip(german) {
            assert!(!text.is_empty() && !other.is_empty(), "{name}");
            assert_eq!(placeholders(text), placeholders(other), "{name}");
            let tags = |text: &str| text.matches('<').count();
            assert_eq!(tags(text), tags(other), "{name}");
        }
        for role in Role::ALL {
            assert_ne!((german::TEXTS.of_choice)(role), (english::TEXTS.of_choice)(role));
        }
    }
}
