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

/// Compiles conditions, and adds their regular expressions to `patterns`.
pub(super) fn compile(sources: &[&str], patterns: &mut Patterns) -> Vec<Result<Condition, ConditionError>> {
    if sources.is_empty() {
        return Vec::new();
    }
    let failed = || sources.iter().map(|_| Err(ConditionError::ParserFailed)).collect();
    std::thread::scope(|scope| {
        let work = || sources.iter().map(|source| compile_one(source, patterns)).collect();
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

fn compile_one(source: &str, patterns: &mut Patterns) -> Result<Condition, ConditionError> {
    if source.len() > MAX_CONDITION_BYTES {
        return Err(ConditionError::TooLong(source.len()));
    }
    if bracket_depth(source) > MAX_BRACKETS {
        return Err(ConditionError::Brackets);
    }
    let parsed = catch_unwind(AssertUnwindSafe(|| ENVIRONMENT.parser().parse(source)));
    let mut expression =
        parsed.map_err(|_| ConditionError::ParserFailed)?.map_err(|errors| syntax_error(&errors))?;
    let uses_args = bounds::check(&mut expression, patterns)?;
    Ok(Condition { expression, uses_args })
}

fn syntax_error(errors: &cel::ParseErrors) -> ConditionError {
    let Some(first) = errors.errors.first() else { return ConditionError::ParserFailed };
    let (line, column) = first.pos;
    let message = first.msg.strip_prefix("Syntax error: ").unwrap_or(&first.msg);
    ConditionError::Syntax { line, column, message: excerpt(message, 200) }
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
