//! Values in XML documents that are written as text.

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
            XmlState::Text | XmlState::Quoted(_) => text.chars().for_each(|c| escape(c, out)),
            XmlState::CData => text.chars().for_each(|c| section(c, out)),
        }
        Ok(())
    }
}

/// Writes a text as it stands in an XML document.
pub(crate) fn xml_escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    text.chars().for_each(|c| escape(c, &mut out));
    out
}

fn escape(c: char, out: &mut String) {
    match c {
        '&' => out.push_str("&amp;"),
        '<' => out.push_str("&lt;"),
        '>' => out.push_str("&gt;"),
        '"' => out.push_str("&quot;"),
        '\'' => out.push_str("&#39;"),
        // Written literally, these would be normalised by the receiver.
        '\r' => out.push_str("&#13;"),
        '\n' => out.push_str("&#10;"),
        '\t' => out.push_str("&#9;"),
        _ => out.push(c),
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
