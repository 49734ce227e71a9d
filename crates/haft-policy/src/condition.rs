//! Conditions of rules, compiled from CEL.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, LazyLock};

use cel::{Env, IdedExpr};
use haft_core::policy::MAX_CONDITION_BYTES;
use haft_core::problem::excerpt;

use super::bounds::{self, BoundsError};
use super::evaluator::Patterns;

/// The deepest nesting of parentheses, brackets and braces; checked before the recursive parser runs.
const MAX_BRACKETS: usize = 32;
/// The stack of the thread that parses: the parser recurses once per operator of a chain such as `1 + 1 + …`.
const PARSER_STACK_BYTES: usize = 64 * 1024 * 1024;

/// The functions and macros of conditions: those of the CEL specification, without time.
pub(super) static ENVIRONMENT: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(Env::stdlib()));

/// A compiled condition.
pub(super) struct Condition {
    pub(super) expression: IdedExpr,
    /// Whether its value depends on the arguments.
    pub(super) uses_args: bool,
}

/// A condition that cannot be compiled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum ConditionError {
    #[error("the condition has {0} bytes; the limit is {MAX_CONDITION_BYTES}")]
    TooLong(usize),
    #[error("brackets are nested deeper than {MAX_BRACKETS} levels")]
    Brackets,
    #[error("syntax error at line {line}, column {column}: {message}")]
    Syntax { line: isize, column: isize, message: String },
    #[error(transparent)]
    Bounds(#[from] BoundsError),
    #[error("the parser failed; simplify the condition")]
    ParserFailed,
}

/// Compiles conditions over variables, and adds their regular expressions to `patterns`.
pub(super) fn compile(
    sources: &[&str],
    variables: &'static [&'static str],
    patterns: &mut Patterns,
) -> Vec<Result<Condition, ConditionError>> {
    if sources.is_empty() {
        return Vec::new();
    }
    let failed = || sources.iter().map(|_| Err(ConditionError::ParserFailed)).collect();
    std::thread::scope(|scope| {
        let work = || sources.iter().map(|source| compile_one(source, variables, patterns)).collect();
        let thread = std::thread::Builder::new().name("policy".to_owned()).stack_size(PARSER_STACK_BYTES);
        match thread.spawn_scoped(scope, work) {
            Ok(thread) => thread.join().unwrap_or_else(|_| failed()),
            Err(error) => {
                tracing::error!(%error, "cannot start the thread that compiles the policy");
                failed()
            }
        }
    })
}

fn compile_one(
    source: &str,
    variables: &'static [&'static str],
    patterns: &mut Patterns,
) -> Result<Condition, ConditionError> {
    if source.len() > MAX_CONDITION_BYTES {
        return Err(ConditionError::TooLong(source.len()));
    }
    if bracket_depth(source) > MAX_BRACKETS {
        return Err(ConditionError::Brackets);
    }
    let parsed = catch_unwind(AssertUnwindSafe(|| ENVIRONMENT.parser().parse(source)));
    let mut expression =
        parsed.map_err(|_| ConditionError::ParserFailed)?.map_err(|errors| syntax_error(source, &errors))?;
    let uses_args = bounds::check(&mut expression, variables, patterns)?;
    Ok(Condition { expression, uses_args })
}

fn syntax_error(source: &str, errors: &cel::ParseErrors) -> ConditionError {
    let Some(first) = errors.errors.first() else { return ConditionError::ParserFailed };
    let (line, column) = first.pos;
    let message = first.msg.strip_prefix("Syntax error: ").unwrap_or(&first.msg);
    let message = plain_message(source, message).unwrap_or_else(|| excerpt(message, 200));
    ConditionError::Syntax { line, column, message }
}

/// Rewrites a parser message without token names; `None` if there is no better message.
fn plain_message(source: &str, message: &str) -> Option<String> {
    let last = || excerpt(source.split_whitespace().next_back().unwrap_or_default(), 40);
    if let Some(rest) = message.strip_prefix("token recognition error at: '") {
        let found = rest.strip_suffix('\'').unwrap_or(rest).trim();
        return Some(match found {
            "=" => "write `==` to compare".to_owned(),
            "&" => "write `&&` for and".to_owned(),
            "|" => "write `||` for or".to_owned(),
            _ => format!("unexpected `{}`", excerpt(found, 40)),
        });
    }
    let (kind, rest) = message.split_once(" input '")?;
    let (found, expected) = rest.split_once('\'')?;
    match (kind, found, expected) {
        ("mismatched" | "extraneous", "<EOF>", _) if source.trim().is_empty() => {
            Some("the condition is empty".to_owned())
        }
        (_, "<EOF>", _) => Some(format!("the condition ends after `{}`", last())),
        ("mismatched" | "extraneous", "=", _) => Some("write `==` to compare".to_owned()),
        ("mismatched" | "extraneous", found, " expecting <EOF>") => {
            Some(format!("unexpected `{}` after the end of the condition", excerpt(found, 40)))
        }
        ("mismatched" | "extraneous", found, _) => Some(format!("unexpected `{}`", excerpt(found, 40))),
        (_, found, _) => Some(format!("unexpected `{}`", excerpt(found.trim(), 40))),
    }
}

/// Returns the deepest nesting of brackets. Brackets in strings count too: this only limits what the parser is given.
fn bracket_depth(source: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for byte in source.bytes() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}
