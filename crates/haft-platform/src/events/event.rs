//! What an event says, and who may see it.

use std::sync::Arc;

use haft_core::Timestamp;
use haft_core::approval::{Approval, ApprovalStatus};
use haft_core::bundle::Bundle;
use haft_core::call::{CallRecord, CallStatus};
use haft_core::live::{MemberEvent, ObjectAudience, ObjectChange, ObjectEvent};
use haft_core::mcp::{Phase, ServerState};
use haft_core::name::BundleSlug;
use haft_core::outcome::ErrorCode;
use haft_core::principal::Principal;
use haft_core::resource::ResourceKind;
use haft_core::token::Role;
use haft_core::tool::{Status, Tool};
use serde::Serialize;
use uuid::Uuid;

/// What events are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topic {
    Tools,
    Bundles,
    Calls,
    Approvals,
    Servers,
    Agents,
    Runs,
    Chats,
    Pipelines,
    Documents,
    Artifacts,
    People,
}

impl Topic {
    pub const ALL: [Topic; 12] = [
        Topic::Tools,
        Topic::Bundles,
        Topic::Calls,
        Topic::Approvals,
        Topic::Servers,
        Topic::Agents,
        Topic::Runs,
        Topic::Chats,
        Topic::Pipelines,
        Topic::Documents,
        Topic::Artifacts,
        Topic::People,
    ];

    /// Returns its name in the query.
    pub const fn as_str(self) -> &'static str {
        match self {
            Topic::Tools => "tools",
            Topic::Bundles => "bundles",
            Topic::Calls => "calls",
            Topic::Approvals => "approvals",
            Topic::Servers => "servers",
            Topic::Agents => "agents",
            Topic::Runs => "runs",
            Topic::Chats => "chats",
            Topic::Pipelines => "pipelines",
            Topic::Documents => "documents",
            Topic::Artifacts => "artifacts",
            Topic::People => "people",
        }
    }

    /// Returns the name of its events.
    pub const fn event_name(self) -> &'static str {
        match self {
            Topic::Tools => "tool",
            Topic::Bundles => "bundle",
            Topic::Calls => "call",
            Topic::Approvals => "approval",
            Topic::Servers => "server",
            Topic::Agents => "agent",
            Topic::Runs => "run",
            Topic::Chats => "chat",
            Topic::Pipelines => "pipeline",
            Topic::Documents => "document",
            Topic::Artifacts => "artifact",
            Topic::People => "member",
        }
    }
}

/// An event of a feed.
pub struct LiveEvent {
    pub topic: Topic,
    /// The data as JSON.
    pub data: String,
    audience: EventAudience,
}

enum EventAudience {
    /// Everybody in the tenant.
    Tenant,
    /// Who may see the tool.
    Tool(Box<Tool>),
    /// Who may see the resource of this slug.
    Resource(ResourceKind, Box<str>),
    /// Who may see every pipeline.
    AllPipelines,
    /// Who called or runs an agent, and who sees the calls of others.
    Caller(Arc<str>),
    /// Who asked for approval, and who sees the approvals of others.
    Requester(Arc<str>),
    /// Whose chat it is, and admins.
    Owner(Arc<str>),
    /// Admins.
    Admins,
}

/// Returns whether a principal sees the calls of others.
pub fn sees_calls_of_others(principal: &Principal) -> bool {
    principal.role >= Role::Editor
}

/// Returns whether a principal sees the approvals of others.
pub fn sees_approvals_of_others(principal: &Principal) -> bool {
    principal.role >= Role::Editor || principal.elevated
}

impl LiveEvent {
    fn new(topic: Topic, data: &impl Serialize, audience: EventAudience) -> Option<Self> {
        Some(Self { topic, data: serde_json::to_string(data).ok()?, audience })
    }

    /// Returns the event of a tool: created or changed if it has a newer state, otherwise deleted.
    pub fn of_tool(old: Option<&Tool>, new: Option<&Tool>) -> Option<Self> {
        let tool = new.or(old)?;
        let event = ToolEvent {
            change: ToolChange::between(old, new),
            id: tool.id.0,
            name: tool.spec.name.to_string(),
            bundle: tool.bundle.to_string(),
            version: tool.spec.version.to_string(),
            status: tool.status,
            enabled: tool.enabled,
        };
        Self::new(Topic::Tools, &event, EventAudience::Tool(Box::new(tool.clone())))
    }

