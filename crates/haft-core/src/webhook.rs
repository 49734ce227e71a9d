//! Webhooks: which events are delivered where, and what became of each delivery.

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::approval::ApprovalStatus;
use crate::id::{DeliveryId, WebhookId};
use crate::name::TenantId;
use crate::problem::excerpt;
use crate::tool_pattern::ToolPattern;

/// The maximum number of patterns in a [`ToolPatterns`].
const MAX_PATTERNS: usize = 64;

/// Something that happened, as webhooks name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum WebhookEvent {
    /// A call has ended, however it ended.
    #[serde(rename = "call.finished")]
    CallFinished,
    /// A run of an agent has ended, however it ended.
    #[serde(rename = "run.finished")]
    RunFinished,
    /// A call waits for a person's decision.
    #[serde(rename = "approval.requested")]
    ApprovalRequested,
    /// A person approved or denied a call.
    #[serde(rename = "approval.decided")]
    ApprovalDecided,
    /// Nobody decided in time, or the tool was changed meanwhile.
    #[serde(rename = "approval.expired")]
    ApprovalExpired,
    /// The call was cancelled before anybody decided.
    #[serde(rename = "approval.cancelled")]
    ApprovalCancelled,
    /// An admin tests the webhook; delivered whatever events the webhook selects.
    #[serde(rename = "webhook.test")]
    Test,
}

impl WebhookEvent {
    /// The events that a webhook can select.
    pub const SELECTABLE: [WebhookEvent; 6] = [
        WebhookEvent::CallFinished,
        WebhookEvent::RunFinished,
        WebhookEvent::ApprovalRequested,
        WebhookEvent::ApprovalDecided,
        WebhookEvent::ApprovalExpired,
        WebhookEvent::ApprovalCancelled,
    ];

    /// Returns the name used in JSON and in the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            WebhookEvent::CallFinished => "call.finished",
            WebhookEvent::RunFinished => "run.finished",
            WebhookEvent::ApprovalRequested => "approval.requested",
            WebhookEvent::ApprovalDecided => "approval.decided",
            WebhookEvent::ApprovalExpired => "approval.expired",
            WebhookEvent::ApprovalCancelled => "approval.cancelled",
            WebhookEvent::Test => "webhook.test",
        }
    }

    /// Parses the name that [`WebhookEvent::as_str`] returns.
    pub fn parse(text: &str) -> Option<Self> {
        Self::SELECTABLE.into_iter().chain([Self::Test]).find(|event| event.as_str() == text)
    }

    /// Returns the event of an approval that has reached a status.
    pub const fn of_approval(status: ApprovalStatus) -> Self {
        match status {
            ApprovalStatus::Waiting => Self::ApprovalRequested,
            ApprovalStatus::Approved | ApprovalStatus::Denied => Self::ApprovalDecided,
            ApprovalStatus::Expired => Self::ApprovalExpired,
            ApprovalStatus::Cancelled => Self::ApprovalCancelled,
        }
    }
}

/// The tools that events are about: those that match a [`ToolPattern`] by name. No patterns match every tool.
///
/// An event has the name of its tool but not its tags, so patterns by tag are rejected; one that an earlier version
/// stored matches nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ToolPatterns(Vec<ToolPattern>);

/// An invalid list of patterns.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolPatternError {
    /// Too many patterns.
    #[error("{0} patterns; the limit is {MAX_PATTERNS}")]
    TooMany(usize),
    /// A pattern that is empty, too long, or contains other characters.
    #[error("invalid pattern `{0}`: expected a tool name or `bundle:name`, where `*` stands for any text")]
    Invalid(String),
    /// A pattern by tag.
    #[error("invalid pattern `{0}`: webhooks select tools by name; expected a tool name or `bundle:name`")]
    Tag(String),
}

impl ToolPatterns {
    /// Parses patterns.
    pub fn new<T: AsRef<str>>(patterns: &[T]) -> Result<Self, ToolPatternError> {
        if patterns.len() > MAX_PATTERNS {
            return Err(ToolPatternError::TooMany(patterns.len()));
        }
        let parse = |text: &T| match text.as_ref().parse::<ToolPattern>() {
            Ok(ToolPattern::Tag(_)) => Err(ToolPatternError::Tag(excerpt(text.as_ref(), 60))),
            Ok(pattern) => Ok(pattern),
            Err(error) => Err(ToolPatternError::Invalid(error.0)),
        };
        patterns.iter().map(parse).collect::<Result<Vec<_>, _>>().map(Self)
    }

    /// Returns the patterns as text.
    pub fn texts(&self) -> Vec<String> {
        self.0.iter().map(ToolPattern::to_string).collect()
    }

    /// Returns whether a tool matches, by its `bundle:name@version`.
    pub fn matches(&self, qualified: &str) -> bool {
        let (bundle, rest) = qualified.split_once(':').unwrap_or(("", qualified));
        let name = rest.split('@').next().unwrap_or(rest);
        self.0.is_empty() || self.0.iter().any(|pattern| pattern.matches_parts(bundle, name, &[]))
    }
}

