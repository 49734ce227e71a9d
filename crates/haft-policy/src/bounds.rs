//! The bounds of a condition: names, size, nesting, and a step counter in every loop.
//!
//! The interpreter has no limit of its own. The only loops of CEL are comprehensions (`all`, `exists`, `filter`), so a
//! call of [`STEP`] in each iteration bounds the work.

use cel::IdedExpr;
use cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedEntryExpr, LiteralValue, operators,
};
use haft_core::problem::{excerpt, nearest};
use regex::RegexBuilder;

use super::evaluator::{Patterns, STEP};

/// The maximum number of nodes of an expression.
const MAX_NODES: usize = 500;
/// The deepest nesting of an expression.
const MAX_DEPTH: usize = 32;
/// The deepest nesting of comprehensions.
const MAX_LOOPS: usize = 2;
/// The maximum size of a compiled regular expression.
const MAX_PATTERN_BYTES: usize = 256 * 1024;

/// The functions of conditions, besides operators.
const FUNCTIONS: [&str; 20] = [
    "size",
    "contains",
    "startsWith",
    "endsWith",
    "matches",
    "int",
    "uint",
    "double",
    "string",
    "bytes",
    "bool",
    "type",
    "dyn",
    "of",
    "none",
    "ofNonZeroValue",
    "hasValue",
    "value",
    "or",
    "orValue",
];
/// The macros, which are expanded where their arguments fit.
const MACROS: [&str; 7] = ["has", "all", "exists", "exists_one", "existsOne", "map", "filter"];
/// Names that are neither variables nor functions.
const NAMES: [&str; 11] =
    ["bool", "int", "uint", "double", "string", "bytes", "list", "map", "null_type", "type", "optional"];

/// A condition outside of the bounds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum BoundsError {
    #[error("the condition has more than {MAX_NODES} terms")]
    Nodes,
    #[error("the condition is nested deeper than {MAX_DEPTH} levels")]
    Depth,
    #[error("`all`, `exists` and `filter` are nested deeper than {MAX_LOOPS} levels")]
    Loops,
    #[error("unknown variable `{0}`{1}")]
    Variable(String, String),
    #[error("unknown function `{0}`{1}")]
    Function(String, String),
    #[error("invalid number or types of arguments of `{0}`")]
    Macro(String),
    #[error("`map` is not supported in conditions; use `all`, `exists` or `filter`")]
    Map,
    #[error("types cannot be constructed in a condition")]
    Struct,
    #[error("the regular expression of `matches` must be a literal string")]
    DynamicPattern,
    #[error("invalid regular expression `{0}`: {1}")]
    Pattern(String, String),
}

/// Checks an expression, adds step counters to its loops, and returns whether it uses the arguments.
pub(super) fn check(
    expression: &mut IdedExpr,
    variables: &'static [&'static str],
    patterns: &mut Patterns,
) -> Result<bool, BoundsError> {
    let mut checker =
        Checker { nodes: 0, loops: 0, depth: 0, locals: Vec::new(), uses_args: false, variables, patterns };
    checker.expression(expression)?;
    Ok(checker.uses_args)
}

struct Checker<'a> {
    nodes: usize,
    loops: usize,
    depth: usize,
    /// The variables of the enclosing comprehensions.
    locals: Vec<String>,
    uses_args: bool,
    /// The variables of the condition.
    variables: &'static [&'static str],
    patterns: &'a mut Patterns,
}

