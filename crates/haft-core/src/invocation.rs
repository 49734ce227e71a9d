//! A call as it was requested: all that is needed to authorise and run it later, on another node.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::BoxFuture;
use crate::executor::CallContext;
use crate::id::{CallId, ToolId, WebhookId};
use crate::name::TenantId;
use crate::outcome::Outcome;
use crate::principal::Principal;
use crate::reference::ToolRef;
use crate::runnable::Mode;
use crate::token::Role;
use crate::workspace::WorkspaceName;

/// A request to run one tool, resolved and with its arguments checked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "StoredInvocation")]
pub struct Invocation {
    /// The id of the call.
    pub id: CallId,
    /// What is above it, if it is nested or made for a run.
    #[serde(skip_serializing_if = "Lineage::is_empty")]
    pub lineage: Lineage,
    /// Who calls, for which tenant.
    pub principal: Arc<Principal>,
    /// The interface that the call came through: `rest`, `cli`, `mcp`, …
    pub surface: Cow<'static, str>,
    /// The tool.
    pub tool_id: ToolId,
    /// `bundle:name@version` at the time of the call.
    pub tool: Arc<str>,
    /// The revision that ran, or that the requester saw.
    pub revision: u32,
    /// The hash of that revision, if the call had to wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub definition_hash: Option<String>,
    /// The mode.
    pub mode: Mode,
    /// The arguments.
    pub args: Value,
    /// The hash of the arguments, if the call has an idempotency key or had to wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args_digest: Option<String>,
    /// The idempotency key; a repeated request with the same key returns this call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// The id of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The chat that the call belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat_id: Option<String>,
    /// The message that the call belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// The workspace that the call works in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<WorkspaceName>,
    /// The session that the call belongs to: the chat, or the connection of an MCP client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<Arc<str>>,
    /// The webhook that the end of this call is delivered to, besides those of the tenant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook: Option<WebhookId>,
    /// The timeout that the request set instead of the tool's, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Whether the tool has no side effects, so that a call that was cut off may run again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_pure: bool,
    /// The claim that the call runs under, if it comes from the queue; 0 otherwise. It belongs to the node that runs the
    /// call and is never stored with the record.
    #[serde(skip)]
    pub fence: i64,
}

impl Invocation {
    /// Returns the tenant that the call runs for.
    pub fn tenant(&self) -> &TenantId {
        &self.principal.tenant
    }
}

/// What is above a call: the calls that led to it, and the surfaces that they came through. The agents above it belong
/// to its principal.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Lineage {
    /// The call that made this one.
    pub parent: Option<CallId>,
    /// The first call of the chain.
    pub root: Option<CallId>,
    /// The number of calls above this one.
    pub depth: u32,
    /// The surfaces of everything above this call, each once, that of the root first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub surfaces: Vec<Cow<'static, str>>,
}

impl Lineage {
    /// Returns the lineage of a call that another one makes.
    pub fn below(parent: &CallContext) -> Self {
        Self {
            parent: Some(parent.id),
            root: Some(parent.lineage.root.unwrap_or(parent.id)),
            depth: parent.lineage.depth + 1,
            surfaces: parent.surfaces_below(),
        }
    }

    /// Returns whether no other call made this one.
    pub fn is_root(&self) -> bool {
        self.parent.is_none()
    }

    /// Returns whether nothing is above the call.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A call that a tool makes while it runs.
#[derive(Debug, Clone)]
pub struct NestedCall {
    /// The tool to call.
    pub tool: ToolRef,
    /// The arguments.
    pub args: Map<String, Value>,
    /// The surface for the record: the name of the tool that calls.
    pub surface: &'static str,
    /// The id of the request that led to it.
    pub request_id: Option<String>,
}

/// Runs the calls that a running tool makes: through the same pipeline, with the rights of its caller and within its
/// deadline.
pub trait Invoker: Send + Sync {
    /// Runs a nested call to its end.
    fn invoke(self: Arc<Self>, parent: &CallContext, call: NestedCall) -> BoxFuture<'_, Outcome>;
}

/// An invocation as it is stored. Earlier versions stored the tenant and the name of the caller instead of the principal.
#[derive(Deserialize)]
struct StoredInvocation {
    id: CallId,
    #[serde(default)]
    lineage: Lineage,
    principal: Option<Arc<Principal>>,
    tenant: Option<TenantId>,
    caller: Option<Arc<str>>,
    surface: Cow<'static, str>,
    tool_id: ToolId,
    tool: Arc<str>,
    revision: u32,
    definition_hash: Option<String>,
    mode: Mode,
    args: Value,
    args_digest: Option<String>,
    idempotency_key: Option<String>,
    request_id: Option<String>,
    chat_id: Option<String>,
    message_id: Option<String>,
    workspace: Option<WorkspaceName>,
    session: Option<Arc<str>>,
    webhook: Option<WebhookId>,
    timeout_ms: Option<u64>,
    #[serde(default)]
    is_pure: bool,
}

impl From<StoredInvocation> for Invocation {
    fn from(stored: StoredInvocation) -> Self {
        let principal = stored.principal.unwrap_or_else(|| {
            let tenant = stored.tenant.unwrap_or_else(TenantId::default_tenant);
            Arc::new(Principal::new(tenant, stored.caller.unwrap_or_default(), Role::Caller))
        });
        Self {
            id: stored.id,
            lineage: stored.lineage,
            principal,
            surface: stored.surface,
            tool_id: stored.tool_id,
            tool: stored.tool,
            revision: stored.revision,
            definition_hash: stored.definition_hash,
            mode: stored.mode,
            args: stored.args,
            args_digest: stored.args_digest,
            idempotency_key: stored.idempotency_key,
            request_id: stored.request_id,
            chat_id: stored.chat_id,
            message_id: stored.message_id,
            workspace: stored.workspace,
            session: stored.session,
            webhook: stored.webhook,
            timeout_ms: stored.timeout_ms,
            is_pure: stored.is_pure,
            fence: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lineage_of_an_earlier_version_has_no_surfaces() {
        let id = CallId(uuid::Uuid::nil());
        let stored = serde_json::json!({"parent": id, "root": id, "depth": 2});
        let lineage: Lineage = serde_json::from_value(stored.clone()).unwrap();
        assert_eq!(lineage, Lineage { parent: Some(id), root: Some(id), depth: 2, surfaces: Vec::new() });
        assert_eq!(serde_json::to_value(&lineage).unwrap(), stored);
        let below = Lineage { surfaces: vec!["mcp".into(), "steps".into()], ..lineage };
        let json = serde_json::to_string(&below).unwrap();
        assert_eq!(serde_json::from_str::<Lineage>(&json).unwrap(), below);
        let of_run = Lineage { surfaces: vec!["rest".into()], ..Lineage::default() };
        assert!(of_run.is_root() && !of_run.is_empty() && Lineage::default().is_empty());
    }
}
