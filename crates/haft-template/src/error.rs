//! Errors of templates and of the values in them.

use haft_core::outcome::{CallError, ErrorCode};
use haft_core::problem::Problem;
use haft_core::secret::missing_secret;

/// A syntax error of a template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("at {}character {column}: {message}", line.map(|line| format!("line {line}, ")).unwrap_or_default())]
pub struct SyntaxError {
    /// The line in a text of several lines, from 1.
    pub line: Option<u32>,
    /// The position in the line in characters, from 1.
    pub column: u32,
    /// What is invalid, and what was expected.
    pub message: String,
}

impl SyntaxError {
    /// Returns the error as a problem of a definition.
    pub fn to_problem(&self, field: impl Into<String>) -> Problem {
        Problem::new(field, "invalid_template", self.to_string())
    }
}

/// Makes an error at a byte offset.
pub(super) fn at(text: &str, at: usize, message: String) -> SyntaxError {
    let number = |count: usize| u32::try_from(count + 1).unwrap_or(u32::MAX);
    let before = text.get(..at).unwrap_or_default();
    let line = text.trim_end().contains('\n').then(|| number(before.matches('\n').count()));
    let column = number(before.rsplit('\n').next().unwrap_or_default().chars().count());
    SyntaxError { line, column, message }
}

/// Why a template could not be rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// A required argument is missing.
    #[error("missing required argument `{0}`")]
    MissingArgument(String),
    /// There is no secret with that name.
    #[error("{}", missing_secret(.0))]
    MissingSecret(String),
    /// The value of an earlier step is missing.
    #[error("missing value `{0}` of an earlier step")]
    MissingStep(String),
    /// A string starts with `-` where a program could read it as an option.
    #[error(
        "value of `{name}` starts with `-` and would be read as an option; in the tool, put `--` before the reference or attach it to an option such as `--name={{{{{name}}}}}`"
    )]
    LooksLikeOption {
        /// The reference as written.
        name: String,
    },
    /// A value is not valid in its context.
    #[error("value of `{name}` is not valid in {context}: {reason}")]
    InvalidValue {
        /// The reference as written.
        name: String,
        /// The context, such as "the header `X-Name`".
        context: String,
        /// Why the value is not valid there.
        reason: &'static str,
    },
}

impl From<RenderError> for CallError {
    fn from(error: RenderError) -> Self {
        let code = match &error {
            RenderError::MissingSecret(_) => ErrorCode::SecretMissing,
            RenderError::MissingArgument(_)
            | RenderError::MissingStep(_)
            | RenderError::LooksLikeOption { .. }
            | RenderError::InvalidValue { .. } => ErrorCode::Template,
        };
        let text = match &error {
            RenderError::MissingSecret(_) => Some("a credential of this tool is not configured"),
            _ => None,
        };
        let made = CallError::new(code, error.to_string());
        match text {
            Some(text) => made.for_model(text),
            None => made,
        }
    }
}
