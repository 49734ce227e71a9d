//! Escaping of values by the context of a rendered text.

use std::fmt;

use serde_json::Value;

use super::json_text::JsonState;
use super::url_text::{self, UrlState};
use super::xml_text::XmlState;
use haft_core::implementation::TextStyle;

/// The context of a rendered text, which decides how values are escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EscapeContext<'a> {
    /// A URL: values are percent-encoded in path, query and fragment; the authority
    /// accepts only the characters of a host name; a value cannot form a `.` or `..` segment.
    Url,
    /// The header of that name: values are visible ASCII, spaces and tabs. Other characters are rejected,
    /// because no encoding of them is understood by every receiver.
    Header(&'a str),
    /// A JSON document as text: inside a string literal values are escaped, outside they are JSON values.
    Json,
    /// A form body: values are percent-encoded.
    Form,
    /// An XML document: values are written as entities.
    Xml,
    /// Any other text: values are not escaped.
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

/// Writes literals and values for one context. Only literals change its state.
pub(super) struct Writer<'a> {
    context: EscapeContext<'a>,
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
    pub(super) fn new(context: EscapeContext<'a>) -> Self {
        let state = match context {
            EscapeContext::Url => State::Url(UrlState::default()),
            EscapeContext::Json => State::Json(JsonState::default()),
            EscapeContext::Xml => State::Xml(XmlState::default()),
            EscapeContext::Header(_) | EscapeContext::Form | EscapeContext::Text => State::Plain,
        };
        Self { context, state, out: String::new() }
    }

    pub(super) fn context(&self) -> EscapeContext<'a> {
        self.context
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

    /// Writes a value; `null` is empty wherever the context allows that.
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

    /// Writes a list or a map item by item. The separator is not escaped; one inside an item is, where the context
    /// escapes.
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

    /// Writes the separator between the items of a value.
    fn separator(&mut self, text: &str) {
        match &mut self.state {
            State::Url(state) => state.separator(text, &mut self.out),
            _ => self.out.push_str(text),
        }
    }

    /// Writes a text value.
    pub(super) fn text_value(&mut self, text: &str) -> Result<(), &'static str> {
        match (&mut self.state, self.context) {
            (State::Url(state), _) => state.value(text, &mut self.out),
            (State::Json(state), _) => state.text_value(text, &mut self.out),
            (State::Xml(state), _) => state.value(text, &mut self.out),
            (State::Plain, EscapeContext::Header(name)) => {
                if !self.out.is_empty() && text.contains(';') && name.eq_ignore_ascii_case("cookie") {
                    return Err("`;` would start another cookie");
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
        return Err("line breaks and NUL are not allowed");
    }
    if !text.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~')) {
        return Err("only visible ASCII characters are allowed");
    }
    out.push_str(text);
    Ok(())
}
