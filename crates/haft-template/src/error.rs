//! What can be wrong with a template, and with a value that goes into one.

use haft_core::outcome::{CallError, ErrorCode};
use haft_core::problem::Problem;

/// Says why a text is not a template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("at character {column}: {message}")]
pub struct SyntaxError {
    /// Where in the text, counted in characters from 1.
    pub column: u32,
    /// What is wrong and what was expected.
    pub message: String,
}

impl SyntaxError {
    /// Makes the entry for a definition's list of problems.
    pub fn to_problem(&self, field: impl Into<String>) -> Problem {
        Problem::new(field, "invalid_template", self.to_string())
    }
}

/// Makes an error that counts characters, and lines where there are several.
pub(super) fn at(text: &str, at: usize, message: String) -> SyntaxError {
    let before = text.get(..at).unwrap_or_default();
    let column = u32::try_from(before.chars().count() + 1).unwrap_or(u32::MAX);
    if !text.trim_end().contains('\n') {
        return SyntaxError { column, message };
    }
    let line = before.matches('\n').count() + 1;
    let place = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    SyntaxError { column, message: format!("{message} (line {line}, character {place})") }
}

/// Says why a template could not be filled in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// A required argument is missing.
    #[error("the argument `{0}` is missing")]
    MissingArgument(String),
    /// Neither a declared argument nor a secret has that name.
    #[error(
        "`{0}` is neither a declared argument nor a stored secret; declare it in the input schema or set the secret"
    )]
    MissingSecret(String),
    /// An earlier step's value has no such part.
    #[error("the value `{0}` of an earlier step is missing")]
    MissingStep(String),
    /// A string starts with `-` where a program could read it as an option.
    #[error(
        "the value of `{name}` starts with `-` and would be read as an option; in the tool, put `--` before the reference or attach it to an option such as `--name={{{{{name}}}}}`"
    )]
    LooksLikeOption {
        /// The reference as written.
        name: String,
    },
    /// A value cannot stand in its place.
    #[error("the value of `{name}` does not fit into {place}: {why}")]
    Unfit {
        /// The reference as written.
        name: String,
        /// Where it would go, such as "the header `X-Name`".
        place: String,
        /// What the place does not take.
        why: &'static str,
    },
}

impl From<RenderError> for CallError {
    fn from(error: RenderError) -> Self {
        let code = match &error {
            RenderError::MissingSecret(_) => ErrorCode::SecretMissing,
            RenderError::MissingArgument(_)
            | RenderError::MissingStep(_)
            | RenderError::LooksLikeOption { .. }
            | RenderError::Unfit { .. } => ErrorCode::Template,
        };
        let text = match &error {
            RenderError::MissingSecret(_) => Some("the tool lacks a credential that its operator has to set"),
            _ => None,
        };
        let made = CallError::new(code, error.to_string());
        match text {
            Some(text) => made.for_model(text),
            None => made,
        }
    }
}
