//! A compiled Python body.

use std::borrow::Cow;

use serde_json::Value;

use super::super::error::{RenderError, SyntaxError};
use super::super::reference::{Reference, Resolved, Scope, Values};
use super::escape::{Literal, escape};
use super::scan;

/// A Python body with values in its string literals.
#[derive(Debug, Clone, PartialEq)]
pub struct PythonTemplate {
    body: String,
    slots: Vec<Slot>,
}

/// A slot for a value: `body[start..end]` is the `${name}` that it replaces.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Slot {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) literal: Literal,
    pub(super) reference: Reference,
}

impl PythonTemplate {
    /// Compiles a body, and reports every `${name}` that cannot be replaced safely.
    pub fn compile(body: &str, scope: &Scope) -> Result<Self, Vec<SyntaxError>> {
        let slots = scan::slots(body, scope)?;
        Ok(Self { body: body.to_owned(), slots })
    }

    /// Returns whether the body has no slots.
    pub fn is_plain(&self) -> bool {
        self.slots.is_empty()
    }

    /// Returns the names of the secrets that its literals read.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        self.slots.iter().filter_map(|slot| slot.reference.secret())
    }

    /// Renders it.
    pub fn render(&self, values: &Values<'_>) -> Result<Cow<'_, str>, RenderError> {
        if self.is_plain() {
            return Ok(Cow::Borrowed(&self.body));
        }
        let mut out = String::with_capacity(self.body.len() + 256);
        let mut at = 0;
        for slot in &self.slots {
            out.push_str(self.body.get(at..slot.start).unwrap_or_default());
            match slot.reference.resolve(values)? {
                Resolved::Missing => {}
                Resolved::Secret(secret) => escape(secret.expose(), slot.literal, &mut out),
                Resolved::Value(value) => match value.as_ref() {
                    Value::Null => {}
                    Value::String(text) => escape(text, slot.literal, &mut out),
                    other => escape(&other.to_string(), slot.literal, &mut out),
                },
            }
            at = slot.end;
        }
        out.push_str(self.body.get(at..).unwrap_or_default());
        Ok(Cow::Owned(out))
    }
}
