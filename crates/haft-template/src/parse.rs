//! Parses a text into the parts of a template.

use serde_json::Value;

use super::error::{self, SyntaxError};
use super::reference::{Reference, Scope, Source};
use super::text::Part;
use haft_core::implementation::Notation;
use haft_core::problem::excerpt;
use haft_core::secret::ExternalReference;

/// The maximum nesting of `{{if}}`.
const MAX_DEPTH: usize = 32;

/// An expression between `{{` and `}}`.
pub(super) enum Control {
    If(Reference),
    Else,
    End,
    Value(Reference),
    Literal(String),
}

/// Splits a text into parts.
pub(super) fn parts(notation: Notation, text: &str, scope: &Scope) -> Result<Vec<Part>, SyntaxError> {
    let mut scanner = Scanner { text, at: 0, notation, scope, open: Vec::new(), parts: Vec::new() };
    scanner.run()?;
    match scanner.open.last() {
        Some(open) => Err(scanner.error(open.start, "`{{if}}` has no `{{end}}`".to_owned())),
        None => Ok(scanner.parts),
    }
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
    notation: Notation,
    scope: &'a Scope,
    /// The open conditions.
    open: Vec<OpenCondition>,
    /// The parts of the innermost branch.
    parts: Vec<Part>,
}

/// A condition before its `{{end}}`.
struct OpenCondition {
    start: usize,
    condition: Reference,
    /// The parts before it.
    before: Vec<Part>,
    /// The first branch, after `{{else}}`.
    then: Option<Vec<Part>>,
}

impl Scanner<'_> {
    fn run(&mut self) -> Result<(), SyntaxError> {
        while let Some(rest) = self.text.get(self.at..).filter(|rest| !rest.is_empty()) {
            let special = match self.notation {
                Notation::Dollar => rest.find("${"),
                Notation::Braces => [rest.find("${"), rest.find("{{")].into_iter().flatten().min(),
            };
            let Some(offset) = special else {
                self.literal(rest);
                break;
            };
            let (before, found) = rest.split_at(offset);
            if found.starts_with("${") {
                if let Some(kept) = before.strip_suffix('$') {
                    self.literal(kept);
                    self.literal("${");
                    self.at += offset + 2;
                    continue;
                }
                self.literal(before);
                self.at += offset;
                self.dollar(found)?;
            } else {
                self.literal(before);
                self.at += offset;
                self.braces(found)?;
            }
        }
        Ok(())
    }

    fn literal(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        if let Some(Part::Literal(last)) = self.parts.last_mut() {
            last.push_str(text);
        } else {
            self.parts.push(Part::Literal(text.to_owned()));
        }
    }

    fn dollar(&mut self, found: &str) -> Result<(), SyntaxError> {
        let inner = found.get(2..).unwrap_or_default();
        let Some(end) = inner.find('}') else {
            return Err(self.error(self.at, "`${` has no `}`; write `$${` for a literal `${`".to_owned()));
        };
        let name = inner.get(..end).unwrap_or_default();
        let reference = match self.notation {
            Notation::Dollar => dollar_name(name, self.scope),
            Notation::Braces => secret_name(name),
        };
        let reference = reference.map_err(|message| self.error(self.at, message))?;
        self.parts.push(Part::Value(reference));
        self.at += 2 + end + 1;
        Ok(())
    }

    fn braces(&mut self, found: &str) -> Result<(), SyntaxError> {
        let inner = found.get(2..).unwrap_or_default();
        let Some(end) = closing(inner) else {
            let message = "`{{` has no `}}`; write `{{\"{{\"}}` for a literal `{{`";
            return Err(self.error(self.at, message.to_owned()));
        };
        let control = control(inner.get(..end).unwrap_or_default(), self.scope)
            .map_err(|message| self.error(self.at, message))?;
        match control {
            Control::Value(reference) => self.parts.push(Part::Value(reference)),
            Control::Literal(text) => self.literal(&text),
            Control::If(condition) => {
                if self.open.len() >= MAX_DEPTH {
                    return Err(
                        self.error(self.at, format!("nesting limit of `{{{{if}}}}` ({MAX_DEPTH}) exceeded"))
                    );
                }
                let before = std::mem::take(&mut self.parts);
                self.open.push(OpenCondition { start: self.at, condition, before, then: None });
            }
            Control::Else => match self.open.last_mut() {
                Some(open) if open.then.is_none() => open.then = Some(std::mem::take(&mut self.parts)),
                _ => return Err(self.error(self.at, "`{{else}}` without `{{if}}`".to_owned())),
            },
            Control::End => {
                let Some(open) = self.open.pop() else {
                    return Err(self.error(self.at, "`{{end}}` without `{{if}}`".to_owned()));
                };
                let last = std::mem::replace(&mut self.parts, open.before);
                let (then, otherwise) = match open.then {
                    Some(then) => (then, last),
                    None => (last, Vec::new()),
                };
                self.parts.push(Part::If { condition: open.condition, then, otherwise });
            }
        }
        self.at += 2 + end + 2;
        Ok(())
    }

    fn error(&self, at: usize, message: String) -> SyntaxError {
        error::at(self.text, at, message)
    }
}

