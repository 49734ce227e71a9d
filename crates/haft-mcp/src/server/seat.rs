//! Who is at the other end, and what they see.

use haft_core::name::{BundleSlug, TenantId};
use haft_core::runnable::Mode;
use haft_runtime::pipeline::Caller;
use haft_runtime::registry::{Offer, Snapshot};

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
pub struct Seat {
    /// Whose tools they are.
    pub tenant: TenantId,
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

impl Seat {
    /// Tells whether a bundle is in view.
    pub(super) fn sees(&self, bundle: &BundleSlug) -> bool {
        match &self.view {
            View::All => true,
            View::Bundle(slug) => slug == bundle,
        }
    }

    /// Returns the tools in view, in the order of lists.
    pub(super) fn offers<'a>(&'a self, snapshot: &'a Snapshot) -> Vec<Offer<'a>> {
        let mut offers = snapshot.offers(&self.tenant, self.mode);
        offers.retain(|offer| self.sees(&offer.entry.tool.bundle));
        offers
    }
}
