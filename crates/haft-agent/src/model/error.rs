//! Why a model did not answer.

use std::fmt;
use std::time::Duration;

use haft_core::duration;
use haft_core::problem::excerpt;
use haft_core::secret::{Secret, scrub_text};

use super::answer::MAX_TOOL_CALLS;

/// The maximum length of a provider's own words in an error.
const DETAIL_CHARACTERS: usize = 500;

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelErrorKind {
    /// The settings of the model are invalid.
    Settings,
    /// The provider rejected the key, or the key may not use the model.
    Auth,
    /// The account has no credit left.
    Quota,
    /// Too many requests.
    RateLimited {
        /// How long the provider wants haft to wait.
        retry_after: Option<Duration>,
    },
    /// The provider has no capacity at the moment.
    Overloaded {
        /// How long the provider wants haft to wait.
        retry_after: Option<Duration>,
    },
    /// The provider failed with this status.
    Server {
        /// The HTTP status.
        status: u16,
    },
    /// The provider rejected the request.
    BadRequest,
    /// The model or the address does not exist.
    NotFound,
    /// The conversation does not fit into the context window of the model.
    ContextTooLong,
    /// The provider refused the content.
    ContentFilter,
    /// The model does not support what the request contains.
    Unsupported,
    /// The egress guard denied the address.
    RefusedAddress,
    /// The provider redirected the request; the key is not sent elsewhere.
    Redirected,
    /// The connection failed: nothing was sent.
    Connect,
    /// The provider sent nothing for this long.
    Stalled {
        /// The limit.
        limit: Duration,
    },
    /// The whole answer took longer than this.
    Timeout {
        /// The limit.
        limit: Duration,
    },
    /// The stream ended in the middle.
    BrokenStream,
    /// The response is not in the format of the provider.
    InvalidResponse,
    /// The response is too large.
    TooLarge {
        /// The part that is too large.
        part: &'static str,
        /// The limit in bytes.
        limit: usize,
    },
    /// The model called more tools in one answer than allowed.
    TooManyToolCalls,
    /// The script has no turn for the request.
    NoScriptedTurn,
}

impl ModelErrorKind {
    /// Returns a stable name.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Settings => "settings",
            Self::Auth => "auth",
            Self::Quota => "quota",
            Self::RateLimited { .. } => "rate_limited",
            Self::Overloaded { .. } => "overloaded",
            Self::Server { .. } => "server",
            Self::BadRequest => "bad_request",
            Self::NotFound => "not_found",
            Self::ContextTooLong => "context_too_long",
            Self::ContentFilter => "content_filter",
            Self::Unsupported => "unsupported",
            Self::RefusedAddress => "refused_address",
            Self::Redirected => "redirected",
            Self::Connect => "connect",
            Self::Stalled { .. } => "stalled",
            Self::Timeout { .. } => "timeout",
            Self::BrokenStream => "broken_stream",
            Self::InvalidResponse => "invalid_response",
            Self::TooLarge { .. } => "too_large",
            Self::TooManyToolCalls => "too_many_tool_calls",
            Self::NoScriptedTurn => "no_scripted_turn",
        }
    }

    /// Returns whether the same request may succeed in a moment, if no part of an answer was used yet.
    pub const fn is_temporary(&self) -> bool {
        match self {
            Self::RateLimited { .. }
            | Self::Overloaded { .. }
            | Self::Server { .. }
            | Self::Connect
            | Self::BrokenStream => true,
            Self::Settings
            | Self::Auth
            | Self::Quota
            | Self::BadRequest
            | Self::NotFound
            | Self::ContextTooLong
            | Self::ContentFilter
            | Self::Unsupported
            | Self::RefusedAddress
            | Self::Redirected
            | Self::Stalled { .. }
            | Self::Timeout { .. }
            | Self::InvalidResponse
            | Self::TooLarge { .. }
            | Self::TooManyToolCalls
            | Self::NoScriptedTurn => false,
        }
    }
}

/// A model did not answer, or not completely. Neither the message nor `Debug` contains the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelError {
    /// What went wrong.
    pub kind: ModelErrorKind,
    /// The model, as messages name it.
    pub model: String,
    /// The words of the provider, or more about the cause; may be empty.
    pub detail: String,
}

impl ModelError {
    /// Creates an error.
    pub fn new(kind: ModelErrorKind, model: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { kind, model: model.into(), detail: detail.into() }
    }

    /// Returns how long the provider wants haft to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        match self.kind {
            ModelErrorKind::RateLimited { retry_after } | ModelErrorKind::Overloaded { retry_after } => {
                retry_after
            }
            _ => None,
        }
    }
}

