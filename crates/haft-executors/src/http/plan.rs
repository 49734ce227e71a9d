//! A compiled `http` tool.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use haft_core::implementation::{ErrorMode, ParamStyle};
use haft_core::spec::{Limits, Retry};
use haft_template::{EscapeContext, Template, ValueTemplate};
use http::{HeaderName, HeaderValue, Method};

use super::auth::AuthPlan;
use super::pairs::AllowedCharacters;
use super::response::ResponseReader;

/// All requests of a tool and what they share.
pub(super) struct Plan {
    pub(super) steps: Vec<Step>,
    pub(super) auth: Option<AuthPlan>,
    /// The names of all secrets that the tool may use.
    pub(super) secrets: Vec<String>,
    pub(super) timeout: Duration,
    pub(super) error_mode: ErrorMode,
    pub(super) limits: Limits,
    /// The retry policy of the pipeline.
    pub(super) retry: Retry,
    /// Whether the definition has a `retry`: then every method may be retried.
    pub(super) retry_all: bool,
    pub(super) version: String,
}

/// One request.
pub(super) struct Step {
    pub(super) name: String,
    pub(super) method: Method,
    pub(super) url: Template,
    pub(super) query: Vec<Parameter>,
    /// The styles of lists and maps, by the name of the parameter.
    pub(super) styles: BTreeMap<String, ParamStyle>,
    /// The names of the parameters that keep reserved characters.
    pub(super) allow_reserved: Vec<String>,
    pub(super) headers: Vec<(HeaderName, Template)>,
    pub(super) body: Body,
    /// Whether no body is sent if none of its values is given.
    pub(super) optional_body: bool,
    /// The fields of the body that are files.
    pub(super) files: Vec<String>,
    /// The content type, if the definition has none.
    pub(super) content_type: Option<HeaderValue>,
    pub(super) success: Vec<u16>,
    pub(super) reader: Arc<ResponseReader>,
}

/// One query parameter.
pub(super) struct Parameter {
    /// Its name, percent-encoded.
    pub(super) name: String,
    pub(super) value: ValueTemplate,
    /// The style of a list or a map.
    pub(super) style: Option<ParamStyle>,
    pub(super) allowed: AllowedCharacters,
}

/// The body of a request.
pub(super) enum Body {
    Nothing,
    Text(Template, EscapeContext<'static>),
    Json(ValueTemplate),
    Form(ValueTemplate),
    /// `multipart/form-data`, a part for each field.
    Multipart(ValueTemplate),
    /// The file in the field with this name.
    File(ValueTemplate, String),
}

impl Step {
    /// Returns whether the method is idempotent.
    pub(super) fn is_idempotent(&self) -> bool {
        matches!(self.method, Method::GET | Method::HEAD | Method::PUT | Method::DELETE | Method::OPTIONS)
            || self.method.as_str() == "QUERY"
    }

    pub(super) fn succeeds(&self, status: u16) -> bool {
        if self.success.is_empty() { (200..300).contains(&status) } else { self.success.contains(&status) }
    }

    /// Returns the names of the secrets that it may use.
    pub(super) fn secrets(&self) -> impl Iterator<Item = &str> {
        let body: Vec<&str> = match &self.body {
            Body::Nothing => Vec::new(),
            Body::Text(template, _) => template.secrets().collect(),
            Body::Json(value) | Body::Form(value) | Body::Multipart(value) | Body::File(value, _) => {
                value.secrets().collect()
            }
        };
        self.url
            .secrets()
            .chain(self.query.iter().flat_map(|parameter| parameter.value.secrets()))
            .chain(self.headers.iter().flat_map(|(_, value)| value.secrets()))
            .chain(body)
    }
}
