//! Dependencies of a call that are stored outside the definition, such as the version of a code artifact.
//!
//! They are read before the checks and kept until the tool runs, so that rules, approvers and records see the arguments
//! of the version that runs.

use std::sync::Arc;

use haft_core::BoxFuture;
use haft_core::executor::{BoundTool, CallContext, Prepared};
use haft_core::name::TenantId;
use haft_core::outcome::{CallError, Outcome};
use haft_core::principal::Principal;
use haft_core::runnable::Mode;
use haft_definition::defaults::ArgumentDefaults;
use serde_json::{Map, Value};

use super::Pipeline;
use super::checks::compiled;
use super::results::LoadedResults;
use crate::registry::{CompiledTool, ResolvedTool};

/// The bound tool of one call, which runs instead of the prepared definition.
pub(super) struct Bound {
    pub(super) prepared: Arc<dyn Prepared>,
    pub(super) defaults: ArgumentDefaults,
}

/// The data that is read for a call before its checks.
pub(super) struct CallInputs {
    /// The results that its arguments refer to.
    pub(super) loaded: Result<Option<LoadedResults>, CallError>,
    pub(super) bound: Option<Bound>,
}

impl CallInputs {
    /// Returns the inputs of a call without stored data.
    pub(super) fn none() -> Self {
        Self { loaded: Ok(None), bound: None }
    }
}

impl Pipeline {
    /// Compiles the tool of a call and reads its inputs, before the checks.
    pub(super) async fn read_inputs<'a>(
        &self,
        tool: &ResolvedTool,
        mode: Mode,
        principal: &Principal,
        args: impl IntoIterator<Item = &'a Value>,
    ) -> CallInputs {
        let loaded = self.load_handles(principal, args).await;
        // If the tool cannot run, the checks reject the call.
        let plan = match tool.entry.runnable(tool.bundle_enabled, mode) {
            Ok(()) => compiled(&tool.entry, mode, &self.registry).ok(),
            Err(_) => None,
        };
        let bound = match &plan {
            Some(plan) => bind(plan, &principal.tenant, mode).await,
            None => None,
        };
        CallInputs { loaded, bound }
    }
}

async fn bind(plan: &CompiledTool, tenant: &TenantId, mode: Mode) -> Option<Bound> {
    let bound = plan.prepared.bind(tenant, mode)?.await;
    let BoundTool { prepared, defaults } = bound
        .unwrap_or_else(|error| BoundTool { prepared: Arc::new(Unavailable(error)), defaults: Map::new() });
    Some(Bound { prepared, defaults: ArgumentDefaults::replacing_null(defaults) })
}

/// Returns the defaults of the bound tool, which apply after those of the definition.
pub async fn bound_defaults(plan: &CompiledTool, tenant: &TenantId, mode: Mode) -> ArgumentDefaults {
    bind(plan, tenant, mode).await.map(|bound| bound.defaults).unwrap_or_default()
}

/// A dependency that could not be read. The call fails instead of reading it again, because the rules have not seen it.
struct Unavailable(CallError);

impl Prepared for Unavailable {
    fn run<'a>(&'a self, _call: &'a CallContext, _args: &'a Map<String, Value>) -> BoxFuture<'a, Outcome> {
        Box::pin(std::future::ready(Err(self.0.clone())))
    }
}
