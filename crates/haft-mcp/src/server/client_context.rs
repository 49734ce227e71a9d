//! The client of a request: its token, its rights, and its view of the tools.

use std::sync::Arc;

use haft_core::name::{BundleSlug, TenantId};
use haft_core::runnable::Mode;
use haft_core::token::Role;
use haft_core::tool::Tool;
use haft_runtime::pipeline::{CallOptions, Principal};
use haft_runtime::policy::PolicyHandle;
use haft_runtime::registry::{Audience, Naming, Snapshot, ToolOffer};

/// The surface of calls that arrive through MCP.
pub(super) const SURFACE: &str = "mcp";

/// The tools that a client sees, selected by the path it connects to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum View {
    /// All tools that its token can see.
    All,
    /// The tools of one bundle.
    Bundle(BundleSlug),
}

/// The client that sent a request.
#[derive(Debug, Clone)]
pub struct ClientContext {
    /// Who calls.
    pub principal: Arc<Principal>,
    /// The mode in which tools run.
    pub mode: Mode,
    /// The tools that the client sees.
    pub view: View,
    /// The id of the HTTP request, for the call record.
    pub request_id: Option<String>,
    /// The session or connection of the client, for limits and approvals; `None` in versions without sessions.
    pub session: Option<Arc<str>>,
    /// The policy rules: a tool that they deny whatever the arguments is not listed.
    pub policy: Arc<PolicyHandle>,
}

/// Identifies to whom state belongs that outlives a request, such as a session.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct SessionKey {
    pub(super) tenant: TenantId,
    pub(super) principal: Arc<str>,
    pub(super) view: View,
}

tokio::task_local! {
    /// The client of the request that this task handles, for callbacks that rmcp gives no context.
    static CLIENT: ClientContext;
}

/// Runs `future` with `client` as the current client.
pub(super) async fn with<F: Future>(client: ClientContext, future: F) -> F::Output {
    CLIENT.scope(client, future).await
}

/// Returns the client of the request that this task handles.
pub(super) fn current() -> Option<ClientContext> {
    CLIENT.try_with(ClientContext::clone).ok()
}

impl ClientContext {
    /// Returns the key of state created for this client.
    pub(super) fn session_key(&self) -> SessionKey {
        let principal = &self.principal;
        SessionKey { tenant: principal.tenant.clone(), principal: principal.id(), view: self.view.clone() }
    }

    /// Returns the options of a call of this client.
    pub(super) fn options(&self) -> Option<Box<CallOptions>> {
        let (request_id, session) = (self.request_id.clone(), self.session.clone());
        let has_any = request_id.is_some() || session.is_some();
        has_any.then(|| Box::new(CallOptions { request_id, session, ..CallOptions::default() }))
    }

    /// Returns the tenant of the client.
    pub(super) fn tenant(&self) -> &TenantId {
        &self.principal.tenant
    }

    /// Returns for whom tools are named. A name that the client has seen never starts to mean another tool.
    pub(super) fn audience(&self) -> Audience<'_> {
        Audience { tenant: self.tenant(), mode: self.mode, naming: Naming::FirstCome }
    }

    /// Returns whether the client can call tools, not only list them.
    pub(super) fn may_call(&self) -> bool {
        self.principal.role >= Role::Caller
    }

    /// Returns whether a tool is in view.
    pub(super) fn sees(&self, tool: &Tool) -> bool {
        let is_in_view = match &self.view {
            View::All => true,
            View::Bundle(slug) => *slug == tool.bundle,
        };
        is_in_view && self.policy.may_call(&self.principal, tool, SURFACE)
    }

    /// Returns the tools in view, in list order.
    pub(super) fn offers<'a>(&'a self, snapshot: &'a Snapshot) -> Vec<ToolOffer<'a>> {
        let mut offers = snapshot.offers(self.audience());
        offers.retain(|offer| self.sees(&offer.entry.tool));
        offers
    }
}
