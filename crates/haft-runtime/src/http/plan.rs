//! A prepared `http` tool: everything compiled.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use haft_core::implementation::{ErrorMode, ParamStyle};
use haft_core::spec::{Limits, Retry};
use haft_template::{EscapeContext, Template, ValueTemplate};
use http::{HeaderName, HeaderValue, Method};

use super::auth::AuthPlan;
use super::pairs::Letters;
use super::response::Reader;

/// All requests of a tool and what they share.
pub(super) struct Plan {
    pub(super) steps: Vec<Step>,
    pub(super) auth: Option<AuthPlan>,
    /// The names of all secrets that may be needed.
    pub(super) secrets: Vec<String>,
    pub(super) timeout: Duration,
    pub(super) error_mode: ErrorMode,
    pub(super) limits: Limits,
    /// How the pipeline repeats this tool.
    pub(super) retry: Retry,
    /// Whether the definition itself asks for repetition: then every method is taken as safe to repeat.
    pub(super) repeat_all: bool,
    pub(super) version: String,
}

/// One request.
pub(super) struct Step {
    pub(super) name: String,
    pub(super) method: Method,
    pub(super) url: Template,
    pub(super) query: Vec<Parameter>,
    /// How lists and maps are spelled, by the name of the parameter.
    pub(super) styles: BTreeMap<String, ParamStyle>,
    /// The names of the parameters that keep reserved characters.
    pub(super) allow_reserved: Vec<String>,
    pub(super) headers: Vec<(HeaderName, Template)>,
    pub(super) body: Body,
    /// Whether nothing is sent where none of the body's values was given.
    pub(super) optional_body: bool,
    /// The content type, where the definition names none.
    pub(super) content_type: Option<HeaderValue>,
    pub(super) success: Vec<u16>,
    pub(super) reader: Arc<Reader>,
}

/// One query parameter.
pub(super) struct Parameter {
    /// Its name, percent-encoded.
    pub(super) name: String,
    pub(super) value: ValueTemplate,
    /// How a list or a map is spelled.
    pub(super) style: Option<ParamStyle>,
    pub(super) letters: Letters,
}

/// What a request carries.
pub(super) enum Body {
    Nothing,
    Text(Template, EscapeContext<'static>),
    Json(ValueTemplate),
    Form(ValueTemplate),
}

impl Step {
    /// Tells whether sending it twice comes to the same as sending it once.
    pub(super) fn is_idempotent(&self) -> bool {
        matches!(self.method, Method::GET | Method::HEAD | Method::PUT | Method::DELETE | Method::OPTIONS)
    }

    pub(super) fn succeeds(&self, status: u16) -> bool {
        if self.success.is_empty() { (200..300).contains(&status) } else { self.success.contains(&status) }
    }

    /// Returns the names of the secrets that it may need.
    pub(super) fn secrets(&self) -> impl Iterator<Item = &str> {
        let body: Vec<&str> = match &self.body {
            Body::Nothing => Vec::new(),
            Body::Text(template, _) => template.secrets().collect(),
            Body::Json(value) | Body::Form(value) => value.secrets().collect(),
        };
        self.url
            .secrets()
            .chain(self.query.iter().flat_map(|parameter| parameter.value.secrets()))
            .chain(self.headers.iter().flat_map(|(_, value)| value.secrets()))
            .chain(body)
    }
}
