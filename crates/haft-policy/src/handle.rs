//! The current policy, shared by the pipeline and everything that changes it.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};
use haft_core::principal::Principal;
use haft_core::tool::Tool;

use super::decide::Policy;

/// The current policy. Reading it takes no lock.
#[derive(Default)]
pub struct PolicyHandle(ArcSwap<Policy>);

impl fmt::Debug for PolicyHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PolicyHandle").finish_non_exhaustive()
    }
}

impl PolicyHandle {
    /// Creates a handle of a policy.
    pub fn new(policy: Policy) -> Self {
        Self(ArcSwap::from_pointee(policy))
    }

    /// Returns the current policy.
    pub fn load(&self) -> Guard<Arc<Policy>> {
        self.0.load()
    }

    /// Returns whether a principal may call a tool, as far as that does not depend on the arguments: its list of tools
    /// includes it, and no rule denies it. Lists show exactly these tools.
    pub fn may_call(&self, principal: &Principal, tool: &Tool, surface: &str) -> bool {
        self.may_call_below(principal, tool, surface, &[])
    }

    /// Returns whether a principal may call a tool on behalf of something that came through other surfaces.
    pub fn may_call_below(
        &self,
        principal: &Principal,
        tool: &Tool,
        surface: &str,
        surfaces_above: &[Cow<'static, str>],
    ) -> bool {
        let policy = self.load();
        let is_denied = || policy.certain_denial(principal, tool, surface, surfaces_above).is_some();
        principal.allows(tool) && (policy.is_empty() || !is_denied())
    }

    /// Returns whether a principal may call a tool through the API or through MCP. For lists whose reader may use either.
    pub fn may_call_on_any_surface(&self, principal: &Principal, tool: &Tool) -> bool {
        ["rest", "mcp"].into_iter().any(|surface| self.may_call(principal, tool, surface))
    }

    /// Replaces the policy; calls that are being decided keep the old one.
    pub fn replace(&self, policy: Policy) {
        self.0.store(Arc::new(policy));
    }
}
