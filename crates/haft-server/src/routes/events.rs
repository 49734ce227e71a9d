//! `/events`: the live events of a tenant.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use haft_core::live::{
    AgentEvent, ArtifactEvent, ChatEvent, DocumentEvent, MemberEvent, PipelineEvent, RunStatusEvent,
};
use haft_core::outcome::ErrorCode;
use serde::Serialize;
use utoipa::ToSchema;

use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::event_stream::{self, EventFilter};
use crate::open_stream::StreamingCaller;
use crate::params::Params;
use crate::sse;
use haft_api::event::{ApprovalEvent, BundleEvent, CallEvent, ServerEvent, ToolEvent};
use haft_platform::Installation;
use haft_platform::events::Topic;

/// One event of the stream.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only describes the stream")]
pub(crate) struct StreamedLiveEvent {
    /// What to send as `Last-Event-ID` to continue after this event.
    #[schema(example = "5d41402abc4b-7")]
    id: String,
    event: LiveEventName,
    /// What happened, as JSON; empty for `ready` and `reset`.
    data: LiveEventData,
}

/// The name of an event.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "only describes the stream")]
pub(crate) enum LiveEventName {
    /// The first event: nothing is missed from now on.
    Ready,
    /// Events are missing: load again what you show.
    Reset,
    /// A tool was created, changed or deleted.
    Tool,
    /// A bundle was created, changed or deleted.
    Bundle,
    /// A call is queued, runs, waits for approval, or has ended.
    Call,
    /// An approval was requested or decided, or has expired.
    Approval,
    /// The state of an MCP server changed.
    Server,
    /// An agent was created, changed, published or deleted, by the API or in its file.
    Agent,
    /// A run was created or has another status.
    Run,
    /// A chat was created, changed or deleted, or has a new message or a complete answer.
    Chat,
    /// A pipeline was created, changed, published or deleted.
    Pipeline,
    /// A document was added, read further or deleted; at most a few times a second, and once for many documents.
    Document,
    /// A code artifact was created, changed or deleted.
    Artifact,
    /// A person, a service account or a group was created, changed or deleted.
    Member,
}

/// An empty object.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoData {}

/// The data of an event.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only describes the stream")]
pub(crate) enum LiveEventData {
    /// `ready` and `reset` say nothing more.
    Nothing(NoData),
    Tool(ToolEvent),
    Bundle(BundleEvent),
    Call(CallEvent),
    Approval(ApprovalEvent),
    Server(ServerEvent),
    Agent(AgentEvent),
    Run(RunStatusEvent),
    Chat(ChatEvent),
    Pipeline(PipelineEvent),
    Document(DocumentEvent),
    Artifact(ArtifactEvent),
    Member(MemberEvent),
}

/// Stream what happens in the tenant: changed tools and bundles, calls, approvals, MCP servers, agents, runs, chats,
/// pipelines, documents, artifacts, people and groups. Callers see their own calls, approvals and runs, and the tools they may call; editors
/// and admins those of the tenant. Chats are shown to those who may read them, people and groups to admins.
#[utoipa::path(
    get, path = "/events", tag = "events",
    params(
        ("topics" = Option<String>, Query, description = "Only these, separated by commas: `tools`, `bundles`, `calls`, `approvals`, `servers`, `agents`, `runs`, `chats`, `pipelines`, `documents`, `artifacts`, `people`; default: all", example = "calls,approvals"),
        ("Last-Event-ID" = Option<String>, Header, description = "Continue after the event with this id"),
    ),
    responses(
        (status = 200, content_type = "text/event-stream", body = StreamedLiveEvent, description = "One of these per event"),
        (status = 503, body = ErrorBody, description = "Too many streams are open"),
    )
)]
pub(crate) async fn stream(
    State(app): State<Arc<Installation>>,
    StreamingCaller(identity, permit): StreamingCaller,
    params: Params,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let filter = EventFilter { principal: identity.principal(), topics: topics(&params)? };
    let last = sse::last_event_id(&headers);
    let subscription = app.events().subscribe(&identity.tenant, last).ok_or_else(|| {
        let message = "too many event streams of this tenant are open; close one, or retry later";
        ApiError::new(ErrorCode::Overloaded, message)
    })?;
    let events = event_stream::stream(Arc::clone(&app), subscription, filter);
    Ok(sse::response(events, identity.stream_end(&app), permit))
}

fn topics(params: &Params) -> Result<Vec<Topic>, ApiError> {
    let named = params.list("topics");
    if named.is_empty() {
        return Ok(Topic::ALL.to_vec());
    }
    let parse = |name: &String| {
        Topic::ALL.into_iter().find(|topic| topic.as_str() == name).ok_or_else(|| {
            let name = haft_core::problem::excerpt(name, 60);
            let all = Topic::ALL.map(|topic| format!("`{}`", topic.as_str())).join(", ");
            ApiError::bad_request(format!("invalid `topics`: `{name}`; expected some of {all}"))
        })
    };
    named.iter().map(parse).collect()
}