impl std::error::Error for ModelError {}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, model, detail } = self;
        write!(f, "{model}: ")?;
        match kind {
            ModelErrorKind::Settings => return f.write_str(detail),
            ModelErrorKind::Auth => f.write_str("the provider rejected the API key; check the credential")?,
            ModelErrorKind::Quota => {
                f.write_str("the account has no credit left; check the plan at the provider")?;
            }
            ModelErrorKind::RateLimited { retry_after } => {
                f.write_str("the rate limit of the provider is exceeded")?;
                write_wait(f, *retry_after)?;
            }
            ModelErrorKind::Overloaded { retry_after } => {
                f.write_str("the provider is overloaded")?;
                write_wait(f, *retry_after)?;
            }
            ModelErrorKind::Server { status } => write!(f, "the provider failed with status {status}")?,
            ModelErrorKind::BadRequest => f.write_str("the provider rejected the request")?,
            ModelErrorKind::NotFound => {
                f.write_str("not found; check the name of the model and `base_url`")?;
            }
            ModelErrorKind::ContextTooLong => {
                f.write_str("the conversation is too long for the context window of the model")?;
            }
            ModelErrorKind::ContentFilter => {
                f.write_str("the content filter of the provider refused the request")?;
            }
            ModelErrorKind::Unsupported => f.write_str("unsupported request")?,
            ModelErrorKind::RefusedAddress => f.write_str("the egress guard denied the address")?,
            ModelErrorKind::Redirected => f.write_str(
                "the provider redirected the request, and the key is not sent elsewhere; correct `base_url`",
            )?,
            ModelErrorKind::Connect => f.write_str("connection failed; check `base_url`")?,
            ModelErrorKind::Stalled { limit } => {
                write!(f, "the provider sent nothing for {}", duration::format(*limit))?;
            }
            ModelErrorKind::Timeout { limit } => {
                write!(f, "the answer was not complete within {}", duration::format(*limit))?;
            }
            ModelErrorKind::BrokenStream => f.write_str("the answer was cut off")?,
            ModelErrorKind::InvalidResponse => {
                f.write_str(
                    "the response is not in the format of the provider; check `provider` and `base_url`",
                )?;
            }
            ModelErrorKind::TooLarge { part, limit } => {
                write!(f, "the {part} exceeds the limit of {limit} bytes")?;
            }
            ModelErrorKind::TooManyToolCalls => {
                write!(f, "the model made more than {MAX_TOOL_CALLS} tool calls in one answer")?;
            }
            ModelErrorKind::NoScriptedTurn => f.write_str("no turn of the script matches")?,
        }
        if detail.is_empty() { Ok(()) } else { write!(f, ": {detail}") }
    }
}

fn write_wait(f: &mut fmt::Formatter<'_>, wait: Option<Duration>) -> fmt::Result {
    match wait {
        Some(wait) => write!(f, "; retry in {}", duration::format(wait)),
        None => Ok(()),
    }
}

/// An error whose model is not known yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) kind: ModelErrorKind,
    pub(super) detail: String,
}

impl Failure {
    pub(super) fn new(kind: ModelErrorKind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into() }
    }

    /// The response is not in the format of the provider.
    pub(super) fn invalid(detail: impl Into<String>) -> Self {
        Self::new(ModelErrorKind::InvalidResponse, detail)
    }

    /// Names the model and removes the secrets from the words of the provider.
    pub(super) fn of_model(mut self, model: &str, secrets: &[Secret]) -> ModelError {
        scrub_text(&mut self.detail, secrets);
        ModelError {
            kind: self.kind,
            model: model.to_owned(),
            detail: excerpt(&self.detail, DETAIL_CHARACTERS),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_say_what_to_do() {
        let minute = Some(Duration::from_mins(1));
        for (kind, detail, expected) in [
            (
                ModelErrorKind::Auth,
                "invalid x-api-key",
                "claude: the provider rejected the API key; check the credential: invalid x-api-key",
            ),
            (
                ModelErrorKind::RateLimited { retry_after: minute },
                "",
                "claude: the rate limit of the provider is exceeded; retry in 1m",
            ),
            (ModelErrorKind::Settings, "`name`: empty", "claude: `name`: empty"),
            (
                ModelErrorKind::TooManyToolCalls,
                "",
                "claude: the model made more than 128 tool calls in one answer",
            ),
        ] {
            assert_eq!(ModelError::new(kind, "claude", detail).to_string(), expected);
        }
    }

    #[test]
    fn keys_are_removed_and_details_bounded() {
        let failure = Failure::invalid(format!("Incorrect key sk-secret-123456: {}", "x".repeat(9999)));
        let error = failure.of_model("m", &[Secret::new("sk-secret-123456".to_owned())]);
        assert!(!format!("{error} {error:?}").contains("sk-secret-123456"));
        assert!(error.detail.starts_with("Incorrect key ***: x"));
        assert_eq!(error.detail.chars().count(), DETAIL_CHARACTERS + 1);
    }
}