/// What a webhook is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WebhookScope {
    /// The selected events of the tenant.
    Tenant,
    /// The end of one call or run.
    Call,
}

impl WebhookScope {
    /// Returns the name used in the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            WebhookScope::Tenant => "tenant",
            WebhookScope::Call => "call",
        }
    }
}

/// A webhook, without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    /// The id.
    pub id: WebhookId,
    /// The tenant whose events it receives.
    pub tenant: TenantId,
    /// Its purpose.
    pub scope: WebhookScope,
    /// What it receives and where.
    pub target: WebhookTarget,
    /// Whether events are delivered.
    pub enabled: bool,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub modified_at: Timestamp,
}

impl Webhook {
    /// Returns whether an event about a tool is delivered to it.
    pub fn selects(&self, event: WebhookEvent, tool: &str) -> bool {
        self.subscribes(event) && self.target.tools.matches(tool)
    }

    /// Returns whether an event that is not about a tool is delivered to it.
    pub fn subscribes(&self, event: WebhookEvent) -> bool {
        self.enabled && self.scope == WebhookScope::Tenant && self.target.events.contains(&event)
    }
}

/// What a webhook receives and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebhookTarget {
    /// The URL that events are posted to.
    pub url: String,
    /// The events.
    pub events: Vec<WebhookEvent>,
    /// The tools that the events are about.
    #[serde(default)]
    pub tools: ToolPatterns,
}

/// The state of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum DeliveryStatus {
    /// Not delivered yet; it is tried again.
    Pending,
    /// The receiver accepted it.
    Delivered,
    /// The last attempt failed; haft does not try again.
    Failed,
}

impl DeliveryStatus {
    /// Every status.
    pub const ALL: [DeliveryStatus; 3] =
        [DeliveryStatus::Pending, DeliveryStatus::Delivered, DeliveryStatus::Failed];

    /// Returns the name used in JSON and in the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            DeliveryStatus::Pending => "pending",
            DeliveryStatus::Delivered => "delivered",
            DeliveryStatus::Failed => "failed",
        }
    }

    /// Parses the name that [`DeliveryStatus::as_str`] returns.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }
}

/// The delivery of one event to one webhook.
#[derive(Debug, Clone, PartialEq)]
pub struct Delivery {
    /// The id, which the receiver sees as `webhook-id`.
    pub id: DeliveryId,
    /// The webhook.
    pub webhook: WebhookId,
    /// The event.
    pub event: WebhookEvent,
    /// The body, as it is sent.
    pub payload: String,
    /// The state.
    pub status: DeliveryStatus,
    /// The number of attempts.
    pub attempts: u32,
    /// When it is tried next, while it is pending.
    pub not_before: Timestamp,
    /// When the event happened.
    pub created_at: Timestamp,
    /// When it was last tried.
    pub attempted_at: Option<Timestamp>,
    /// The HTTP status of the last response.
    pub response_status: Option<u16>,
    /// Why the last attempt failed.
    pub error: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_names_and_bundles() {
        let list = |patterns: &[&str]| ToolPatterns::new(patterns);
        for (patterns, tool, expected) in [
            (&[][..], "web:fetch@1.0.0", true),
            (&["fetch"], "web:fetch@1.0.0", true),
            (&["fetch"], "web:fetch_all@1.0.0", false),
            (&["fetch*", "x"], "web:fetch_all@1.0.0", true),
            (&["web:*"], "web:fetch@1.0.0", true),
            (&["mail:*"], "web:fetch@1.0.0", false),
        ] {
            assert_eq!(list(patterns).unwrap().matches(tool), expected, "{patterns:?} {tool}");
        }
        for invalid in ["", ":", "a:", "a b", "a:b:c"] {
            assert_eq!(list(&[invalid]), Err(ToolPatternError::Invalid(invalid.to_owned())), "{invalid}");
        }
        assert_eq!(list(&["tag:x"]), Err(ToolPatternError::Tag("tag:x".to_owned())));
        // As earlier versions stored it.
        let stored: ToolPatterns = serde_json::from_str(r#"["tag:x","web:*"]"#).unwrap();
        assert_eq!(stored.texts(), ["tag:x", "web:*"]);
        assert!(stored.matches("web:fetch@1.0.0") && !stored.matches("tag:x@1.0.0"));
        assert_eq!(list(&["a"; 65]), Err(ToolPatternError::TooMany(65)));
    }

    #[test]
    fn names_are_parsed_back() {
        for event in WebhookEvent::SELECTABLE {
            assert_eq!(WebhookEvent::parse(event.as_str()), Some(event));
            assert_eq!(serde_json::to_value(event).unwrap(), event.as_str());
        }
        for status in DeliveryStatus::ALL {
            assert_eq!(DeliveryStatus::parse(status.as_str()), Some(status));
        }
    }
}
