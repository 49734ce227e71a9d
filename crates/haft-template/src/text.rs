//! Text templates.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::error::{RenderError, SyntaxError};
use super::escape_context::{EscapeContext, Writer};
use super::parse;
use super::reference::{Reference, Resolved, Scope, Source, Values};
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
        condition: Reference,
        then: Vec<Part>,
        otherwise: Vec<Part>,
    },
}

/// A rendered template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// The text.
    pub text: String,
    /// Whether it contains a secret, or the value of an earlier step, which may be one (a session, a token).
    pub secret: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum SecretDisplay {
    Plain,
    Masked,
}

impl Template {
    /// Compiles a text.
    pub fn parse(notation: Notation, text: &str, scope: &Scope) -> Result<Self, SyntaxError> {
        parse::parts(notation, text, scope).map(|parts| Self { parts })
    }

    /// Writes the lists and maps of these arguments in their style, wherever they are used as a whole.
    #[must_use]
    pub fn styled(mut self, styles: &BTreeMap<String, TextStyle>) -> Self {
        if !styles.is_empty() {
            style(&mut self.parts, styles);
        }
        self
    }

    /// Returns whether it is only a reference to an optional value that is absent.
    pub fn is_missing(&self, values: &Values<'_>) -> bool {
        let found = self.only_reference().map(|reference| reference.resolve(values));
        matches!(found, Some(Ok(Resolved::Missing)))
    }

    /// Returns whether nothing is left of it: an optional reference without a value, or an `{{if}}` whose selected
    /// branch is empty.
    pub(super) fn is_absent(&self, values: &Values<'_>) -> bool {
        match self.parts.as_slice() {
            [Part::Value(reference)] => match reference.resolve(values) {
                Ok(Resolved::Missing) => true,
                Ok(Resolved::Value(value)) => value.is_null(),
                _ => false,
            },
            [Part::If { condition, then, otherwise }] => {
                if condition.truthy(values) {
                    then.is_empty()
                } else {
                    otherwise.is_empty()
                }
            }
            _ => false,
        }
    }

    /// Returns the reference to a string value with which the rendered text starts like an option: a value that starts
    /// with `-`, alone or after a lone `-`.
    pub(super) fn leading_option(&self, values: &Values<'_>) -> Option<&Reference> {
        let parts = match self.parts.as_slice() {
            [Part::Literal(text), rest @ ..] if text == "-" => rest,
            parts => parts,
        };
        match leading(parts, values)? {
            Leading::Option(reference) => Some(reference),
            Leading::Other => None,
        }
    }

    /// Returns the name of the first reference, or an empty text.
    pub(super) fn first_name(&self) -> String {
        let reference = self.parts.iter().find_map(|part| match part {
            Part::Value(reference) | Part::Styled(reference, _) | Part::If { condition: reference, .. } => {
                Some(reference)
            }
            Part::Literal(_) => None,
        });
        reference.map(Reference::display_name).unwrap_or_default()
    }

    /// Returns the names of the secrets that it may read.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        let mut names = Vec::new();
        collect_secrets(&self.parts, &mut names);
        names.into_iter()
    }

    /// Returns the names of the arguments that it uses, each once, in the order of their names.
    pub fn arguments(&self) -> BTreeSet<&str> {
        let mut names = BTreeSet::new();
        collect_arguments(&self.parts, &mut names);
        names
    }

    /// Returns whether it refers to an argument or to the value of a step.
    pub(super) fn uses_values(&self) -> bool {
        uses_values(&self.parts)
    }

    /// Returns the text before the first value or condition.
    pub fn literal_prefix(&self) -> &str {
        match self.parts.first() {
            Some(Part::Literal(text)) => text,
            _ => "",
        }
    }

    /// Returns whether its first literal characters start a JSON document; a condition may start with either branch.
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

    /// Renders it, escaped for its context.
    pub fn render(&self, context: EscapeContext<'_>, values: &Values<'_>) -> Result<Rendered, RenderError> {
        self.write(context, values, SecretDisplay::Plain)
    }

    /// Renders it with [`MASK`] for every secret and every value of a step, to be shown to the operator.
    pub fn render_masked(
        &self,
        context: EscapeContext<'_>,
        values: &Values<'_>,
    ) -> Result<String, RenderError> {
        self.write(context, values, SecretDisplay::Masked).map(|rendered| rendered.text)
    }

    /// Returns the reference of a template that consists of it alone.
    pub(super) fn only_reference(&self) -> Option<&Reference> {
        match self.parts.as_slice() {
            [Part::Value(reference)] => Some(reference),
            _ => None,
        }
    }

    fn write(
        &self,
        context: EscapeContext<'_>,
        values: &Values<'_>,
        display: SecretDisplay,
    ) -> Result<Rendered, RenderError> {
        let mut renderer =
            Renderer { writer: Writer::new(context), values, display, secret: false, last: None };
        renderer.parts(&self.parts)?;
        let last = renderer.last;
        let text = renderer.writer.finish().map_err(|reason| invalid_value(last, context, reason))?;
        Ok(Rendered { text, secret: renderer.secret })
    }
}