    /// Returns the event of a bundle: created or changed if it has a newer state, otherwise deleted.
    pub fn of_bundle(old: Option<&Bundle>, new: Option<&Bundle>) -> Option<Self> {
        let bundle = new.or(old)?;
        let change = match (old, new) {
            (_, None) => BundleChange::Deleted,
            (_, Some(new)) if new.soft_deleted_at.is_some() => BundleChange::Deleted,
            (None, Some(_)) => BundleChange::Created,
            (Some(old), Some(new)) if old.enabled != new.enabled => {
                if new.enabled {
                    BundleChange::Enabled
                } else {
                    BundleChange::Disabled
                }
            }
            (Some(_), Some(_)) => BundleChange::Updated,
        };
        let event =
            BundleEvent { change, id: bundle.id.0, slug: bundle.slug.to_string(), enabled: bundle.enabled };
        Self::new(Topic::Bundles, &event, EventAudience::Tenant)
    }

    /// Returns the event of a call.
    pub fn of_call(call: &CallRecord) -> Option<Self> {
        let invocation = &call.invocation;
        let event = CallEvent {
            id: call.id().0,
            tool: invocation.tool.to_string(),
            tool_id: invocation.tool_id.0,
            status: call.status,
            duration_ms: call.duration_ms,
            caller: invocation.principal.name.to_string(),
            surface: invocation.surface.to_string(),
            chat_id: invocation.chat_id.clone(),
            error_code: call.error.as_ref().map(|error| error.code),
            started_at: call.started_at,
            finished_at: call.finished_at,
        };
        Self::new(Topic::Calls, &event, EventAudience::Caller(invocation.principal.id()))
    }

    /// Returns the event of an approval.
    pub fn of_approval(approval: &Approval) -> Option<Self> {
        let event = ApprovalEvent {
            change: match approval.status {
                ApprovalStatus::Waiting => ApprovalChange::Requested,
                ApprovalStatus::Approved | ApprovalStatus::Denied => ApprovalChange::Decided,
                ApprovalStatus::Expired => ApprovalChange::Expired,
                ApprovalStatus::Cancelled => ApprovalChange::Cancelled,
            },
            id: approval.id.0,
            call_id: approval.call_id.0,
            tool: approval.tool.to_string(),
            tool_id: approval.tool_id.0,
            status: approval.status,
            requested_by: approval.requested_by.name.to_string(),
            decided_by: approval.decided_by.clone(),
        };
        Self::new(Topic::Approvals, &event, EventAudience::Requester(approval.requested_by.id()))
    }

    /// Returns the event of an MCP server.
    pub fn of_server(id: &BundleSlug, state: &ServerState) -> Option<Self> {
        let event = ServerEvent {
            id: id.to_string(),
            phase: state.phase,
            tools: state.tools,
            error: state.error.clone(),
        };
        Self::new(Topic::Servers, &event, EventAudience::Tenant)
    }

    /// Returns the event of an agent, a run, a chat, a pipeline, a document or an artifact.
    pub fn of_object(change: &ObjectChange) -> Option<Self> {
        let audience = match &change.audience {
            ObjectAudience::Tenant => EventAudience::Tenant,
            ObjectAudience::OwnerAndEditors(id) => EventAudience::Caller(Arc::clone(id)),
            ObjectAudience::OwnerAndAdmins(id) => EventAudience::Owner(Arc::clone(id)),
        };
        let of_resource = |kind, slug: &str| EventAudience::Resource(kind, slug.into());
        match &change.event {
            ObjectEvent::Agent(event) => {
                Self::new(Topic::Agents, event, of_resource(ResourceKind::Agent, &event.agent))
            }
            ObjectEvent::Run(event) => Self::new(Topic::Runs, event, audience),
            ObjectEvent::Chat(event) => Self::new(Topic::Chats, event, audience),
            ObjectEvent::Pipeline(event) => {
                Self::new(Topic::Pipelines, event, of_resource(ResourceKind::Pipeline, &event.pipeline))
            }
            // It has no slug that an allow-list could name.
            ObjectEvent::Document(event) => Self::new(Topic::Documents, event, EventAudience::AllPipelines),
            ObjectEvent::Artifact(event) => {
                Self::new(Topic::Artifacts, event, of_resource(ResourceKind::CodeArtifact, &event.artifact))
            }
        }
    }

