//! Changes of agents, runs, chats, pipelines, documents, artifacts, people and groups, as pages see them live: ids and statuses, no
//! content. They are read back, too, because nodes tell each other about them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::actor::ActorKind;
use crate::id::{AgentId, ArtifactId, ChatId, DocumentId, MessageId, PipelineId, RunId};
use crate::name::TenantId;
use crate::retrieval::{DocumentState, IngestProgress};
use crate::run::RunStatus;
use crate::tool::Status;

/// A change in a tenant, and who may see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectChange {
    /// The tenant.
    pub tenant: TenantId,
    /// Who may see it.
    pub audience: ObjectAudience,
    /// What happened.
    pub event: ObjectEvent,
}

/// Who may see a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ObjectAudience {
    /// Everybody in the tenant.
    Tenant,
    /// The principal with this id, and editors.
    OwnerAndEditors(Arc<str>),
    /// The principal with this id, and admins.
    OwnerAndAdmins(Arc<str>),
}

/// What happened to which object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ObjectEvent {
    /// An agent.
    Agent(AgentEvent),
    /// A run of an agent.
    Run(RunStatusEvent),
    /// A chat.
    Chat(ChatEvent),
    /// A pipeline.
    Pipeline(PipelineEvent),
    /// A document of a pipeline.
    Document(DocumentEvent),
    /// A code artifact.
    Artifact(ArtifactEvent),
}

/// What happened to an object that has no other states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ObjectAction {
    /// It is new.
    Created,
    /// It has changed.
    Updated,
    /// It is gone.
    Deleted,
}

/// A changed agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AgentEvent {
    /// What happened.
    pub change: ResourceAction,
    /// Its id.
    #[cfg_attr(feature = "openapi", schema(value_type = uuid::Uuid))]
    pub id: AgentId,
    /// Its slug.
    #[cfg_attr(feature = "openapi", schema(example = "assistant"))]
    pub agent: String,
    /// Its status.
    pub status: Status,
    /// Whether it may run.
    pub enabled: bool,
}

/// What happened to a resource, by the API or in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ResourceAction {
    /// It was created or restored.
    Created,
    /// It has another definition or status, or its file became valid or invalid.
    Updated,
    /// It is gone.
    Deleted,
    /// Its newest revision was published.
    Published,
    /// It was deprecated.
    Deprecated,
    /// It may be used.
    Enabled,
    /// It may not be used.
    Disabled,
}

/// The new status of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunStatusEvent {
    /// What happened: `created` or `updated`.
    pub change: ObjectAction,
    /// Its id.
    #[cfg_attr(feature = "openapi", schema(value_type = uuid::Uuid))]
    pub id: RunId,
    /// The agent that runs.
    #[cfg_attr(feature = "openapi", schema(value_type = uuid::Uuid))]
    pub agent_id: AgentId,
    /// Its status.
    pub status: RunStatus,
    /// The chat that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<uuid::Uuid>))]
    pub chat_id: Option<ChatId>,
    /// The run that started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<uuid::Uuid>))]
    pub parent_run_id: Option<RunId>,
}

/// A changed chat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ChatEvent {
    /// What happened.
    pub change: ChatAction,
    /// Its id.
    #[cfg_attr(feature = "openapi", schema(value_type = uuid::Uuid))]
    pub id: ChatId,
    /// Whether everybody in the tenant may read it.
    pub shared: bool,
    /// The message that was added or completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<uuid::Uuid>))]
    pub message_id: Option<MessageId>,
}

/// What happened to a chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ChatAction {
    /// It is new.
    Created,
    /// It has another title, agent or branch, or is shared or no longer.
    Updated,
    /// It has a new message.
    Message,
    /// The answer of an agent is complete.
    Answer,
    /// It is gone.
    Deleted,
}

/// A changed pipeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PipelineEvent {
    /// What happened.
    pub change: ResourceAction,
    /// Its id.
    #[cfg_attr(feature = "openapi", schema(value_type = uuid::Uuid))]
    pub id: PipelineId,
    /// Its slug.
    #[cfg_attr(feature = "openapi", schema(example = "handbook"))]
    pub pipeline: String,
    /// Its status.
    pub status: Status,
}

/// A changed document of a pipeline, or many of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DocumentEvent {
    /// What happened.
    pub change: ObjectAction,
    /// Its pipeline.
    #[cfg_attr(feature = "openapi", schema(value_type = uuid::Uuid))]
    pub pipeline_id: PipelineId,
    /// Its id; missing if many documents changed at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<uuid::Uuid>))]
    pub id: Option<DocumentId>,
    /// The state of its ingestion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<DocumentState>,
    /// How far its embedding is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<IngestProgress>,
}

/// A changed code artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ArtifactEvent {
    /// What happened.
    pub change: ResourceAction,
    /// Its id.
    #[cfg_attr(feature = "openapi", schema(value_type = uuid::Uuid))]
    pub id: ArtifactId,
    /// Its slug.
    #[cfg_attr(feature = "openapi", schema(example = "report-builder"))]
    pub artifact: String,
    /// Its newest version.
    pub version: u32,
}

/// A changed person, service account or group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MemberEvent {
    /// What happened.
    pub change: ObjectAction,
    /// What it is; missing if many of the tenant changed at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<MemberKind>,
    /// Its id; missing if many of the tenant changed at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<uuid::Uuid>))]
    pub id: Option<uuid::Uuid>,
}

/// Who has rights in a tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum MemberKind {
    /// A person.
    Person,
    /// A service account.
    ServiceAccount,
    /// A group of both.
    Group,
}

impl From<ActorKind> for MemberKind {
    fn from(kind: ActorKind) -> Self {
        match kind {
            ActorKind::Person => MemberKind::Person,
            ActorKind::ServiceAccount => MemberKind::ServiceAccount,
        }
    }
}
