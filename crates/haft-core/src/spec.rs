//! The one definition of a tool that every dialect is turned into.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::duration::{self, DurationError};
use crate::implementation::Implementation;
use crate::name::{ToolName, Version};

/// What a tool is: the content of a revision. Two equal specs have the same hash.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// The identifier within the bundle.
    pub name: ToolName,
    /// The version label.
    pub version: Version,
    /// The name shown to people; empty where it is the same as `name`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub display_name: String,
    /// What the tool does, for the model and for people.
    #[serde(default)]
    pub description: String,
    /// A free grouping word.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub category: String,
    /// Free labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// How it runs.
    pub implementation: Implementation,
    /// JSON Schema of the arguments.
    #[serde(default = "empty_schema")]
    pub input_schema: Value,
    /// JSON Schema of the value; `{}` accepts everything.
    #[serde(default = "empty_schema", skip_serializing_if = "is_empty_schema")]
    pub output_schema: Value,
    /// How it is executed.
    #[serde(default, skip_serializing_if = "Execution::is_default")]
    pub execution: Execution,
    /// Who may call it.
    #[serde(default, skip_serializing_if = "Policy::is_default")]
    pub policy: Policy,
    /// Whether a person has to agree to each call.
    #[serde(default, skip_serializing_if = "is_false")]
    pub requires_confirmation: bool,
    /// Whether its processes see nothing of the host.
    #[serde(default, skip_serializing_if = "is_false")]
    pub sandbox: bool,
    /// Whether its processes may use the network.
    #[serde(default, skip_serializing_if = "is_false")]
    pub network: bool,
    /// The container image of its processes; `None` is the one of the configuration, or no container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// How its results are shown, highest priority first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub renderers: Vec<Renderer>,
    /// What it was imported from; `None` for a tool that somebody wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
}

impl ToolSpec {
    /// Makes a spec with every setting at its default.
    pub fn new(name: ToolName, implementation: Implementation) -> Self {
        Self {
            name,
            version: Version::initial(),
            display_name: String::new(),
            description: String::new(),
            category: String::new(),
            tags: Vec::new(),
            implementation,
            input_schema: empty_schema(),
            output_schema: empty_schema(),
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

    /// Returns the name for people.
    pub fn title(&self) -> &str {
        if self.display_name.is_empty() { self.name.as_str() } else { &self.display_name }
    }

    /// Tells whether a call needs an approval, or a caller that is elevated.
    pub fn needs_approval(&self) -> bool {
        self.policy == Policy::Elevated || self.requires_confirmation
    }

    /// Returns how long one call may take in all: what the definition says, or the default of its kind.
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
            _ => Duration::from_secs(30),
        }
    }

    /// Returns the names of the declared arguments.
    pub fn declared_arguments(&self) -> impl Iterator<Item = &str> {
        crate::schema::declared(&self.input_schema).into_iter().map(|(name, _)| name)
    }
}

/// Returns the schema that accepts everything.
pub fn empty_schema() -> Value {
    Value::Object(Map::new())
}

fn is_empty_schema(schema: &Value) -> bool {
    schema.as_object().is_some_and(Map::is_empty)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

/// Who may call a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// Everyone who may call tools.
    #[default]
    Allow,
    /// Nobody.
    Deny,
    /// Elevated callers; others need an approval.
    Elevated,
}

impl Policy {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
    fn is_default(&self) -> bool {
        *self == Self::Allow
    }

    /// Returns the spelling used in every dialect.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Elevated => "elevated",
        }
    }
}

/// How a tool is executed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Execution {
    /// Whether the same arguments always give the same value, without side effects.
    pub is_pure: bool,
    /// Calls of one group share `max_concurrency` within one agent run.
    pub concurrency_group: String,
    /// How many calls of the group run at once within one agent run.
    pub max_concurrency: u32,
    /// How long one call may take in all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// When and how often to try again; `None` means the safe default of the kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// How arguments are checked.
    pub validation: Validation,
    /// Bounds in bytes and in parallel calls.
    pub limits: Limits,
    /// How many calls in which time.
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

/// How often a failed attempt is repeated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retry {
    /// How many further attempts follow the first one.
    pub attempts: u32,
    /// The wait before the first repetition; it doubles each time.
    #[serde(default = "default_backoff")]
    pub backoff_ms: u64,
}

/// The wait before the first repetition where a definition names none.
pub const fn default_backoff() -> u64 {
    200
}

/// How arguments are checked against the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Validation {
    /// Exactly.
    #[default]
    Strict,
    /// After one documented coercion pass.
    Coerce,
    /// Not at all.
    None,
}

/// Bounds of one tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// The most bytes that one request of the tool sends.
    pub max_request_bytes: u64,
    /// The most bytes that one answer may have.
    pub max_response_bytes: u64,
    /// The most calls that run at once across the server; `None` is unbounded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_parallel: Option<u32>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_request_bytes: 1024 * 1024, max_response_bytes: 4 * 1024 * 1024, max_parallel: None }
    }
}

/// How many calls in which time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateLimit {
    /// How many calls.
    pub calls: u32,
    /// In which time, spelled as a duration such as `1m`.
    pub per: String,
}

impl RateLimit {
    /// Returns in which time; a bare number counts seconds.
    pub fn period(&self) -> Result<Duration, DurationError> {
        duration::parse(&self.per, Duration::from_secs(1))
    }
}

/// How a result may be shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Renderer {
    /// The kind of renderer, such as `code`.
    pub renderer: String,
    /// The highest priority wins.
    #[serde(default)]
    pub priority: i64,
    /// What the renderer needs.
    #[serde(default)]
    pub config: Map<String, Value>,
}

/// The operation of an API description that a tool was imported from, by which a later import finds it again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The title of the document.
    pub document: String,
    /// The operation, such as `GET /pets/{id}`.
    pub operation: String,
    /// Its own name in the document, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation_id: Option<String>,
    /// Digests of what the document said of fields that people edit: what is different now was edited.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub said: BTreeMap<String, String>,
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
