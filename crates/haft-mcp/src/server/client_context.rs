//! The client of a request: its token, its rights, and its view of the tools.

use std::sync::Arc;

use haft_core::name::{BundleSlug, TenantId};
use haft_core::runnable::Mode;
use haft_runtime::pipeline::Caller;
use haft_runtime::registry::{Snapshot, ToolOffer};

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
    /// The tenant of the client.
    pub tenant: TenantId,
    /// Identifies the token. Not a secret.
    pub token: Arc<str>,
    /// The caller that the pipeline authorises and records.
    pub caller: Caller,
    /// Whether the token can call tools, not only list them.
    pub may_call: bool,
    /// The mode in which tools run.
    pub mode: Mode,
    /// The tools that the client sees.
    pub view: View,
    /// The id of the HTTP request, for the call record.
    pub request_id: Option<String>,
}

/// The owner of state that outlives a request, such as a session.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Owner {
    pub(super) tenant: TenantId,
    pub(super) token: Arc<str>,
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
    /// Returns the owner of state created for this client.
    pub(super) fn owner(&self) -> Owner {
        Owner { tenant: self.tenant.clone(), token: Arc::clone(&self.token), view: self.view.clone() }
    }

    /// Returns whether a bundle is in view.
    pub(super) fn sees(&self, bundle: &BundleSlug) -> bool {
        match &self.view {
            View::All => true,
            View::Bundle(slug) => slug == bundle,
        }
    }

    /// Returns the tools in view, in list order.
    pub(super) fn offers<'a>(&'a self, snapshot: &'a Snapshot) -> Vec<ToolOffer<'a>> {
        let mut offers = snapshot.offers(&self.tenant, self.mode);
        offers.retain(|offer| self.sees(&offer.entry.tool.bundle));
        offers
    }
}
