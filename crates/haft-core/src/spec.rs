//! The canonical definition of a tool, which every dialect is converted to.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::duration::{self, DurationError};
use crate::implementation::Implementation;
use crate::name::{ToolName, Version};
use crate::schema::{RawSchema, declared_properties};

/// The definition of a tool, which is the content of a revision. Equal specs have equal hashes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ToolSpec {
    /// The identifier within the bundle.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "greet"))]
    pub name: ToolName,
    /// The version label.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "1.0.0"))]
    pub version: Version,
    /// The display name; empty if it is the same as `name`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub display_name: String,
    /// What the tool does, for models and people.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required, example = "Greets somebody by name"))]
    pub description: String,
    /// A free-form category.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub category: String,
    /// Free labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The implementation.
    pub implementation: Implementation,
    /// JSON Schema of the arguments.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Object, required))]
    pub input_schema: RawSchema,
    /// JSON Schema of the value; `{}` accepts everything.
    #[serde(default, skip_serializing_if = "RawSchema::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub output_schema: RawSchema,
    /// The execution settings.
    #[serde(default, skip_serializing_if = "Execution::is_default")]
    pub execution: Execution,
    /// The call policy.
    #[serde(default, skip_serializing_if = "Policy::is_default")]
    pub policy: Policy,
    /// Whether each call needs the approval of a person.
    #[serde(default, skip_serializing_if = "is_false")]
    pub requires_confirmation: bool,
    /// Whether its processes are isolated from the host's files.
    #[serde(default, skip_serializing_if = "is_false")]
    pub sandbox: bool,
    /// Whether its processes may use the network.
    #[serde(default, skip_serializing_if = "is_false")]
    pub network: bool,
    /// The container image of its processes; by default the configured image, or no container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Renderers for its results, highest priority first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub renderers: Vec<Renderer>,
    /// The operation that it was imported from, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
}

impl ToolSpec {
    /// Creates a spec with default settings.
    pub fn new(name: ToolName, implementation: Implementation) -> Self {
        Self {
            name,
            version: Version::initial(),
            display_name: String::new(),
            description: String::new(),
            category: String::new(),
            tags: Vec::new(),
            implementation,
            input_schema: RawSchema::empty(),
            output_schema: RawSchema::empty(),
            execution: Execution::default(),
            policy: Policy::default(),
            requires_confirmation: false,
            sandbox: false,
            network: false,
            image: None,
            renderers: Vec::new(),
            origin: None,
        }
    }

    /// Returns the display name, or the name if there is none.
    pub fn title(&self) -> &str {
        if self.display_name.is_empty() { self.name.as_str() } else { &self.display_name }
    }

    /// Returns whether a call needs approval or an elevated caller.
    pub fn needs_approval(&self) -> bool {
        self.policy == Policy::Elevated || self.requires_confirmation
    }

    /// Returns the total time limit of one call: its own, or the default of its kind.
    pub fn deadline(&self) -> Duration {
        const CAP: Duration = Duration::from_mins(10);
        if let Some(millis) = self.execution.timeout_ms {
            return Duration::from_millis(millis);
        }
        match &self.implementation {
            Implementation::Http(http) => {
                let tries = self.execution.retry.as_ref().map_or(3, |retry| retry.attempts.saturating_add(1));
                let rounds = tries.saturating_mul(u32::try_from(http.steps.len().max(1)).unwrap_or(u32::MAX));
                http.timeout().saturating_mul(rounds).min(CAP)
            }
            Implementation::Exec(_) | Implementation::AgentCall(_) => Duration::from_mins(1),
            Implementation::Steps(_) => Duration::from_mins(5),
            _ => Duration::from_secs(30),
        }
    }

