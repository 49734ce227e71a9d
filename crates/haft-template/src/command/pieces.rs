//! From the text of a command to the flat texts that its conditions choose between.

use super::super::error::{self, SyntaxError};
use super::super::parse::{self, Control};
use super::super::reference::{Reference, Scope};

/// How many different conditions a command may have: each doubles the number of texts.
pub(super) const MAX_TESTS: usize = 6;
/// How deep `{{if}}` may nest.
const MAX_DEPTH: usize = 32;

/// One symbol of a flat text, and where in the command it stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Symbol {
    pub(super) kind: SymbolKind,
    pub(super) at: usize,
}

/// What a symbol is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SymbolKind {
    Char(char),
    /// A value, by its number in [`Pieces::references`].
    Value(usize),
}

/// A command, taken apart.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    parts: Vec<Piece>,
    /// Every reference once.
    pub(super) references: Vec<Reference>,
    /// Every condition once.
    pub(super) tests: Vec<Reference>,
}

#[derive(Debug)]
enum Piece {
    Symbol(Symbol),
    If { test: usize, then: Vec<Piece>, otherwise: Vec<Piece> },
}

struct Open {
    at: usize,
    test: usize,
    before: Vec<Piece>,
    then: Option<Vec<Piece>>,
}

impl Pieces {
    /// Finds the `{{…}}` of a command; everything else is the shell's.
    pub(super) fn of(text: &str, scope: &Scope) -> Result<Self, SyntaxError> {
        let mut pieces = Self::default();
        let mut open: Vec<Open> = Vec::new();
        let mut at = 0;
        while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
            let Some(inner) = rest.strip_prefix("{{") else {
                let Some(next) = rest.chars().next() else { break };
                pieces.symbol(SymbolKind::Char(next), at);
                at += next.len_utf8();
                continue;
            };
            let fault = |message: String| error::at(text, at, message);
            let Some(end) = parse::closing(inner) else {
                return Err(fault("`{{` has no `}}`; write `{{\"{{\"}}` for a literal `{{`".to_owned()));
            };
            let control = parse::control(inner.get(..end).unwrap_or_default(), scope).map_err(fault)?;
            pieces.control(control, at, &mut open).map_err(fault)?;
            at += end + 4;
        }
        match open.last() {
            Some(open) => Err(error::at(text, open.at, "`{{if}}` has no `{{end}}`".to_owned())),
            None => Ok(pieces),
        }
    }

    /// Returns the text that is left when each condition is decided: bit N of `choice` is test N.
    pub(super) fn flat(&self, choice: usize) -> Vec<Symbol> {
        let mut out = Vec::new();
        flatten(&self.parts, choice, &mut out);
        out
    }

    fn symbol(&mut self, kind: SymbolKind, at: usize) {
        self.parts.push(Piece::Symbol(Symbol { kind, at }));
    }

    fn control(&mut self, control: Control, at: usize, open: &mut Vec<Open>) -> Result<(), String> {
        match control {
            Control::Value(reference) => {
                let number = position(&mut self.references, reference);
                self.symbol(SymbolKind::Value(number), at);
            }
            Control::Literal(text) => text.chars().for_each(|c| self.symbol(SymbolKind::Char(c), at)),
            Control::If(test) => {
                let test = position(&mut self.tests, test);
                if open.len() >= MAX_DEPTH {
                    return Err(format!("more than {MAX_DEPTH} nested `{{{{if}}}}`"));
                }
                if self.tests.len() > MAX_TESTS {
                    return Err(format!(
                        "more than {MAX_TESTS} different conditions; split the tool, or write a script"
                    ));
                }
                open.push(Open { at, test, before: std::mem::take(&mut self.parts), then: None });
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
                self.parts.push(Piece::If { test: open.test, then, otherwise });
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

fn flatten(parts: &[Piece], choice: usize, out: &mut Vec<Symbol>) {
    for part in parts {
        match part {
            Piece::Symbol(symbol) => out.push(*symbol),
            Piece::If { test, then, otherwise } => {
                let taken = if choice >> test & 1 == 1 { then } else { otherwise };
                flatten(taken, choice, out);
            }
        }
    }
}
