//! Values in XML documents that are written as text.

use haft_core::encode::xml_escape_into;

/// The position of the writer in an XML document.
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
            return Err("control characters are not allowed in XML");
        }
        match self {
            XmlState::Tag | XmlState::Comment => {
                if !text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.')) {
                    return Err("outside of text and quotes only letters, digits, `_` and `.` are allowed");
                }
                out.push_str(text);
            }
            XmlState::Text | XmlState::Quoted(_) => text.chars().for_each(|c| xml_escape_into(c, out)),
            XmlState::CData => text.chars().for_each(|c| push_cdata(c, out)),
        }
        Ok(())
    }
}

/// Writes a character in CDATA. Nothing can be escaped there, so the section is closed and reopened before `]]>` forms.
fn push_cdata(c: char, out: &mut String) {
    const REOPEN: &str = "]]><![CDATA[";
    match c {
        ']' => {
            out.push(']');
            out.push_str(REOPEN);
        }
        '>' => {
            out.push_str(REOPEN);
            out.push('>');
        }
        _ => out.push(c),
    }
}