impl Checker<'_> {
    fn expression(&mut self, expression: &mut IdedExpr) -> Result<(), BoundsError> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            return Err(BoundsError::Nodes);
        }
        if self.depth >= MAX_DEPTH {
            return Err(BoundsError::Depth);
        }
        self.depth += 1;
        let checked = match &mut expression.expr {
            Expr::Call(call) => self.call(call),
            Expr::Comprehension(comprehension) => self.comprehension(comprehension),
            Expr::Ident(name) => self.name(name),
            Expr::List(list) => self.all(&mut list.elements),
            Expr::Literal(_) => Ok(()),
            Expr::Map(map) => map.entries.iter_mut().try_for_each(|entry| self.entry(entry)),
            Expr::Select(select) => self.expression(&mut select.operand),
            Expr::Struct(_) => Err(BoundsError::Struct),
            Expr::Unspecified => Err(BoundsError::Macro(String::new())),
        };
        self.depth -= 1;
        checked
    }

    fn all(&mut self, expressions: &mut [IdedExpr]) -> Result<(), BoundsError> {
        expressions.iter_mut().try_for_each(|expression| self.expression(expression))
    }

    fn entry(&mut self, entry: &mut IdedEntryExpr) -> Result<(), BoundsError> {
        match &mut entry.expr {
            EntryExpr::MapEntry(entry) => {
                self.expression(&mut entry.key)?;
                self.expression(&mut entry.value)
            }
            EntryExpr::StructField(_) => Err(BoundsError::Struct),
        }
    }

    fn call(&mut self, call: &mut CallExpr) -> Result<(), BoundsError> {
        let name = call.func_name.as_str();
        let is_operator = name.starts_with(['_', '@', '!', '-']);
        if !is_operator && !FUNCTIONS.contains(&name) {
            let shown = excerpt(name, 60);
            if MACROS.contains(&name) {
                return Err(BoundsError::Macro(shown));
            }
            let hint = hint(name, FUNCTIONS.into_iter().chain(MACROS));
            return Err(BoundsError::Function(shown, hint));
        }
        if name == "matches" {
            self.pattern(call)?;
        }
        if let Some(target) = &mut call.target {
            self.expression(target)?;
        }
        self.all(&mut call.args)
    }

    /// Compiles the literal pattern of `text.matches(pattern)` or `matches(text, pattern)`.
    fn pattern(&mut self, call: &CallExpr) -> Result<(), BoundsError> {
        let Some(IdedExpr { expr: Expr::Literal(LiteralValue::String(pattern)), .. }) = call.args.last()
        else {
            return Err(BoundsError::DynamicPattern);
        };
        let pattern = pattern.inner();
        if !self.patterns.contains_key(pattern) {
            let compiled = RegexBuilder::new(pattern)
                .size_limit(MAX_PATTERN_BYTES)
                .dfa_size_limit(MAX_PATTERN_BYTES)
                .build()
                .map_err(|error| {
                    let message = error.to_string();
                    let last = message.lines().last().unwrap_or_default().trim_start_matches("error: ");
                    BoundsError::Pattern(excerpt(pattern, 60), excerpt(last, 200))
                })?;
            self.patterns.insert(pattern.to_owned(), compiled);
        }
        Ok(())
    }

    fn name(&mut self, name: &str) -> Result<(), BoundsError> {
        // An absolute name, `.args`, means the variable outside of the comprehensions.
        let plain = name.strip_prefix('.').unwrap_or(name);
        if self.locals.iter().any(|local| local == name) {
            return Ok(());
        }
        if self.variables.contains(&plain) || NAMES.contains(&plain) {
            self.uses_args |= plain == "args";
            return Ok(());
        }
        let hint = match nearest(name, self.variables.iter().copied()) {
            Some(near) => format!("; did you mean `{near}`?"),
            None => format!("; expected `{}`", self.variables.join("`, `")),
        };
        Err(BoundsError::Variable(excerpt(name, 60), hint))
    }

    fn comprehension(&mut self, comprehension: &mut ComprehensionExpr) -> Result<(), BoundsError> {
        self.expression(&mut comprehension.iter_range)?;
        self.expression(&mut comprehension.accu_init)?;
        if self.loops == MAX_LOOPS {
            return Err(BoundsError::Loops);
        }
        if appends_other_values(comprehension) {
            return Err(BoundsError::Map);
        }
        self.loops += 1;
        let outer = self.locals.len();
        self.locals.push(comprehension.accu_var.clone());
        self.locals.push(comprehension.iter_var.clone());
        self.locals.extend(comprehension.iter_var2.clone());
        self.expression(&mut comprehension.loop_cond)?;
        self.expression(&mut comprehension.loop_step)?;
        self.expression(&mut comprehension.result)?;
        self.locals.truncate(outer);
        self.loops -= 1;
        count_steps(comprehension);
        Ok(())
    }
}

/// Adds a call of [`STEP`], which fails when the limit is reached, to every iteration.
///
/// The interpreter appends to the list of `filter` in place only if the loop condition is a literal, so there the counter
/// becomes part of the guard of the step. In other loops it precedes the loop condition; the step would not do, because
/// `all` and `exists` continue after an error in it.
fn count_steps(comprehension: &mut ComprehensionExpr) {
    match filter_step(comprehension) {
        Some([guard, ..]) => counted(guard),
        _ => counted(&mut comprehension.loop_cond),
    }
}

/// Returns the step of `filter`: guard, list with the element, and list without it.
fn filter_step(comprehension: &mut ComprehensionExpr) -> Option<&mut [IdedExpr]> {
    if !builds_list(comprehension) {
        return None;
    }
    match &mut comprehension.loop_step.expr {
        Expr::Call(call) if call.func_name == operators::CONDITIONAL => Some(&mut call.args),
        _ => None,
    }
}

fn builds_list(comprehension: &ComprehensionExpr) -> bool {
    matches!(comprehension.accu_init.expr, Expr::List(_))
}

/// Returns whether a comprehension builds a list of anything but elements of the list that it iterates over, as `map`
/// does: each iteration could append a copy of all arguments, which no other limit bounds well.
fn appends_other_values(comprehension: &mut ComprehensionExpr) -> bool {
    let element = comprehension.iter_var.clone();
    let is_element =
        |expression: &IdedExpr| matches!(&expression.expr, Expr::Ident(name) if *name == element);
    let builds_list = builds_list(comprehension);
    match filter_step(comprehension) {
        Some([_, IdedExpr { expr: Expr::Call(append), .. }, _]) => match append.args.as_slice() {
            [_, IdedExpr { expr: Expr::List(list), .. }] => !list.elements.iter().all(is_element),
            _ => true,
        },
        _ => builds_list,
    }
}

/// Replaces an expression by `STEP() ? expression : false`.
fn counted(expression: &mut IdedExpr) {
    let id = expression.id;
    let step = CallExpr { func_name: STEP.to_owned(), target: None, args: Vec::new() };
    let step = IdedExpr { id, expr: Expr::Call(step) };
    let otherwise = Expr::Literal(LiteralValue::Boolean(false.into()));
    let args = vec![step, std::mem::take(expression), IdedExpr { id, expr: otherwise }];
    let conditional = CallExpr { func_name: operators::CONDITIONAL.to_owned(), target: None, args };
    *expression = IdedExpr { id, expr: Expr::Call(conditional) };
}

fn hint(name: &str, known: impl IntoIterator<Item = &'static str>) -> String {
    nearest(name, known).map_or_else(String::new, |near| format!("; did you mean `{near}`?"))
}
