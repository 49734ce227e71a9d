//! Who is at the other end, and what they see.

use std::sync::Arc;

use haft_core::name::{BundleSlug, TenantId};
use haft_core::runnable::Mode;
use haft_runtime::pipeline::Caller;
use haft_runtime::registry::{Snapshot, ToolOffer};

/// Which tools a client sees: the path that it connected to says so.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum View {
    /// All that its token may.
    All,
    /// Those of one bundle.
    Bundle(BundleSlug),
}

/// Who is at the other end of a request.
#[derive(Debug, Clone)]
pub struct ClientContext {
    /// Whose tools they are.
    pub tenant: TenantId,
    /// Which token it is: nothing secret, but different for every one.
    pub token: Arc<str>,
    /// Who calls.
    pub caller: Caller,
    /// Whether the token may call tools, and not only see them.
    pub may_call: bool,
    /// In which mode tools run.
    pub mode: Mode,
    /// Which tools are seen.
    pub view: View,
    /// The request that brought the message, for the record.
    pub request_id: Option<String>,
}

/// Whose something is that outlives a request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Owner {
    pub(super) tenant: TenantId,
    pub(super) token: Arc<str>,
    pub(super) view: View,
}

tokio::task_local! {
    /// Who sent the request that this task answers, for those whom the transport does not tell.
    static SEAT: ClientContext;
}

/// Answers a request for someone.
pub(super) async fn with<F: Future>(seat: ClientContext, answering: F) -> F::Output {
    SEAT.scope(seat, answering).await
}

/// Returns who sent the request that this task answers.
pub(super) fn current() -> Option<ClientContext> {
    SEAT.try_with(ClientContext::clone).ok()
}

impl ClientContext {
    /// Returns who owns what is made for this seat.
    pub(super) fn owner(&self) -> Owner {
        Owner { tenant: self.tenant.clone(), token: Arc::clone(&self.token), view: self.view.clone() }
    }

    /// Tells whether a bundle is in view.
    pub(super) fn sees(&self, bundle: &BundleSlug) -> bool {
        match &self.view {
            View::All => true,
            View::Bundle(slug) => slug == bundle,
        }
    }

    /// Returns the tools in view, in the order of lists.
    pub(super) fn offers<'a>(&'a self, snapshot: &'a Snapshot) -> Vec<ToolOffer<'a>> {
        let mut offers = snapshot.offers(&self.tenant, self.mode);
        offers.retain(|offer| self.sees(&offer.entry.tool.bundle));
        offers
    }
}
