//! Values in XML documents that are written as text.

use haft_core::encode::xml_escape_into;

/// Where in an XML document the writer stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum XmlState {
    #[default]
    Text,
    /// Between `<` and `>`, outside quotes.
    Tag,
    /// Inside an attribute value with that quote.
    Quoted(char),
    CData,
    Comment,
}

impl XmlState {
    pub(super) fn literal(&mut self, text: &str, out: &mut String) {
        for c in text.chars() {
            out.push(c);
            *self = match (*self, c) {
                (XmlState::Text, '<') => XmlState::Tag,
                (XmlState::Tag, '>') => XmlState::Text,
                (XmlState::Tag, '"' | '\'') => XmlState::Quoted(c),
                (XmlState::Tag, '[') if out.ends_with("<![CDATA[") => XmlState::CData,
                (XmlState::Tag, '-') if out.ends_with("<!--") => XmlState::Comment,
                (XmlState::Comment, '>') if out.ends_with("-->") => XmlState::Text,
                (XmlState::Quoted(quote), _) if quote == c => XmlState::Tag,
                (XmlState::CData, '>') if out.ends_with("]]>") => XmlState::Text,
                (state, _) => state,
            };
        }
    }

    pub(super) fn value(self, text: &str, out: &mut String) -> Result<(), &'static str> {
        let legal = |c: char| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..);
        if !text.chars().all(legal) {
            return Err("XML has no way to write a control character");
        }
        match self {
            XmlState::Tag | XmlState::Comment => {
                if !text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.')) {
                    return Err("outside of text and quotes XML takes letters, digits, `_` and `.` only");
                }
                out.push_str(text);
            }
            XmlState::Text | XmlState::Quoted(_) => text.chars().for_each(|c| xml_escape_into(c, out)),
            XmlState::CData => text.chars().for_each(|c| section(c, out)),
        }
        Ok(())
    }
}

/// Inside CDATA nothing can be escaped: the section is ended and begun anew, so that `]]>` never forms.
fn section(c: char, out: &mut String) {
    const ANEW: &str = "]]><![CDATA[";
    match c {
        ']' => {
            out.push(']');
            out.push_str(ANEW);
        }
        '>' => {
            out.push_str(ANEW);
            out.push('>');
        }
        _ => out.push(c),
    }
}
