//! What a principal sees in lists of tools.

use std::sync::Arc;

use haft_core::principal::Principal;
use haft_core::runnable::Mode;
use haft_core::token::Role;
use haft_runtime::policy::PolicyHandle;
use haft_runtime::registry::{Entry, Snapshot};

use crate::context::Context;
use crate::identity::Identity;

/// The surface of calls through the API.
const SURFACE: &str = "rest";

/// Who reads a list of tools, with what decides which of them it may call.
#[derive(Clone)]
pub struct Viewer {
    principal: Arc<Principal>,
    policy: Arc<PolicyHandle>,
    mode: Mode,
}

impl Viewer {
    pub fn new(app: &Context, identity: &Identity) -> Self {
        Self {
            principal: identity.principal(),
            policy: Arc::clone(app.policy().handle()),
            mode: app.settings().mode,
        }
    }

    /// Returns the principal.
    pub fn principal(&self) -> &Principal {
        &self.principal
    }

    /// Returns whether it sees only what it may call: callers, and tokens with an allow-list.
    pub fn is_restricted(&self) -> bool {
        self.principal.role == Role::Caller || !self.principal.tools.is_unlimited()
    }

    /// Returns whether lists show a tool: to callers what their allow-list and the policy rules let them call, to others
    /// all tools of the tenant.
    pub fn sees(&self, entry: &Entry) -> bool {
        !self.is_restricted() || self.policy.may_call(&self.principal, &entry.tool, SURFACE)
    }

    /// Returns whether it may call a tool now, as far as that does not depend on the arguments.
    pub fn may_call(&self, snapshot: &Snapshot, entry: &Entry) -> bool {
        self.principal.role >= Role::Caller
            && snapshot.is_runnable(entry, self.mode)
            && self.policy.may_call(&self.principal, &entry.tool, SURFACE)
    }

    /// Returns whether the allow-list and the policy rules let it call a tool, whatever its role.
    pub fn may_use(&self, entry: &Entry) -> bool {
        self.policy.may_call_on_any_surface(&self.principal, &entry.tool)
    }

    /// Returns whether a list shows a tool. Restricted viewers see tools that cannot run only on request.
    pub fn lists(&self, snapshot: &Snapshot, entry: &Entry, include_disabled: bool) -> bool {
        self.sees(entry)
            && (include_disabled || !self.is_restricted() || snapshot.is_runnable(entry, self.mode))
    }
}