    /// Returns the event of a person, a service account or a group.
    pub fn of_member(event: &MemberEvent) -> Option<Self> {
        Self::new(Topic::People, event, EventAudience::Admins)
    }

    /// Returns whether a principal may see it; `may_call` tells whether it may call a tool.
    pub fn is_visible_to(&self, principal: &Principal, may_call: impl Fn(&Tool) -> bool) -> bool {
        match &self.audience {
            EventAudience::Tenant => true,
            EventAudience::Tool(tool) => principal.role >= Role::Editor || may_call(tool),
            EventAudience::Resource(kind, slug) => principal.sees_resource(*kind, slug),
            EventAudience::AllPipelines => principal.sees_all(ResourceKind::Pipeline),
            EventAudience::Caller(id) => sees_calls_of_others(principal) || principal.id() == *id,
            EventAudience::Requester(id) => sees_approvals_of_others(principal) || principal.id() == *id,
            EventAudience::Owner(id) => principal.role >= Role::Admin || principal.id() == *id,
            EventAudience::Admins => principal.role >= Role::Admin,
        }
    }
}

/// A changed tool.
#[derive(Debug, Serialize)]
pub struct ToolEvent {
    change: ToolChange,
    id: Uuid,
    name: String,
    bundle: String,
    version: String,
    status: Status,
    enabled: bool,
}

/// What happened to a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ToolChange {
    Created,
    Updated,
    Deleted,
    Published,
    Deprecated,
    Enabled,
    Disabled,
}

impl ToolChange {
    fn between(old: Option<&Tool>, new: Option<&Tool>) -> Self {
        let (Some(old), Some(new)) = (old, new) else {
            return if new.is_some() { Self::Created } else { Self::Deleted };
        };
        let number = |tool: &Tool| tool.published.as_ref().map(|(number, _)| *number);
        if number(old) != number(new) && new.published.is_some() {
            Self::Published
        } else if old.enabled != new.enabled {
            if new.enabled { Self::Enabled } else { Self::Disabled }
        } else if old.status != new.status {
            match new.status {
                Status::Published => Self::Published,
                Status::Deprecated => Self::Deprecated,
                Status::Disabled => Self::Disabled,
                Status::Draft => Self::Updated,
            }
        } else {
            Self::Updated
        }
    }
}

/// A changed bundle.
#[derive(Debug, Serialize)]
pub struct BundleEvent {
    change: BundleChange,
    id: Uuid,
    slug: String,
    enabled: bool,
}

/// What happened to a bundle.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum BundleChange {
    Created,
    Updated,
    Deleted,
    Enabled,
    Disabled,
}

/// The new state of a call.
#[derive(Debug, Serialize)]
pub struct CallEvent {
    id: Uuid,
    /// `bundle:name@version`.
    tool: String,
    tool_id: Uuid,
    status: CallStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<f64>,
    /// The name of the token that called.
    caller: String,
    surface: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    chat_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_code: Option<ErrorCode>,
    started_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    finished_at: Option<Timestamp>,
}

/// The new state of an approval.
#[derive(Debug, Serialize)]
pub struct ApprovalEvent {
    change: ApprovalChange,
    id: Uuid,
    call_id: Uuid,
    /// `bundle:name@version`.
    tool: String,
    tool_id: Uuid,
    status: ApprovalStatus,
    requested_by: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    decided_by: Option<String>,
}

/// What happened to an approval.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ApprovalChange {
    Requested,
    Decided,
    Expired,
    Cancelled,
}

/// The new state of an MCP server.
#[derive(Debug, Serialize)]
pub struct ServerEvent {
    id: String,
    phase: Phase,
    /// How many of its tools were imported.
    tools: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}
