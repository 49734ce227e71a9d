//! Where a text goes, and what that means for the values in it.

use std::fmt;

use serde_json::Value;

use super::json_text::JsonState;
use super::url_text::{self, UrlState};
use super::xml_text::XmlState;
use haft_core::implementation::TextStyle;

/// Where a rendered text goes. It decides how values are escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EscapeContext<'a> {
    /// A URL: values are percent-encoded in path, query and fragment; in the authority only the characters of
    /// a host name are taken; a value cannot make a `.` or `..` segment.
    Url,
    /// The header of that name: values are visible ASCII, spaces and tabs. Other characters are refused
    /// rather than encoded, as there is no encoding that every receiver understands.
    Header(&'a str),
    /// A JSON document as text: inside a string literal values are escaped, outside they are JSON values.
    Json,
    /// A form body: values are percent-encoded.
    Form,
    /// An XML document: values are written as entities.
    Xml,
    /// Any other text: values stand as they are.
    Text,
}

impl fmt::Display for EscapeContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EscapeContext::Url => f.write_str("the URL"),
            EscapeContext::Header(name) => write!(f, "the header `{name}`"),
            EscapeContext::Json => f.write_str("the JSON body"),
            EscapeContext::Form => f.write_str("the form body"),
            EscapeContext::Xml => f.write_str("the XML body"),
            EscapeContext::Text => f.write_str("the text"),
        }
    }
}

/// Writes literals and values for one place. Only literals move the state of the place.
pub(super) struct Writer<'a> {
    place: EscapeContext<'a>,
    state: State,
    out: String,
}

enum State {
    Url(UrlState),
    Json(JsonState),
    Xml(XmlState),
    Plain,
}

impl<'a> Writer<'a> {
    pub(super) fn new(place: EscapeContext<'a>) -> Self {
        let state = match place {
            EscapeContext::Url => State::Url(UrlState::default()),
            EscapeContext::Json => State::Json(JsonState::default()),
            EscapeContext::Xml => State::Xml(XmlState::default()),
            EscapeContext::Header(_) | EscapeContext::Form | EscapeContext::Text => State::Plain,
        };
        Self { place, state, out: String::new() }
    }

    pub(super) fn place(&self) -> EscapeContext<'a> {
        self.place
    }

    pub(super) fn literal(&mut self, text: &str) -> Result<(), &'static str> {
        match &mut self.state {
            State::Url(state) => state.literal(text, &mut self.out)?,
            State::Json(state) => state.literal(text, &mut self.out),
            State::Xml(state) => state.literal(text, &mut self.out),
            State::Plain => self.out.push_str(text),
        }
        Ok(())
    }

    /// Writes a value; `null` is empty wherever the place allows that.
    pub(super) fn value(&mut self, value: &Value) -> Result<(), &'static str> {
        if let State::Json(state) = &self.state
            && state.takes_values()
        {
            self.out.push_str(&value.to_string());
            return Ok(());
        }
        match value {
            Value::Null => self.text_value(""),
            Value::String(text) => self.text_value(text),
            other => self.text_value(&other.to_string()),
        }
    }

    /// Writes a list or a map item by item; what separates them stands as it is, so that an item may contain it where
    /// the place escapes.
    pub(super) fn styled(&mut self, value: &Value, style: TextStyle) -> Result<(), &'static str> {
        let separator = match style {
            TextStyle::Comma | TextStyle::Pairs => ",",
            TextStyle::Dot => ".",
            TextStyle::Semicolon => self.out.rfind(';').and_then(|at| self.out.get(at..)).unwrap_or(";"),
        }
        .to_owned();
        let between = if style == TextStyle::Comma { "," } else { "=" };
        let mut written = 0_usize;
        let mut next = |writer: &mut Self| {
            if written > 0 {
                writer.separator(&separator);
            }
            written += 1;
        };
        match value {
            Value::Array(items) => {
                for item in items {
                    next(self);
                    self.value(item)?;
                }
            }
            Value::Object(map) => {
                for (key, item) in map {
                    next(self);
                    self.text_value(key)?;
                    self.separator(between);
                    self.value(item)?;
                }
            }
            single => return self.value(single),
        }
        Ok(())
    }

    /// Writes what stands between the items of a value.
    fn separator(&mut self, text: &str) {
        match &mut self.state {
            State::Url(state) => state.separator(text, &mut self.out),
            _ => self.out.push_str(text),
        }
    }

    /// Writes a text as value.
    pub(super) fn text_value(&mut self, text: &str) -> Result<(), &'static str> {
        match (&mut self.state, self.place) {
            (State::Url(state), _) => state.value(text, &mut self.out),
            (State::Json(state), _) => state.text_value(text, &mut self.out),
            (State::Xml(state), _) => state.value(text, &mut self.out),
            (State::Plain, EscapeContext::Header(name)) => {
                if !self.out.is_empty() && text.contains(';') && name.eq_ignore_ascii_case("cookie") {
                    return Err("a `;` would begin another cookie");
                }
                header_value(text, &mut self.out)
            }
            (State::Plain, EscapeContext::Form) => url_text::encoded_value(text, &mut self.out),
            (State::Plain, _) => {
                self.out.push_str(text);
                Ok(())
            }
        }
    }

    pub(super) fn finish(self) -> Result<String, &'static str> {
        if let State::Url(state) = &self.state {
            state.finish(&self.out)?;
        }
        Ok(self.out)
    }
}

fn header_value(text: &str, out: &mut String) -> Result<(), &'static str> {
    if text.bytes().any(|byte| matches!(byte, b'\r' | b'\n' | 0)) {
        return Err("a line break or NUL would start another header");
    }
    if !text.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~')) {
        return Err("a header takes visible ASCII characters only");
    }
    out.push_str(text);
    Ok(())
}