struct Renderer<'a> {
    writer: Writer<'a>,
    values: &'a Values<'a>,
    display: SecretDisplay,
    secret: bool,
    /// The value written last, which is named in errors of the text after it.
    last: Option<&'a Reference>,
}

impl<'a> Renderer<'a> {
    fn parts(&mut self, parts: &'a [Part]) -> Result<(), RenderError> {
        for part in parts {
            match part {
                Part::Literal(text) => {
                    let written = self.writer.literal(text);
                    written.map_err(|reason| invalid_value(self.last, self.writer.context(), reason))?;
                }
                Part::Value(reference) => self.value(reference, None)?,
                Part::Styled(reference, style) => self.value(reference, Some(*style))?,
                Part::If { condition, then, otherwise } => {
                    self.parts(if condition.truthy(self.values) { then } else { otherwise })?;
                }
            }
        }
        Ok(())
    }

    fn value(&mut self, reference: &'a Reference, style: Option<TextStyle>) -> Result<(), RenderError> {
        let found = reference.resolve(self.values)?;
        let secret = reference.is_sensitive(&found);
        self.secret |= secret;
        self.last = Some(reference);
        let written = match found {
            _ if secret && self.display == SecretDisplay::Masked => self.writer.literal(MASK),
            Resolved::Missing => self.writer.value(&Value::Null),
            Resolved::Value(value) => match style {
                Some(style) => self.writer.styled(&value, style),
                None => self.writer.value(&value),
            },
            Resolved::Secret(secret) => self.writer.text_value(secret.expose()),
        };
        written.map_err(|reason| invalid_value(self.last, self.writer.context(), reason))
    }
}

fn invalid_value(
    reference: Option<&Reference>,
    context: EscapeContext<'_>,
    reason: &'static str,
) -> RenderError {
    let name = reference.map(Reference::display_name).unwrap_or_default();
    RenderError::InvalidValue { name, context: context.to_string(), reason }
}

/// What precedes the first literal.
#[derive(Default, Clone, Copy)]
struct Start {
    value: bool,
    literal: bool,
}

/// Checks the first literal of every path through the parts.
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
                // What follows may start the text if either branch is empty.
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

/// What a rendered text starts with.
enum Leading<'a> {
    /// A string value that starts with `-`.
    Option(&'a Reference),
    /// Anything else.
    Other,
}

/// Returns what the rendered text starts with; `None` if it is empty.
fn leading<'a>(parts: &'a [Part], values: &Values<'_>) -> Option<Leading<'a>> {
    parts.iter().find_map(|part| match part {
        Part::Literal(text) => (!text.is_empty()).then_some(Leading::Other),
        Part::Value(reference) | Part::Styled(reference, _) => match reference.resolve(values) {
            Ok(Resolved::Value(value)) => match value.as_ref() {
                Value::Null => None,
                Value::String(text) if text.is_empty() => None,
                Value::String(text) if text.starts_with('-') => Some(Leading::Option(reference)),
                _ => Some(Leading::Other),
            },
            Ok(Resolved::Secret(secret)) if secret.expose().starts_with('-') => {
                Some(Leading::Option(reference))
            }
            Ok(Resolved::Secret(_)) => Some(Leading::Other),
            Ok(Resolved::Missing) | Err(_) => None,
        },
        Part::If { condition, then, otherwise } => {
            leading(if condition.truthy(values) { then } else { otherwise }, values)
        }
    })
}

fn uses_values(parts: &[Part]) -> bool {
    parts.iter().any(|part| match part {
        Part::Literal(_) => false,
        Part::Value(reference) | Part::Styled(reference, _) => reference.secret().is_none(),
        Part::If { then, otherwise, .. } => uses_values(then) || uses_values(otherwise),
    })
}

fn collect_arguments<'a>(parts: &'a [Part], names: &mut BTreeSet<&'a str>) {
    for part in parts {
        let (reference, branches) = match part {
            Part::Literal(_) => continue,
            Part::Value(reference) | Part::Styled(reference, _) => (reference, None),
            Part::If { condition, then, otherwise } => (condition, Some((then, otherwise))),
        };
        if matches!(reference.source, Source::Argument { .. }) {
            names.insert(&reference.name);
        }
        if let Some((then, otherwise)) = branches {
            collect_arguments(then, names);
            collect_arguments(otherwise, names);
        }
    }
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