    /// Returns the names of the declared arguments.
    pub fn declared_arguments(&self) -> Vec<String> {
        let schema = self.input_schema.value();
        declared_properties(&schema).into_iter().map(|(name, _)| name.to_owned()).collect()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

/// The call policy of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// Every caller may call it.
    #[default]
    Allow,
    /// Nobody may call it.
    Deny,
    /// Elevated callers may call it; others need approval.
    Elevated,
}

impl Policy {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
    fn is_default(&self) -> bool {
        *self == Self::Allow
    }

    /// Returns the name used in every dialect.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Elevated => "elevated",
        }
    }
}

/// The execution settings of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct Execution {
    /// Whether the same arguments always give the same value and there are no side effects.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub is_pure: bool,
    /// The group of calls that share `max_concurrency` within one agent run.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub concurrency_group: String,
    /// How many calls of the group run at once within one agent run.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub max_concurrency: u32,
    /// The total time limit of one call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The retry settings; by default the safe ones of the kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// How arguments are validated.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub validation: Validation,
    /// Limits of size and parallelism.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub limits: Limits,
    /// The rate limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_limit: Option<RateLimit>,
}

impl Default for Execution {
    fn default() -> Self {
        Self {
            is_pure: false,
            concurrency_group: "default".to_owned(),
            max_concurrency: 1,
            timeout_ms: None,
            retry: None,
            validation: Validation::Strict,
            limits: Limits::default(),
            rate_limit: None,
        }
    }
}

impl Execution {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The retry settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Retry {
    /// The number of retries after the first attempt.
    pub attempts: u32,
    /// The delay before the first retry; it doubles each time.
    #[serde(default = "default_backoff")]
    #[cfg_attr(feature = "openapi", schema(required))]
    pub backoff_ms: u64,
}

/// Returns the default delay before the first retry, in milliseconds.
pub const fn default_backoff() -> u64 {
    200
}

/// How arguments are validated against the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Validation {
    /// Strictly.
    #[default]
    Strict,
    /// After the coercions of [`crate::coerce`].
    Coerce,
    /// Not at all.
    None,
}

/// The limits of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = ExecutionLimits))]
#[serde(default)]
pub struct Limits {
    /// The maximum size of one request, in bytes.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub max_request_bytes: u64,
    /// The maximum size of one response, in bytes.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub max_response_bytes: u64,
    /// The maximum number of concurrent calls on the server; unlimited by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_parallel: Option<u32>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_request_bytes: 1024 * 1024, max_response_bytes: 4 * 1024 * 1024, max_parallel: None }
    }
}

/// A rate limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RateLimit {
    /// The number of calls.
    pub calls: u32,
    /// The period, a duration such as `1m`.
    pub per: String,
}

impl RateLimit {
    /// Returns the period; a bare number is in seconds.
    pub fn period(&self) -> Result<Duration, DurationError> {
        duration::parse(&self.per, Duration::from_secs(1))
    }
}

/// A renderer of results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Renderer {
    /// The kind of renderer, such as `code`.
    pub renderer: String,
    /// The highest priority wins.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required))]
    pub priority: i64,
    /// The settings of the renderer.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required))]
    pub config: Map<String, Value>,
}

/// The operation of an API description that a tool was imported from; a later import finds the tool by it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Origin {
    /// The title of the document.
    pub document: String,
    /// The operation, such as `GET /pets/{id}`.
    pub operation: String,
    /// The `operationId`, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation_id: Option<String>,
    /// Digests of the imported values of editable fields; a field with another digest was edited.
    #[serde(default, rename = "said", skip_serializing_if = "BTreeMap::is_empty")]
    pub digests: BTreeMap<String, String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_never_overflows() {
        let http = crate::implementation::Http { timeout_ms: Some(u64::MAX), ..Default::default() };
        let name = ToolName::new("t").unwrap();
        let mut spec = ToolSpec::new(name, Implementation::Http(Box::new(http)));
        spec.execution.retry = Some(Retry { attempts: u32::MAX, backoff_ms: 0 });
        assert_eq!(spec.deadline(), Duration::from_mins(10));
    }
}