/// Finds the `}}` that ends an expression, outside of quotes and JSON defaults.
pub(super) fn closing(inner: &str) -> Option<usize> {
    let (mut depth, mut quote, mut escaped) = (0_usize, None, false);
    let mut chars = inner.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match (quote, c) {
            (Some(_), _) if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(open), _) if open == c => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '{') => depth += 1,
            (None, '}') if depth > 0 => depth -= 1,
            (None, '}') if chars.peek().is_some_and(|(_, next)| *next == '}') => return Some(at),
            _ => {}
        }
    }
    None
}

/// Parses the text between `{{` and `}}`.
pub(super) fn control(inner: &str, scope: &Scope) -> Result<Control, String> {
    let text = inner.trim();
    match text {
        "end" => return Ok(Control::End),
        "else" => return Ok(Control::Else),
        "if" => return Err("missing argument name; write `{{if name}}`".to_owned()),
        "endif" | "/if" | "fi" => return Err(format!("write `{{{{end}}}}` instead of `{{{{{text}}}}}`")),
        _ => {}
    }
    if text.starts_with('"') {
        return serde_json::from_str(text)
            .map(Control::Literal)
            .map_err(|_| format!("`{}` is not a JSON string", excerpt(text, 40)));
    }
    if let Some(name) = text.strip_prefix("if ") {
        return braces_name(name.trim(), scope).map(Control::If);
    }
    if text.starts_with("else ") {
        return Err("`{{else if}}` is unsupported; nest an `{{if}}` in `{{else}}`".to_owned());
    }
    let Some((name, filter)) = text.split_once('|') else {
        return braces_name(text, scope).map(Control::Value);
    };
    let mut reference = braces_name(name.trim(), scope)?;
    let Some(default) = filter.trim().strip_prefix("default").map(str::trim_start) else {
        return Err(format!(
            "unknown filter `{}`; the only filter is `default:VALUE`",
            excerpt(filter.trim(), 40)
        ));
    };
    let Some(default) = default.strip_prefix(':') else {
        return Err("write the default as `| default:VALUE`".to_owned());
    };
    reference.default = Some(default_value(default.trim()));
    Ok(Control::Value(reference))
}

/// Returns the defaults of arguments in a text, in its order.
pub fn template_defaults(text: &str, scope: &Scope) -> Vec<(String, Value)> {
    let (mut found, mut rest) = (Vec::new(), text);
    while let Some((_, inner)) = rest.split_once("{{") {
        let Some(end) = closing(inner) else { break };
        let control = control(inner.get(..end).unwrap_or_default(), scope);
        if let Ok(Control::Value(Reference { source, name, path, default: Some(own) })) = control
            && matches!(source, Source::Argument { .. })
            && path.is_empty()
        {
            found.push((name, own));
        }
        rest = inner.get(end + 2..).unwrap_or_default();
    }
    found
}

/// Reads a default: a JSON literal, a text in single quotes, or a bare text.
fn default_value(text: &str) -> Value {
    if let Ok(value) = serde_json::from_str(text) {
        return value;
    }
    let quoted = text.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
    Value::String(quoted.unwrap_or(text).to_owned())
}

fn braces_name(name: &str, scope: &Scope) -> Result<Reference, String> {
    if let Some(bare) = name.strip_prefix('.') {
        return Err(format!("write `{{{{{0}}}}}` instead of `{{{{.{0}}}}}`", excerpt(bare, 40)));
    }
    check_name(name)?;
    if let Some(reference) = scope.argument(name) {
        return Ok(reference);
    }
    match scope.step(name) {
        Some(Ok(reference)) => Ok(reference),
        Some(Err(step)) => Err(no_step(step)),
        None if name.starts_with(|c: char| c.is_ascii_digit()) => Err(format!(
            "`{}` is not a declared argument, and names of secrets start with a letter or `_`",
            excerpt(name, 40)
        )),
        None => Err(format!(
            "`{0}` is not a declared argument; declare it, or write `${{{0}}}` for a secret",
            excerpt(name, 40)
        )),
    }
}

fn dollar_name(name: &str, scope: &Scope) -> Result<Reference, String> {
    let name = name.trim();
    if let Some(reference) = scope.argument(name) {
        return Ok(reference);
    }
    match scope.step(name) {
        Some(Ok(reference)) => Ok(reference),
        Some(Err(step)) => Err(no_step(step)),
        None => {
            let mut reference = secret_name(name)?;
            if name == "version" {
                reference.source = Source::Version;
            }
            Ok(reference)
        }
    }
}

fn secret_name(name: &str) -> Result<Reference, String> {
    let name = name.trim();
    if let Some(external) = ExternalReference::parse(name) {
        external.map_err(|error| error.to_string())?;
        return Ok(Reference::new(Source::Secret, name, ""));
    }
    check_name(name)?;
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    if !name.chars().all(plain) || name.chars().count() > 128 {
        return Err(format!(
            "invalid secret name `{}`: use at most 128 letters, digits, `_`, `-` and `.`",
            excerpt(name, 40)
        ));
    }
    Ok(Reference::new(Source::Secret, name, ""))
}

fn check_name(name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Err("missing name between the braces".to_owned());
    }
    let odd =
        |c: char| c.is_whitespace() || c.is_control() || matches!(c, '{' | '}' | '$' | '|' | '"' | '\'');
    if name.chars().any(odd) || name.split('.').any(str::is_empty) {
        return Err(format!(
            "invalid name `{}`: a name has no spaces, quotes, braces or `$`, and no empty part between dots",
            excerpt(name, 40)
        ));
    }
    Ok(())
}

fn no_step(step: &str) -> String {
    format!("no earlier step is named `{}`", excerpt(step, 40))
}
