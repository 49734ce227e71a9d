//! Text templates.

use std::collections::BTreeMap;

use serde_json::Value;

use super::error::{RenderError, SyntaxError};
use super::parse;
use super::place::{EscapeContext, Writer};
use super::reference::{Found, Reference, Scope, Values};
use haft_core::implementation::{Notation, TextStyle};
use haft_core::secret::MASK;

/// A compiled text.
#[derive(Debug, Clone, PartialEq)]
pub struct Template {
    parts: Vec<Part>,
}

/// One part of a template.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Part {
    Literal(String),
    Value(Reference),
    /// A value whose lists and maps are spelled in that style.
    Styled(Reference, TextStyle),
    If {
        test: Reference,
        then: Vec<Part>,
        otherwise: Vec<Part>,
    },
}

/// A filled-in template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// The text.
    pub text: String,
    /// Whether a secret went into it, or the value of an earlier step, which may be one (a session, a token).
    pub secret: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Show {
    Secrets,
    Masks,
}

impl Template {
    /// Compiles a text.
    pub fn parse(notation: Notation, text: &str, scope: &Scope) -> Result<Self, SyntaxError> {
        parse::parts(notation, text, scope).map(|parts| Self { parts })
    }

    /// Spells the lists and maps of these arguments in their style, wherever they stand as a whole.
    #[must_use]
    pub fn styled(mut self, styles: &BTreeMap<String, TextStyle>) -> Self {
        if !styles.is_empty() {
            style(&mut self.parts, styles);
        }
        self
    }

    /// Tells whether it is nothing but an optional value that was not given.
    pub fn is_missing(&self, values: &Values<'_>) -> bool {
        let found = self.only_reference().map(|reference| reference.find(values));
        matches!(found, Some(Ok(Found::Missing)))
    }

    /// Returns whether nothing is left of it: an optional reference without a value, or an `{{if}}` whose selected
    /// branch is empty.
    pub(super) fn is_absent(&self, values: &Values<'_>) -> bool {
        match self.parts.as_slice() {
            [Part::Value(reference)] => match reference.find(values) {
                Ok(Found::Missing) => true,
                Ok(Found::Value(value)) => value.is_null(),
                _ => false,
            },
            [Part::If { test, then, otherwise }] => {
                if test.truthy(values) {
                    then.is_empty()
                } else {
                    otherwise.is_empty()
                }
            }
            _ => false,
        }
    }

    /// Returns the reference to a string that starts the rendered text.
    pub(super) fn leading_string(&self, values: &Values<'_>) -> Option<&Reference> {
        leading_string(&self.parts, values).unwrap_or_default()
    }

    /// Returns the name of the first reference, or an empty text.
    pub(super) fn first_name(&self) -> String {
        let reference = self.parts.iter().find_map(|part| match part {
            Part::Value(reference) | Part::Styled(reference, _) | Part::If { test: reference, .. } => {
                Some(reference)
            }
            Part::Literal(_) => None,
        });
        reference.map(Reference::written).unwrap_or_default()
    }

    /// Returns the names of the secrets that it may read.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        let mut names = Vec::new();
        collect_secrets(&self.parts, &mut names);
        names.into_iter()
    }

    /// Tells whether an argument of the call or the value of a step may go into it.
    pub(super) fn takes_values(&self) -> bool {
        takes_values(&self.parts)
    }

    /// Returns the text before the first value or condition.
    pub fn literal_prefix(&self) -> &str {
        match self.parts.first() {
            Some(Part::Literal(text)) => text,
            _ => "",
        }
    }

    /// Tells whether the text is, by its first literal characters, a JSON document; of a condition either branch
    /// may be what it starts with.
    ///
    /// After a leading value only what opens an object counts: `${title} [${level}]` is a line of text.
    pub fn looks_like_json(&self) -> bool {
        json_start(&self.parts, &mut Start::default())
    }

    /// Returns the text of a template without values and conditions.
    pub fn as_literal(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [] => Some(""),
            [Part::Literal(text)] => Some(text),
            _ => None,
        }
    }

    /// Fills it in, escaped for its place.
    pub fn render(&self, place: EscapeContext<'_>, values: &Values<'_>) -> Result<Rendered, RenderError> {
        self.write(place, values, Show::Secrets)
    }

    /// Fills it in with [`MASK`] for every secret and every value of a step: what may be shown to the operator.
    pub fn render_masked(
        &self,
        place: EscapeContext<'_>,
        values: &Values<'_>,
    ) -> Result<String, RenderError> {
        self.write(place, values, Show::Masks).map(|rendered| rendered.text)
    }

    /// Returns the reference of a template that is nothing else.
    pub(super) fn only_reference(&self) -> Option<&Reference> {
        match self.parts.as_slice() {
            [Part::Value(reference)] => Some(reference),
            _ => None,
        }
    }

    fn write(
        &self,
        place: EscapeContext<'_>,
        values: &Values<'_>,
        show: Show,
    ) -> Result<Rendered, RenderError> {
        let mut fill = Fill { writer: Writer::new(place), values, show, secret: false, last: None };
        fill.parts(&self.parts)?;
        let last = fill.last;
        let text = fill.writer.finish().map_err(|why| unfit(last, place, why))?;
        Ok(Rendered { text, secret: fill.secret })
    }
}

