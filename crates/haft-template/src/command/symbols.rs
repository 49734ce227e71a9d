//! Splits a command into symbols, and selects the text for each combination of its conditions.

use super::super::error::{self, SyntaxError};
use super::super::parse::{self, Control};
use super::super::reference::{Reference, Scope};

/// The maximum number of different conditions: each doubles the number of texts.
const MAX_CONDITIONS: usize = 6;
/// The maximum nesting of `{{if}}`.
const MAX_DEPTH: usize = 32;

/// One symbol of a text, with its byte offset in the command.
#[derive(Debug, Clone, Copy)]
pub(super) struct Symbol {
    pub(super) kind: SymbolKind,
    pub(super) at: usize,
}

/// A character of the command, or a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SymbolKind {
    Char(char),
    /// The index of a value in [`CommandSource::references`].
    Value(usize),
}

/// A command split into symbols and conditions.
#[derive(Debug, Default)]
pub(super) struct CommandSource {
    parts: Vec<Part>,
    /// The different references.
    pub(super) references: Vec<Reference>,
    /// The different conditions.
    pub(super) conditions: Vec<Reference>,
}

#[derive(Debug)]
enum Part {
    Symbol(Symbol),
    If { condition: usize, then: Vec<Part>, otherwise: Vec<Part> },
}

struct OpenCondition {
    at: usize,
    condition: usize,
    before: Vec<Part>,
    then: Option<Vec<Part>>,
}

impl CommandSource {
    /// Finds the `{{…}}` of a command.
    pub(super) fn parse(text: &str, scope: &Scope) -> Result<Self, SyntaxError> {
        let mut source = Self::default();
        let mut open: Vec<OpenCondition> = Vec::new();
        let mut at = 0;
        while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
            let Some(inner) = rest.strip_prefix("{{") else {
                let Some(next) = rest.chars().next() else { break };
                source.symbol(SymbolKind::Char(next), at);
                at += next.len_utf8();
                continue;
            };
            let error = |message: String| error::at(text, at, message);
            let Some(end) = parse::closing(inner) else {
                return Err(error("`{{` has no `}}`; write `{{\"{{\"}}` for a literal `{{`".to_owned()));
            };
            let control = parse::control(inner.get(..end).unwrap_or_default(), scope).map_err(error)?;
            source.control(control, at, &mut open).map_err(error)?;
            at += end + 4;
        }
        match open.last() {
            Some(open) => Err(error::at(text, open.at, "`{{if}}` has no `{{end}}`".to_owned())),
            None => Ok(source),
        }
    }

    /// Returns the text for one combination of the conditions: bit N of `choice` is condition N.
    pub(super) fn text(&self, choice: usize) -> Vec<Symbol> {
        let mut out = Vec::new();
        flatten(&self.parts, choice, &mut out);
        out
    }

    fn symbol(&mut self, kind: SymbolKind, at: usize) {
        self.parts.push(Part::Symbol(Symbol { kind, at }));
    }

    fn control(&mut self, control: Control, at: usize, open: &mut Vec<OpenCondition>) -> Result<(), String> {
        match control {
            Control::Value(reference) => {
                let number = position(&mut self.references, reference);
                self.symbol(SymbolKind::Value(number), at);
            }
            Control::Literal(text) => text.chars().for_each(|c| self.symbol(SymbolKind::Char(c), at)),
            Control::If(condition) => {
                let condition = position(&mut self.conditions, condition);
                if open.len() >= MAX_DEPTH {
                    return Err(format!("nesting limit of `{{{{if}}}}` ({MAX_DEPTH}) exceeded"));
                }
                if self.conditions.len() > MAX_CONDITIONS {
                    return Err(format!(
                        "limit of different conditions ({MAX_CONDITIONS}) exceeded; split the tool, or use a script tool"
                    ));
                }
                open.push(OpenCondition {
                    at,
                    condition,
                    before: std::mem::take(&mut self.parts),
                    then: None,
                });
            }
            Control::Else => match open.last_mut() {
                Some(open) if open.then.is_none() => open.then = Some(std::mem::take(&mut self.parts)),
                _ => return Err("`{{else}}` without `{{if}}`".to_owned()),
            },
            Control::End => {
                let Some(open) = open.pop() else { return Err("`{{end}}` without `{{if}}`".to_owned()) };
                let last = std::mem::replace(&mut self.parts, open.before);
                let (then, otherwise) = match open.then {
                    Some(then) => (then, last),
                    None => (last, Vec::new()),
                };
                self.parts.push(Part::If { condition: open.condition, then, otherwise });
            }
        }
        Ok(())
    }
}

fn position(known: &mut Vec<Reference>, reference: Reference) -> usize {
    known.iter().position(|other| *other == reference).unwrap_or_else(|| {
        known.push(reference);
        known.len() - 1
    })
}

fn flatten(parts: &[Part], choice: usize, out: &mut Vec<Symbol>) {
    for part in parts {
        match part {
            Part::Symbol(symbol) => out.push(*symbol),
            Part::If { condition, then, otherwise } => {
                let branch = if choice >> condition & 1 == 1 { then } else { otherwise };
                flatten(branch, choice, out);
            }
        }
    }
}