struct Fill<'a> {
    writer: Writer<'a>,
    values: &'a Values<'a>,
    show: Show,
    secret: bool,
    /// The value that was written last: the one to blame where the text after it shows a fault.
    last: Option<&'a Reference>,
}

impl<'a> Fill<'a> {
    fn parts(&mut self, parts: &'a [Part]) -> Result<(), RenderError> {
        for part in parts {
            match part {
                Part::Literal(text) => {
                    let written = self.writer.literal(text);
                    written.map_err(|why| unfit(self.last, self.writer.place(), why))?;
                }
                Part::Value(reference) => self.value(reference, None)?,
                Part::Styled(reference, style) => self.value(reference, Some(*style))?,
                Part::If { test, then, otherwise } => {
                    self.parts(if test.truthy(self.values) { then } else { otherwise })?;
                }
            }
        }
        Ok(())
    }

    fn value(&mut self, reference: &'a Reference, style: Option<TextStyle>) -> Result<(), RenderError> {
        let found = reference.find(self.values)?;
        let secret = reference.is_sensitive(&found);
        self.secret |= secret;
        self.last = Some(reference);
        let written = match found {
            _ if secret && self.show == Show::Masks => self.writer.literal(MASK),
            Found::Missing => self.writer.value(&Value::Null),
            Found::Value(value) => match style {
                Some(style) => self.writer.styled(&value, style),
                None => self.writer.value(&value),
            },
            Found::Secret(secret) => self.writer.text_value(secret.expose()),
        };
        written.map_err(|why| unfit(self.last, self.writer.place(), why))
    }
}

fn unfit(reference: Option<&Reference>, place: EscapeContext<'_>, why: &'static str) -> RenderError {
    let name = reference.map(Reference::written).unwrap_or_default();
    RenderError::Unfit { name, place: place.to_string(), why }
}

/// What has been met on the way to the first literal.
#[derive(Default, Clone, Copy)]
struct Start {
    value: bool,
    literal: bool,
}

/// Looks at the first literal of every way through the parts.
fn json_start(parts: &[Part], start: &mut Start) -> bool {
    for part in parts {
        match part {
            _ if start.literal => return false,
            Part::Literal(text) => {
                let text = text.trim_start();
                start.literal = !text.is_empty();
                let object = text.strip_prefix('{').map(str::trim_start);
                if match object {
                    Some(rest) => !start.value || rest.starts_with(['"', '}']),
                    None => !start.value && text.starts_with('['),
                } {
                    return true;
                }
            }
            Part::Value(_) | Part::Styled(..) => start.value = true,
            Part::If { then, otherwise, .. } => {
                let (mut first, mut second) = (*start, *start);
                if json_start(then, &mut first) || json_start(otherwise, &mut second) {
                    return true;
                }
                // Text may follow directly on the way that met the least.
                start.value = first.value && second.value;
                start.literal = first.literal && second.literal;
            }
        }
    }
    false
}

fn style(parts: &mut [Part], styles: &BTreeMap<String, TextStyle>) {
    for part in parts {
        match part {
            Part::Literal(_) | Part::Styled(..) => {}
            Part::Value(reference) => {
                if let Some(style) = reference.whole_argument().and_then(|name| styles.get(name)) {
                    *part = Part::Styled(reference.clone(), *style);
                }
            }
            Part::If { then, otherwise, .. } => {
                style(then, styles);
                style(otherwise, styles);
            }
        }
    }
}

/// Returns what the rendered text starts with: a string value, or something else; `None` if it is empty.
fn leading_string<'a>(parts: &'a [Part], values: &Values<'_>) -> Option<Option<&'a Reference>> {
    parts.iter().find_map(|part| match part {
        Part::Literal(text) => (!text.is_empty()).then_some(None),
        Part::Value(reference) | Part::Styled(reference, _) => match reference.find(values) {
            Ok(Found::Value(value)) => match value.as_ref() {
                Value::Null => None,
                Value::String(text) => (!text.is_empty()).then_some(Some(reference)),
                _ => Some(None),
            },
            Ok(Found::Secret(_)) => Some(Some(reference)),
            Ok(Found::Missing) | Err(_) => None,
        },
        Part::If { test, then, otherwise } => {
            leading_string(if test.truthy(values) { then } else { otherwise }, values)
        }
    })
}

fn takes_values(parts: &[Part]) -> bool {
    parts.iter().any(|part| match part {
        Part::Literal(_) => false,
        Part::Value(reference) | Part::Styled(reference, _) => reference.secret().is_none(),
        Part::If { then, otherwise, .. } => takes_values(then) || takes_values(otherwise),
    })
}

fn collect_secrets<'a>(parts: &'a [Part], names: &mut Vec<&'a str>) {
    for part in parts {
        match part {
            Part::Literal(_) => {}
            Part::Value(reference) | Part::Styled(reference, _) => names.extend(reference.secret()),
            Part::If { then, otherwise, .. } => {
                collect_secrets(then, names);
                collect_secrets(otherwise, names);
            }
        }
    }
}
